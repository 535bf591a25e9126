"""The log: no gap, no double, in order, whatever fails or overtakes; on both databases."""

import asyncio
import itertools
import json
import re

import pytest

from siderite.core import eventlog
from siderite.core import sequencer
from siderite.core.fact import Fact
from siderite.core.store import Lost
from siderite.core.store import Op
from tests.core.test_work import migrated


def fact(resource, n):
    return Fact("baremetal.node.update.end", "ironic-api", "node", resource, f'{{"n":{n}}}')


def written(*facts):
    return eventlog.record(facts, at=1.0, host="here", request_id="req-1")


async def placed(store, after=0):
    if store.dialect == "postgresql":
        await sequencer.place(store)
    return await eventlog.read(store, after=after)


def test_facts_are_read_in_order_with_what_they_say(database_url):
    async def story():
        async with migrated(database_url) as store:
            await store.commit(written(fact("a", 1), fact("a", 2)))
            entries = await placed(store)
            assert [(e.seq, e.resource, bytes(e.payload)) for e in entries] == [
                (1, "a", b'{"n":1}'),
                (2, "a", b'{"n":2}'),
            ]
            assert entries[0].publisher_id == "ironic-api.here"
            assert entries[0].request_id == "req-1"
            assert entries[0].message_id != entries[1].message_id
            assert [e.seq for e in await placed(store, after=1)] == [2]

    asyncio.run(story())


def test_of_facts_that_say_much_fewer_are_read_at_a_time_and_none_is_left_out(
    database_url, monkeypatch
):
    monkeypatch.setattr(eventlog, "MOST_SAID", 100_000)
    monkeypatch.setattr(eventlog, "FIRST", 2)

    async def story():
        async with migrated(database_url) as store:
            for n in range(30):
                await store.commit(written(fact("a", f'"{n}{"x" * 20_000}"')))
            assert [e.seq for e in await placed(store)] == [1, 2, 3, 4, 5, 6]
            wanted, seen, after, pages = eventlog.Wanted(resource="a"), list[int](), 0, 0
            while after < 30:
                some, after = await eventlog.page(store, wanted, after=after, limit=30, end=30)
                seen += [e.seq for e in some]
                pages += 1
            assert (seen, pages) == (list(range(1, 31)), 5)
            newest = await eventlog.tail(store, eventlog.EVERYTHING, last=30, end=30)
            assert [e.seq for e in newest] == [25, 26, 27, 28, 29, 30]
            newest = await eventlog.tail(store, eventlog.EVERYTHING, last=5, end=30)
            assert [e.seq for e in newest] == [26, 27, 28, 29, 30]

    asyncio.run(story())


def test_what_is_about_a_resource_is_found_wherever_the_log_ends(database_url):
    """Where the index holds all of it, none of it, and a part."""

    async def story():
        async with migrated(database_url) as store:
            names = ["a", "b", "c", "b", "b"]
            told = []
            for length in (3, 511, 512, 513, 1023, 1024, 1030):
                some = [fact(names[n % 5], n) for n in range(len(told), length)]
                await store.commit(written(*some))
                told += some
                await placed(store)
                for name in ("a", "b", "none"):
                    await _finds_what_the_log_has(store, name, told)
            await store.commit([Op("DELETE FROM events WHERE seq <= 700")])
            await _finds_what_the_log_has(store, "b", told, gone=700)

    asyncio.run(story())


async def _finds_what_the_log_has(store, name, told, gone=0):
    wanted, end = eventlog.Wanted(resource=name), len(told)
    there = [n for n, each in enumerate(told, 1) if each.resource == name and n > gone]
    found, _ = await eventlog.page(store, wanted, after=0, limit=2000, end=end)
    assert [e.seq for e in found] == there
    found, _ = await eventlog.page(store, wanted, after=505, limit=7, end=end)
    assert [e.seq for e in found] == [n for n in there if n > 505][:7]
    assert [e.seq for e in await eventlog.tail(store, wanted, last=9, end=end)] == there[-9:]
    kinds = ["baremetal.node.update.end", "other"]
    assert [e.seq for e in await eventlog.latest(store, name, kinds, 9)] == there[-9:]
    for descending in (True, False):
        acted = await eventlog.of_resource(
            store, name, beyond=508, limit=9, descending=descending
        )  # fmt: skip
        expected = [n for n in there if n < 508][:-10:-1] if descending else [
            n for n in there if n > 508
        ][:9]  # fmt: skip
        assert [each.entry.seq for each in acted] == expected


