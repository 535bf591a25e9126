"""Processes killed in the middle of bringing a database to the newest schema.

On SQLite one is killed at every statement of every migration, each time going on from what the last
one left; in between, every table gets a row as a program of that time would write it. On PostgreSQL
one is killed at each statement of what is left, from each earlier schema, while others start at the
same moment. Always the schema must be one that some release had, whole, and at the end the newest
one with all rows.

    python -m tests.crash.migrating [--seed N]        (scripts/soak)
"""

import argparse
import asyncio
import os
import random
import re
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from collections.abc import Callable
from collections.abc import Coroutine
from collections.abc import Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from siderite.core.store import Store
from siderite.core.store import migrations
from siderite.core.store import open_store
from siderite.core.store.migrations import migrate
from siderite.core.store.migrations import pending
from tests.core.test_upgrade import tables
from tests.core.test_upgrade import write
from tests.crash.verdict import verdict
from tests.support.postgres import Postgres
from tests.support.postgres import running_postgres

_SCHEMA = {
    "sqlite": "SELECT type, name, sql FROM sqlite_master ORDER BY name",
    "postgresql": """
SELECT table_name, column_name, data_type || coalesce(column_default, '') || is_nullable
FROM information_schema.columns WHERE table_schema = 'public'
UNION ALL SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
ORDER BY 1, 2
""",
}
_ALL = [name for name, _ in pending(set())]
_STATEMENT = re.compile(r"(?:\$\$.*?\$\$|.)+?(?:;\s*$|\Z)", re.DOTALL | re.MULTILINE)
"""What ends with a line, but not inside a function's body."""
Schema = list[tuple[Any, ...]]


class _Countdown:
    """Dies when it was called so many times."""

    def __init__(self, left: int) -> None:
        self._left = left

    def __call__(self, *_: object) -> None:
        self._left -= 1
        if self._left < 0:
            os.kill(os.getpid(), signal.SIGKILL)


class _Dying:
    """A connection to PostgreSQL of a process that is killed before one of its statements."""

    def __init__(self, connection: Any, count: _Countdown) -> None:
        self._connection = connection
        self._count = count

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def execute(self, sql: str, *args: Any) -> None:
        for statement in _STATEMENT.findall(sql):
            if statement.strip(" \n;"):
                self._count()
                await self._connection.execute(statement, *args)


class _DyingConnector:
    """Gives out such connections."""

    def __init__(self, connector: Any, count: _Countdown) -> None:
        self._connector, self._count = connector, count

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[_Dying]:
        async with self._connector.alone() as connection:
            yield _Dying(connection, self._count)


async def _die_in_sqlite(url: str, after: int) -> None:
    store: Any = await open_store(url)
    store._writer.set_trace_callback(_Countdown(after))
    await migrate(store)
    await store.close()


async def _die_in_postgres(url: str, after: int) -> None:
    store: Any = await open_store(url)
    connector, count = store.connector, _Countdown(after)
    store.connector = _DyingConnector(connector, count)
    await migrate(store)
    count()
    store.connector = connector  # others were first, and it has outlived them
    await store.close()


async def _migrate(url: str, limit: int | None = None) -> None:
    store = await open_store(url)
    try:
        await _up_to(store, limit)
    finally:
        await store.close()


async def _up_to(store: Store, limit: int | None) -> None:
    """As the release did that had this many migrations."""
    known = migrations.pending
    migrations.pending = lambda done: [(n, text) for n, text in known(done) if n in _ALL[:limit]]
    try:
        await migrate(store)
    finally:
        migrations.pending = known


async def _look(url: str) -> tuple[int, Schema]:
    """How many migrations are marked as done, and what there is."""
    store = await open_store(url)
    try:
        schema = [tuple(row) for row in await store.fetch(_SCHEMA[store.dialect])]
        if not any("migrations" in row[:2] for row in schema):
            return 0, []
        done = {str(row[0]) for row in await store.fetch("SELECT name FROM migrations")}
        if done != set(_ALL[: len(done)]):
            raise AssertionError(f"done are {sorted(done)}, out of order")
        return len(done), schema
    finally:
        await store.close()


async def _fill(url: str) -> None:
    store = await open_store(url)
    try:
        for table, columns in (await tables(store)).items():
            await write(store, table, columns)
    finally:
        await store.close()


