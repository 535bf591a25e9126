"""What SQLite's store knows without a look is what is committed; of many commits at once each is
whole or not at all.
"""

import asyncio
import sqlite3
import tempfile
import time
from contextlib import asynccontextmanager
from contextlib import closing

import msgspec
import pytest
from hypothesis import example
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from siderite.core import eventlog
from siderite.core.errors import Unavailable
from siderite.core.fact import Fact
from siderite.core.store import Duplicate
from siderite.core.store import Lost
from siderite.core.store import Op
from siderite.core.store import open_store
from siderite.core.store import sqlite
from siderite.core.store import table
from siderite.core.store.migrations import migrate
from siderite.core.store.sqlite import SqliteStore
from siderite.core.store.table import Table
from tests.support.disk import held

NOTES = "INSERT INTO notes (word) VALUES "
FAILS_LATE = Op("INSERT INTO pledges VALUES ('no such box')")  # when all is committed


class Box(msgspec.Struct, frozen=True, omit_defaults=True):
    uuid: str
    version: int = 1
    name: str | None = None
    holds: dict[str, str] = {}


BOXES = Table("boxes", Box, ("name",), lambda box: "", recalled=True)


def note(*words):
    marks = ", ".join(["(?)"] * len(words))
    return Op(NOTES + marks, words, len(words))


@asynccontextmanager
async def boxes(path):
    store = SqliteStore(str(path))
    store.script(
        "CREATE TABLE boxes (id INTEGER PRIMARY KEY, uuid TEXT UNIQUE, version INTEGER, doc TEXT,"
        " body TEXT, name TEXT UNIQUE);"
        "CREATE TABLE notes (seq INTEGER PRIMARY KEY AUTOINCREMENT, word TEXT NOT NULL);"
        "CREATE TABLE pledges (box TEXT REFERENCES boxes (uuid) DEFERRABLE INITIALLY DEFERRED)"
    )
    try:
        yield store
    finally:
        await store.close()


async def notes(store):
    return [word for (word,) in await store.fetch("SELECT word FROM notes ORDER BY seq")]


def changed(box, **changes):
    return msgspec.structs.replace(box, version=box.version + 1, **changes)


def test_what_is_committed_but_not_told_of_yet_is_seen_in_all_tables_or_in_none(tmp_path):
    async def story():
        async with boxes(tmp_path / "test.db") as store:
            box = Box("a")
            await store.commit([BOXES.insert(box)])
            put = store.commit([BOXES.swap(box, changed(box, name="red")), note("it is red")])
            commit = asyncio.ensure_future(put)
            while store._committing is None:
                await asyncio.sleep(0)
            while (
                store._writer.in_transaction
            ):  # until it is on the disk, without a turn of the loop
                time.sleep(0.001)
            words = await notes(store)
            found = await BOXES.get(store, "a")
            assert not commit.done()
            assert (words, found.name) == (["it is red"], "red")
            await commit
            assert await BOXES.get(store, "a") == found

    asyncio.run(story())


def test_what_is_on_its_way_to_the_disk_is_not_recalled_and_what_failed_there_never(tmp_path):
    async def story():
        async with boxes(tmp_path / "test.db") as store:
            box, other = Box("a"), Box("b")
            await store.commit([BOXES.insert(box), BOXES.insert(other)])
            disk = held(store)
            ops = [BOXES.swap(box, changed(box)), BOXES.remove(other), FAILS_LATE]
            commit = asyncio.ensure_future(store.commit(ops))
            try:
                while store._committing is None:
                    await asyncio.sleep(0)
                assert [await BOXES.get(store, uuid) for uuid in "ab"] == [box, other]
            finally:
                disk.set()
            with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
                await commit
            assert [await BOXES.get(store, uuid) for uuid in "ab"] == [box, other]

    asyncio.run(story())


def test_a_small_table_is_read_once_until_something_is_written_to_it(tmp_path, monkeypatch):
    async def story():
        async with boxes(tmp_path / "test.db") as store:
            box, reads, fetch = Box("a"), [], store.fetch

            async def counted(sql, args=()):
                reads.append(sql)
                return await fetch(sql, args)

            monkeypatch.setattr(store, "fetch", counted)
            assert [*await BOXES.all(store), *await BOXES.all(store)] == []
            assert len(reads) == 1
            await store.commit([BOXES.insert(box)])
            assert [await BOXES.all(store) for _ in range(2)] == [[box], [box]]
            # Read while a change is on its way, it is not taken for what is there afterwards.
            disk = held(store)
            commit = asyncio.ensure_future(store.commit([BOXES.swap(box, changed(box))]))
            try:
                while store._committing is None:
                    await asyncio.sleep(0)
                assert await BOXES.all(store) == [box]
            finally:
                disk.set()
            await commit
            assert await BOXES.all(store) == [changed(box)]
            await store.commit([BOXES.remove(changed(box))])
            assert await BOXES.all(store) == []

    asyncio.run(story())


