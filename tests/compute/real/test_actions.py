"""Every server action through the API, on real QEMU guests behind real libvirt hosts."""

import asyncio
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from siderite.core.websocket import with_sockets
from tests.compute.real.guests import RealCloud
from tests.lab import Mode
from tests.lab import tiny_disk
from tests.lab.guest import PATIENCE_S

INTERVAL_S = 1.0
"""How often the tests' clouds repeat the signal."""
LOOKING_S = 4.0
"""What a busy machine may take to send a signal, and to see what came of it."""


def test_power_actions_of_a_real_server(cloud: RealCloud) -> None:
    server = cloud.boot()
    cloud.wait_for_words(server, "armed")
    cloud.do(server, "os-stop", then="SHUTOFF")
    assert "power button, off" in cloud.log(server)  # it was asked, not cut off
    cloud.do(server, "os-start", then="ACTIVE")
    cloud.wait_for_words(server, "armed", times=2)
    cloud.do(server, "reboot", {"type": "SOFT"}, then="ACTIVE")
    cloud.wait_for_words(server, "armed", times=3)
    cloud.do(server, "reboot", {"type": "HARD"}, then="ACTIVE")
    cloud.do(server, "pause", then="PAUSED")
    cloud.do(server, "unpause", then="ACTIVE")
    cloud.do(server, "suspend", then="SUSPENDED")
    cloud.do(server, "resume", then="ACTIVE")
    cloud.delete(server)


def test_a_server_is_rescued_rebuilt_and_made_an_image_of(cloud: RealCloud) -> None:
    server = cloud.boot()
    cloud.wait_for_words(server, "armed")
    other = cloud.tiny_image(tag="another system")
    cloud.do(server, "rescue", {"rescue_image_ref": other}, then="RESCUE")
    cloud.wait_for_words(server, "ready another system")
    cloud.do(server, "unrescue", then="ACTIVE")
    cloud.wait_for_words(server, "ready tiny", times=2)
    made = cloud.api.act(server, "createImage", {"name": "snap"})
    assert made.status == 202, made
    cloud.api.until(server, "ACTIVE")
    again = cloud.boot(made.json["image_id"])
    cloud.wait_for_words(again, "ready tiny")
    cloud.delete(again)
    cloud.do(server, "rebuild", {"imageRef": other}, then="ACTIVE")
    cloud.wait_for_words(server, "ready another system", times=2)
    cloud.delete(server)


def test_a_server_is_shelved_and_comes_back(cloud: RealCloud) -> None:
    server = cloud.boot()
    cloud.wait_for_words(server, "armed")
    cloud.do(server, "shelve", then="SHELVED_OFFLOADED")
    assert cloud.domain(server) is None
    cloud.do(server, "unshelve", then="ACTIVE")
    cloud.wait_for_words(server, "ready tiny")
    cloud.delete(server)


def test_a_server_changes_its_size_and_its_host(cloud: RealCloud) -> None:
    server = cloud.boot()
    cloud.wait_for_words(server, "armed")
    for last, status in (("revertResize", "ACTIVE"), ("confirmResize", "ACTIVE")):
        cloud.do(server, "resize", {"flavorRef": cloud.large}, then="VERIFY_RESIZE")
        domain = cloud.domain(server)
        assert domain is not None
        assert domain.info()[3] == 2
        assert domain.blockInfo("vda")[0] == 2 << 30
        cloud.do(server, last, then=status)
        assert cloud.domain(server).info()[3] == (1 if last == "revertResize" else 2)  # type: ignore[union-attr]
    before = cloud.host_of(server)
    cloud.do(server, "migrate", {}, then="VERIFY_RESIZE")
    assert cloud.host_of(server) is not before
    cloud.do(server, "confirmResize", then="ACTIVE")
    assert list((before.folder / "lib" / "siderite").glob(f"{server}*")) == []
    cloud.delete(server)