async def _rows(url: str) -> dict[str, int]:
    store = await open_store(url)
    try:
        return {
            table: (await store.fetch(f"SELECT count(*) FROM {table}"))[0][0]  # type: ignore[misc]
            for table in await tables(store)
        }
    finally:
        await store.close()


def forked(story: Callable[[], Coroutine[Any, Any, None]]) -> int:
    """A process that does this; its id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        asyncio.run(story())
        code = 0
    except BaseException as why:
        print(repr(why), file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def ended(pid: int) -> int:
    """How it ended: its code, or less than 0 if it was killed."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _schemas(url: str, first: int) -> dict[int, Schema]:
    """What each release's database looks like, from one on."""
    found = {}
    for limit in range(first, len(_ALL) + 1):
        asyncio.run(_migrate(url, limit))
        found[limit] = asyncio.run(_look(url))[1]
    return found


def in_sqlite(folder: Path, first: int = 0) -> tuple[int, list[str]]:
    """Kill at each statement since a schema; how often, and what does not add up."""
    schemas = _schemas(f"sqlite:///{folder}/reference.db", first)
    url = f"sqlite:///{folder}/killed.db"
    asyncio.run(_migrate(url, first))
    kills, after, reached, problems, rows = 0, 0, first, [], dict[str, int]()
    while True:
        code = ended(forked(partial(_die_in_sqlite, url, after)))
        done, schema = asyncio.run(_look(url))
        if schema not in (schemas[done], []):
            problems.append(f"killed at statement {after} after {reached}: {done} half done")
        if code >= 0:
            problems += [f"the last one ended with {code}"] if code else []
            break
        kills, after = kills + 1, after + 1
        if done > reached:
            reached, after = done, 0
            asyncio.run(_fill(url))
            now = asyncio.run(_rows(url))
            problems += _lost(rows, now)
            rows = now
    problems += [] if done == len(_ALL) else [f"only {done} of {len(_ALL)} migrations"]
    return kills, problems + _lost(rows, asyncio.run(_rows(url)))


def _lost(before: dict[str, int], after: dict[str, int]) -> list[str]:
    return [f"rows of {name} are lost" for name in before if after.get(name, 0) < before[name]]


def in_postgres(server: Postgres, limits: Iterable[int], seed: int = 0) -> tuple[int, list[str]]:
    """From each of these schemas: kill one alone, then one of three that start at once."""
    chance, kills, problems = random.Random(seed), 0, []
    with server.fresh_database() as url:
        asyncio.run(_migrate(url))
        newest = asyncio.run(_look(url))[1]
    for limit in limits:
        with server.fresh_database() as url:
            asyncio.run(_migrate(url, limit))
            asyncio.run(_fill(url))
            rows, before = asyncio.run(_rows(url)), asyncio.run(_look(url))[1]
            alone = ended(forked(partial(_die_in_postgres, url, chance.randrange(1, 60))))
            if alone < 0 and asyncio.run(_look(url))[1] not in (before, newest):
                problems.append(f"from {limit}: half done after a kill")
            first = forked(partial(_die_in_postgres, url, chance.randrange(1, 60)))
            others = [forked(partial(_migrate, url)) for _ in range(2)]
            one_of_three = ended(first)
            kills += (alone < 0) + (one_of_three < 0)
            if max(alone, one_of_three) > 0:
                problems.append(f"from {limit}: one failed before it was killed")
            codes = [ended(pid) for pid in others]
            problems += [f"from {limit}: others ended with {codes}"] if any(codes) else []
            if asyncio.run(_look(url)) != (len(_ALL), newest):
                problems.append(f"from {limit}: not the newest schema")
            problems += _lost(rows, asyncio.run(_rows(url)))
    return kills, problems


def main() -> int:
    parser = argparse.ArgumentParser(description="Kills in the middle of migrations.")
    parser.add_argument("--seed", type=int, default=0)
    said = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kills, problems = in_sqlite(Path(folder))
    code = verdict(f"SQLite: killed {kills} times in {len(_ALL)} migrations", problems)
    with running_postgres(durable=False) as server:
        kills, problems = in_postgres(server, range(len(_ALL)), said.seed)
    return verdict(f"PostgreSQL: killed {kills} times", problems) or code


if __name__ == "__main__":
    raise SystemExit(main())
