"""Several tabs of one browser."""

from playwright.sync_api import Page

from tests.console.conftest import Eyes
from tests.console.test_stories import make_node

TOKEN = "JSON.parse(sessionStorage.getItem('siderite-session')).token"


def opened(eyes: Eyes, name: str) -> Page:
    """The page of a node, in a tab of its own."""
    eyes.at("fleet/node")
    with eyes.page.context.expect_page() as found:
        eyes.page.click(f"td a:text-is('{name}')", modifiers=["Control"])
    found.value.wait_for_selector(f"h1:has-text('{name}')")
    return found.value


def test_a_link_that_is_opened_in_another_tab_goes_on_with_the_session(eyes: Eyes) -> None:
    make_node(eyes.server, "beside")
    eyes.log_in()
    eyes.sees("Attention")
    tab = opened(eyes, "beside")
    tab.wait_for_selector("#live.on")
    eyes.page.close()
    tab.reload()
    tab.wait_for_selector("h1:has-text('beside')")


def test_who_logs_out_is_out_in_every_tab_and_at_the_service(eyes: Eyes) -> None:
    make_node(eyes.server, "left")
    eyes.log_in()
    eyes.sees("Attention")
    tab = opened(eyes, "left")
    token = eyes.page.evaluate(TOKEN)
    assert tab.evaluate(TOKEN) == token
    with eyes.page.expect_response(lambda one: one.request.method == "DELETE"):
        eyes.page.click("#leave")
    for page in (eyes.page, tab):
        page.wait_for_selector("form.login")
        assert not page.locator(".login .note").count(), "nobody's session has ended by itself"
    answer = eyes.server.api.get("/baremetal/v1/nodes", headers={"X-Auth-Token": token})
    assert answer.status_code == 401


def test_a_tab_without_another_asks_who_it_is(eyes: Eyes) -> None:
    eyes.page.goto(eyes.server.url + "/console/#/health")
    eyes.page.wait_for_selector("form.login")
