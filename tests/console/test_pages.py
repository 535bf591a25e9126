"""What the console's pages say, against a service whose own pages are short."""

import time
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import pytest

from siderite.baremetal.domain.node import FAULTS
from tests.console.conftest import Eyes
from tests.console.test_stories import COMPUTE
from tests.console.test_stories import iron
from tests.console.test_stories import make_node
from tests.support.server import Server
from tests.support.server import running_server

SHORT = 4


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service that answers with a few things at a time."""
    options = {"max_limit": str(SHORT), "quota_instances": "-1", "quota_cores": "-1"}
    with running_server(tmp_path_factory.mktemp("pages"), options=options) as made:
        yield made


def nova(server: Server, path: str, body: object) -> Any:
    headers = {**server.headers(), **COMPUTE}
    answer = server.api.post(f"/compute/v2.1/{path}", json=body, headers=headers)
    return answer.raise_for_status().json() if answer.content else None


def shut(server: Server, service: str, change: object) -> None:
    """Change a compute service."""
    headers = {**server.headers(), **COMPUTE}
    path = f"/compute/v2.1/os-services/{service}"
    server.api.put(path, json=change, headers=headers).raise_for_status()


def make_image(server: Server, name: str | None) -> str:
    record = {"name": name, "disk_format": "raw", "container_format": "bare"}
    made = server.api.post("/image/v2/images", json=record, headers=server.headers())
    return str(made.raise_for_status().json()["id"])


def indexed(server: Server, name: str) -> None:
    """Wait until a search finds it."""
    path, deadline = f"/events/v1/search?q={name}", time.monotonic() + 60
    while not server.api.get(path, headers=server.headers()).json()["results"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_console_is_there_without_its_slash_too(eyes: Eyes) -> None:
    eyes.page.goto(eyes.server.url + "/console#/health")
    eyes.page.fill("input[name=password]", eyes.server.password)
    eyes.page.click("button:has-text('Log in')")
    eyes.page.wait_for_selector("h1:text-is('Health')")
    assert eyes.page.url == eyes.server.url + "/console/#/health"


def test_the_console_asks_where_a_proxy_has_put_it(eyes: Eyes) -> None:
    asked: list[str] = []
    eyes.page.on("request", lambda request: asked.append(request.url))
    eyes.page.route(
        f"{eyes.server.url}/below/**",
        lambda route: route.continue_(url=route.request.url.replace("/below/", "/", 1)),
    )
    eyes.page.goto(eyes.server.url + "/below/console/#/health")
    eyes.page.fill("input[name=password]", eyes.server.password)
    eyes.page.click("button:has-text('Log in')")
    eyes.page.wait_for_selector("h1:text-is('Health')")
    assert [url for url in asked if not url.startswith(f"{eyes.server.url}/below/")] == []


def test_what_was_found_goes_when_one_goes_elsewhere(eyes: Eyes) -> None:
    make_node(eyes.server, "sought")
    indexed(eyes.server, "sought")
    eyes.come_in()
    eyes.sees("Attention")
    eyes.page.fill("#query", "sought")
    eyes.page.wait_for_selector("#found a:has-text('sought')")
    eyes.page.click("nav a:text-is('Health')")
    eyes.page.wait_for_selector("h1:text-is('Health')")
    assert not eyes.page.is_visible("#found")
    eyes.page.focus("#query")
    eyes.page.wait_for_selector("#found a:has-text('sought')")
    eyes.page.keyboard.press("Escape")
    assert not eyes.page.is_visible("#found")
    eyes.page.keyboard.press("Enter")
    eyes.page.wait_for_selector("h1:has-text('sought')")


def test_a_proxy_that_answers_for_a_service_that_is_away_is_not_quoted(eyes: Eyes) -> None:
    uuid = make_node(eyes.server, "behind-a-proxy")
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at(f"node/{uuid}")
    eyes.page.wait_for_selector("h1:has-text('behind-a-proxy')")
    away = {"status": 502, "content_type": "text/html", "body": "<html><h1>502 Bad Gateway</h1>"}
    eyes.page.route("**/baremetal/v1/nodes/**", lambda route: route.fulfill(**away))
    with eyes.page.expect_response(lambda one: one.status == away["status"]):
        iron(eyes.server, "PUT", f"/nodes/{uuid}/maintenance", {"reason": "new fans"})
    eyes.page.click("button:text-is('manage')")
    eyes.page.wait_for_selector("#toast .bad:has-text('manage: The service does not answer')")
    assert eyes.page.is_visible("h1:has-text('behind-a-proxy')"), "what was there stays"
    eyes.page.unroute("**/baremetal/v1/nodes/**")
    eyes.sees("In maintenance: new fans")


def test_who_left_a_page_that_is_drawn_again_is_not_disturbed_on_the_next(eyes: Eyes) -> None:
    uuid = make_node(eyes.server, "noisy", resource_class="noisy")
    eyes.page.clock.install()
    eyes.come_in()
    eyes.sees("Attention")
    iron(eyes.server, "PUT", f"/nodes/{uuid}/maintenance", {"reason": "new fans"})
    eyes.page.wait_for_selector("main tr:has-text('noisy')")
    eyes.at("fleet/node?resource_class=noisy")
    eyes.page.check("input[aria-label='Choose noisy']")
    eyes.page.clock.fast_forward(60_000)
    for _ in range(5):  # what was asked for before has been answered by then
        eyes.page.evaluate("fetch('/baremetal/v1/nodes').then((one) => one.text())")
    assert eyes.page.is_checked("input[aria-label='Choose noisy']")


def test_webhooks_are_looked_at_again_and_who_writes_a_new_one_goes_on(eyes: Eyes) -> None:
    hook = {"name": "deaf", "url": "https://deaf.invalid/", "type": "baremetal.node.create.start"}
    path, headers = "/events/v1/webhooks", eyes.server.headers()
    eyes.server.api.post(path, json=hook, headers=headers).raise_for_status()
    eyes.page.clock.install()
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("webhooks")
    eyes.page.wait_for_selector("tr:has-text('deaf') td[data-label=Waiting]:text-is('0')")
    eyes.page.fill("input[name=url]", "https://hooks.example/")
    eyes.page.focus("button:text-is('Test')")
    make_node(eyes.server, "told-of")
    counted = eyes.page.locator("tr:has-text('deaf') td[data-label=Waiting]:text-is('1')")
    deadline = time.monotonic() + 60
    while not counted.count():
        assert time.monotonic() < deadline
        eyes.page.clock.run_for(10_000)
    assert eyes.page.input_value("input[name=url]") == "https://hooks.example/"
    held = "document.activeElement.getAttribute('aria-label')"
    assert eyes.page.evaluate(held) == "Test: deaf"
    eyes.page.click("button:text-is('Turn off')")
    eyes.page.wait_for_selector("tr:has-text('deaf') .tag:text-is('off')")
    assert eyes.page.input_value("input[name=url]") == "https://hooks.example/"


def test_time_goes_on_though_nothing_happens(eyes: Eyes) -> None:
    make_node(eyes.server, "quiet", resource_class="quiet")
    indexed(eyes.server, "quiet")
    eyes.page.clock.install()
    eyes.come_in()
    eyes.sees("Attention")
    for page, expected in (
        ("events?resource=quiet", "10 h"),
        ("fleet/node?resource_class=quiet", "20 h"),
    ):
        eyes.at(page)
        shown = eyes.page.wait_for_selector("tbody tr:has-text('quiet') time")
        assert shown.inner_text() != expected
        eyes.page.clock.fast_forward(10 * 3600 * 1000)
        eyes.page.wait_for_function(f"one => one.textContent === '{expected}'", arg=shown)


def test_a_filter_that_is_refused_is_still_there_to_be_mended(
    eyes: Eyes, boot: Callable[[str], str]
) -> None:
    boot("findable")
    indexed(eyes.server, "findable")
    eyes.come_in()
    eyes.sees("Attention")
    for page in ("fleet/server?name=[", "fleet/server?name=[&q=findable"):
        eyes.at(page)
        eyes.page.reload()
        eyes.page.wait_for_selector(".trouble:has-text('regular expression')")
        assert eyes.page.input_value("input[name=name]") == "["
    eyes.page.fill("input[name=name]", "find")
    eyes.page.click("button:text-is('Filter')")
    eyes.page.wait_for_selector("td a:text-is('findable')")


def test_nodes_are_chosen_by_their_owners_name_as_it_is_shown(eyes: Eyes) -> None:
    found = eyes.server.api.get("/identity/v3/projects?name=admin", headers=eyes.server.headers())
    make_node(eyes.server, "ours", owner=found.json()["projects"][0]["id"])
    make_node(eyes.server, "theirs", owner="somebody")
    eyes.come_in()
    eyes.sees("Attention")
    for owner, name in (("admin", "ours"), ("somebody", "theirs")):
        eyes.at(f"fleet/node?owner={owner}")
        eyes.page.wait_for_selector(f"td a:text-is('{name}')")
        assert eyes.page.inner_text("p.count").strip() == "1 node"
        assert eyes.page.input_value("input[name=owner]") == owner


def test_machines_are_chosen_by_any_state_that_they_may_have(eyes: Eyes) -> None:
    eyes.come_in()
    eyes.sees("Attention")
    tables = eyes.server.api.get("/console/machines.json").json()
    options = "all => all.map((one) => one.value).filter(Boolean)"
    eyes.at("fleet/node")
    eyes.page.wait_for_selector("select[name=provision_state]")
    states = eyes.page.eval_on_selector_all("select[name=provision_state] option", options)
    assert states == list(tables["node"]["verbs"])
    faults = eyes.page.eval_on_selector_all("select[name=fault] option", options)
    assert faults == list(FAULTS)
    eyes.at("fleet/server")
    eyes.page.wait_for_selector("select[name=status]")
    for word in eyes.page.eval_on_selector_all("select[name=status] option", options):
        path = f"/compute/v2.1/servers?status={word}"
        answer = eyes.server.api.get(path, headers={**eyes.server.headers(), **COMPUTE})
        assert answer.status_code == 200, answer.text


def test_power_can_be_pressed_only_where_it_would_be_changed(eyes: Eyes) -> None:
    scrubbed = make_node(eyes.server, "scrubbed")
    eyes.server.script(f"node:{scrubbed}", ramdisk=True, silent=True)
    kept = make_node(eyes.server, "never-off", disable_power_off=True)
    iron(eyes.server, "PUT", f"/nodes/{scrubbed}/states/provision", {"target": "manage"})
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at(f"node/{scrubbed}")
    eyes.page.wait_for_selector("h1 .tag:text-is('manageable')")
    assert eyes.page.is_enabled("button:text-is('power on')")
    eyes.page.click("button:text-is('provide')")
    eyes.page.wait_for_selector("h1 .tag:text-is('clean wait')")
    assert eyes.page.is_disabled("button:text-is('power on')")
    eyes.at(f"node/{kept}")
    eyes.page.wait_for_selector("h1:has-text('never-off')")
    assert eyes.page.is_enabled("button:text-is('rebooting')")
    assert eyes.page.is_disabled("button:text-is('soft power off')")


def test_attention_says_for_how_long_a_node_is_held_back_and_not_in_its_state(eyes: Eyes) -> None:
    uuid = make_node(eyes.server, "held")
    iron(eyes.server, "PUT", f"/nodes/{uuid}/states/provision", {"target": "manage"})
    iron(eyes.server, "PUT", f"/nodes/{uuid}/maintenance", {"reason": "a fan"})
    eyes.come_in()
    shown = "tr:has(a:text-is('held')) td:last-child time"
    assert eyes.page.get_attribute(shown, "datetime") == began(eyes.server, uuid)
    iron(eyes.server, "PUT", f"/nodes/{uuid}/maintenance", {"reason": "two fans"})
    eyes.sees("maintenance: two fans")
    assert eyes.page.get_attribute(shown, "datetime") == began(eyes.server, uuid)
    iron(eyes.server, "DELETE", f"/nodes/{uuid}/maintenance")
    eyes.page.wait_for_selector(shown, state="detached")
    iron(eyes.server, "PUT", f"/nodes/{uuid}/maintenance", {"reason": "a fan"})
    assert eyes.page.get_attribute(shown, "datetime") == began(eyes.server, uuid)
    for value in (False, True):
        patch = [{"op": "replace", "path": "/maintenance", "value": value}]
        iron(eyes.server, "PATCH", f"/nodes/{uuid}", patch)
        eyes.page.wait_for_selector(shown, state="attached" if value else "detached")
    assert eyes.page.get_attribute(shown, "datetime") == began(eyes.server, uuid, by="update")


def began(server: Server, uuid: str, by: str = "maintenance_set") -> str:
    """When the node's maintenance began, as its timeline has it."""
    path = f"/baremetal/v1/nodes/{uuid}/timeline?sort_dir=desc"
    found = []
    while path:
        page = server.api.get(path, headers=server.headers("1.900")).json()
        found += page["timeline"]
        path = page.get("next")
    return next(
        entry["time"]
        for entry in found
        if entry["what"] == by and (entry["from"], entry["to"]) == (False, True)
    )


