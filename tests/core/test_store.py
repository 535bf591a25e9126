"""Both databases keep the same promises: all of a commit or none, compare-and-swap, duplicates."""

import asyncio
import math
import os
import sqlite3
from contextlib import asynccontextmanager
from itertools import count

import pytest

from siderite.core.errors import Unavailable
from siderite.core.store import Duplicate
from siderite.core.store import Lost
from siderite.core.store import Op
from siderite.core.store import open_store
from siderite.core.store import sqlite_disk
from siderite.core.store.migrations import migrate
from siderite.core.store.sqlite import SqliteStore
from tests.support.disk import held

TABLE = "CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT, version INTEGER)"
UNIQUE = "CREATE UNIQUE INDEX things_name_key ON things (name)"
INSERT = "INSERT INTO things (id, name, version) VALUES (?, ?, ?)"
SWAP = "UPDATE things SET version = ? WHERE id = ? AND version = ?"


@asynccontextmanager
async def things(url):
    store = await open_store(url)
    for sql in (TABLE, UNIQUE):
        if store.dialect == "sqlite":
            store.script(sql)
        else:
            async with store.pool.acquire() as connection:
                await connection.execute(sql)
    try:
        yield store
    finally:
        await store.close()


async def rows(store):
    return [
        tuple(row) for row in await store.fetch("SELECT id, name, version FROM things ORDER BY id")
    ]


def test_a_commit_is_read_back(bare_database_url):
    async def story():
        async with things(bare_database_url) as store:
            await store.commit([Op(INSERT, (1, "a", 1), 1), Op(INSERT, (2, "b", 1), 1)])
            assert await rows(store) == [(1, "a", 1), (2, "b", 1)]

    asyncio.run(story())


def test_a_scan_sees_what_is_committed_and_holds_nobody_up(tmp_path):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"

    async def story():
        async with things(f"sqlite:///{tmp_path}/things.db") as store:
            await store.commit([Op(INSERT, (1, "a", 1), 1)])
            assert [tuple(row) for row in await store.scan("SELECT name FROM things")] == [("a",)]
            scan = asyncio.create_task(store.scan(f"{endless} SELECT max(i) FROM n", (500_000,)))
            turns = 0
            while not scan.done():
                assert await rows(store) == [(1, "a", 1)]
                turns += 1
                await asyncio.sleep(0)
            assert scan.result()[0][0] == 500_000
            assert turns > 1

    asyncio.run(story())


def test_a_scan_of_a_database_that_is_spoilt_is_told_as_any_read_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_disk, "REST_S", math.inf)  # it is all in the file by our own hand

    async def story():
        async with things(f"sqlite:///{tmp_path}/things.db") as store:
            names = [(n, "x" * 500 + str(n), 1) for n in range(1000)]
            await store.commit([Op(INSERT, name, 1) for name in names])
            store._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            with (tmp_path / "things.db").open("r+b") as file:
                file.seek(8 * 4096)
                file.write(b"\xff" * 40 * 4096)
            with pytest.raises(Unavailable, match="See to the disk"):
                await store.scan("SELECT sum(length(name)), max(version) FROM things")
            with pytest.raises(sqlite3.OperationalError, match="no such table"):
                await store.scan("SELECT 1 FROM no_things")  # a bug stays one

    asyncio.run(story())


def test_what_is_on_its_way_to_the_disk_is_not_read_yet(tmp_path):
    async def story():
        async with things(f"sqlite:///{tmp_path}/things.db") as store:
            await store.commit([Op(INSERT, (1, "a", 1), 1)])
            disk = held(store)
            try:
                commit = asyncio.create_task(store.commit([Op(SWAP, (2, 1, 1), 1)]))
                while store._committing is None:
                    await asyncio.sleep(0)
                assert await rows(store) == [(1, "a", 1)]
            finally:
                disk.set()
            await commit
            assert await rows(store) == [(1, "a", 2)]

    asyncio.run(story())


