"""What waits is moved along with the computer's clock."""

import asyncio
import time

import pytest

from siderite.core import waits
from siderite.core import work
from siderite.core.clock import Clock
from siderite.core.errors import Unavailable
from siderite.core.store import open_store
from siderite.core.store.migrations import migrate
from siderite.core.waits import Waits
from siderite.core.worker import Worker

HOUR_S = 3600.0


class World:
    """A database, and a clock that can be set."""

    def __init__(self, monkeypatch):
        self._real, self._set_s = time.time, 0.0
        monkeypatch.setattr(time, "time", lambda: self._real() + self._set_s)
        monkeypatch.setattr(waits, "LOOK_S", 0.01)
        monkeypatch.setattr(waits, "_AGAIN_S", 0.01)
        self.clock = Clock()
        self.told = []

    def set(self, by_s):
        self._set_s += by_s

    def run(self, story):
        async def whole():
            self.store = await open_store("sqlite://")
            await migrate(self.store)
            self.clock.look_here()
            self.waits = Waits(self.store, self.clock, [work.shift], [self.told.append])
            try:
                async with asyncio.timeout(20):
                    await story()
            finally:
                await self.store.close()

        asyncio.run(whole())

    async def add(self, machine, **times):
        now = self.clock()
        times = {name: at if at >= work.FAR else now + at for name, at in times.items()}
        await self.store.commit([work.add(machine, "provision", "k", job="{}", now=now, **times)])

    async def left(self, machine):
        """In how many seconds a job is due, and to be over."""
        (job,) = await work.of_machine(self.store, machine)
        return [
            round(at - self.clock()) if at < work.FAR else None for at in (job.due, job.deadline)
        ]

    async def until(self, reached):
        while not reached():
            await asyncio.sleep(0.005)

    async def kept(self, story):
        keeping = asyncio.create_task(self.waits.keep())
        try:
            await story()
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


@pytest.mark.parametrize("by_s", [-HOUR_S, HOUR_S])
def test_what_waits_is_due_when_it_would_have_been_had_the_clock_not_been_set(world, by_s):
    async def story():
        await world.add("m", due=5.0, deadline=60.0)
        await world.add("held", due=work.FAR, deadline=work.FAR)
        await world.waits.begin()

        async def meanwhile():
            world.set(by_s)
            await world.until(lambda: world.told)
            await world.store.commit([])  # whatever was handed in before is committed

        await world.kept(meanwhile)
        assert round(world.told[0]) == -by_s
        assert abs(world.clock() - time.time()) < 1.0
        assert await world.left("m") == [5, 60]
        assert await world.left("held") == [None, None]

    world.run(story)


def test_a_clock_that_was_set_back_while_nobody_ran_is_seen_at_the_start(world):
    async def story():
        await world.waits.begin()
        await world.add("m", due=5.0, deadline=60.0)
        world.set(-HOUR_S)
        world.clock.look_here()  # as the next process does
        assert round(await world.waits.begin()) == HOUR_S
        assert await world.left("m") == [5, 60]
        assert await world.waits.begin() == 0.0, "it is moved once"

    world.run(story)


def test_the_database_is_told_now_and_then_how_late_it_is(world, monkeypatch):
    monkeypatch.setattr(waits, "REMEMBER_S", 0.02)

    async def story():
        await world.waits.begin()

        async def meanwhile():
            while (await world.store.fetch("SELECT until FROM leases"))[0][0] < began + 0.1:
                await asyncio.sleep(0.005)

        began = world.clock()
        await world.kept(meanwhile)
        world.set(-HOUR_S)
        world.clock.look_here()
        assert await world.waits.begin() > HOUR_S - 1.0

    world.run(story)


def test_time_in_which_nobody_ran_is_no_reason_to_move_anything(world):
    async def story():
        await world.add("m", due=5.0, deadline=60.0)
        await world.waits.begin()
        world.set(HOUR_S)
        world.clock.look_here()
        assert await world.waits.begin() == 0.0
        assert await world.left("m") == [5 - HOUR_S, 60 - HOUR_S]

    world.run(story)


def test_what_cannot_be_moved_as_the_disk_is_full_is_moved_later(world, monkeypatch):
    async def story():
        await world.add("m", due=5.0, deadline=60.0)
        commit, tries = world.store.commit, []

        async def full(ops):
            tries.append(ops)
            if len(tries) < 3:
                raise Unavailable("no room")
            await commit(ops)

        monkeypatch.setattr(world.store, "commit", full)

        async def meanwhile():
            world.set(-HOUR_S)
            await world.until(lambda: len(tries) >= 3)
            await commit([])

        await world.kept(meanwhile)
        assert await world.left("m") == [5, 60]
        assert len(world.told) == 1

    world.run(story)


@pytest.mark.parametrize(("by_s", "times"), [(-HOUR_S, 2), (HOUR_S, 2), (-5.0, 1), (5.0, 1)])
def test_who_is_at_work_starts_over_with_the_times_that_hold_now_if_they_differ_by_much(
    world, monkeypatch, by_s, times
):
    monkeypatch.setattr("siderite.core.worker.RENEW_S", 0.05)
    runs, is_over = [], asyncio.Event()

    async def drive(item):
        runs.append(item.deadline - world.clock())
        await is_over.wait()
        await world.store.commit([work.done(item)])

    async def story():
        worker = Worker(world.store, {"k": drive}, owner="me", slots=1, clock=world.clock)
        told = [worker.start_over, world.told.append]
        world.waits = Waits(world.store, world.clock, [work.shift], told)
        await world.add("m", due=0.0, deadline=60.0)
        working = asyncio.create_task(worker.run())

        async def meanwhile():
            await world.until(lambda: runs)
            world.set(by_s)
            await world.until(lambda: world.told and len(runs) == times)
            is_over.set()
            while (await work.depth(world.store))[0]:
                await asyncio.sleep(0.005)

        await world.kept(meanwhile)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    world.run(story)
    assert [round(left, -1) for left in runs] == [60.0] * times