def test_a_nodes_page_has_the_newest_of_a_long_life(eyes: Eyes) -> None:
    uuid = make_node(eyes.server, "old")
    for _ in range(SHORT):
        iron(eyes.server, "PUT", f"/nodes/{uuid}/maintenance", {"reason": "a fan"})
        iron(eyes.server, "DELETE", f"/nodes/{uuid}/maintenance")
    iron(eyes.server, "PUT", f"/nodes/{uuid}/maintenance", {"reason": "the last of all"})
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at(f"node/{uuid}")
    row = "section:has(h2:text-is('Timeline')) tbody tr"
    eyes.page.wait_for_selector(f"{row}:first-child:has-text('the last of all')")
    assert eyes.page.locator(row).count() == SHORT
    moves = eyes.page.locator(f"{row} td[data-label='From → to']").all_inner_texts()
    assert moves == ["–", "false → true", "–", "true → false"]


def test_lists_go_on_though_the_services_pages_are_short(eyes: Eyes) -> None:
    for number in range(2 * SHORT + 1):
        make_node(eyes.server, f"one-of-many-{number}", resource_class="many")
        nova(eyes.server, "hosts", {"host": {"name": f"host-{number}", "uri": "simulated:"}})
        flavor = {"name": f"flavor-{number}", "vcpus": 1, "ram": 64, "disk": 1}
        nova(eyes.server, "flavors", {"flavor": flavor})
        make_image(eyes.server, f"image-{number}")
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("fleet/node?resource_class=many")
    eyes.page.wait_for_selector(f"p.count:has-text('{2 * SHORT + 1} nodes')")
    eyes.at("capacity")
    eyes.sees(f"all {2 * SHORT + 1} hosts")
    eyes.page.wait_for_selector(f"tr:has(.name:text-is('flavor-{2 * SHORT}'))")
    eyes.photograph("capacity-of-many")
    eyes.at("images")
    eyes.page.wait_for_selector(f"tr:has(span:text-is('image-{2 * SHORT}'))")


