"""What an operator does in the console, in a real browser, against the real service."""

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Route

from tests.console.conftest import Eyes
from tests.support.examples import examples
from tests.support.server import Server
from tests.support.server import clean_environment

MANY = examples(2_500)
COMPUTE = {"OpenStack-API-Version": "compute 2.901"}


def iron(server: Server, method: str, path: str, body=None):
    answer = server.api.request(
        method, "/baremetal/v1" + path, json=body, headers=server.headers("1.115")
    )
    assert answer.status_code < 300, answer.text
    return answer.json() if answer.content else None


def make_node(server: Server, name: str, **fields) -> str:
    return iron(server, "POST", "/nodes", {"driver": "fake-hardware", "name": name, **fields})[
        "uuid"
    ]


def wait_for(server: Server, uuid: str, **wanted) -> None:
    deadline = time.monotonic() + 60
    while any(
        (node := iron(server, "GET", f"/nodes/{uuid}"))[name] != wanted[name] for name in wanted
    ):
        assert time.monotonic() < deadline, node
        time.sleep(0.05)


def test_somebody_logs_in_and_a_wrong_password_is_told(eyes: Eyes) -> None:
    eyes.log_in(password="wrong")
    eyes.page.wait_for_selector(".login .trouble")
    eyes.log_in()
    eyes.sees("What needs somebody")
    eyes.page.wait_for_selector("#live.on")
    assert "GET /baremetal/v1/nodes/detail" in eyes.page.inner_text("#behind")
    eyes.photograph("attention")


def test_a_node_is_watched_live_and_only_legal_verbs_can_be_pressed(eyes: Eyes) -> None:
    uuid = make_node(eyes.server, "watched")
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at(f"node/{uuid}")
    eyes.page.wait_for_selector("h1 .tag:has-text('enroll')")
    assert eyes.page.is_disabled("button:text-is('provide')")
    waiting: list[Route] = []

    def hold(one: Route) -> None:
        waiting.append(one)

    eyes.page.route("**/states/provision", hold)
    for _ in range(2):  # by somebody who is quicker than the network
        eyes.page.click("button:text-is('manage')")
    eyes.page.wait_for_selector("button[aria-busy]:text-is('manage')")
    deadline = time.monotonic() + 60
    while not waiting:  # the button is busy before its request is on its way
        assert time.monotonic() < deadline, "no request came"
        eyes.page.wait_for_timeout(20)
    assert len(waiting) == 1
    waiting[0].continue_()
    eyes.page.unroute("**/states/provision")
    eyes.page.wait_for_selector("h1 .tag:has-text('manageable')")
    eyes.page.click("button:text-is('provide')")
    eyes.page.wait_for_selector("h1 .tag:has-text('available')")
    eyes.page.wait_for_selector("td:has-text('cleaning → available')")
    assert eyes.page.get_attribute(".diagram img", "src").endswith("here=available")
    eyes.page.wait_for_function("document.querySelector('.diagram img').naturalWidth > 500")
    eyes.photograph("node")
    eyes.page.focus("button:text-is('maintenance on')")
    eyes.page.keyboard.press("Enter")
    eyes.page.wait_for_selector("dialog[aria-label='Maintenance on']")
    eyes.page.keyboard.type("new fans")
    eyes.page.keyboard.press("Enter")
    eyes.sees("In maintenance: new fans")
    held = eyes.page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert held == "Maintenance", "a page that is drawn again leaves the keyboard where it was"
    eyes.at("fleet")
    eyes.page.wait_for_selector("h1:has-text('Nodes')")
    eyes.page.keyboard.press("/")
    eyes.page.keyboard.type("watched")
    eyes.page.wait_for_selector("#found a:has-text('watched')")
    eyes.page.keyboard.press("ArrowDown")
    eyes.page.keyboard.press("Enter")
    eyes.page.wait_for_selector("h1:has-text('watched')")
    eyes.page.focus(".skip")
    eyes.page.keyboard.press("Enter")
    assert eyes.page.evaluate("document.activeElement.id") == "page"
    assert f"#/node/{uuid}" in eyes.page.url


