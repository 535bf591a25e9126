"""What a driver does in one process: no other begins it too, and it ends when nobody wants it any
more, whichever process that was said to.
"""

import asyncio
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.compute.drivers.libvirt import runs
from siderite.compute.drivers.libvirt.runs import Run
from siderite.compute.drivers.libvirt.runs import Runs
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.holding import to_its_end
from siderite.core import work
from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud
from tests.compute.workers.moves import down
from tests.compute.workers.moves import home_of
from tests.compute.workers.moves import in_one_place
from tests.compute.workers.moves import tidy_up
from tests.compute.workers.test_pending import NO_IMAGES
from tests.support.app import Application
from tests.support.app import running

OURS = {"openstack-api-version": "compute 2.901"}
PLENTY = {"quota_instances": -1, "quota_cores": -1, "quota_ram_mib": -1}
HOST: Any = SimpleNamespace(name="there")


class Slow:
    """Parts of a driver that copy, in this process, until they are let or called off."""

    def __init__(self, name: str, driver: Any, log: list[str]) -> None:
        self._name = name
        self._driver = driver
        self._log = log
        self._runs = Runs(0.05)
        self.asked = 0
        self.is_ready = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    async def _copy(self, token: str) -> Outcome:
        self.asked += 1
        return await self._runs.outcome(HOST, token, "copying", self._work)

    async def _work(self, run: Run) -> Outcome:
        self._log.append(f"{self._name} begins")
        done = 0
        try:
            while not self.is_ready:
                run.check()
                done += 1
                run.doing = f"copying, {done} MiB"
                await asyncio.sleep(0.01)
        finally:
            await asyncio.sleep(0.1)  # a piece that is on its way
            self._log.append(f"{self._name} ends")
        return Done()

    async def prepare(self, at: Any, guest: Any, to: Any, token: str) -> Outcome:
        return await self._copy(token)

    async def live_migrate(self, at: Any, guest: Any, to: Any, token: str) -> Outcome:
        return await self._copy(token)

    async def revert(self, *args: Any) -> Outcome:
        self._log.append("it is undone")
        outcome: Outcome = await self._driver.revert(*args)
        return outcome

    async def force(self, *args: Any) -> Outcome:
        if not self.is_ready:
            self._log.append("it is hurried")
        self.is_ready = True
        return Done()


class Removing:
    """The part of a driver by which guests come and go; one goes only when it is let to."""

    def __init__(self, life: Any) -> None:
        self._life = life
        self.log: list[str] = []
        self._runs = Runs(0.05)
        self.asked = 0
        self.is_ready = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._life, name)

    async def destroy(self, at: Any, guest: Any, token: str) -> Outcome:
        self.asked += 1
        if await self._life.state(at, guest) is None:
            return Done()
        return await self._runs.outcome(HOST, token, "removing", partial(self._work, at, guest))

    async def leave(self, at: Any, guest: Any, to: Any, token: str) -> Outcome:
        return await self.destroy(at, guest, token)

    async def _work(self, at: Any, guest: Any, run: Run) -> Outcome:
        self.log.append("it is removed")
        try:
            while not self.is_ready:
                run.check()
                await asyncio.sleep(0.01)
        finally:
            await asyncio.sleep(0.1)  # a file that is being deleted
            self.log.append("that ends")
        outcome: Outcome = await self._life.destroy(at, guest, "token")
        return outcome

    async def spawn(self, at: Any, guest: Any, token: str) -> Outcome:
        outcome: Outcome = await self._life.spawn(at, guest, token)
        if isinstance(outcome, Done):
            self.log.append("it is made")
        return outcome


def slow(app: Application, name: str, log: list[str]) -> Slow:
    """Have a process use such parts."""
    handler: Any = app.program.worker._handlers["server.resize"]
    drivers = handler.__self__._hands.drivers
    driver = drivers["simulated"]
    made: Any = Slow(name, driver.resize, log)
    drivers["simulated"] = replace(driver, resize=made, live_migrate=made)
    return made  # type: ignore[no-any-return]


