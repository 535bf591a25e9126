"""Lists that are longer than what is in sight, and pages that nothing tells of."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Dialog
from playwright.sync_api import Route

from tests.console.conftest import Eyes
from tests.console.test_pages import indexed
from tests.console.test_pages import make_image
from tests.console.test_stories import iron
from tests.console.test_stories import make_node
from tests.console.test_stories import wait_for
from tests.support.server import Server
from tests.support.server import running_server

SHORT = 10
MANY = 130


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service that answers with a few things at a time."""
    folder = tmp_path_factory.mktemp("lists")
    with running_server(folder, options={"max_limit": str(SHORT)}) as made:
        yield made


def to_the_end(eyes: Eyes) -> None:
    """Go down until all rows are there."""
    while "so far" in eyes.page.inner_text("p.count"):
        eyes.page.evaluate("scrollTo(0, document.body.scrollHeight)")
        eyes.page.wait_for_timeout(50)


def test_rows_out_of_sight_are_as_new_as_the_others_when_one_comes_back(eyes: Eyes) -> None:
    rows = {n: make_node(eyes.server, f"far-{n:03}", resource_class="far") for n in range(MANY)}
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("fleet/node?resource_class=far")
    eyes.page.wait_for_selector("a:text-is('far-000')")
    to_the_end(eyes)
    eyes.page.evaluate("scrollTo(0, document.body.scrollHeight)")
    eyes.page.wait_for_selector("a:text-is('far-000')", state="detached")
    iron(eyes.server, "PUT", f"/nodes/{rows[0]}/maintenance", {"reason": "out of sight"})
    iron(eyes.server, "DELETE", f"/nodes/{rows[1]}")
    eyes.page.wait_for_selector(f"p.count:has-text('{MANY - 1} nodes')")
    eyes.page.evaluate("scrollTo(0, 0)")
    eyes.page.wait_for_selector("tr:has(a:text-is('far-000')):has-text('out of sight')")
    assert not eyes.page.is_visible("a:text-is('far-001')")


def test_who_goes_back_to_a_list_is_where_it_was_left(eyes: Eyes) -> None:
    last = [make_node(eyes.server, f"left-{n:03}", resource_class="left") for n in range(60)][-1]
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("fleet/node?resource_class=left")
    eyes.page.wait_for_selector("a:text-is('left-000')")
    to_the_end(eyes)
    eyes.page.click(f"a[href='#/node/{last}']")
    eyes.page.wait_for_selector("h1:has-text('left-059')")
    assert eyes.page.evaluate("scrollY") == 0
    eyes.page.go_back()
    link = eyes.page.wait_for_selector(f"td a[href='#/node/{last}']")
    within = "one => one.getBoundingClientRect().bottom <= innerHeight"
    eyes.page.wait_for_function(within, arg=link)
    eyes.page.reload()
    link = eyes.page.wait_for_selector(f"td a[href='#/node/{last}']")
    eyes.page.wait_for_function(within, arg=link)
    eyes.page.click("nav a:text-is('Attention')")
    eyes.sees("What needs somebody")
    eyes.at("fleet/node?resource_class=left")
    eyes.page.wait_for_selector("a:text-is('left-000')")
    assert eyes.page.evaluate("scrollY") == 0, "by a link it begins at its top"


def test_a_list_goes_on_though_its_last_row_was_deleted_unheard(eyes: Eyes) -> None:
    rows = [make_node(eyes.server, f"cut-{n}", resource_class="cut") for n in range(SHORT + 3)]
    eyes.come_in()
    eyes.sees("Attention")
    # Nothing is told of: as on a network that is slow just then.
    eyes.page.route("**/events/v1/events?after=*", lambda _: None)
    # What follows the first page is asked for only when the last of it is gone.
    later = f"**/baremetal/v1/nodes?*marker={rows[SHORT - 1]}*"
    gone: list[str] = []

    def delete_first(route: Route) -> None:
        if not gone:
            gone.append(rows[SHORT - 1])
            for uuid in rows[SHORT - 2 : SHORT]:
                iron(eyes.server, "DELETE", f"/nodes/{uuid}")
        route.continue_()

    eyes.page.route(later, delete_first)
    eyes.page.reload()
    eyes.at("fleet/node?resource_class=cut")
    eyes.page.wait_for_selector(f"a:text-is('cut-{SHORT + 2}')")
    assert gone
    eyes.page.wait_for_selector(f"p.count:has-text('{SHORT + 1} nodes')")
    assert not eyes.page.is_visible(f"a:text-is('cut-{SHORT - 1}')")
    assert not eyes.page.is_visible("#toast .bad")