def test_many_are_answered_in_turns_and_the_first_need_not_wait_for_the_last(tmp_path, monkeypatch):
    begun = []
    run_all = SqliteStore._run_all
    monkeypatch.setattr(
        SqliteStore,
        "_run_all",
        lambda store, queue: begun.append(len(queue)) or run_all(store, queue),
    )

    answered = []

    async def twice(store, number):
        await store.commit([Op(INSERT, (number, str(number), 1), 1)])
        answered.append(number)
        await store.commit([Op(SWAP, (2, number, 1), 1)])

    async def story():
        async with things(f"sqlite:///{tmp_path}/things.db") as store:
            others = [asyncio.create_task(twice(store, number)) for number in range(100)]
            await store.commit([Op(INSERT, (999, "first", 1), 1)])
            await asyncio.sleep(0)  # as one who asks just now
            answered_meanwhile = len(answered)
            await asyncio.gather(*others)
        assert 0 < answered_meanwhile < 100
        assert begun[0] == 101
        assert 1 < begun[1] < 100  # the disk works while the others are answered
        assert sum(begun) == 201

    asyncio.run(story())


def test_a_lost_swap_undoes_the_whole_commit(bare_database_url):
    async def story():
        async with things(bare_database_url) as store:
            await store.commit([Op(INSERT, (1, "a", 1), 1)])
            with pytest.raises(Lost):
                await store.commit([Op(INSERT, (2, "b", 1), 1), Op(SWAP, (3, 1, 2), 1)])
            assert await rows(store) == [(1, "a", 1)]

    asyncio.run(story())


def test_a_duplicate_names_its_column_and_undoes_the_whole_commit(bare_database_url):
    async def story():
        async with things(bare_database_url) as store:
            await store.commit([Op(INSERT, (1, "a", 1), 1)])
            with pytest.raises(Duplicate) as clash:
                await store.commit([Op(SWAP, (2, 1, 1), 1), Op(INSERT, (2, "a", 1), 1)])
            assert clash.value.column == "things.name"
            assert await rows(store) == [(1, "a", 1)]

    asyncio.run(story())


def test_one_bad_commit_does_not_spoil_those_beside_it(bare_database_url):
    async def story():
        async with things(bare_database_url) as store:
            good = [store.commit([Op(INSERT, (n, f"n{n}", 1), 1)]) for n in range(20)]
            bad = [store.commit([Op(SWAP, (2, 99, 1), 1)]) for _ in range(20)]
            mixed = [one for pair in zip(good, bad, strict=True) for one in pair]
            answers = await asyncio.gather(*mixed, return_exceptions=True)
            assert [type(answer) for answer in answers[1::2]] == [Lost] * 20
            assert answers[::2] == [None] * 20
            assert len(await rows(store)) == 20

    asyncio.run(story())


def test_of_many_swaps_of_one_version_exactly_one_wins(bare_database_url):
    async def story():
        async with things(bare_database_url) as store:
            await store.commit([Op(INSERT, (1, "a", 1), 1)])
            swaps = [store.commit([Op(SWAP, (2, 1, 1), 1)]) for _ in range(30)]
            answers = await asyncio.gather(*swaps, return_exceptions=True)
            assert sum(answer is None for answer in answers) == 1

    asyncio.run(story())


def test_a_write_gives_back_what_it_touched(bare_database_url):
    async def story():
        async with things(bare_database_url) as store:
            await store.commit([Op(INSERT, (1, "a", 1), 1)])
            sql = "UPDATE things SET version = version + 1 WHERE name = ? RETURNING id, version"
            assert [tuple(row) for row in await store.write(sql, ("a",))] == [(1, 2)]

    asyncio.run(story())


def test_a_closed_store_has_finished_what_was_handed_in(tmp_path):
    async def story():
        url = f"sqlite:///{tmp_path}/test.db"
        async with things(url) as store:
            handed_in = asyncio.ensure_future(store.commit([Op(INSERT, (1, "a", 1), 1)]))
            await asyncio.sleep(0)
        await handed_in
        again = await open_store(url)
        assert await rows(again) == [(1, "a", 1)]
        await again.close()

    asyncio.run(story())


