"""A bounded queue that is fair by name."""

import asyncio

import pytest

from siderite.core import fair_queue
from siderite.core.errors import Unavailable
from siderite.core.fair_queue import FairQueue


def test_names_are_served_in_turn_and_the_one_who_asks_most_is_refused_first():
    async def story():
        queue, served, refused = FairQueue(1, 4, "full"), [], []
        gate = asyncio.Event()

        async def ask(name):
            try:
                async with queue.turn(name):
                    served.append(name)
                    await gate.wait()
            except Unavailable as why:
                refused.append((name, why.sentence))

        tasks = []
        for name in ["flood"] * 7 + ["me", "you", "me"]:
            tasks.append(asyncio.create_task(ask(name)))
            await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*tasks)
        assert served == ["flood", "flood", "me", "you", "flood"]
        assert sorted(refused) == [*[("flood", "full")] * 4, ("me", "full")]

    asyncio.run(story())


def test_nobody_waits_for_ever(monkeypatch):
    monkeypatch.setattr(fair_queue, "WAIT_S", 0.0)

    async def story():
        queue = FairQueue(1, 4, "full")
        async with queue.turn("a"):
            with pytest.raises(Unavailable, match="full"):
                async with queue.turn("b"):
                    pass
        async with asyncio.timeout(10), queue.turn("c"):
            pass

    asyncio.run(story())


def test_who_gives_up_waiting_takes_nobody_elses_turn():
    async def story():
        queue, served = FairQueue(1, 4, "full"), []
        gate = asyncio.Event()

        async def ask(name):
            async with queue.turn(name):
                served.append(name)
                await gate.wait()

        async def asked(name):
            task = asyncio.create_task(ask(name))
            await asyncio.sleep(0)
            return task

        first, waits, last = await asked("a"), await asked("b"), await asked("c")
        waits.cancel()
        first.cancel()  # now it is the turn of c
        await asyncio.wait([waits, first])
        while "c" not in served:
            await asyncio.sleep(0)
        called, after = await asked("d"), await asked("e")
        last.cancel()
        await asyncio.sleep(0)
        called.cancel()  # its turn has just come, and it does not know yet
        gate.set()
        async with asyncio.timeout(10):
            await after
        assert served == ["a", "c", "e"]

    asyncio.run(story())


def test_who_gave_up_waiting_takes_no_place():
    async def story():
        queue = FairQueue(1, 2, "full")
        async with queue.turn("a"):
            for _ in range(3):
                gone = [asyncio.create_task(_turn(queue, name)) for name in ("b", "c")]
                await asyncio.sleep(0)
                for task in gone:
                    task.cancel()
                await asyncio.gather(*gone, return_exceptions=True)
            waiting = asyncio.create_task(_turn(queue, "d"))
            await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await waiting

    asyncio.run(story())


async def _turn(queue, name):
    async with queue.turn(name):
        pass