def test_a_commit_whose_caller_has_left_is_known_too(tmp_path):
    async def story():
        async with boxes(tmp_path / "test.db") as store:
            box = Box("a")
            await store.commit([BOXES.insert(box)])
            commit = asyncio.ensure_future(store.commit([BOXES.swap(box, changed(box))]))
            while store._committing is None:
                await asyncio.sleep(0)
            commit.cancel()
            await store.commit([note("after it")])
            assert commit.cancelled()
            assert (await BOXES.get(store, "a")).version == 2

    asyncio.run(story())


@pytest.mark.parametrize("op", [BOXES.swap, lambda before, after: BOXES.hold(before)])
def test_a_row_that_a_hand_wrote_is_in_the_way_once_and_then_read(tmp_path, op):
    async def story():
        async with boxes(tmp_path / "test.db") as store:
            box = Box("a")
            await store.commit([BOXES.insert(box)])
            with closing(sqlite3.connect(tmp_path / "test.db")) as hand:
                doc = msgspec.json.encode(changed(box, name="mended")).decode()
                hand.execute("UPDATE boxes SET version = 2, doc = ?", (doc,))
                hand.commit()
            with pytest.raises(Lost):
                await store.commit([op(box, changed(box))])
            found = await BOXES.get(store, "a")
            assert found.name == "mended"
            await store.commit([op(found, changed(found))])

    asyncio.run(story())


def test_only_so_many_are_kept_in_mind_and_none_that_is_large(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "_KNOWN", 3)

    async def story():
        async with boxes(tmp_path / "test.db") as store:
            for uuid in "abcde":
                await store.commit([BOXES.insert(Box(uuid))])
            assert [uuid for uuid in "abcde" if store.recall("boxes", uuid)] == ["c", "d", "e"]
            box = Box("d")
            large = changed(box, holds={"drive": "x" * table.LARGE})
            await store.commit([BOXES.swap(box, large)])
            assert store.recall("boxes", "d") is None
            assert await BOXES.get(store, "d") == large
            await store.commit([BOXES.insert(msgspec.structs.replace(large, uuid="f"))])
            assert store.recall("boxes", "f") is None

    asyncio.run(story())


def test_in_memory_too_only_what_is_committed_is_read():
    async def story():
        async with boxes(":memory:") as store:
            await store.commit([note("first")])
            disk = held(store)
            second = asyncio.ensure_future(store.commit([Op(f"{NOTES}('second')")]))
            while store._committing is None:
                await asyncio.sleep(0)
            reading = asyncio.ensure_future(notes(store))
            try:
                for _ in range(20):
                    await asyncio.sleep(0)
                assert not second.done()
                assert not reading.done()
            finally:
                disk.set()
            await second
            assert await reading == ["first", "second"]

    asyncio.run(story())


def test_facts_stand_in_the_order_of_their_commits_however_many_are_written_at_once(tmp_path):
    def of(commit, many):
        facts = [Fact("x", "api", "node", commit, f'"{commit}{n}"') for n in range(many)]
        return eventlog.record(facts, at=1.0, host="here", request_id=None)

    async def story():
        store = await open_store(f"sqlite:///{tmp_path}/test.db")
        await migrate(store)
        lost = [Op("DELETE FROM nodes WHERE uuid = 'none'", (), 1)]
        sizes = {"a": 1, "b": 7, "c": 90, "d": 8, "e": 9, "f": 31, "g": 2}
        handed_in = [store.commit([*(lost if c in "bf" else []), *of(c, sizes[c])]) for c in sizes]
        answers = await asyncio.gather(*handed_in, return_exceptions=True)
        assert [c for c, answer in zip(sizes, answers, strict=True) if answer] == ["b", "f"]
        entries = await eventlog.read(store, after=0, limit=1000)
        said = [f'"{c}{n}"' for c in "acdeg" for n in range(sizes[c])]
        assert [bytes(entry.payload).decode() for entry in entries] == said
        assert [entry.seq for entry in entries] == list(range(1, len(said) + 1))
        await store.close()

    asyncio.run(story())