def test_a_server_whose_disk_is_gone_when_its_resize_is_reverted_can_be_rebuilt(
    cloud: RealCloud,
) -> None:
    server = cloud.boot()
    cloud.wait_for_words(server, "armed")
    cloud.do(server, "resize", {"flavorRef": cloud.large}, then="VERIFY_RESIZE")
    for lab in cloud.labs.values():
        for disk in (lab.folder / "lib" / "siderite").glob(f"{server}.disk-*"):
            disk.unlink()
    cloud.do(server, "revertResize", then="ERROR")
    assert "rebuild the server" in cloud.api.show(server)["fault"]["message"]
    cloud.do(server, "rebuild", {"imageRef": cloud.tiny}, then="ACTIVE")
    cloud.do(server, "os-stop", then="SHUTOFF")
    assert shut_down(cloud, server).startswith("the guest shut down")  # it has a disk, and hears
    cloud.delete(server)


def test_a_server_migrates_live(cloud: RealCloud) -> None:
    server = cloud.boot()
    cloud.wait_for_words(server, "armed")
    before = cloud.host_of(server)
    where = {"host": None, "block_migration": "auto"}
    cloud.do(server, "os-migrateLive", where, then="ACTIVE")
    assert cloud.host_of(server) is not before
    assert cloud.log(server).count("TINY GUEST ready") == 1  # it never stopped
    cloud.do(server, "os-stop", then="SHUTOFF")
    cloud.delete(server)


def test_what_happens_to_a_guest_from_outside_is_noticed(cloud: RealCloud) -> None:
    server = cloud.boot()
    cloud.wait_for_words(server, "armed")
    cloud.domain(server).destroy()  # type: ignore[union-attr]
    cloud.api.until(server, "SHUTOFF")
    assert cloud.api.actions(server)[0]["action"] == "stop"
    cloud.do(server, "os-start", then="ACTIVE")
    cloud.delete(server)
    gone = cloud.boot(cloud.tiny_image(Mode.SELFOFF, tag="off"))
    cloud.api.until(gone, "SHUTOFF")
    cloud.delete(gone)


def test_a_guest_that_somebody_undefined_is_off_and_comes_again_with_the_next_start(
    cloud: RealCloud,
) -> None:
    server = cloud.boot()
    cloud.wait_for_words(server, "armed")
    _undefine(cloud, server)
    cloud.api.until(server, "SHUTOFF")
    told = cloud.api.actions(server)[0]
    assert (told["action"], told["events"][0]["details"]) == (
        "stop", "its machine was found gone from its host",
    )  # fmt: skip
    cloud.do(server, "os-start", then="ACTIVE")
    cloud.wait_for_words(server, "armed", times=2)
    cloud.delete(server)


def test_a_guest_that_somebody_took_away_is_not_started_by_itself_where_the_record_is_right(
    cloud: RealCloud,
) -> None:
    """It may run on another host, with the same disk. One that is only off is put back."""
    server = cloud.boot(metadata={"power_policy": "record"})
    cloud.wait_for_words(server, "armed")
    cloud.domain(server).destroy()  # type: ignore[union-attr]
    cloud.wait_for_words(server, "armed", times=2)
    cloud.api.settled(server)
    _undefine(cloud, server)
    shown = cloud.api.wait(server, lambda seen: seen["OS-EXT-STS:power_state"] == 4)
    assert (shown["status"], shown["OS-EXT-STS:task_state"]) == ("ACTIVE", None)
    told = cloud.api.actions(server)[0]
    assert (told["action"], told["message"]) == ("start", "Error")
    assert "gone from its host, and was not started" in told["events"][0]["details"]
    cloud.api.app.run(cloud.api.app.app.program.compute.sync.round())
    assert cloud.api.actions(server)[0]["request_id"] == told["request_id"], "it is said once"
    assert cloud.domain(server) is None
    cloud.do(server, "reboot", {"type": "HARD"}, then="ACTIVE")
    cloud.wait_for_words(server, "armed", times=3)
    cloud.delete(server)


def _undefine(cloud: RealCloud, server: str) -> None:
    domain: Any = cloud.domain(server)
    domain.destroy()
    domain.undefine()


