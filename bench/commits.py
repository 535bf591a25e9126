"""The upper limit of writes: bare commits of one row, with the service's own database settings.

SQLite is the standard library's, WAL with synchronous=FULL, one writer; PostgreSQL is asyncpg, with
as many connections as the workload has clients. A row is an id and two kilobytes of text.
"""

import asyncio
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

import asyncpg

from bench import load

_ROWS = 5000
_TEXT = "x" * 2000


class Kind(Enum):
    """What is committed: a new row, or a change of one of the rows."""

    INSERT = "INSERT INTO bench_row (text) VALUES ({})"
    UPDATE = "UPDATE bench_row SET text = {} WHERE id = {}"


class Commits(Protocol):
    """A database that can be asked for commits."""

    def rate(self, kind: Kind, seconds: float) -> float:
        """Commits per second, measured for so long."""
        ...


@dataclass(frozen=True, slots=True)
class SqliteCommits:
    """Commits into a SQLite file of its own."""

    file: Path

    def rate(self, kind: Kind, seconds: float) -> float:
        """Commits per second, one after the other."""
        with closing(sqlite3.connect(self.file, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=FULL")
            db.execute("CREATE TABLE IF NOT EXISTS bench_row (id INTEGER PRIMARY KEY, text TEXT)")
            if db.execute("SELECT count(*) FROM bench_row").fetchone()[0] < _ROWS:
                db.execute("BEGIN")
                db.executemany("INSERT INTO bench_row (text) VALUES (?)", [(_TEXT,)] * _ROWS)
                db.execute("COMMIT")
            statement = kind.value.format("?", "?")
            count = 0
            begin = time.perf_counter()
            while (elapsed := time.perf_counter() - begin) < seconds:
                text = f"{count}{_TEXT}"
                values = (text,) if kind is Kind.INSERT else (text, 1 + count * 7 % _ROWS)
                db.execute(statement, values)
                count += 1
            return count / elapsed


@dataclass(frozen=True, slots=True)
class PostgresCommits:
    """Commits into a PostgreSQL database of its own."""

    url: str
    connections: int

    def rate(self, kind: Kind, seconds: float) -> float:
        """Commits per second, over all connections together."""
        return load.run(self._rate(kind, seconds))

    async def _rate(self, kind: Kind, seconds: float) -> float:
        crowd = [await asyncpg.connect(self.url) for _ in range(self.connections)]
        first = crowd[0]
        await first.execute(
            "CREATE TABLE IF NOT EXISTS bench_row (id BIGSERIAL PRIMARY KEY, text TEXT)"
        )
        if await first.fetchval("SELECT count(*) FROM bench_row") < _ROWS:
            await first.executemany("INSERT INTO bench_row (text) VALUES ($1)", [(_TEXT,)] * _ROWS)
        statement = kind.value.format("$1", "$2")
        counts = [0] * len(crowd)
        begin = time.perf_counter()

        async def loop(number: int) -> None:
            prepared = await crowd[number].prepare(statement)
            while time.perf_counter() - begin < seconds:
                text = f"{counts[number]}{_TEXT}"
                # Rows of their own for each connection, so that none waits for another's lock.
                row = 1 + (counts[number] * len(crowd) + number) % _ROWS
                await prepared.fetch(*((text,) if kind is Kind.INSERT else (text, row)))
                counts[number] += 1

        async with asyncio.TaskGroup() as group:
            for number in range(len(crowd)):
                group.create_task(loop(number))
        elapsed = time.perf_counter() - begin
        for one in crowd:
            await one.close()
        return sum(counts) / elapsed