def test_a_full_disk_is_said_and_nothing_that_was_undone_is_called_done(tmp_path):
    async def story():
        store = SqliteStore(str(tmp_path / "test.db"))
        store.script("CREATE TABLE things (name TEXT)")
        pages = store._writer.execute("PRAGMA page_count").fetchone()[0]
        store._writer.execute(f"PRAGMA max_page_count = {pages + 2}")
        names = ["one", "x" * 100_000, "two"]
        added = [store.commit([Op("INSERT INTO things VALUES (?)", (name,))]) for name in names]
        answers = await asyncio.gather(*added, return_exceptions=True)
        kept = {name for (name,) in await store.fetch("SELECT name FROM things")}
        said = {name for name, answer in zip(names, answers, strict=True) if answer is None}
        assert kept == said == {"one", "two"}
        assert isinstance(answers[1], Unavailable)
        assert "disk is full" in answers[1].sentence
        store._writer.execute("PRAGMA max_page_count = 1000000")
        await store.commit([Op("INSERT INTO things VALUES (?)", (names[1],))])
        await store.close()

    asyncio.run(story())


def test_who_waits_for_a_commit_hears_of_it_though_a_sick_disk_lets_nothing_be_undone(tmp_path):
    class Sick:
        def __init__(self, connection):
            self.connection, self.refusals = connection, 2

        def __getattr__(self, name):
            return getattr(self.connection, name)

        def execute(self, sql, *args):
            if sql == "ROLLBACK" and self.refusals:
                self.refusals -= 1
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorcode = sqlite3.SQLITE_IOERR
                raise error
            return self.connection.execute(sql, *args)

    async def story():
        async with things(f"sqlite:///{tmp_path}/a.db") as store, asyncio.timeout(10):
            store._writer = Sick(store._writer)
            half = [Op(INSERT, (1, "a", 1)), Op(SWAP, (2, 9, 1), 1)]
            with pytest.raises(Unavailable, match="disk I/O error"):
                await store.commit(half)
            assert store.troubles
            await store.commit([Op(INSERT, (2, "b", 1))])
            assert await rows(store) == [(2, "b", 1)]

    asyncio.run(story())


def test_a_full_disk_of_postgresql_is_said_and_counted(postgres_url):
    full = "DO $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full'; END $$"

    async def story():
        async with things(postgres_url) as store:
            assert store.troubles == 0
            with pytest.raises(Unavailable, match="no room"):
                await store.write(full)
            assert store.troubles == 1
            await store.commit([Op(INSERT, (1, "a", 1), 1)])
            assert store.troubles == 1

    asyncio.run(story())


def test_the_room_that_was_needed_while_somebody_read_is_given_back(tmp_path):
    path = tmp_path / "test.db"

    async def story():
        async with things(f"sqlite:///{path}") as store:
            backup = sqlite3.connect(path, isolation_level=None)
            backup.execute("BEGIN")
            backup.execute("SELECT count(*) FROM things")
            for n in range(12):
                await store.commit([Op(INSERT, (n, "x" * 8_000_000 + str(n), 1), 1)])
            log = path.with_name("test.db-wal")
            assert log.stat().st_size > 90_000_000
            backup.close()
            async with asyncio.timeout(30):
                for n in count(100):  # beside these, and then between two
                    await store.commit([Op(INSERT, (n, str(n), 1), 1)])
                    if log.stat().st_size <= 64 * 1024 * 1024:
                        break


def test_the_log_of_one_who_never_rests_begins_anew_again_and_again(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_disk, "REST_S", 0.01)
    monkeypatch.setattr(sqlite_disk, "LONG", 200)
    log = tmp_path / "test.db-wal"

    def beginnings():
        header = log.read_bytes()[:32]
        return int.from_bytes(header[12:16])  # counted there, wherever the first is counted from

    async def busy(store, number):
        for n in range(number, 40_000, 8):
            await store.commit([Op(INSERT, (n, f"{n:2000}", 1), 1)])

    async def story():
        async with things(f"sqlite:///{tmp_path}/test.db") as store, asyncio.timeout(30):
            everybody = [asyncio.create_task(busy(store, number)) for number in range(8)]
            try:
                first = beginnings()
                while beginnings() < first + 5:
                    assert not all(one.done() for one in everybody), "it grew and grew"
                    await asyncio.sleep(0.01)
            finally:
                for one in everybody:
                    one.cancel()
                await asyncio.gather(*everybody, return_exceptions=True)

    asyncio.run(story())