def test_a_verb_that_is_refused_shows_the_reason(eyes: Eyes) -> None:
    uuid = make_node(eyes.server, "refused", resource_class="refused")
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("fleet/node?provision_state=enroll&resource_class=refused")
    assert eyes.page.is_disabled("text=Do it to the chosen"), "nothing is chosen yet"
    eyes.page.check("input[aria-label='Choose refused']")
    eyes.sees("1 chosen")
    eyes.page.select_option("select[aria-label='What to do with the chosen nodes']", "provide")
    eyes.page.click("text=Do it to the chosen")
    eyes.page.wait_for_selector("#toast .bad:has-text('Legal here')")
    eyes.page.click("#toast .bad button[aria-label='Close']")
    eyes.page.wait_for_selector("#toast .bad", state="detached")
    assert iron(eyes.server, "GET", f"/nodes/{uuid}")["provision_state"] == "enroll"
    iron(eyes.server, "PUT", f"/nodes/{uuid}/states/provision", {"target": "manage"})
    row = "tr:has(a:text-is('refused'))"
    eyes.page.wait_for_selector(f"{row} .tag:text-is('manageable')")  # live, and still chosen
    assert eyes.page.is_checked(f"{row} input")


def test_a_failed_deploy_is_found_understood_and_tried_again(eyes: Eyes) -> None:
    uuid = make_node(eyes.server, "failing")
    for verb, end in (("manage", "manageable"), ("provide", "available")):
        iron(eyes.server, "PUT", f"/nodes/{uuid}/states/provision", {"target": verb})
        wait_for(eyes.server, uuid, provision_state=end)
    eyes.server.script(f"node:{uuid}", fail={"deploy.write_image": "the disk is gone"})
    iron(eyes.server, "PUT", f"/nodes/{uuid}/states/provision", {"target": "active"})
    wait_for(eyes.server, uuid, provision_state="deploy failed")
    iron(eyes.server, "PUT", f"/nodes/{uuid}/states/power", {"target": "power on"})
    wait_for(eyes.server, uuid, power_state="power on", last_error=None)
    eyes.come_in()
    eyes.page.click(".card a:has-text('deploy failed')")
    eyes.page.click("td a:text-is('failing')")
    eyes.sees("the disk is gone", within=".trouble")  # though the power request took the error away
    eyes.sees("active (deploy it)", within=".trouble")
    eyes.server.unscript(f"node:{uuid}")
    eyes.page.click("button:text-is('active')")
    eyes.page.wait_for_selector("h1 .tag:text-is('active')")
    eyes.page.click("button:text-is('service')")
    eyes.page.fill("dialog textarea", '[{"interface": "deploy", "step": "burnin_cpu"}]')
    eyes.page.click("dialog button:text-is('Go on')")
    eyes.page.wait_for_selector("td:has-text('servicing → active')")
    eyes.at(f"events?type=*.error&resource={uuid}")
    eyes.sees("deploying → deploy failed", within="#tail")


def test_maintenance_is_told_though_nobody_gave_a_reason(eyes: Eyes) -> None:
    uuid = make_node(eyes.server, "untold", resource_class="untold")
    iron(eyes.server, "PUT", f"/nodes/{uuid}/maintenance", {})
    eyes.come_in()
    row = "tr:has(a:text-is('untold')) td:has-text('maintenance: no reason was given')"
    eyes.page.wait_for_selector(row)
    eyes.at("fleet/node?resource_class=untold")
    eyes.page.wait_for_selector(row)
    assert eyes.page.inner_text("p.count") == "1 node"


