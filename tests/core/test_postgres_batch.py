"""Commits that wait at the same time share a transaction; what one of them meets is its own."""

import asyncio

import pytest

from siderite.core.store import Lost
from siderite.core.store import Op
from siderite.core.store import open_store
from siderite.core.store.postgres_batch import TOGETHER
from siderite.core.store.postgres_batch import Batch

ON_THE_WAY = 2
LONG_S = 0.05
PATIENCE_S = 20


class Database:
    """Takes its time with what begins with `slow`; loses whatever has `bad` among its arguments."""

    def __init__(self):
        self.ran = []
        self.is_free = asyncio.Event()

    async def run(self, sql, several):
        if sql.startswith("slow"):
            await self.is_free.wait()
        self.ran.append((sql, [args[0] for args in several]))
        if any(args[0] == "bad" for args in several):
            raise Lost(sql)
        return [args[0] for args in several]


def tell(story):
    async def all_of_it():
        database = Database()
        batch = Batch(database.run, ON_THE_WAY, LONG_S)
        on_the_way = await hand_in(batch, *[(f"slow {n}", 0) for n in range(ON_THE_WAY)])
        await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE_S):
            await story(database, batch)
            database.is_free.set()
            await asyncio.gather(*on_the_way)

    asyncio.run(all_of_it())


async def hand_in(batch, *commits):
    tasks = [asyncio.create_task(batch.do(sql, (arg,))) for sql, arg in commits]
    await asyncio.sleep(0)
    return tasks


def of_ours(database):
    return [one for one in database.ran if not one[0].startswith("slow")]


def test_what_comes_in_one_turn_of_the_loop_goes_together_though_nothing_is_on_the_way():
    async def story():
        database = Database()
        batch = Batch(database.run, ON_THE_WAY, LONG_S)
        tasks = await hand_in(batch, ("a", 1), ("b", 2), ("a", 3), ("a", "bad"), ("c", 4))
        tasks[1].cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(one) for one in answers] == [int, asyncio.CancelledError, int, Lost, int]
        assert database.ran[0] == ("a", [1, 3, "bad"])
        assert "b" not in [sql for sql, _ in database.ran]
        await batch.close()

    asyncio.run(story())


def test_who_stops_waiting_takes_nobody_along():
    async def story():
        database = Database()
        batch = Batch(database.run, ON_THE_WAY, LONG_S)
        first, *others = await hand_in(batch, *[("a", n) for n in range(TOGETHER + 3)])
        first.cancel()
        await asyncio.gather(*others)
        assert [len(several) for _, several in database.ran] == [TOGETHER - 1, 3]

    asyncio.run(story())


def test_what_waits_with_the_same_statement_goes_together_in_order():
    async def story(database, batch):
        tasks = await hand_in(batch, ("a", 1), ("b", 2), ("a", 3), ("b", 4), ("a", 5))
        assert of_ours(database) == []
        database.is_free.set()
        assert await asyncio.gather(*tasks) == [1, 2, 3, 4, 5]
        assert of_ours(database) == [("a", [1, 3, 5]), ("b", [2, 4])]

    tell(story)


def test_no_transaction_grows_without_end():
    async def story(database, batch):
        tasks = await hand_in(batch, *[("a", n) for n in range(TOGETHER + 3)])
        database.is_free.set()
        await asyncio.gather(*tasks)
        assert [len(several) for _, several in of_ours(database)] == [TOGETHER, 3]

    tell(story)


def test_who_lost_hears_of_it_and_the_others_do_not():
    async def story(database, batch):
        tasks = await hand_in(batch, ("a", 1), ("a", "bad"), ("a", 3))
        database.is_free.set()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(one) for one in answers] == [int, Lost, int]
        assert of_ours(database) == [("a", [1, "bad", 3]), ("a", [1]), ("a", ["bad"]), ("a", [3])]

    tell(story)


def test_who_stops_waiting_before_it_is_sent_changes_nothing():
    async def story(database, batch):
        early, late = await hand_in(batch, ("a", 1), ("a", 2))
        early.cancel()
        await asyncio.sleep(0)
        database.is_free.set()
        await late
        assert of_ours(database) == [("a", [2])]

    tell(story)


def test_what_takes_long_does_not_hold_up_the_others():
    async def story(database, batch):
        tasks = await hand_in(batch, ("a", 1), ("b", 2))
        await asyncio.gather(*tasks)
        assert of_ours(database) == [("a", [1]), ("b", [2])]
        assert not database.is_free.is_set()

    tell(story)
    assert LONG_S < PATIENCE_S


def test_beside_what_takes_long_the_others_go_as_ever():
    async def story(database, batch):
        await asyncio.gather(*await hand_in(batch, ("a", 0)))  # till now they had to be waited for
        for n in range(1, 9):
            await batch.do("a", (n,))
            assert batch._look is None  # nobody waited
        assert not database.is_free.is_set()

    tell(story)


@pytest.mark.parametrize("last", ["n9", "n0"])
def test_on_postgresql_they_are_one_transaction_and_a_clash_is_one_ones_own(postgres_url, last):
    async def story():
        store = await open_store(postgres_url)
        async with store.pool.acquire() as connection:
            await connection.execute(
                "CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT UNIQUE)"
            )
        insert = "INSERT INTO things (id, name) VALUES (?, ?)"
        names = [*(f"n{n}" for n in range(9)), last]
        answers = await asyncio.gather(
            *[store.commit([Op(insert, row, 1)]) for row in enumerate(names)],
            return_exceptions=True,
        )
        kept = await store.fetch("SELECT xmin::text FROM things")
        await store.close()
        return [why for why in answers if why is not None], [row[0] for row in kept]

    problems, transactions = asyncio.run(story())
    clashes = last == "n0"
    assert len(problems) == clashes
    assert len(transactions) == 10 - clashes
    assert len(set(transactions)) == (9 if clashes else 1)


def test_reads_that_go_together_each_get_their_own_rows_in_order(postgres_url):
    wanted = "SELECT n, n * ? FROM generate_series(1, ?) AS n ORDER BY n DESC"

    async def story():
        store = await open_store(postgres_url)
        answers = await asyncio.gather(
            *[store.fetch(wanted, (n % 7, n % 4)) for n in range(40)],
            *[store.fetch(wanted, (1, "no number")) for _ in range(2)],
            return_exceptions=True,
        )
        await store.close()
        return answers

    *good, first_bad, second_bad = asyncio.run(story())
    assert isinstance(first_bad, Exception)
    assert isinstance(second_bad, Exception)
    assert [[tuple(row) for row in rows] for rows in good] == [
        [(i, i * (n % 7)) for i in range(n % 4, 0, -1)] for n in range(40)
    ]
