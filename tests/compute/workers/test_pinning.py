"""Two processes of different conductor groups, each without any way to the other's hosts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields
from msgspec.structs import replace

from siderite.compute.domain.power import Power
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import ConsoleAddress
from siderite.compute.drivers.contract import Driver
from siderite.compute.drivers.contract import Guest
from siderite.compute.workers.host_watch import HostWatch
from siderite.compute.workers.image_caches import ImageCaches
from siderite.compute.workers.power_sync import PowerSync
from siderite.core.store import Op
from siderite.wiring import compute as wired
from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud
from tests.support.app import Application
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
                if (
                    isinstance(at, At)
                    and self._world.groups.get(at.host, self._groups) != self._groups
                ):
                    self._world.trespasses.append((self._groups, name, at.host))
                    raise OSError(113, f"No route to host {at.host}")
            return await method(*args)

        return call


class _Screens:
    """Guests have screens, somewhere."""

    async def console(self, at: At, guest: Guest, kind: str) -> ConsoleAddress:
        return ConsoleAddress("127.0.0.1", 1)


class World:
    """The cloud as the first process shows it, and whose the hosts are."""

    def __init__(self) -> None:
        self.cloud: Cloud = Any
        self.other: Application = Any
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

    def add(self, name: str, group: str) -> dict[str, Any]:
        """A host, and what came of asking it."""
        body = {"host": {"name": name, "uri": "simulated:", "conductor_group": group}}
        made = self.cloud.ask("POST", "/hosts", body, version=900)
        assert made.status == 201, made
        host: dict[str, Any] = made.json["host"]
        return host

    def regroup(self, name: str, group: str) -> None:
        body = {"host": {"conductor_group": group}}
        answer = self.cloud.ask("PATCH", f"/hosts/{name}", body, version=900)
        assert answer.json["host"]["conductor_group"] == group

    def script(self, scope: str, **script: Any) -> None:
        """How hosts behave, in both processes from now on."""
        self.cloud.script(scope, **script)
        self.other.program.compute.guests.scripts.load()

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
            world.other = made.app.run(other.__aenter__())
            try:
                for name, group in (("near", "a"), ("far", "b"), ("farther", "b")):
                    world.groups[name] = group
                    assert world.add(name, group)["problem"] is None
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
    large = cloud.make_flavor(vcpus=60, ram=131072, disk=2000)
    filler = cloud.boot(host="near", flavorRef=large)
    for host in ("far", "farther"):
        world.script(f"host:{host}", fail={"spawn": "no luck"})
    try:
        server = cloud.create()
        assert _host(cloud.until(server, "ACTIVE")) == "near"
    finally:
        for host in ("far", "farther"):
            world.script(f"host:{host}")
    tried = [event["host"] for event in cloud.actions(server)[-1]["events"]]
    assert sorted(tried[:2]) == ["far", "farther"]
    assert cloud.guests.where(server) == ["near"]
    cloud.ask("DELETE", f"/servers/{filler}")
    assert world.trespasses == []


def test_what_is_left_on_a_host_that_was_down_is_removed_by_its_group(world: World) -> None:
    cloud = world.cloud
    server = cloud.boot(host="far")
    ident = next(
        one["id"] for one in cloud.ask("GET", "/os-services").json["services"]
        if one["host"] == "far"
    )  # fmt: skip
    cloud.ask("PUT", f"/os-services/{ident}", {"forced_down": True})
    try:
        assert cloud.act(server, "evacuate", {}).status == 200
        assert _host(cloud.until(server, "SHUTOFF")) == "farther", "not in another group"
    finally:
        cloud.ask("PUT", f"/os-services/{ident}", {"forced_down": False})
    world.commit(Op("UPDATE work SET due = 0 WHERE lane = 'evicted'", (), 1))
    cloud.wait(server, lambda _: bool(cloud.guests.where(server) == ["farther"]))
    assert world.trespasses == []


def test_hosts_that_nobody_listened_to_are_asked_by_their_own_groups(world: World) -> None:
    cloud = world.cloud
    asking = cloud.app.app.program.compute.watch._hands.asking

    async def long_ago() -> None:
        async with asking.turn:
            store = cloud.app.app.program.store
            await store.commit([Op("UPDATE hosts SET seen_at = 1000")])
            asking.at.clear()

    cloud.app.run(long_ago())
    seen = cloud.settled(cloud.create(host="farther"))
    assert seen["status"] == "ACTIVE", str(seen.get("fault"))
    assert world.trespasses == []


def test_the_watches_keep_to_their_groups(world: World) -> None:
    cloud = world.cloud
    server = cloud.boot(host="far")
    cloud.guests.set_power(server, "far", Power.SHUTDOWN)
    for app, group in ((cloud.app.app, "a"), (world.other, "b")):
        for of in (group, ""):
            hands = app.program.compute.watch._hands
            cloud.app.run(HostWatch(hands, of).round())
            cloud.app.run(ImageCaches(hands, of).round())
            cloud.app.run(PowerSync(hands, of, every_s=1, at_once=9).round())
    assert world.trespasses == []
    cloud.until(server, "SHUTOFF")


def test_work_for_a_group_without_workers_says_so_and_follows_the_host_to_another(
    world: World,
) -> None:
    cloud = world.cloud
    nobody = "is for workers of the conductor group c, and none is up"
    assert nobody in world.add("orphan", "c")["problem"]
    service = cloud.ask("GET", "/os-services?host=orphan", version=900).json["services"][0]
    assert (service["conductor_group"], service["state"]) == ("c", "down")
    assert nobody in service["down_reason"]
    world.regroup("orphan", "b")
    cloud.ask("POST", "/hosts/orphan/check", {}, version=900)
    server = cloud.boot(host="orphan")
    world.regroup("orphan", "c")
    assert cloud.act(server, "os-stop").status == 202
    cloud.wait(server, lambda seen: nobody in str(seen["wait_reason"]))
    log = cloud.act(server, "os-getConsoleOutput", {})
    assert (log.status, nobody.encode() in log.body) == (503, True)
    world.regroup("orphan", "b")
    cloud.until(server, "SHUTOFF")
    world.regroup("orphan", "")
    assert cloud.act(server, "os-start").status == 202
    cloud.until(server, "ACTIVE")


def test_two_ends_of_a_move_that_came_to_be_of_different_groups_wait_for_one(
    world: World,
) -> None:
    cloud = world.cloud
    for name in ("left", "right"):
        world.add(name, "b")
    server = cloud.boot(host="left")
    assert cloud.act(server, "migrate", {"host": "right"}).status == 202
    cloud.until(server, "VERIFY_RESIZE")
    world.regroup("left", "a")
    assert cloud.act(server, "revertResize").status == 202
    cloud.wait(server, lambda seen: "of different conductor groups" in str(seen["wait_reason"]))
    world.regroup("right", "a")
    world.commit(Op("UPDATE work SET due = 0 WHERE machine = ?", (server,), 1))
    assert _host(cloud.until(server, "ACTIVE")) == "left"
    # A server that has two ends in different groups is taken from both.
    assert cloud.act(server, "migrate", {"host": "right"}).status == 202
    cloud.until(server, "VERIFY_RESIZE")
    world.regroup("left", "b")
    assert cloud.ask("DELETE", f"/servers/{server}").status == 204
    cloud.wait(server, lambda seen: seen["status"] in ("GONE", "DELETED"))
    assert cloud.guests.where(server) == []


def test_a_group_that_no_process_could_name_is_refused(world: World) -> None:
    body = {"host": {"conductor_group": "a b"}}
    assert world.cloud.ask("PATCH", "/hosts/far", body, version=900).status == 400
    assert world.cloud.ask("PATCH", "/hosts/none", {"host": {"conductor_group": "a"}},
                           version=900).status == 404  # fmt: skip
