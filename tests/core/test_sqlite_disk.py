"""Where commits are waited for: in the loop where the disk is quick, else in a thread."""

import asyncio
from contextlib import asynccontextmanager

from siderite.core.store import Op
from siderite.core.store import sqlite_disk
from siderite.core.store.sqlite import SqliteStore

INSERT = "INSERT INTO things (name) VALUES (?)"


class Spy:
    """Sees by whom commits are made, and says how long they take: it is the disk's clock."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.by_thread = 0
        self._now = 0.0
        self._hand_over = store._disk.commit
        store._disk.commit = self._commit  # type: ignore[method-assign]

    def _commit(self, over: sqlite_disk.Over) -> None:
        self.by_thread += 1
        self._hand_over(over)

    def perf_counter(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    def takes(self, seconds: float) -> None:
        """What the disk takes for a commit from now on."""
        commit = self.store._writer.commit

        def slowly() -> None:
            self._now += seconds
            commit()

        self.store._disk._commit = slowly


@asynccontextmanager
async def spied(tmp_path, monkeypatch):
    store = SqliteStore(f"{tmp_path}/test.db")
    store.script("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT)")
    spy = Spy(store)
    spy.takes(0.0001)
    monkeypatch.setattr(sqlite_disk, "time", spy)
    try:
        yield spy
    finally:
        await store.close()


async def commits(spy: Spy, count: int, text: str = "a") -> int:
    """Make so many commits, one by one; how many of them were made by a thread."""
    before = spy.by_thread
    for _ in range(count):
        await spy.store.commit([Op(INSERT, (text,), 1)])
    return spy.by_thread - before


def test_a_disk_that_has_shown_to_be_quick_is_waited_for_and_a_slow_one_is_not(
    tmp_path, monkeypatch
):
    async def story():
        async with spied(tmp_path, monkeypatch) as spy:
            assert await commits(spy, 1) == 1, "nothing is known of it yet"
            await commits(spy, 50)
            assert await commits(spy, 20) == 0
            spy.takes(0.1)
            assert await commits(spy, 3) == 2, "the first shows it"
            spy.takes(0.001)
            await commits(spy, 50)
            assert await commits(spy, 20) == 0

    asyncio.run(story())


def test_a_large_commit_is_not_waited_for_even_where_the_disk_is_quick(tmp_path, monkeypatch):
    async def story():
        async with spied(tmp_path, monkeypatch) as spy:
            await commits(spy, 50)
            assert await commits(spy, 1, "a" * 600_000) == 1
            assert await commits(spy, 1, "a" * 500_000) == 0

    asyncio.run(story())


def test_what_is_handed_in_within_a_few_turns_of_the_loop_is_one_commit(tmp_path, monkeypatch):
    async def after(turns: int, spy: Spy) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        await spy.store.commit([Op(INSERT, ("a",), 1)])

    async def story():
        async with spied(tmp_path, monkeypatch) as spy:
            await commits(spy, 50)
            made, commit = [], spy.store._disk._commit
            spy.store._disk._commit = lambda: (made.append(1), commit())[1]
            await asyncio.gather(*(after(turns, spy) for turns in range(2)))
            assert len(made) == 1
            rows = await spy.store.fetch("SELECT count(*) FROM things")
            assert [tuple(row) for row in rows] == [(52,)]

    asyncio.run(story())


def test_a_commit_that_fails_at_once_is_undone_and_told_to_all_that_were_in_it(
    tmp_path, monkeypatch
):
    async def story():
        async with spied(tmp_path, monkeypatch) as spy:
            await commits(spy, 50)
            commit = spy.store._disk._commit

            def broken() -> None:
                raise OSError("the disk is gone")

            spy.store._disk._commit = broken
            two = [spy.store.commit([Op(INSERT, ("b",), 1)]) for _ in range(2)]
            answers = await asyncio.gather(*two, return_exceptions=True)
            assert [str(answer) for answer in answers] == ["the disk is gone"] * 2
            spy.store._disk._commit = commit
            assert await commits(spy, 1) == 0
            rows = await spy.store.fetch("SELECT name, count(*) FROM things GROUP BY name")
            assert [tuple(row) for row in rows] == [("a", 51)]

    asyncio.run(story())