@pytest.fixture
def removing(lite: Cloud, monkeypatch: pytest.MonkeyPatch) -> Removing:
    """Such a part, which the cloud's process uses."""
    handler: Any = lite.app.app.program.worker._handlers["server.resize"]
    drivers = handler.__self__._hands.drivers
    made: Any = Removing(drivers["simulated"].life)
    monkeypatch.setitem(drivers, "simulated", replace(drivers["simulated"], life=made))
    return made  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "AGAIN_IN_S", 0.02)


@contextmanager
def another(made: Cloud, folder: Path, url: str) -> Iterator[Application]:
    """A second process on the same database."""
    world = running(folder, url, work=True, **PLENTY)
    app = made.app.run(world.__aenter__())
    try:
        yield app
    finally:
        made.app.run(world.__aexit__(None, None, None))


def until(made: Cloud, is_so: Callable[[], bool]) -> None:
    async def look() -> None:
        async with asyncio.timeout(30):
            while not is_so():
                await asyncio.sleep(0.01)

    made.app.run(look())


async def jobs(app: Application, uuid: str) -> int:
    return len(await work.of_machine(app.program.store, uuid))


def test_a_copy_runs_in_one_process_and_ends_before_a_reset_by_way_of_another_is_followed_up(
    tmp_path: Path, postgres_url: str
) -> None:
    log: list[str] = []
    with (
        cloud(tmp_path, postgres_url) as made,
        another(made, tmp_path, postgres_url) as second,
    ):
        both = {"one": made.app.app, "two": second}
        copies = [slow(app, name, log) for name, app in both.items()]
        uuid = made.boot()
        source = made.show(uuid)["OS-EXT-SRV-ATTR:host"]
        assert made.act(uuid, "migrate").status == 202
        until(made, lambda: sum(copy.asked for copy in copies) >= 20)
        assert len(log) == 1, "nobody else has begun"
        assert "copying" in made.show(uuid, version=901)["wait_reason"]
        other = both["two" if log[0].startswith("one") else "one"]
        path, wish = f"/compute/v2.1/servers/{uuid}/action", {"os-resetState": {"state": "active"}}
        told = made.app.run(other.ask("POST", path, wish, version=None, headers=OURS))
        assert told.status == 202
        until(made, lambda: "it is undone" in log)
        assert log[1:] == [log[0].replace("begins", "ends"), "it is undone"]
        assert made.until(uuid, "ACTIVE")["OS-EXT-SRV-ATTR:host"] == source

        async def at_rest() -> None:
            async with asyncio.timeout(30):
                while await jobs(second, uuid):
                    await asyncio.sleep(0.01)

        made.app.run(at_rest())


def test_a_migration_that_is_hurried_goes_on(tmp_path: Path) -> None:
    log: list[str] = []
    with cloud(tmp_path) as made:
        copy = slow(made.app.app, "one", log)
        uuid = made.boot()
        wish = {"host": None, "block_migration": "auto"}
        assert made.act(uuid, "os-migrateLive", wish).status == 202
        until(made, lambda: copy.asked >= 3)
        [one] = made.ask("GET", f"/servers/{uuid}/migrations").json["migrations"]
        path = f"/servers/{uuid}/migrations/{one['id']}/action"
        assert made.ask("POST", path, {"force_complete": None}).status == 202
        made.until(uuid, "ACTIVE")
        assert log == ["one begins", "it is hurried", "one ends"]


def test_a_process_that_stops_ends_its_copy_and_leaves_it_to_the_next(tmp_path: Path) -> None:
    log: list[str] = []
    with cloud(tmp_path) as made:
        copy = slow(made.app.app, "one", log)
        uuid = made.boot()
        assert made.act(uuid, "migrate").status == 202
        until(made, lambda: copy.asked >= 3)
    assert log == ["one begins", "one ends"]
    with cloud(tmp_path, hosts=0) as made:
        made.until(uuid, "VERIFY_RESIZE")


def test_a_copy_that_takes_too_long_ends_before_the_work_fails(tmp_path: Path) -> None:
    log: list[str] = []
    with cloud(tmp_path) as made:
        copy = slow(made.app.app, "one", log)
        uuid, door = made.boot(), made.app.app.program.compute.context.door
        assert made.act(uuid, "migrate").status == 202
        until(made, lambda: copy.asked >= 3)
        real = door.clock
        door.clock = lambda: real() + 100_000
        made.wait(uuid, lambda seen: seen["OS-EXT-STS:task_state"] is None)
        assert log[:2] == ["one begins", "one ends"]