@pytest.mark.parametrize("bad", [None, "\ud800", 2**70], ids=["null", "no text", "no number"])
def test_a_fact_that_cannot_be_written_takes_its_own_commit_down_and_no_other(tmp_path, bad):
    async def story():
        async with boxes(tmp_path / "test.db") as store:
            names = [f"box {n}" for n in range(20)]
            handed_in = [
                store.commit([BOXES.insert(Box(name)), note(name, bad if n == 7 else "made")])
                for n, name in enumerate(names)
            ]
            later = asyncio.ensure_future(asyncio.wait_for(_once_begun(store), 30))
            answers = await asyncio.wait_for(
                asyncio.gather(*handed_in, return_exceptions=True), timeout=30
            )
            assert isinstance(answers.pop(7), Exception)
            assert answers == [None] * 19
            await later
            assert await BOXES.get(store, names.pop(7)) is None
            for name in names:
                assert await BOXES.get(store, name) == Box(name)
            assert [word for word in await notes(store) if word != "made"] == [*names, "later"]
            assert store.troubles == 0

    asyncio.run(story())


async def _once_begun(store):
    while store._committing is None:
        await asyncio.sleep(0)
    await store.commit([note("later")])


def test_a_closed_store_has_written_the_facts_too(tmp_path):
    async def story():
        async with boxes(tmp_path / "test.db") as store:
            handed_in = [asyncio.ensure_future(store.commit([note(str(n))])) for n in range(40)]
            await asyncio.sleep(0)
        await asyncio.gather(*handed_in)
        again = SqliteStore(str(tmp_path / "test.db"))
        assert await notes(again) == [str(n) for n in range(40)]
        await again.close()

    asyncio.run(story())


COMMIT = st.tuples(
    st.sampled_from(["insert", "swap", "swap", "stale", "remove", "forget", "hold"]),
    st.sampled_from("abcd"),
    st.sampled_from(["", "", "", "", "half-way", "bad note", "full disk", "late"]),
)


@settings(max_examples=60)
@example(batches=[[("insert", "a", ""), ("forget", "a", "")]], kept=256)
@given(
    batches=st.lists(st.lists(COMMIT, min_size=1, max_size=6), min_size=1, max_size=6),
    kept=st.sampled_from([2, 256]),
)
def test_whatever_is_lost_or_fails_what_is_known_is_what_another_reads(batches, kept):
    async def story(path):
        async with boxes(path) as store:
            believed, said = {}, []
            for number, batch in enumerate(batches):
                plans = [
                    _plan(believed.get(uuid), uuid, kind, ends, f"{number}.{n}")
                    for n, (kind, uuid, ends) in enumerate(batch)
                ]
                pages = store._writer.execute("PRAGMA page_count").fetchone()[0]
                store._writer.execute(f"PRAGMA max_page_count = {pages + 4}")
                handed_in = [store.commit(ops) for ops, _ in plans]
                answers = await asyncio.gather(*handed_in, return_exceptions=True)
                for (kind, uuid, _), (ops, after), answer in zip(
                    batch, plans, answers, strict=True
                ):
                    assert answer is None or isinstance(answer, EXPECTED), answer
                    if answer is None:
                        said += [op.args[0] for op in ops if op.sql.startswith(NOTES)]
                        if kind != "hold":
                            believed[uuid] = after
                others, words = _another_reads(path)
                assert words == said
                for uuid in "abcd":
                    assert await BOXES.get(store, uuid) == believed.get(uuid) == others.get(uuid)

    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sqlite, "_KNOWN", kept)
        asyncio.run(story(f"{folder}/test.db"))


EXPECTED = (Lost, Duplicate, Unavailable, sqlite3.IntegrityError)


def _plan(before, uuid, kind, ends, mark):
    """The ops of one commit, and what the box is if it comes true."""
    there = before or Box(uuid, version=77)
    after = changed(there, name=f"name {mark}" if len(mark) % 2 else None, holds={"mark": mark})
    match kind:
        case "insert":
            after = Box(uuid, holds={"mark": mark})
            ops = [BOXES.insert(after)]
        case "swap":
            ops = [BOXES.swap(there, after)]
        case "stale":
            ops = [BOXES.swap(msgspec.structs.replace(there, version=99), after)]
        case "hold":
            ops = [BOXES.hold(there)]
        case _:
            ops, after = [BOXES.remove(there) if kind == "remove" else BOXES.forget(uuid)], None
    word = {"bad note": None, "full disk": mark + "x" * 40_000}.get(ends, mark)
    more = {"half-way": [Op("DELETE FROM boxes WHERE uuid = 'none'", (), 1)], "late": [FAILS_LATE]}
    return [*ops, *more.get(ends, []), note(word)], after


def _another_reads(path):
    connection = sqlite3.connect(path)
    docs = connection.execute("SELECT uuid, doc FROM boxes").fetchall()
    words = connection.execute("SELECT word FROM notes ORDER BY seq").fetchall()
    connection.close()
    return {uuid: BOXES.value(doc) for uuid, doc in docs}, [word for (word,) in words]