def test_of_many_that_were_asked_those_that_refused_stay_chosen(eyes: Eyes) -> None:
    ready, other = (make_node(eyes.server, name, resource_class="two") for name in ("rdy", "not"))
    iron(eyes.server, "PUT", f"/nodes/{ready}/states/provision", {"target": "manage"})
    wait_for(eyes.server, ready, provision_state="manageable")
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("fleet/node?resource_class=two")
    eyes.page.check("thead input")
    eyes.sees("2 chosen")
    eyes.page.select_option("select[aria-label='What to do with the chosen nodes']", "provide")
    eyes.page.click("text=Do it to the chosen")
    eyes.page.wait_for_selector("#toast .bad:has-text('1 taken, 1 refused, which stay chosen')")
    assert other in eyes.page.inner_text("#toast .bad")
    assert ".." not in eyes.page.inner_text("#toast .bad")
    eyes.sees("1 chosen")
    assert eyes.page.is_checked("input[aria-label='Choose not']")
    assert not eyes.page.is_checked("input[aria-label='Choose rdy']")


def test_what_a_verb_does_to_many_nodes_is_said_before_it_is_done(eyes: Eyes) -> None:
    asked: list[str] = []

    def refuse(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    make_node(eyes.server, "kept", resource_class="kept")
    eyes.page.on("dialog", refuse)
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("fleet/node?resource_class=kept")
    eyes.page.check("thead input")
    eyes.page.select_option("select[aria-label='What to do with the chosen nodes']", "deleted")
    eyes.page.click("text=Do it to the chosen")
    assert asked == ["deleted (undeploy it, then clean it): 1 node?"]


def test_why_many_are_in_maintenance_is_said_once(eyes: Eyes) -> None:
    uuids = [make_node(eyes.server, name, resource_class="off") for name in ("off-1", "off-2")]
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("fleet/node?resource_class=off")
    eyes.page.check("thead input")
    what = "select[aria-label='What to do with the chosen nodes']"
    eyes.page.select_option(what, "maintenance on")
    eyes.page.click("text=Do it to the chosen")
    eyes.page.click("dialog button:text-is('Cancel')")
    eyes.page.click("text=Do it to the chosen")
    eyes.page.fill("dialog input", "rack is moved")
    eyes.page.keyboard.press("Enter")
    eyes.page.wait_for_selector("#toast :text-is('maintenance on: 2 taken.')")
    for uuid in uuids:
        node = iron(eyes.server, "GET", f"/nodes/{uuid}")
        assert node["maintenance_reason"] == "rack is moved"


def test_a_node_that_could_not_be_verified_needs_somebody(eyes: Eyes) -> None:
    uuid = make_node(eyes.server, "unverified", driver_info={"rack": "afar"})
    make_node(eyes.server, "only-enrolled")
    eyes.server.script("rack:afar", unreachable=True)
    eyes.come_in()
    eyes.sees("Attention")
    iron(eyes.server, "PUT", f"/nodes/{uuid}/states/provision", {"target": "manage"})
    eyes.page.wait_for_selector("tr:has(a:text-is('unverified')):has-text('verifying failed')")
    assert "not verified 1" in eyes.page.inner_text(".card.bad")
    assert not eyes.page.is_visible("a:text-is('only-enrolled')")
    eyes.server.unscript("rack:afar")
    iron(eyes.server, "PUT", f"/nodes/{uuid}/states/provision", {"target": "manage"})
    eyes.page.wait_for_selector("a:text-is('unverified')", state="detached")


def test_what_no_event_tells_of_is_asked_for_again_by_itself(eyes: Eyes) -> None:
    eyes.page.clock.install()
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("images")
    eyes.page.wait_for_selector("h1:text-is('Images')")
    make_image(eyes.server, "came-later")
    eyes.page.clock.fast_forward(11_000)
    eyes.page.wait_for_selector("td:has-text('came-later')")


def test_what_was_there_stays_while_the_service_is_away(eyes: Eyes) -> None:
    make_image(eyes.server, "stays-in-sight")
    eyes.page.clock.install()
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("images")
    eyes.page.wait_for_selector("td:has-text('stays-in-sight')")
    eyes.server.kill()
    eyes.page.wait_for_selector("#live.off")
    with eyes.page.expect_event("requestfailed", lambda asked: "/image/" in asked.url):
        eyes.page.clock.fast_forward(11_000)
    eyes.page.wait_for_timeout(200)
    assert eyes.page.is_visible("td:has-text('stays-in-sight')")
    eyes.server.start()
    eyes.page.wait_for_selector("#live.on")


def test_who_may_not_see_the_workers_is_not_told_that_there_are_none(eyes: Eyes) -> None:
    server = eyes.server
    user = {"name": "plain", "password": "and simple"}
    headers = server.headers()
    made = server.api.post("/identity/v3/users", json={"user": user}, headers=headers).json()
    [project] = server.api.get("/identity/v3/projects?name=admin", headers=headers).json()[
        "projects"
    ]
    [role] = server.api.get("/identity/v3/roles?name=member", headers=headers).json()["roles"]
    grant = f"projects/{project['id']}/users/{made['user']['id']}/roles/{role['id']}"
    assert server.api.put(f"/identity/v3/{grant}", headers=headers).status_code == 204
    eyes.log_in("plain", "and simple")
    eyes.sees("Attention")
    eyes.at("fleet/node")
    eyes.sees("No node belongs to your project, or is lent to it.")
    eyes.at("health")
    eyes.page.wait_for_selector("h1:text-is('Health')")
    told = eyes.page.inner_text("main")
    assert "ever been here" not in told
    assert "no hosts yet" not in told
    assert "ask an administrator" in told
    assert "it needs the role admin" in told


def test_a_search_goes_on_page_after_page(eyes: Eyes) -> None:
    for n in range(MANY):
        make_node(eyes.server, f"sought-{n:03}", resource_class="last" if n == MANY - 1 else "wide")
    indexed(eyes.server, f"sought-{MANY - 1}")
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("fleet/node?q=sought")
    eyes.page.wait_for_selector("a:text-is('sought-000')")
    to_the_end(eyes)
    assert eyes.page.inner_text("p.count").strip() == f"{MANY} nodes"
    eyes.at("fleet/node?q=sought&resource_class=last")
    eyes.page.wait_for_selector(f"a:text-is('sought-{MANY - 1}')")
    assert eyes.page.inner_text("p.count").strip() == "1 node", "all pages were looked through"


def test_a_later_page_that_fails_can_be_asked_for_again_though_nothing_fits_yet(eyes: Eyes) -> None:
    for n in range(MANY):
        make_node(eyes.server, f"unfit-{n:03}", resource_class="wide")
    indexed(eyes.server, f"unfit-{MANY - 1}")
    eyes.come_in()
    eyes.sees("Attention")
    later = re.compile(r"/events/v1/search\?.*after=[1-9]")
    eyes.page.route(later, lambda route: route.abort())
    eyes.at("fleet/node?q=unfit&resource_class=none")
    eyes.page.wait_for_selector("button:text-is('Try again')", timeout=20_000)
    eyes.page.unroute(later)
    eyes.page.click("button:text-is('Try again')")
    eyes.page.wait_for_selector("p.count span:text-is('0 nodes')")