def test_a_statement_that_postgresql_gives_up_is_to_be_tried_again(postgres, postgres_url):
    name = postgres_url.rpartition("/")[2]
    postgres.sql(f"ALTER DATABASE {name} SET statement_timeout = '100ms'")

    async def story():
        async with things(postgres_url) as store, store.connector.alone() as other:
            pids = await store.fetch("SELECT pg_backend_pid()")
            async with other.transaction():
                await other.execute("LOCK TABLE things")
                with pytest.raises(Unavailable, match=r"timeout.*nothing was changed"):
                    await store.commit([Op(INSERT, (1, "a", 1), 1)])
                with pytest.raises(Unavailable, match="statement timeout"):
                    await store.fetch("SELECT count(*) FROM things")
                assert store.troubles == 2
            await store.commit([Op(INSERT, (1, "a", 1), 1)])
            assert await store.fetch("SELECT pg_backend_pid()") == pids, "the connection is as good"

    asyncio.run(story())


def test_a_limit_on_statements_is_none_for_a_migration(postgres, postgres_url):
    name = postgres_url.rpartition("/")[2]
    postgres.sql(f"ALTER DATABASE {name} SET statement_timeout = '50ms'")

    async def story():
        store = await open_store(postgres_url)
        async with store.connector.alone() as connection:
            await connection.execute("SELECT pg_sleep(0.2)")
        await store.close()

    asyncio.run(story())


def test_a_database_that_lets_nobody_in_any_more_is_to_be_tried_again(postgres, postgres_url):
    name = postgres_url.rpartition("/")[2]
    postgres.sql(f"CREATE ROLE {name} LOGIN SUPERUSER PASSWORD 'first'")
    changed = postgres_url.replace(f"siderite:{postgres.password}", f"{name}:first")

    async def story():
        async with things(changed) as store:
            postgres.sql(
                f"ALTER ROLE {name} PASSWORD 'second'",
                f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{name}'",
            )
            for _ in range(3):
                with pytest.raises(Unavailable, match="cannot be reached"):
                    await store.commit([Op(INSERT, (1, "a", 1), 1)])
                await asyncio.sleep(0.3)
            assert store.troubles == 3
            postgres.sql(f"ALTER ROLE {name} PASSWORD 'first'")
            await asyncio.sleep(0.6)
            await store.commit([Op(INSERT, (1, "a", 1), 1)])

    try:
        asyncio.run(story())
    finally:
        postgres.sql(f"REASSIGN OWNED BY {name} TO siderite", url=postgres_url)
        postgres.sql(f"DROP OWNED BY {name}", url=postgres_url)
        postgres.sql(f"DROP ROLE {name}")


def test_a_second_process_is_kept_out_of_an_embedded_database(tmp_path):
    async def story():
        first = SqliteStore(f"{tmp_path}/test.db")
        said = rf"in use by another siderite process \({os.getpid()}\); stop that one"
        with pytest.raises(RuntimeError, match=said):
            SqliteStore(f"{tmp_path}/test.db")
        await first.close()
        assert (tmp_path / "test.db.lock").read_text() == "", "the number may be another's now"
        await SqliteStore(f"{tmp_path}/test.db").close()

    asyncio.run(story())


def test_a_database_that_is_not_there_is_said_with_a_remedy():
    async def story():
        with pytest.raises(RuntimeError, match="check --db and that it runs"):
            await open_store("postgresql://nobody@127.0.0.1:1/nothing")
        with pytest.raises(RuntimeError, match="use sqlite:/// or postgresql://"):
            await open_store("mysql://x")

    asyncio.run(story())


def test_many_processes_may_start_on_a_database_at_once(postgres_url):
    async def start():
        stores = await asyncio.gather(*(open_store(postgres_url) for _ in range(6)))
        await asyncio.gather(*(migrate(store) for store in stores))
        for store in stores:
            await store.close()

    asyncio.run(start())
