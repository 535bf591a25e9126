"""Two processes of different conductor groups, each without any way to the other's hosts."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import ConsoleAddress
from siderite.compute.drivers.contract import Driver
from siderite.compute.drivers.contract import Guest
from siderite.core.store import Op
from siderite.wiring import compute as wired
from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud
from tests.support.app import running
from tests.support.lending import Lending

ACTIONS: tuple[tuple[str, Any, str], ...] = (
    ("os-stop", None, "SHUTOFF"),
    ("os-start", None, "ACTIVE"),
    ("reboot", {"type": "SOFT"}, "ACTIVE"),
    ("reboot", {"type": "HARD"}, "ACTIVE"),
    ("pause", None, "PAUSED"),
    ("unpause", None, "ACTIVE"),
    ("suspend", None, "SUSPENDED"),
    ("resume", None, "ACTIVE"),
    ("rescue", {}, "RESCUE"),
    ("unrescue", None, "ACTIVE"),
    ("changePassword", {"adminPass": "much longer"}, "ACTIVE"),
    ("createImage", {"name": "copy"}, "ACTIVE"),
    ("createBackup", {"name": "b", "backup_type": "daily", "rotation": 1}, "ACTIVE"),
    ("os-migrateLive", {"host": None, "block_migration": "auto"}, "ACTIVE"),
    ("migrate", {}, "VERIFY_RESIZE"),
    ("revertResize", None, "ACTIVE"),
    ("resize", None, "VERIFY_RESIZE"),
    ("confirmResize", None, "ACTIVE"),
    ("rebuild", None, "ACTIVE"),
)


class _Fenced:
    """A part of a driver in a process that has no way to some hosts."""

    def __init__(self, part: Any, groups: str, world: "World") -> None:
        self._part, self._groups, self._world = part, groups, world

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._part, name)

        async def call(*args: Any) -> Any:
            for at in args:
                if isinstance(at, At) and self._world.groups.get(at.host) not in (self._groups, ""):
                    self._world.trespasses.append((self._groups, name, at.host))
                    raise OSError(113, f"No route to host {at.host}")
            return await method(*args)

        return call


class _Screens:
    """Guests have screens, somewhere."""

    async def console(self, at: At, guest: Guest, kind: str) -> ConsoleAddress:
        return ConsoleAddress(kind, "127.0.0.1", 1)


class World:
    """The cloud as the first process shows it, and whose the hosts are."""

    def __init__(self) -> None:
        self.cloud: Cloud = Any
        self.groups: dict[str, str] = {}
        self.trespasses: list[tuple[str, str, str]] = []

    def driver(self, groups: str, made: Driver) -> Driver:
        """The driver as one of the processes has it."""
        parts = {
            field.name: _Fenced(getattr(made, field.name), groups, self)
            for field in fields(made)
            if field.name not in ("card", "close") and getattr(made, field.name) is not None
        }
        return replace(made, **parts, console=_Fenced(_Screens(), groups, self))

    def add(self, name: str, group: str) -> None:
        self.groups[name] = group
        body = {"host": {"name": name, "uri": "simulated:", "conductor_group": group}}
        made = self.cloud.ask("POST", "/hosts", body, version=900)
        assert (made.status, made.json["host"]["problem"]) == (201, None), made
        assert made.json["host"]["status"] == "UP"

    def regroup(self, name: str, group: str) -> None:
        self.groups[name] = group
        body = {"host": {"conductor_group": group}}
        answer = self.cloud.ask("PATCH", f"/hosts/{name}", body, version=900)
        assert answer.json["host"]["conductor_group"] == group

    def commit(self, *ops: Op) -> None:
        self.cloud.app.run(self.cloud.app.app.program.store.commit(ops))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, lending: Lending) -> Iterator[World]:
    with lending.database() as url, pinned(tmp_path_factory.mktemp("data"), url) as made:
        yield made
        assert made.trespasses == []


@contextmanager
def pinned(data: Path, url: str) -> Iterator[World]:
    """A process of group a that is asked, one of group b, and hosts of both."""
    world, real = World(), wired.simulated_driver
    shared = {"simulated_db": str(data / "machines.db"), "image_dir": str(data / "images")}

    def options(group: str) -> dict[str, Any]:
        wired.simulated_driver = lambda *args: world.driver(group, real(*args))
        name = f"http://{group}.test"
        return {"host": group, "worker_groups": group, "public_url": name, **shared}

    try:
        with cloud(data / "a", url, hosts=0, **options("a")) as made:
            world.cloud = made
            other = running(data / "b", url, work=True, **options("b"))
            made.app.run(other.__aenter__())
            try:
                for name, group in (("near", "a"), ("far", "b"), ("farther", "b")):
                    world.add(name, group)
                yield world
            finally:
                made.app.run(other.__aexit__(None, None, None))
    finally:
        wired.simulated_driver = real


def _host(seen: dict[str, Any]) -> str:
    return str(seen["OS-EXT-SRV-ATTR:host"])


def test_all_actions_are_done_by_workers_of_the_hosts_group(world: World) -> None:
    cloud = world.cloud
    server = cloud.boot(host="far")
    larger = cloud.make_flavor(ram=1024)
    more = {"resize": {"flavorRef": larger}, "rebuild": {"imageRef": cloud.image}}
    for action, value, status in ACTIONS:
        answer = cloud.act(server, action, more.get(action, value))
        assert answer.status in (200, 202, 204), (action, answer)
        seen = cloud.until(server, status)
        assert (seen.get("fault"), _host(seen)[:3]) == (None, "far"), (action, seen)
    for action, status in (("shelve", "SHELVED_OFFLOADED"), ("unshelve", "ACTIVE")):
        assert cloud.act(server, action).status == 202
        cloud.until(server, status)
    assert cloud.ask("DELETE", f"/servers/{server}").status == 204
    cloud.wait(server, lambda seen: seen["status"] in ("GONE", "DELETED"))
    assert world.trespasses == []


def test_what_a_client_waits_for_is_asked_by_workers_of_the_hosts_group(world: World) -> None:
    cloud = world.cloud
    server = cloud.boot(host="far")
    log = cloud.act(server, "os-getConsoleOutput", {})
    assert (log.status, "login" in log.json["output"]) == (200, True)
    assert cloud.ask("GET", f"/servers/{server}/diagnostics").json["state"] == "running"
    assert cloud.act(server, "trigger_crash_dump").status == 202
    made = cloud.ask("POST", f"/servers/{server}/os-interface", {"interfaceAttachment": {}})
    assert made.status == 200, made
    port = made.json["interfaceAttachment"]["port_id"]
    assert cloud.ask("DELETE", f"/servers/{server}/os-interface/{port}").status == 202
    check = cloud.ask("POST", "/hosts/far/check", {}, version=900)
    assert check.json["host"]["problem"] is None
    console = {"remote_console": {"protocol": "vnc", "type": "novnc"}}
    way = cloud.ask("POST", f"/servers/{server}/remote-consoles", console)
    assert way.json["remote_console"]["url"].startswith("http://b.test/consoles/vnc?token="), way
    assert world.trespasses == []


def test_a_server_stays_within_its_hosts_group(world: World) -> None:
    cloud = world.cloud
    server = cloud.boot(host="far")
    for action in ("os-migrateLive", "migrate"):
        more = {"block_migration": "auto"} if action == "os-migrateLive" else {}
        assert cloud.act(server, action, {"host": "near", **more}).status == 202
        seen = cloud.settled(server)
        assert (seen["status"], _host(seen)) == ("ACTIVE", "far")
        action_seen = cloud.actions(server)[0]
        assert "another conductor group" in action_seen["events"][0]["details"], action_seen
    assert world.trespasses == []


def test_a_build_that_fails_on_one_groups_host_is_undone_there_and_made_elsewhere(
    world: World,
) -> None:
    cloud = world.cloud
    for host in ("far", "farther"):
        cloud.script(f"host:{host}", fail={"spawn": "no luck"})
    try:
        server = cloud.create()
        seen = cloud.until(server, "ACTIVE")
        assert _host(seen) == "near"
        assert cloud.guests.where(server) == ["near"]
    finally:
        for host in ("far", "farther"):
            cloud.script(f"host:{host}")
    assert world.trespasses == []
