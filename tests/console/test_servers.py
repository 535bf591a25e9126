"""What an operator does with servers in the console, from the first moment on."""

import time
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Dialog

from tests.console.conftest import Eyes
from tests.console.test_pages import make_image
from tests.console.test_pages import nova
from tests.console.test_stories import COMPUTE
from tests.support.server import Server
from tests.support.server import running_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service without anything to boot yet."""
    with running_server(tmp_path_factory.mktemp("servers")) as made:
        yield made


def bootable(server: Server, name: str | None) -> str:
    """An image with data."""
    image = make_image(server, name)
    octets = {**server.headers(), "Content-Type": "application/octet-stream"}
    file = f"/image/v2/images/{image}/file"
    server.api.put(file, content=b"x" * 512, headers=octets).raise_for_status()
    return image


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8P3L1vJm1sXl2Ck1r3o2yGkq0a1m7Vb8n9c0d1e2f3 me"


def refused(eyes: Eyes, sentence: str) -> None:
    eyes.page.click("button:text-is('New server')")
    eyes.page.wait_for_selector(f"#toast .bad:has-text('{sentence}')")


def test_a_server_is_booted_and_its_console_read(eyes: Eyes) -> None:
    server = eyes.server
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("fleet/server")
    eyes.sees("There are no servers yet")
    refused(eyes, "there are no flavors yet. Make one")
    nova(server, "flavors", {"flavor": {"name": "small", "vcpus": 1, "ram": 64, "disk": 1}})
    refused(eyes, "there are no images yet. Bring one in")
    bootable(server, "disk")
    make_image(server, "without-data")
    nova(server, "hosts", {"host": {"name": "stage", "uri": "simulated:"}})
    nova(server, "os-keypairs", {"keypair": {"name": "mine", "public_key": KEY, "type": "ssh"}})
    eyes.page.click("button:text-is('New server')")
    eyes.page.wait_for_selector("dialog select[aria-label=Image]")
    assert eyes.page.inner_text("dialog select[aria-label=Image]") == "disk"
    eyes.page.fill("dialog input", "made-here")
    eyes.photograph("new-server")
    eyes.page.click("dialog button:text-is('Go on')")
    eyes.page.wait_for_selector("h1:has-text('made-here') .tag:text-is('ACTIVE')")
    assert '"key_name": "mine"' in eyes.page.text_content("details pre:has-text('key_name')")
    for named in ("disk (", "admin ("):  # the image, the project
        eyes.page.wait_for_selector(f"dd:has-text('{named}')")
    eyes.page.click("summary:text-is('Console log')")
    eyes.page.wait_for_selector("details[open] pre:has-text('made-here login:')")
    eyes.photograph("console-log")
    eyes.page.click("button:text-is('Open its screen')")
    eyes.page.wait_for_selector("#toast .bad:has-text('its console log may tell')")
    eyes.at("fleet/server")
    eyes.page.wait_for_selector("tr:has-text('made-here') [data-label=Owner]:has-text('admin')")


@pytest.fixture
def boot(server: Server) -> Callable[[str], str]:
    """Makes a server; its id."""
    nova(server, "hosts", {"host": {"name": f"h{time.monotonic_ns()}", "uri": "simulated:"}})
    flavor = {"name": f"f{time.monotonic_ns()}", "vcpus": 1, "ram": 64, "disk": 1}
    size = nova(server, "flavors", {"flavor": flavor})["flavor"]["id"]
    image = bootable(server, "any")

    def made(name: str) -> str:
        asked = {"name": name, "flavorRef": size, "imageRef": image, "networks": "none"}
        return str(nova(server, "servers", {"server": asked})["server"]["id"])

    return made


def test_a_screen_opens_in_a_window_of_its_own(eyes: Eyes, boot: Callable[[str], str]) -> None:
    """A simulated host has no screen: what a real one answers is put in its place."""
    uuid, url = boot("seen"), eyes.server.url + "/healthz?token=one"
    eyes.page.route(
        "**/remote-consoles", lambda one: one.fulfill(json={"remote_console": {"url": url}})
    )
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at(f"server/{uuid}")
    with eyes.page.expect_popup() as opened:
        eyes.page.click("button:text-is('Open its screen')")
    opened.value.wait_for_url(url)
    assert opened.value.evaluate("window.opener") is None


def test_a_server_gets_another_size(eyes: Eyes, server: Server, boot: Callable[[str], str]) -> None:
    uuid = boot("grows")
    nova(server, "flavors", {"flavor": {"name": "larger", "vcpus": 2, "ram": 128, "disk": 1}})
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at(f"server/{uuid}")
    eyes.page.wait_for_selector("h1 .tag:text-is('ACTIVE')")
    eyes.page.click("button:text-is('resize')")
    eyes.page.wait_for_selector("dialog[aria-label=Resize]")
    eyes.page.select_option("dialog select", label="larger: 2 vCPUs, 128 MiB, 1 GiB")
    eyes.page.click("dialog button:text-is('Go on')")
    eyes.page.wait_for_selector("h1 .tag:text-is('VERIFY_RESIZE')")
    eyes.page.click("button:text-is('confirm resize')")
    eyes.page.wait_for_selector("h1 .tag:text-is('ACTIVE')")
    eyes.page.wait_for_selector("dd:text-is('larger')")


def test_a_locked_server_says_so_and_offers_members_nothing(
    eyes: Eyes, server: Server, boot: Callable[[str], str]
) -> None:
    uuid = boot("shut")
    nova(server, f"servers/{uuid}/action", {"lock": {"locked_reason": "audit"}})
    member(server, "ana", "s3cret")
    eyes.log_in("ana", "s3cret")
    eyes.sees("Attention")
    eyes.at(f"server/{uuid}")
    eyes.page.wait_for_selector(".note:has-text('Locked: audit. Only administrators may')")
    assert eyes.page.get_attribute("button[disabled]:text-is('delete')", "title") == "It is locked."
    assert eyes.page.locator("[role=group] button:enabled").count() == 0


def member(server: Server, name: str, password: str) -> None:
    """Make one of the project admin."""

    def ask(method: str, path: str, body: object = None) -> Any:
        where = f"/identity/v3/{path}"
        answer = server.api.request(method, where, json=body, headers=server.headers())
        return answer.raise_for_status().json() if answer.content else None

    user = ask("POST", "users", {"user": {"name": name, "password": password}})["user"]["id"]
    [project] = ask("GET", "projects?name=admin")["projects"]
    [role] = ask("GET", "roles?name=member")["roles"]
    ask("PUT", f"projects/{project['id']}/users/{user}/roles/{role['id']}")


def test_a_server_that_is_deleted_is_gone_and_nothing_went_wrong(
    eyes: Eyes, boot: Callable[[str], str]
) -> None:
    uuid = boot("short-lived")
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at(f"server/{uuid}")
    eyes.page.wait_for_selector("h1:has-text('short-lived') .tag:text-is('ACTIVE')")
    eyes.page.once("dialog", lambda one: one.accept())
    eyes.page.click("button:text-is('delete')")
    eyes.page.wait_for_selector("h1:text-is('It is gone')")
    eyes.sees("This server was deleted.")
    eyes.page.click("a:text-is('What the log tells of it')")
    eyes.page.wait_for_selector("#tail tr:has-text('instance.delete.end')")
    eyes.at(f"server/{uuid}")
    eyes.page.wait_for_selector("h1:text-is('It is not there')")
    eyes.page.click("a:text-is('All servers')")
    eyes.page.wait_for_selector("h1:text-is('Servers')")


def test_an_action_that_failed_says_why_though_the_server_goes_on(
    eyes: Eyes, boot: Callable[[str], str]
) -> None:
    uuid = boot("stubborn")
    script = f"/simulated-hosts/v1/scripts/server:{uuid}"
    behaviour = {"fail": {"pause": "its host would not"}}
    eyes.server.api.put(script, json=behaviour, headers=eyes.server.headers()).raise_for_status()
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at(f"server/{uuid}")
    eyes.page.wait_for_selector("h1:has-text('stubborn') .tag:text-is('ACTIVE')")
    eyes.page.once("dialog", lambda one: one.accept())
    eyes.page.click("button:text-is('pause')")
    eyes.page.wait_for_selector("tr:has(td:text-is('pause')):has-text('its host would not')")


def test_what_takes_a_server_from_its_users_is_asked_about_first(
    eyes: Eyes, boot: Callable[[str], str]
) -> None:
    uuid, asked = boot("in-use"), list[str]()
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at(f"server/{uuid}")
    eyes.page.wait_for_selector("h1:has-text('in-use') .tag:text-is('ACTIVE')")

    def answered(one: Dialog) -> None:
        asked.append(one.message)
        if len(asked) == 1:
            one.dismiss()
        else:
            one.accept()

    eyes.page.on("dialog", answered)
    eyes.page.click("button:text-is('reboot hard')")
    eyes.page.click("button:text-is('stop')")
    eyes.page.wait_for_selector("h1 .tag:text-is('SHUTOFF')")
    sure = "in-use? Whoever uses it is interrupted."
    assert asked == [f"reboot hard {sure}", f"stop {sure}"]
    eyes.page.click("button:text-is('start')")
    eyes.page.wait_for_selector("h1 .tag:text-is('ACTIVE')")
    actions = eyes.page.inner_text("section:has(h2:text-is('Timeline'))")
    assert "reboot" not in actions
    assert len(asked) == 2


def test_in_a_list_the_deleted_go_and_new_ones_are_offered(
    eyes: Eyes, boot: Callable[[str], str]
) -> None:
    leaves, _ = boot("leaves"), boot("stays")
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("fleet/server")
    eyes.page.wait_for_selector("tr:has(a:text-is('stays')) .tag:text-is('ACTIVE')")
    eyes.page.check("input[aria-label='Choose leaves']")
    count = int(eyes.page.inner_text("p.count span").split()[0])
    headers = {**eyes.server.headers(), **COMPUTE}
    eyes.server.api.delete(f"/compute/v2.1/servers/{leaves}", headers=headers).raise_for_status()
    eyes.page.wait_for_selector("tr:has(a:text-is('leaves'))", state="detached")
    assert int(eyes.page.inner_text("p.count span").split()[0]) == count - 1
    assert "chosen" not in eyes.page.inner_text("[aria-label='Many at once'] [role=status]")
    boot("comes")
    eyes.page.click("button:text-is('Show 1 new server')")
    eyes.page.wait_for_selector("tr:has(a:text-is('comes'))")
    assert not eyes.page.is_visible("p.count button")


def test_what_was_refused_is_still_there_to_be_mended(eyes: Eyes, server: Server) -> None:
    for name, vcpus in (("fitting", 1), ("huge", 999)):
        size = {"name": name, "vcpus": vcpus, "ram": 64, "disk": 1}
        nova(server, "flavors", {"flavor": size})
    bootable(server, "for-the-refused")
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("fleet/server")
    eyes.page.click("button:text-is('New server')")
    eyes.page.fill("dialog input", "wanted")
    menu = eyes.page.locator("dialog select[aria-label=Flavor]")
    menu.select_option(label="huge: 999 vCPUs, 64 MiB, 1 GiB")
    eyes.page.click("dialog button:text-is('Go on')")
    eyes.page.wait_for_selector("dialog .trouble:has-text('Quota exceeded for cores')")
    assert eyes.page.input_value("dialog input") == "wanted"
    menu.select_option(label="fitting: 1 vCPU, 64 MiB, 1 GiB")
    eyes.page.click("dialog button:text-is('Go on')")
    eyes.page.wait_for_selector("h1:has-text('wanted')")


def test_images_of_one_name_are_told_apart(eyes: Eyes, server: Server) -> None:
    nova(server, "flavors", {"flavor": {"name": "for-twins", "vcpus": 1, "ram": 64, "disk": 1}})
    twins = [bootable(server, "twin") for _ in range(2)]
    bootable(server, "only-child")
    nameless = [bootable(server, None) for _ in range(2)]
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("fleet/server")
    eyes.page.click("button:text-is('New server')")
    eyes.page.wait_for_selector("dialog select[aria-label=Image]")
    shown = eyes.page.inner_text("dialog select[aria-label=Image]").splitlines()
    assert {f"twin ({image[:8]}, shared)" for image in twins} | {"only-child"} <= set(shown)
    assert set(nameless) <= set(shown)
