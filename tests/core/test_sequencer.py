"""What it costs to give facts their places, and who does."""

import asyncio
import json
from contextlib import asynccontextmanager

import asyncpg
import pytest

from siderite.core import sequencer
from tests.core.test_eventlog import fact
from tests.core.test_eventlog import placed
from tests.core.test_eventlog import written
from tests.core.test_work import migrated


@asynccontextmanager
async def other_session(url):
    """A connection of its own."""
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


MANY = """
INSERT INTO events (message_id, event_type, at, publisher_id, priority, resource_type, resource,
  payload) SELECT n, 'a.b.start', 0, 'p', 'INFO', 'node', n, repeat('payload', 50)
FROM generate_series(1, CAST(? AS INT)) AS n
"""


@pytest.mark.parametrize("analyzed", [None, 0, 1])
def test_what_has_its_place_is_not_looked_at_again(postgres, postgres_url, analyzed):
    """However much there is of it, though nothing has tidied the table up since, and though the
    planner believes that half of the log waits for its place because so it was when it looked.
    """

    async def story():
        async with migrated(postgres_url) as store:
            for turn, many in enumerate((2000, 2000, 1)):
                await store.write(MANY, (many,))
                if turn == analyzed:
                    postgres.sql("ANALYZE events", url=postgres_url)
                before, last = await sequencer.place(store)
                assert last - before == many
            await store.write(MANY, (1,))
            explained = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sequencer.PLACE % ''}"
            [[told]] = await store.write(explained)
            return json.loads(str(told))[0]["Plan"]["Shared Hit Blocks"]

    assert asyncio.run(story()) < 200


def test_what_placing_costs_follows_the_number_of_facts(postgres_url):
    """Though the statement was planned when there were none, and looks at each fact once."""

    async def story():
        async with migrated(postgres_url) as store, other_session(postgres_url) as other:
            place = await other.prepare(sequencer.PLACE % "")
            await place.fetch()
            blocks = []
            for many in (100, 800):
                await store.write(MANY, (many,))
                before = await _looked_at(other)
                assert (await place.fetch())[0][1] == many
                blocks.append(await _looked_at(other) - before)
            return blocks

    few, many = asyncio.run(story())
    assert many < 16 * few


async def _looked_at(session):
    """How many blocks of the log and its indexes were looked at so far."""
    await session.execute("SELECT pg_stat_force_next_flush()")
    return await session.fetchval(
        "SELECT heap_blks_hit + idx_blks_hit FROM pg_statio_all_tables WHERE relname = 'events'"
    )


def test_where_there_is_nothing_to_place_nothing_is_written(postgres_url):
    async def story():
        async with migrated(postgres_url) as store:
            await store.commit(written(fact("a", 1)))
            assert await sequencer.place(store) == (0, 1)
            locked_by = "SELECT xmax::text FROM event_head"
            before = await store.fetch(locked_by)
            assert await sequencer.place(store) == (1, 1)
            assert await store.fetch(locked_by) == before

    asyncio.run(story())


_LOCK = "IS NOT NULL FOR UPDATE"
_LATE = "IS NOT NULL AND (SELECT true FROM pg_advisory_xact_lock(47)) FOR UPDATE"
_HELD = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 47 AND NOT granted"


def test_a_sequencer_that_saw_facts_before_another_placed_them_places_none_again(postgres_url):
    """It stands still between its look at the facts and its lock, as long as the other takes."""

    async def story():
        async with migrated(postgres_url) as store, other_session(postgres_url) as other:
            await store.commit(written(fact("a", 1), fact("a", 2)))
            assert _LOCK in sequencer.PLACE
            await other.execute("SELECT pg_advisory_lock(47)")
            late = asyncio.create_task(store.write(sequencer.PLACE.replace(_LOCK, _LATE) % ""))
            while not await other.fetch(_HELD):
                assert not late.done(), await late
            await store.commit(written(fact("a", 3)))
            assert await sequencer.place(store) == (0, 3)
            await other.execute("SELECT pg_advisory_unlock(47)")
            is_ours, count, *_ = (await late)[0]
            assert (is_ours, count) == (False, 0)
            assert [e.seq for e in await placed(store)] == [1, 2, 3]

    asyncio.run(story())