def test_a_session_that_ends_goes_on_where_it_was(eyes: Eyes) -> None:
    eyes.log_in()
    eyes.page.wait_for_selector("#live.on")
    spoilt = 'sessionStorage.getItem(\'siderite-session\').replace(/token":"[^"]*/, \'token":"x\')'
    eyes.page.evaluate(f"sessionStorage.setItem('siderite-session', {spoilt})")
    eyes.at("health")
    eyes.page.reload()
    eyes.sees("Your session has ended", within=".login")
    eyes.page.fill("input[name=password]", eyes.server.password)
    eyes.page.click("button:has-text('Log in')")
    eyes.page.wait_for_selector("h1:text-is('Health')")


def test_an_outage_appears_on_attention_and_goes(eyes: Eyes) -> None:
    for name in ("dark", "dim", "dusky", "gloomy", "shady", "unlit"):
        uuid = make_node(eyes.server, name, driver_info={"rack": "r9"})
        iron(eyes.server, "PUT", f"/nodes/{uuid}/states/provision", {"target": "manage"})
    eyes.come_in()
    eyes.sees("What needs somebody")
    eyes.server.script("rack:r9", unreachable=True)
    eyes.page.click("summary:text-is('6 nodes')", timeout=120_000)  # one outage is one line
    eyes.page.wait_for_selector("td a:text-is('dark')")
    eyes.photograph("outage")
    eyes.page.click("td a:text-is('dark')")
    eyes.page.wait_for_selector(".note:has-text('ends by itself when the BMC answers')")
    assert eyes.page.locator(".note").count() == 1, "an outage is told once"
    eyes.at("attention")
    eyes.page.click("summary:text-is('6 nodes')")
    eyes.server.unscript("rack:r9")
    eyes.page.wait_for_selector("td a:text-is('dark')", state="detached", timeout=120_000)