def test_what_was_undone_leaves_no_gap(database_url):
    async def story():
        async with migrated(database_url) as store:
            lost = Op("UPDATE work SET due = 1 WHERE id = 99", (), 1)
            for n in range(10):
                await store.commit(written(fact("a", n)))
                with pytest.raises(Lost):
                    await store.commit([*written(fact("b", n)), lost])
            assert [e.seq for e in await placed(store)] == list(range(1, 11))

    asyncio.run(story())


def test_many_writers_and_sequencers_leave_no_gap_and_keep_each_resources_order(database_url):
    async def story():
        async with migrated(database_url) as store:

            async def writer(name):
                for n in range(15):
                    await store.commit(written(fact(name, n)))

            async def reader():
                seen = []
                for _ in range(60):
                    entries = await placed(store, after=seen[-1].seq if seen else 0)
                    seen += entries
                    await asyncio.sleep(0)
                return seen

            _, *readers = await asyncio.gather(
                asyncio.gather(*(writer(f"r{n}") for n in range(12))), reader(), reader()
            )
            everything = await placed(store)
            assert [e.seq for e in everything] == list(range(1, 12 * 15 + 1))
            for seen in readers:
                assert seen == everything[: len(seen)]
            for name in (f"r{n}" for n in range(12)):
                said = [bytes(e.payload) for e in everything if e.resource == name]
                assert said == [b'{"n":%d}' % n for n in range(15)]

    asyncio.run(story())


def test_more_facts_than_one_statement_takes_are_all_written(database_url):
    async def story():
        async with migrated(database_url) as store:
            await store.commit(written(*(fact("a", n) for n in range(20))))
            assert [bytes(e.payload) for e in await placed(store)] == [
                b'{"n":%d}' % n for n in range(20)
            ]

    asyncio.run(story())


@pytest.mark.parametrize(
    ("publisher", "shown"),
    [
        ("ironic-api", "ironic-api.here"),
        ("nova-compute:", "nova-compute:here"),
        ("nova-compute:rack-7", "nova-compute:rack-7"),
    ],
)
def test_the_publisher_is_named_as_its_service_does(publisher, shown):
    told = Fact("a.b.end", publisher, "thing", "a", "{}")
    (op,) = eventlog.record([told], at=1.0, host="here", request_id=None)
    assert op.args[3] == shown


MANY = """
INSERT INTO events (seq, message_id, event_type, at, publisher_id, priority, resource_type,
  resource, payload) SELECT n, n, 'a.b.start', 0, 'p', 'INFO', 'node',
  CASE WHEN n BETWEEN 9991 AND 10010 THEN 'mine' ELSE CAST(n % 1000 AS TEXT) END, repeat('x', 50)
FROM generate_series(1, 20000) AS n RETURNING 1
"""


@pytest.mark.parametrize("which", ["first", "newest"])
def test_the_facts_of_one_resource_are_found_without_the_others(postgres, postgres_url, which):
    """Though PostgreSQL does not know which numbers it will be asked for."""

    async def story():
        async with migrated(postgres_url) as store:
            await store.write(MANY)
            postgres.sql("ANALYZE events", url=postgres_url)
            asked, fetch = [], store.fetch

            async def listening(sql, args=()):
                asked.append((sql, args))
                return await fetch(sql, args)

            store.fetch, wanted = listening, eventlog.Wanted(resource="mine")
            if which == "first":
                found, _ = await eventlog.page(store, wanted, after=0, limit=5, end=20000)
                assert [one.seq for one in found] == [9991, 9992, 9993, 9994, 9995]
            else:
                found = await eventlog.tail(store, wanted, last=2, end=20000)
                assert [one.seq for one in found] == [10009, 10010]
            return asked

    [(sql, args)] = asyncio.run(story())
    marks = itertools.count(1)
    numbered = re.sub(r"\?", lambda _: f"${next(marks)}", sql)
    values = ", ".join(repr(arg) for arg in args)
    told = postgres.sql(
        "SET plan_cache_mode = force_generic_plan",
        f"PREPARE asked AS {numbered}",
        f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE asked({values})",
        url=postgres_url,
    )
    plan = json.loads(told)[0]["Plan"]
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 20, told