def shut_down(cloud: RealCloud, server: str) -> str:
    """How the shutdown of the last action went."""
    return str(cloud.api.actions(server)[0]["events"][-1]["details"])


def test_a_guest_that_ignores_signals_is_powered_off_in_the_end(cloud: RealCloud) -> None:
    image = cloud.tiny_image(Mode.IGNORE, tag="deaf", os_shutdown_timeout="2")
    server = cloud.boot(image)
    cloud.wait_for_words(server, "ready")
    cloud.do(server, "os-stop", then="SHUTOFF")
    assert shut_down(cloud, server).startswith("powered off after")
    cloud.delete(server)


def test_a_guest_that_starts_anew_at_each_signal_is_powered_off_in_the_end(
    cloud: RealCloud,
) -> None:
    image = cloud.tiny_image(Mode.STUBBORN, tag="stubborn", os_shutdown_timeout="4")
    server = cloud.boot(image)
    cloud.wait_for_words(server, "armed")
    cloud.do(server, "os-stop", then="SHUTOFF")
    assert shut_down(cloud, server).startswith("powered off after")
    assert cloud.log(server).count("ready") > 1
    cloud.delete(server)


def test_a_guest_that_somebody_pauses_is_not_waited_for(cloud: RealCloud) -> None:
    image = cloud.tiny_image(Mode.IGNORE, tag="deaf and paused", os_shutdown_timeout="500")
    server = cloud.boot(image)
    cloud.wait_for_words(server, "ready")
    assert cloud.api.act(server, "os-stop").status == 202
    cloud.api.wait(server, lambda seen: "asked to shut down" in str(seen["wait_reason"]))
    cloud.domain(server).suspend()  # type: ignore[union-attr]
    cloud.api.until(server, "SHUTOFF")
    assert shut_down(cloud, server).endswith("as it was paused and could not hear them")
    cloud.delete(server)


def test_a_hard_request_ends_a_soft_shutdown_at_once(cloud: RealCloud) -> None:
    image = cloud.tiny_image(Mode.IGNORE, tag="deaf for long", os_shutdown_timeout="500")
    server = cloud.boot(image)
    cloud.wait_for_words(server, "ready")
    assert cloud.api.act(server, "os-stop").status == 202
    cloud.api.wait(server, lambda seen: "asked to shut down" in str(seen["wait_reason"]))
    cloud.do(server, "os-stop", {"shutdown_type": "HARD"}, then="SHUTOFF", version=901)
    assert not cloud.domain(server).isActive()  # type: ignore[union-attr]
    cloud.delete(server)


def test_a_guest_that_still_boots_stops_at_the_first_signal_it_hears(cloud: RealCloud) -> None:
    disk = tiny_disk(cloud.folder / "late", Mode.LATE, delay_s=3, tag="late")
    server = cloud.boot(cloud.image(disk, os_shutdown_timeout="500"))
    with moments(cloud, server, "armed", "power button, off") as seen:
        cloud.do(server, "os-stop", then="SHUTOFF")
    # By the guest's own words: from being ready to hearing a signal is at most the interval (1 s).
    assert seen["power button, off"] - seen["armed"] < INTERVAL_S + LOOKING_S
    told = re.fullmatch(
        r"the guest shut down after (\d+) signals, in (.*) s", shut_down(cloud, server)
    )
    assert told is not None
    assert float(told[2]) < 100, "not at its timeout"
    cloud.delete(server)


@contextmanager
def moments(cloud: RealCloud, server: str, *words: str) -> Iterator[dict[str, float]]:
    """When the guest's console first said each of the words."""
    seen: dict[str, float] = {}
    log = cloud.host_of(server).folder / "lib" / "siderite" / f"{server}.console.log"
    is_over = threading.Event()

    def look() -> None:
        while len(seen) < len(words) and not is_over.wait(0.01):
            text = log.read_text(errors="replace")
            for word in words:
                if word in text:
                    seen.setdefault(word, time.monotonic())

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield seen
        deadline = time.monotonic() + PATIENCE_S
        while looking.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        is_over.set()
        looking.join()
    assert len(seen) == len(words), seen