def test_a_pending_server_gets_room_from_the_reaper(eyes: Eyes) -> None:
    server = eyes.server

    def ask(method, path, body=None):
        headers = {**server.headers(), **COMPUTE}
        answer = server.api.request(method, "/compute/v2.1" + path, json=body, headers=headers)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    image = server.api.post(
        "/image/v2/images", headers=server.headers(),
        json={"name": "i", "disk_format": "raw", "container_format": "bare"},
    ).json()["id"]  # fmt: skip
    octets = {**server.headers(), "Content-Type": "application/octet-stream"}
    server.api.put(f"/image/v2/images/{image}/file", content=b"x" * 512, headers=octets)
    options = {"vcpus": "1", "ram_mib": "1024", "disk_gib": "10"}
    ask("POST", "/hosts", {"host": {"name": "tiny", "uri": "simulated:", "options": options}})
    flavor = ask("POST", "/flavors", {"flavor": {"name": "f", "vcpus": 1, "ram": 512, "disk": 1}})

    def boot(name, **more):
        wanted = {"name": name, "imageRef": image, "flavorRef": flavor["flavor"]["id"]}
        return ask("POST", "/servers", {"server": {**wanted, "networks": "none", **more}})

    boot("cheap", metadata={"preemptible": "true"})
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("fleet/server")
    eyes.sees("cheap")
    boot("paying")
    eyes.at("pending")
    eyes.page.wait_for_selector("td a:text-is('paying')")
    eyes.sees("without room")
    eyes.photograph("pending")
    program = Path(sys.executable).with_name("siderite")
    done = subprocess.run(
        [program, "reaper", "--once", "--data", server.data], env=clean_environment(), check=False,
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    eyes.sees("No server waits for room")
    eyes.page.wait_for_selector("h2:text-is('Who went for others') + .scroll td:text-is('cheap')")
    eyes.page.wait_for_selector("h2:text-is('Who went for others') + .scroll a:text-is('paying')")
    eyes.page.wait_for_selector("h2:text-is('Who went for others') + .scroll span:text-is('admin')")
    eyes.photograph("evictions")
    eyes.at("capacity")
    eyes.page.wait_for_selector("td:has-text('tiny')")
    eyes.sees("What fits where")
    eyes.photograph("capacity")
    eyes.at("fleet/server?name=paying")
    eyes.page.wait_for_selector("td a:text-is('paying')")
    assert eyes.page.inner_text("p.count") == "1 server"
    deadline = time.monotonic() + 60
    search = "/events/v1/search?type=server&q=paying"
    while not server.api.get(search, headers=server.headers()).json()["results"]:
        assert time.monotonic() < deadline, "the index never heard of it"
    eyes.at("fleet/server?q=paying&host=other")
    eyes.sees("No servers match")
    eyes.at("fleet/server?q=paying&host=tiny&name=^pay")
    eyes.page.click("td a:text-is('paying')")
    eyes.page.wait_for_selector("h1 .tag:has-text('ACTIVE')")
    eyes.page.wait_for_selector(".diagram img[src$='server.svg?here=active']")
    assert eyes.page.evaluate("document.querySelector('.diagram img').naturalWidth") < 1200


def test_bare_metal_is_no_room_for_virtual_servers(eyes: Eyes) -> None:
    uuid = make_node(eyes.server, "whole", resource_class="whole")
    path, headers = "/compute/v2.1/hosts", {**eyes.server.headers(), **COMPUTE}
    host = {"host": {"name": "metal", "uri": "baremetal:"}}
    eyes.server.api.post(path, json=host, headers=headers).raise_for_status()
    try:
        eyes.come_in()
        eyes.sees("Attention")
        eyes.at("capacity")
        eyes.page.wait_for_selector("p:has-text('bare metal node')")
        assert uuid not in eyes.page.inner_text("main")
    finally:
        eyes.server.api.delete(f"{path}/metal", headers=headers).raise_for_status()


def test_the_stream_goes_on_after_the_service_was_restarted(eyes: Eyes) -> None:
    uuid = make_node(eyes.server, "patient")
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("events")
    eyes.sees("baremetal.node.create.end")
    eyes.server.kill()
    eyes.page.wait_for_selector("#live.off")
    eyes.server.start()
    eyes.page.wait_for_selector("#live.on")
    iron(eyes.server, "PUT", f"/nodes/{uuid}/states/provision", {"target": "manage"})
    eyes.page.wait_for_selector(f"tr.new:has(a[title='{uuid}'])")


def test_a_reader_sees_and_cannot_act(eyes: Eyes) -> None:
    server = eyes.server
    headers = server.headers()
    project = server.api.post(
        "/identity/v3/projects", json={"project": {"name": "lookers"}}, headers=headers
    ).json()["project"]["id"]
    uuid = make_node(server, "looked-at", owner=project, driver_info={"rack": "r8"})
    iron(server, "PUT", f"/nodes/{uuid}/states/provision", {"target": "manage"})
    user = {"name": "looker", "password": "looking", "default_project_id": project}
    made = server.api.post("/identity/v3/users", json={"user": user}, headers=headers).json()
    roles = server.api.get("/identity/v3/roles?name=reader", headers=headers).json()["roles"]
    path = f"/identity/v3/projects/{project}/users/{made['user']['id']}/roles/{roles[0]['id']}"
    assert server.api.put(path, headers=headers).status_code == 204
    eyes.log_in("looker", "looking", "lookers")
    eyes.sees("Attention")
    eyes.at(f"node/{uuid}")
    eyes.page.wait_for_selector("h1:has-text('looked-at')")
    assert eyes.page.is_disabled("button:text-is('manage')")
    assert "may look" in (eyes.page.get_attribute("button:text-is('manage')", "title") or "")
    eyes.at("fleet/server")
    eyes.page.wait_for_selector(".empty:text-is('There are no servers yet.')")
    assert not eyes.page.locator("input[name=host]").count(), "the API would leave it out"
    server.script("rack:r8", unreachable=True)
    eyes.at("attention")
    eyes.page.wait_for_selector(".card.bad:has-text('1BMCs that cannot be read')", timeout=120_000)
    eyes.page.wait_for_selector("tr:has(a:text-is('looked-at')):has-text('does not answer') time")
    assert "deadline" not in eyes.page.inner_text("main"), "nobody may tell them of it"
    server.unscript("rack:r8")


def test_text_from_outside_is_never_taken_for_markup(eyes: Eyes) -> None:
    evil = "<img src=x onerror=document.title='pwned'>"
    uuid = make_node(eyes.server, "evil", description=evil, extra={"x": evil})
    iron(eyes.server, "PUT", f"/nodes/{uuid}/maintenance", {"reason": evil})
    eyes.come_in()
    eyes.page.wait_for_selector(f"td:has-text('{evil[:10]}')")
    eyes.at(f"node/{uuid}")
    eyes.page.wait_for_selector(".note")
    assert eyes.page.title() != "pwned"
    answer = eyes.server.api.get("/console/")
    assert "script-src 'self'" in answer.headers["content-security-policy"]


def test_thousands_of_nodes_are_scrolled_page_by_page(eyes: Eyes) -> None:
    model = make_node(eyes.server, "many", resource_class="many")
    multiply(eyes.server.data / "siderite.db", model, "many", MANY - 1)
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("fleet/node?resource_class=many")
    eyes.page.wait_for_selector("tbody tr")
    assert eyes.page.locator("tbody tr").count() == 100, "the first page is short: there at once"
    seen = eyes.page.inner_text("p.count")
    while seen != f"{MANY:,} nodes":
        eyes.page.evaluate("scrollTo(0, document.body.scrollHeight)")
        eyes.page.wait_for_selector(f"p.count span:not(:text-is('{seen}'))")
        seen = eyes.page.inner_text("p.count")
    eyes.page.locator("tbody").last.scroll_into_view_if_needed()
    eyes.page.wait_for_selector(f"td a:text-is('many-{MANY - 1}')")
    assert eyes.page.locator("tbody tr").count() < MANY / 2, "far rows are not kept on the page"
    eyes.page.evaluate("scrollTo(0, 0)")
    eyes.page.wait_for_selector("td a:text-is('many')")


def multiply(database: Path, model: str, name: str, copies: int) -> None:
    """Copies of a node, made where it is kept: with ids and names of their own."""
    with closing(sqlite3.connect(database, timeout=60)) as db, db:
        names = [str(row[1]) for row in db.execute("PRAGMA table_info(nodes)")][1:]
        ident = "printf('%08x-0000-4000-8000-%012x', n, n)"
        changed = {
            "uuid": ident,
            "name": f"'{name}-' || n",
            **dict.fromkeys(
                ("doc", "body"),
                "replace(replace({}, '" + model + f'\', {ident}), \'"name":"{name}"\','
                f" '\"name\":\"{name}-' || n || '\"')",
            ),
        }
        taken = ", ".join(changed.get(column, column).format(column) for column in names)
        db.execute(
            f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers LIMIT ?)"
            f" INSERT INTO nodes ({', '.join(names)})"
            f" SELECT {taken} FROM nodes, numbers WHERE uuid = ?",
            (copies, model),
        )
    db.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [420, 1280])
def test_every_page_can_be_read_wide_and_narrow_light_and_dark(
    eyes: Eyes, scheme: str, width: int
) -> None:
    eyes.page.set_viewport_size({"width": width, "height": 850})
    eyes.page.emulate_media(color_scheme=scheme)
    eyes.come_in()
    eyes.sees("Attention")
    for name in (
        "attention", "fleet", "fleet/server", "pending", "events", "webhooks", "images", "capacity",
        "health",
    ):  # fmt: skip
        eyes.at(name)
        eyes.page.wait_for_selector("h1")
        eyes.page.wait_for_selector("text=Behind this page")
        assert not eyes.page.locator("h1:has-text('That did not work')").count(), name
        wide = eyes.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width + 1, f"{name} is wider than the window"
        eyes.photograph(f"{name.replace('/', '-')}-{scheme}-{width}")
