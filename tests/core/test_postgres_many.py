"""Commits that go together are one statement, and mean the same as one after the other."""

import asyncio
from contextlib import asynccontextmanager

import asyncpg
import pytest

from siderite.core import eventlog
from siderite.core import leases
from siderite.core import sequencer
from siderite.core import work
from siderite.core.fact import Fact
from siderite.core.store import Lost
from siderite.core.store import Op
from siderite.core.store import open_store
from siderite.core.store.migrations import migrate
from siderite.core.store.postgres import LARGE
from siderite.core.store.postgres_many import Many
from siderite.core.store.postgres_many import can_be_asked
from siderite.core.store.postgres_many import parts_of

INSERT = "INSERT INTO things (id, name) VALUES (?, ?)"
RENAME = "UPDATE things SET name = ? WHERE id = ?"
OLDER = "UPDATE things SET name = ? WHERE id <= ?"


@asynccontextmanager
async def things(url):
    """A store that tells in `ran` which statements it was asked."""
    store = await open_store(url)
    async with store.pool.acquire() as connection:
        await connection.execute("CREATE TABLE things (id BIGINT PRIMARY KEY, name TEXT)")
    store.ran = []
    use = store._use

    async def listening(sql, ask):
        store.ran.append(sql)
        return await use(sql, ask)

    store._use = listening
    try:
        yield store
    finally:
        await store.close()


async def at_once(store, *commits):
    return await asyncio.gather(*map(store.commit, commits), return_exceptions=True)


async def names(store):
    rows = await store.fetch("SELECT id, name FROM things ORDER BY id")
    return {row[0]: row[1] for row in rows}


def test_many_commits_of_one_shape_are_one_statement(postgres_url):
    async def story():
        async with things(postgres_url) as store:
            rows = [(n, None if n == 3 else f"n'{n}%s") for n in range(20)]
            told = await at_once(store, *([Op(INSERT, row, 1)] for row in rows))
            assert told == [None] * 20
            assert await names(store) == dict(rows)
            store.ran.clear()
            changes = [[Op(RENAME, (f"m{n}", n), 1), Op(RENAME, ("-", n + 100))] for n in range(20)]
            assert await at_once(store, *changes) == [None] * 20
            assert [sql for sql in store.ran if "unnest" in sql] == [store.ran[-1]]
            assert await names(store) == {n: f"m{n}" for n in range(20)}
            gone = [[Op("DELETE FROM things WHERE id = ? AND name = ?", (n, f"m{n}"), 1)]
                    for n in range(20)]  # fmt: skip
            assert await at_once(store, *gone) == [None] * 20
            assert await names(store) == {}

    asyncio.run(story())


def test_large_ones_go_by_themselves(postgres_url):
    async def story():
        async with things(postgres_url) as store:
            rows = [(n, "x" * (LARGE + n if n > 2 else n)) for n in range(6)]
            assert await at_once(store, *([Op(INSERT, row, 1)] for row in rows)) == [None] * 6
            assert await names(store) == dict(rows)
            alone = store._compose([Op(INSERT, (), 1)])
            assert store.ran.count(alone) == 3
            assert sum("unnest" in sql for sql in store.ran) == 1

    asyncio.run(story())


def test_the_library_takes_lists_for_arrays_and_asks_nothing_else_what_it_is(postgres_url):
    async def story():
        async with things(postgres_url) as store, store.pool.acquire() as connection:
            sent = await connection.fetchval("SELECT $1::text[]", ["a", None, "b"])
            assert sent == ["a", None, "b"]
            with pytest.raises(asyncpg.DataError, match="container expected"):
                await connection.fetchval("SELECT $1::text[]", ("a", "b"))

    asyncio.run(story())


def test_who_lost_among_many_hears_of_it_and_the_others_do_not(postgres_url):
    async def story():
        async with things(postgres_url) as store:
            await at_once(store, *([Op(INSERT, (n, "a"), 1)] for n in range(5)))
            told = await at_once(store, *([Op(RENAME, ("b", n), 1)] for n in range(6)))
            assert [type(one) for one in told] == [type(None)] * 5 + [Lost]
            assert set((await names(store)).values()) == {"b"}

    asyncio.run(story())


def test_of_two_that_touch_one_row_neither_is_passed_over(postgres_url):
    async def story():
        async with things(postgres_url) as store:
            await store.commit([Op(INSERT, (1, ""), 1)])
            more = "UPDATE things SET name = name || ? WHERE id = ?"
            assert await at_once(store, *([Op(more, (f"{n}", 1))] for n in range(9))) == [None] * 9
            assert await names(store) == {1: "012345678"}
            assert await at_once(store, *([Op(more, ("-", 1), 1)] for _ in range(9))) == [None] * 9
            assert await names(store) == {1: "012345678---------"}

    asyncio.run(story())


def test_two_that_name_one_row_in_other_parts_of_theirs_go_one_after_the_other():
    shape = ((RENAME, None), ("DELETE FROM things WHERE id = ? AND name = ?", None))
    many = Many(parts_of(shape), ["text", "int8", "int8", "text"])
    assert many.args([("a", 1, 1, "b"), ("a", 2, 3, "b")]) == [
        2, ["a", "a"], [1, 2], [1, 3], ["b", "b"],
    ]  # fmt: skip
    assert many.args([("a", 1, 2, "b"), ("a", 3, 1, "b")]) is None