def test_a_hypervisor_takes_no_power_updates(cloud: RealCloud) -> None:
    """Whoever sends one is told so in the action; libvirt itself says what guests do."""
    server = cloud.boot()
    told = {"name": "power-update", "server_uuid": server, "tag": "POWER_OFF"}
    answer = cloud.api.ask("POST", "/os-server-external-events", {"events": [told]})
    assert answer.status == 200, answer
    last = cloud.api.actions(server)[0]
    assert (last["action"], last["message"]) == ("stop", "Error")
    assert cloud.api.show(server)["status"] == "ACTIVE"
    cloud.delete(server)


def test_a_linux_server_gets_its_metadata_moves_live_and_obeys_its_agent(cloud: RealCloud) -> None:
    """Its kernel and ramdisk are images of their own, and go with it."""
    server = cloud.boot(
        cloud.linux_image("agent"), cloud.linux_flavor(), metadata={"colour": "rust"},
        user_data="IyEvYmluL3NoCg==",
    )  # fmt: skip
    cloud.wait_for_words(server, "GUEST ready role=agent")
    said = cloud.log(server)
    assert f'"uuid": "{server}"' in said
    assert '"meta": {"colour": "rust"}' in said
    assert "USERDATA #!/bin/sh" in said
    ports = cloud.api.ask("GET", f"/servers/{server}/os-interface").json["interfaceAttachments"]
    assert ports
    for port in ports:
        path = f"/servers/{server}/os-interface/{port['port_id']}"
        assert cloud.api.ask("DELETE", path).status == 202
    before = cloud.host_of(server)
    cloud.do(server, "os-migrateLive", {"host": None, "block_migration": "auto"}, then="ACTIVE")
    assert cloud.host_of(server) is not before
    cloud.do(server, "os-stop", then="SHUTOFF")
    assert "GUEST shutdown" in cloud.log(server)  # its agent was asked, not its button
    assert cloud.log(server).count("GUEST ready") == 1  # it never stopped before
    cloud.delete(server)


@pytest.mark.parametrize("host", ["lab", "far"])
def test_a_screen_is_reached_by_its_token_only(cloud: RealCloud, host: str) -> None:
    """Also that of a host behind ssh, whose screens are on no network."""
    server = cloud.boot(host=host)
    body = {"remote_console": {"protocol": "vnc", "type": "novnc"}}
    made = cloud.api.ask("POST", f"/servers/{server}/remote-consoles", body)
    assert made.status == 200, made
    url = made.json["remote_console"]["url"]
    path = "/" + url.split("/", 3)[3]
    page = cloud.api.app.ask("GET", path, version=None, token="")
    assert page.status == 200
    assert b"<canvas" in page.body
    assert _first(cloud, path) == {"type": "websocket.send", "bytes": b"RFB 003.008\n"}
    refused = _first(cloud, path + "x")
    assert refused["code"] == 4403
    assert "ask for a new one" in refused["reason"]
    cloud.delete(server)
    assert "its server is gone" in _first(cloud, path)["reason"]


def _first(cloud: RealCloud, path: str) -> dict[str, Any]:
    """What a client of the WebSocket hears first."""
    program = cloud.api.app.app.program
    app = with_sockets(program.app, program.sockets)

    async def talk() -> dict[str, Any]:
        heard: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        told: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        told.put_nowait({"type": "websocket.connect"})
        where, _, query = path.partition("?")
        scope = {
            "type": "websocket", "path": where, "query_string": query.encode(), "headers": [],
            "subprotocols": ["binary"],
        }  # fmt: skip
        serving = asyncio.create_task(app(scope, told.get, heard.put))
        async with asyncio.timeout(60):
            assert (await heard.get())["type"] == "websocket.accept"
            first = await heard.get()
        told.put_nowait({"type": "websocket.disconnect"})
        await serving
        return first

    return cloud.api.app.run(talk())
