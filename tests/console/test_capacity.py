"""What the console says of room, and of a server that waits for some."""

import json

from playwright.sync_api import Route

from tests.console.conftest import Eyes
from tests.console.test_pages import nova
from tests.console.test_servers import bootable
from tests.console.test_stories import COMPUTE


def test_what_is_kept_for_a_server_that_waits_is_not_offered(eyes: Eyes) -> None:
    server, headers = eyes.server, {**eyes.server.headers(), **COMPUTE}

    def ask(method, path, body=None):
        answer = server.api.request(method, "/compute/v2.1" + path, json=body, headers=headers)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    options = {"vcpus": "4", "ram_mib": "4096", "disk_gib": "10"}
    ask("POST", "/hosts", {"host": {"name": "wide", "uri": "simulated:", "options": options}})
    sizes = {"kept": 64, "small": 1}
    flavors = {
        name: ask(
            "POST", "/flavors", {"flavor": {"name": name, "vcpus": some, "ram": 64, "disk": 0}}
        )
        for name, some in sizes.items()
    }
    image = server.api.post(
        "/image/v2/images", headers=server.headers(),
        json={"name": "i", "disk_format": "raw", "container_format": "bare"},
    ).json()["id"]  # fmt: skip
    octets = {**server.headers(), "Content-Type": "application/octet-stream"}
    server.api.put(f"/image/v2/images/{image}/file", content=b"x" * 512, headers=octets)
    wanted = {"name": "w", "imageRef": image, "flavorRef": flavors["kept"]["flavor"]["id"]}
    uuid = ask("POST", "/servers", {"server": {**wanted, "networks": "none"}})["server"]["id"]
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("capacity")
    offered = "tr:has(.name:text-is('small')) td.num b"
    eyes.page.wait_for_selector(f"{offered}:text-is('4')")
    eyes.at(f"server/{uuid}")
    eyes.page.wait_for_selector("h1 .tag:has-text('PENDING')")
    eyes.sees("It waits until somebody makes room")
    eyes.sees("or, with wake_pending, until a host has room")
    eyes.at("pending")
    eyes.sees("those that nobody takes care of are built as soon as a host has room")
    care = {"keeper": "one", "seconds": 600, "making_room": True, "node": "wide"}
    ask("POST", f"/servers/{uuid}/action", {"siderite-claimPending": care})
    eyes.at("capacity")
    eyes.page.wait_for_selector(f"{offered}:text-is('0')")


def test_all_hosts_that_a_server_fits_on_can_be_seen(eyes: Eyes) -> None:
    def make(what: str, body: dict[str, object]) -> None:
        headers = {**eyes.server.headers(), **COMPUTE}
        made = eyes.server.api.post(f"/compute/v2.1/{what}", json=body, headers=headers)
        assert made.status_code < 300, made.text

    for number in range(6):
        options = {"vcpus": str(1000 + number), "ram_mib": "4096000", "disk_gib": "10"}
        host = {"name": f"row-{number}", "uri": "simulated:", "options": options}
        make("hosts", {"host": host})
    for name, vcpus in (("huge", 1000), ("hopeless", 100_000)):
        make("flavors", {"flavor": {"name": name, "vcpus": vcpus, "ram": 64, "disk": 0}})
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("capacity")
    row = "tr:has(.name:text-is('huge'))"
    eyes.page.wait_for_selector(f"{row} td.num b:text-is('6')")
    assert not eyes.page.is_visible(f"{row} >> text=row-5")
    eyes.page.click(f"{row} summary:text-is('and 2 more')")
    shown = " ".join(eyes.page.inner_text(f"{row} td:last-child").split())
    assert [number for number in range(6) if f"row-{number} 1" not in shown] == []
    assert "no host has room" in eyes.page.inner_text("tr:has(.name:text-is('hopeless'))")


def test_a_process_that_does_not_know_of_kept_room_breaks_no_page(eyes: Eyes) -> None:
    """As an older one does not, while a service is upgraded."""
    headers = {**eyes.server.headers(), **COMPUTE}
    options = {"vcpus": "4", "ram_mib": "4096", "disk_gib": "10"}
    host = {"name": "older", "uri": "simulated:", "options": options}
    made = eyes.server.api.post("/compute/v2.1/hosts", json={"host": host}, headers=headers)
    assert made.status_code < 300, made.text

    def told_by_an_older_one(route: Route) -> None:
        answer = route.fetch()
        hypervisors = answer.json()["hypervisors"]
        for one in hypervisors:
            for field in ("kept", "is_available", "why_not"):
                one.pop(field, None)
        route.fulfill(response=answer, body=json.dumps({"hypervisors": hypervisors}))

    eyes.page.route("**/os-hypervisors/detail*", told_by_an_older_one)
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("capacity")
    eyes.page.wait_for_selector("main h1:text-is('Capacity')")
    eyes.sees("older")


def test_a_host_that_is_nearly_full_is_seen_at_once(eyes: Eyes) -> None:
    options = {"vcpus": "1", "ram_mib": "4096", "disk_gib": "10"}
    nova(eyes.server, "hosts", {"host": {"name": "brim", "uri": "simulated:", "options": options}})
    flavor = {"name": "whole", "vcpus": 1, "ram": 64, "disk": 1}
    size = nova(eyes.server, "flavors", {"flavor": flavor})["flavor"]["id"]
    asked = {"name": "fills", "flavorRef": size, "imageRef": bootable(eyes.server, "any")}
    nova(eyes.server, "servers", {"server": {**asked, "networks": "none", "host": "brim"}})
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("capacity")
    row = "tr:has(td:text-is('brim'))"
    eyes.page.wait_for_selector(f"{row} .meter.full[aria-label='1 of 1']")
    assert eyes.page.locator(f"{row} .meter.full").count() == 1, "its memory and disk are not"