REMOVED = ["it is removed", "that ends", "it is made"]


def test_a_server_comes_to_no_host_while_what_is_left_of_it_on_another_is_removed(
    lite: Cloud, removing: Removing
) -> None:
    """On storage that hosts share, its new files would be taken for the old ones."""
    uuid = lite.boot()
    there = home_of(lite, uuid)
    other = next(host for host in lite.hosts if host != there)
    removing.is_ready = True
    assert lite.act(uuid, "shelve").status == 202
    lite.until(uuid, "SHELVED_OFFLOADED")
    removing.is_ready = False
    lite.script(f"server:{uuid}", fail={"spawn": "disk full"})
    assert lite.act(uuid, "unshelve", {"host": there}).status == 202
    lite.settled(uuid)
    removing.log.clear()
    until(lite, lambda: removing.asked > 2)
    lite.guests.scripts.set(f"server:{uuid}", None)
    assert lite.act(uuid, "unshelve", {"host": other}).status == 202
    asked = removing.asked
    until(lite, lambda: removing.asked > asked + 5 or REMOVED[2] in removing.log)
    removing.is_ready = True
    lite.until(uuid, "ACTIVE")
    assert removing.log[-2:] == REMOVED[1:]


def test_a_server_comes_to_no_host_while_what_it_fled_from_is_removed(
    lite: Cloud, removing: Removing
) -> None:
    uuid = lite.boot()
    home = home_of(lite, uuid)
    removing.is_ready = True
    with down(lite, home):
        assert lite.act(uuid, "evacuate", {}, version=94).status == 200
        there = lite.until(uuid, "ACTIVE")["OS-EXT-SRV-ATTR:host"]
        assert lite.act(uuid, "shelve").status == 202
        lite.until(uuid, "SHELVED_OFFLOADED")
    removing.is_ready = False
    removing.log.clear()
    tidy_up(lite)
    until(lite, lambda: removing.log == REMOVED[:1])
    assert lite.act(uuid, "unshelve", {"host": there}).status == 202
    lite.wait(
        uuid,
        lambda seen: "just being removed" in str(seen["wait_reason"]) or REMOVED[2] in removing.log,
    )
    removing.is_ready = True
    lite.until(uuid, "ACTIVE")
    assert removing.log == REMOVED
    in_one_place(lite, uuid, there)


def test_what_is_left_on_a_host_that_is_said_to_be_down_is_not_being_removed_any_more(
    lite: Cloud, removing: Removing
) -> None:
    """As it answers all the same, though not soon; the rest is removed once it is up."""
    uuid = lite.boot()
    home = home_of(lite, uuid)
    removing.log.clear()
    with down(lite, home):
        lite.guests.scripts.set(f"host:{home}", None)
        assert lite.act(uuid, "shelve").status == 202
        lite.until(uuid, "SHELVED_OFFLOADED")
        assert removing.log == REMOVED[:2]
        assert lite.act(uuid, "unshelve").status == 202
        lite.until(uuid, "ACTIVE")
    removing.is_ready = True


def test_what_goes_on_is_called_off_when_the_lease_is_lost_while_it_is_asked_for(
    lite: Cloud,
) -> None:
    log: list[str] = []
    hands = Hands(lite.app.app.program.compute.context, {}, NO_IMAGES)

    async def call_off() -> None:
        log.append("it is called off")

    async def ask() -> Outcome:
        log.append("it is asked for")
        if len(log) > 1:
            await asyncio.Event().wait()
        return Wait("it takes its time", 0.0, call_off)

    async def lose() -> None:
        job = asyncio.create_task(to_its_end(hands, ask, 1e12))
        while len(log) < 2:
            await asyncio.sleep(0)
        job.cancel()
        await asyncio.wait({job})

    lite.app.run(lose())
    assert log == ["it is asked for"] * 2 + ["it is called off"]