@pytest.fixture
def boot(server: Server) -> Callable[[str], str]:
    """Makes a server; its id."""
    image = make_image(server, "disk")
    octets = {**server.headers(), "Content-Type": "application/octet-stream"}
    file = f"/image/v2/images/{image}/file"
    server.api.put(file, content=b"x" * 512, headers=octets).raise_for_status()
    wanted = {"name": f"of-{image}", "vcpus": 1, "ram": 64, "disk": 1}
    flavor = nova(server, "flavors", {"flavor": wanted})["flavor"]["id"]

    def made(name: str) -> str:
        asked = {"name": name, "flavorRef": flavor, "imageRef": image, "networks": "none"}
        return str(nova(server, "servers", {"server": asked})["server"]["id"])

    return made


def test_pending_says_that_not_all_servers_were_looked_at(
    eyes: Eyes, boot: Callable[[str], str]
) -> None:
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("pending")
    eyes.sees("No server is preemptible")
    assert "looked at" not in eyes.page.inner_text("main")
    for number in range(SHORT + 1):
        boot(f"s{number}")
    eyes.sees(f"Only the newest {SHORT} servers were looked at")


@pytest.mark.parametrize("width", [1280, 950])
def test_a_long_status_stays_in_its_column(
    eyes: Eyes, boot: Callable[[str], str], width: int
) -> None:
    eyes.page.set_viewport_size({"width": width, "height": 850})
    nova(eyes.server, "hosts", {"host": {"name": f"shelf-{width}", "uri": "simulated:"}})
    name = f"shelved-at-{width}"
    uuid = boot(name)
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at(f"fleet/server?name={name}")
    row = f"tr:has(a:text-is('{name}'))"
    eyes.page.wait_for_selector(f"{row} .tag:text-is('ACTIVE')")
    headers = {**eyes.server.headers(), **COMPUTE}
    path = f"/compute/v2.1/servers/{uuid}/action"
    eyes.server.api.post(path, json={"shelve": None}, headers=headers).raise_for_status()
    tag = eyes.page.wait_for_selector(f"{row} .tag:text-is('SHELVED_OFFLOADED')")
    assert tag.evaluate("one => one.getBoundingClientRect().right") <= tag.evaluate(
        "one => one.closest('td').getBoundingClientRect().right"
    )
    eyes.photograph(name)


