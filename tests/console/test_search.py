"""Searching by hand, faster than the service answers, or while it does not."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Route

from tests.console.conftest import Eyes
from tests.console.test_pages import indexed
from tests.console.test_stories import make_node
from tests.support.server import Server
from tests.support.server import running_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service with two nodes whose names begin alike."""
    with running_server(tmp_path_factory.mktemp("search")) as made:
        for name in ("swift-alpha", "swift-beta"):
            make_node(made, name)
            indexed(made, name)
        yield made


@pytest.fixture
def searching(eyes: Eyes) -> Eyes:
    """Somebody who has found both."""
    eyes.come_in()
    eyes.sees("Attention")
    eyes.page.fill("#query", "swift")
    eyes.page.wait_for_selector("#found a:has-text('swift-beta')")
    return eyes


def test_who_is_faster_than_the_search_gets_what_was_typed(searching: Eyes) -> None:
    searching.page.fill("#query", "swift-beta")
    searching.page.keyboard.press("Enter")
    searching.page.wait_for_selector("h1:has-text('swift-')")
    assert "swift-beta" in searching.page.inner_text("h1")


def test_the_keyboard_stays_in_what_was_found_when_more_is_found(searching: Eyes) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    searching.page.route("**/events/v1/search?q=swift-&*", hold)
    searching.page.fill("#query", "swift-")
    while not held:
        searching.page.wait_for_timeout(20)
    searching.page.keyboard.press("ArrowDown")
    searching.page.keyboard.press("ArrowDown")
    before = searching.page.evaluate("document.activeElement.href")
    searching.page.evaluate("document.activeElement.id = 'old'")
    held[0].continue_()
    searching.page.wait_for_selector("#old", state="detached")
    assert searching.page.evaluate("document.activeElement.href") == before


def test_a_search_without_an_answer_is_not_nothing_found(searching: Eyes) -> None:
    searching.page.route("**/events/v1/search*", lambda route: route.abort())
    searching.page.fill("#query", "swift-b")
    searching.page.wait_for_selector("#found li:has-text('The service does not answer')")
    searching.page.unroute("**/events/v1/search*")
    searching.page.keyboard.press("Enter")
    searching.page.wait_for_selector("h1:has-text('swift-beta')")


def test_a_page_that_cannot_be_made_says_why_in_our_words(eyes: Eyes) -> None:
    eyes.come_in()
    eyes.sees("Attention")
    eyes.page.route("**/machines.json", lambda route: route.abort())
    eyes.at("fleet/node")
    eyes.page.wait_for_selector(".trouble:has-text('is it running')")
    eyes.page.unroute("**/machines.json")
    refusal = {"status": 503, "json": {"error": {"message": "Come back later."}}}
    eyes.page.route("**/machines.json", lambda route: route.fulfill(**refusal))
    eyes.page.click("#again")
    eyes.page.wait_for_selector(".trouble:has-text('Come back later.')")
    eyes.page.unroute("**/machines.json")
    eyes.page.click("#again")
    eyes.page.wait_for_selector("h1:text-is('Nodes')")
    eyes.at("nowhere")
    eyes.page.wait_for_selector(".trouble:has-text('no page nowhere; choose one above')")
    assert not eyes.page.is_visible("#behind")