def test_of_two_that_make_one_row_the_second_finds_it_there(postgres_url):
    put = f"{INSERT} ON CONFLICT (id) DO UPDATE SET name = things.name || excluded.name"

    async def story():
        async with things(postgres_url) as store:
            rows = [(1, "a"), (1, "b"), (2, "c"), (1, "d")]
            assert await at_once(store, *([Op(put, row, 1)] for row in rows)) == [None] * 4
            assert await names(store) == {1: "abd", 2: "c"}
            assert store.ran.count(store._compose([Op(put, (), 1)])) == 1, "in one transaction"

    asyncio.run(story())


def test_one_that_touches_two_rows_does_not_make_up_for_one_that_touches_none(postgres_url):
    async def story():
        async with things(postgres_url) as store:
            await at_once(store, *([Op(INSERT, (n, "a"), 1)] for n in (1, 2)))
            told = await at_once(store, [Op(OLDER, ("b", 2), 1)], [Op(OLDER, ("c", 0), 1)])
            assert [type(one) for one in told] == [Lost, Lost]
            assert await names(store) == {1: "a", 2: "a"}

    asyncio.run(story())


def test_facts_of_many_commits_keep_their_order(postgres_url):
    async def story():
        store = await open_store(postgres_url)
        await migrate(store)
        told = [
            eventlog.record(
                [Fact(f"t.{n}", "p", "node", "u", "{}") for n in range(first, first + 3)],
                at=1.0,
                host="h",
                request_id=None,
            )
            for first in range(0, 60, 3)
        ]
        assert await at_once(store, *told) == [None] * 20
        await sequencer.place(store)
        types = [entry.event_type for entry in await eventlog.read(store)]
        await store.close()
        return types

    assert asyncio.run(story()) == [f"t.{n}" for n in range(60)]


def test_what_workers_and_the_door_commit_can_go_together():
    """Else each of many would be a statement of its own again."""
    held = work.Work("m", "l", "k", "{}", 1.0, 2.0, None, 0, 7, 1.0, None, owner="o")
    new = work.add("m", "l", "k", job="{}", now=1.0, deadline=2.0)
    fact = Fact("t", "p", "node", "u", "{}")
    ops = [
        new, new.leased("o", 9.0)[0], work.keep(held, job="{}"), work.done(held),
        work.park(held, due=1.0, reason=None), work.again(held, due=1.0, reason=""),
        *work.drop("m", "l"), *work.drop("m"), work.wake("m", "l", 1.0),
        *eventlog.record([fact], at=1.0, host="h", request_id=None),
        *eventlog.record([fact] * 3, at=1.0, host="h", request_id=None),
    ]  # fmt: skip
    assert [op.sql for op in ops if parts_of(((op.sql, op.rows),)) is None] == []


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("UPDATE t SET a = (SELECT max(b) FROM u) WHERE c = ?", 1),
        ("UPDATE t SET a = v.b FROM (VALUES (?)) AS v(b) WHERE c = 1", None),
        ("UPDATE t SET a = 1 WHERE c <= ?", None),
        ("UPDATE t SET a = ? WHERE c IS NULL", None),
        ("UPDATE t SET a = ? WHERE c = ?", 2),
        ("DELETE FROM t WHERE c IN (SELECT d FROM u WHERE e = ?)", None),
        ("INSERT INTO t (a) SELECT b FROM u WHERE c = ?", 1),
        ("INSERT INTO t (a) VALUES (?), (1)", 2),
        ("INSERT INTO t (a) VALUES (?) ON CONFLICT (a) DO UPDATE SET a = ?", 1),
        (leases.release("o", "m", 1.0).sql, None),
    ],
)
def test_what_would_mean_something_else_for_many_is_left_as_it_is(sql, rows):
    assert parts_of(((sql, rows),)) is None


def test_arguments_of_several_rows_stand_row_by_row():
    shape = (("INSERT INTO t (a, b) VALUES (?, ?), (?, ?)", 2), ("DELETE FROM t WHERE a = ?", None))
    many = Many(parts_of(shape), ["text", "int8", "text", "int8", "float8"])
    assert "unnest($2::text[], $3::int8[])" in many.sql
    assert "unnest($4::float8[])" in many.sql
    given = many.args([("a", 1, "b", 2, 0.5), ("c", 3, "d", 4, 1.5)])
    assert given == [2, ["a", "b", "c", "d"], [1, 2, 3, 4], [0.5, 1.5]]


def test_questions_with_limits_of_their_own_are_asked_one_by_one(postgres_url):
    sql = "SELECT id FROM things WHERE id > ? ORDER BY id LIMIT ?"
    assert not can_be_asked(sql)

    async def story():
        async with things(postgres_url) as store:
            await at_once(store, *([Op(INSERT, (n, "a"), 1)] for n in range(9)))
            found = await asyncio.gather(*[store.fetch(sql, (n, n)) for n in range(4)])
            assert [[row[0] for row in rows] for rows in found] == [[], [2], [3, 4], [4, 5, 6]]

    asyncio.run(story())