@pytest.mark.sampled
@pytest.mark.parametrize("width", [1280, 950, 750])
def test_the_word_for_power_stays_in_one_piece(
    eyes: Eyes, boot: Callable[[str], str], width: int
) -> None:
    eyes.page.set_viewport_size({"width": width, "height": 850})
    nova(eyes.server, "hosts", {"host": {"name": f"power-{width}", "uri": "simulated:"}})
    name = f"on-at-{width}"
    boot(name)
    make_node(eyes.server, name, resource_class=name)
    eyes.come_in()
    eyes.sees("Attention")
    for page, word in (
        (f"fleet/server?name={name}", "running"),
        (f"fleet/node?resource_class={name}", "unknown"),
    ):
        eyes.at(page)
        tag = eyes.page.wait_for_selector(f"tr:has(a:text-is('{name}')) .tag:text-is('{word}')")
        lines = "one => one.offsetHeight / parseFloat(getComputedStyle(one).lineHeight)"
        assert tag.evaluate(lines) < 2
        eyes.photograph(f"{word}-{width}")


def test_events_say_what_became_of_the_power_and_why_no_host_takes_a_server(
    eyes: Eyes, boot: Callable[[str], str]
) -> None:
    uuid = make_node(eyes.server, "corrected")
    iron(eyes.server, "PUT", f"/nodes/{uuid}/states/provision", {"target": "manage"})
    nova(eyes.server, "hosts", {"host": {"name": "closed", "uri": "simulated:"}})
    services = eyes.server.api.get(
        "/compute/v2.1/os-services", headers={**eyes.server.headers(), **COMPUTE}
    )
    for one in services.json()["services"]:
        shut(eyes.server, one["id"], {"status": "disabled"})
    placeless = boot("placeless")
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at(f"events?resource={uuid}")
    row = "#tail tr:has-text('power_state_corrected')"
    eyes.page.wait_for_selector(f"{row} :text-is('unknown → power off')")
    eyes.at(f"events?resource={placeless}")
    eyes.page.wait_for_selector("#tail tr:has-text('build_instances.error'):has-text('No valid')")
    said = eyes.page.inner_text("#tail tr:has-text('select_destinations.error')")
    assert any(f"{one['host']}: " in said for one in services.json()["services"]), said
    for one in services.json()["services"]:
        shut(eyes.server, one["id"], {"status": "enabled"})


