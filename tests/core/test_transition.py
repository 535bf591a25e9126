"""The door: whoever asked to be told of facts is, when they are true and not before."""

import asyncio

import pytest

from siderite.core.store import Lost
from siderite.core.store import Op
from siderite.core.transition import Cause
from siderite.core.transition import Door
from tests.core.test_eventlog import fact
from tests.core.test_eventlog import placed
from tests.core.test_work import migrated
from tests.support.disk import held


def test_all_listeners_are_told_of_facts_after_their_commit_and_only_then(database_url):
    async def story():
        async with migrated(database_url) as store:
            door = Door(store, host="here")
            calls = []
            door.on_facts(lambda: calls.append("one"))
            door.on_facts(lambda: calls.append("other"))

            lost = door.change(Cause())
            lost.tell(fact("a", 1))
            lost.put(Op("UPDATE work SET due = 1 WHERE id = 99", (), 1))
            with pytest.raises(Lost):
                await door.commit(lost)
            silent = door.change(Cause())
            silent.put(Op("UPDATE work SET due = 1 WHERE id = 99"))
            await door.commit(silent)
            assert calls == []

            told = door.change(Cause())
            told.tell(fact("a", 2))
            await door.commit(told)
            assert calls == ["one", "other"]
            assert [bytes(entry.payload) for entry in await placed(store)] == [b'{"n":2}']

    asyncio.run(story())


def test_listeners_are_told_of_a_commit_whose_task_was_cancelled_on_the_way(tmp_path):
    async def story():
        async with migrated(f"sqlite:///{tmp_path}/test.db") as store:
            door = Door(store, host="here")
            told = asyncio.Event()
            door.on_facts(told.set)
            disk = held(store)
            change = door.change(Cause())
            change.tell(fact("a", 1))
            committing = asyncio.create_task(door.commit(change))
            await asyncio.sleep(0.05)
            committing.cancel()
            await asyncio.gather(committing, return_exceptions=True)
            disk.set()
            async with asyncio.timeout(10):
                await told.wait()
            assert len(await placed(store)) == 1

    asyncio.run(story())


def test_what_was_decided_before_the_clock_was_set_back_is_decided_again(database_url):
    async def story():
        async with migrated(database_url) as store:
            now, decided = [9000.0], []
            door = Door(store, host="here", clock=lambda: now[0])

            async def decide(change):
                decided.append(change.now)
                change.tell(fact("a", 1))
                now[0] = 5400.0

            await door.attempt(Cause(), "m", decide)
            assert decided == [9000.0, 5400.0]
            assert [entry.at for entry in await placed(store)] == [5400.0]

    asyncio.run(story())