def test_events_are_chosen_by_the_name_of_a_machine_and_go_on_live(eyes: Eyes) -> None:
    uuid = make_node(eyes.server, "talkative")
    other = make_node(eyes.server, "silent")
    indexed(eyes.server, "silent")
    eyes.come_in()
    eyes.at("events?resource=nobody")
    eyes.sees("There is no resource with the id or the name 'nobody'")
    eyes.page.fill("input[name=resource]", "talkative")
    eyes.page.click("button:text-is('Filter')")
    eyes.page.wait_for_selector("#tail tr:nth-child(2)")
    for node in (other, uuid):
        iron(eyes.server, "PUT", f"/nodes/{node}/maintenance", {})
    eyes.page.wait_for_selector("#tail tr.new:has-text('maintenance_set.end')")
    assert "silent" not in eyes.page.inner_text("#tail")


@pytest.mark.sampled
@pytest.mark.parametrize("width", [768, 1024, 1240, 1360])
def test_on_a_tablet_what_belongs_together_stays_in_one_row(eyes: Eyes, width: int) -> None:
    make_node(eyes.server, f"tablet-{width}")
    eyes.come_in()
    eyes.sees("Attention")
    eyes.page.set_viewport_size({"width": width, "height": 900})
    eyes.at("events")
    row = eyes.page.wait_for_selector(f"#tail tr:has-text('tablet-{width}')")
    assert row.bounding_box()["height"] < 50, "a request's id is long"
    middle = "one => Math.round(one.getBoundingClientRect().top + one.offsetHeight / 2)"
    tools = [eyes.page.eval_on_selector(f"#{one}", middle) for one in ("find", "theme", "leave")]
    assert max(tools) - min(tools) < 5


def test_health_says_why_a_compute_service_takes_no_servers(eyes: Eyes) -> None:
    server = eyes.server
    for name in ("mended", "lost"):
        nova(server, "hosts", {"host": {"name": name, "uri": "simulated:"}})
    headers = {**server.headers(), **COMPUTE}
    listed = server.api.get("/compute/v2.1/os-services", headers=headers).json()["services"]
    ids = {one["host"]: one["id"] for one in listed}
    shut(server, ids["mended"], {"status": "disabled", "disabled_reason": "a new disk"})
    shut(server, ids["lost"], {"forced_down": True})
    listed = server.api.get("/compute/v2.1/os-services", headers=headers).json()["services"]
    (why,) = [one["down_reason"] for one in listed if one["host"] == "lost"]
    assert why
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("health")
    eyes.page.wait_for_selector("tr:has(td:text-is('mended')):has-text('disabled: a new disk')")
    assert why in eyes.page.inner_text("tr:has(td:text-is('lost'))")
    eyes.photograph("health-why")
