"""From an embedded database to PostgreSQL: every row of every table, in one transaction.

The schema is made by the migrations on both sides, so that tables and columns are the same; only
the event log's keys differ (core/store/migrations/0001): its place in the log is its key in SQLite.
Where a table has columns in PostgreSQL that it has not in SQLite (the search index), its room says
how its rows are written (`Rewritten`).
"""

import sqlite3
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from siderite.core.store.backup import connect_read_only
from siderite.core.store.migrations import pending
from siderite.core.store.migrations import unknown

BATCH = 1000
_OWN = {"migrations", "leases"}

Progress = Callable[[str, int, int], None]


class CannotCopy(Exception):
    """The text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A table that is not the same on both sides: the columns that are read, and the statement that
    writes some rows of them, with its one argument.
    """

    columns: Sequence[str]
    write: Callable[[Sequence[tuple[Any, ...]]], tuple[str, str]]


async def copy(
    source: Path, target: Any, progress: Progress, rewritten: Mapping[str, Rewritten]
) -> dict[str, int]:
    """Copy all of a stopped service's database into an empty one that was migrated; rows by table.

    `target` is a `PostgresStore`.
    """
    database = connect_read_only(source)
    try:
        _check_schema(database, source)
        # Not one of the pool's: what changes a whole table may take long.
        async with target.connector.alone() as connection, connection.transaction():
            return await _copy_all(database, connection, progress, rewritten)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, sqlite3.Error) as why:
        raise CannotCopy(
            f"cannot copy {source}: {why}. Nothing was copied; `siderite doctor` looks at the file."
        ) from why
    finally:
        database.close()


def _check_schema(database: sqlite3.Connection, source: Path) -> None:
    done = {name for (name,) in database.execute("SELECT name FROM migrations")}
    missing = pending(done)
    if missing:
        raise CannotCopy(
            f"{source} was written by an older release (it lacks {missing[0][0]}); start this"
            " release once on it, stop it, and copy then."
        )
    if newer := unknown(done):
        raise CannotCopy(
            f"{source} was written by a newer release (it has {newer[0]}), which keeps what this"
            " one would leave behind; copy with that one."
        )


async def _copy_all(
    database: sqlite3.Connection,
    connection: Any,
    progress: Progress,
    rewritten: Mapping[str, Rewritten],
) -> dict[str, int]:
    copied: dict[str, int] = {}
    tables = await _tables(connection)
    for table in sorted(tables):
        other = rewritten.get(table)
        columns = list(other.columns) if other else _shared(database, table, tables[table])
        if not columns:
            continue
        chosen = columns
        if table == "events":
            # Given with the row: changed afterwards, one would meet another's that is to change.
            columns, chosen = [*columns, "id"], [*columns, "seq"]
        total = database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        await _empty(connection, table, total)
        done = 0
        for rows in _batches(database, table, chosen):
            try:
                if other:
                    await connection.execute(*other.write(rows))
                else:
                    await connection.copy_records_to_table(table, records=rows, columns=columns)
            except (TypeError, ValueError, OverflowError, asyncpg.DataError) as why:
                raise CannotCopy(
                    f"a row of {table} is none for PostgreSQL: {why}. Nothing was copied."
                ) from why
            done += len(rows)
            progress(table, done, total)
        copied[table] = done
        await _go_on_counting(connection, table, columns)
    if "events" in copied:
        await connection.execute(
            "UPDATE event_head SET seq = (SELECT coalesce(max(seq), 0) FROM events)"
        )
    await connection.execute("UPDATE work SET owner = NULL, lease_until = NULL")
    return copied


async def _tables(connection: Any) -> dict[str, list[str]]:
    rows = await connection.fetch(
        "SELECT table_name, column_name FROM information_schema.columns"
        " WHERE table_schema = current_schema() AND is_generated = 'NEVER'"
    )
    tables: dict[str, list[str]] = {}
    for row in rows:
        if row[0] not in _OWN:
            tables.setdefault(row[0], []).append(row[1])
    return tables


def _shared(database: sqlite3.Connection, table: str, columns: list[str]) -> list[str]:
    ours = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
    return [column for column in columns if column in ours]


async def _empty(connection: Any, table: str, coming: int) -> None:
    there = await connection.fetchval(f"SELECT count(*) FROM {table}")
    if there and coming:
        # The migrations and a first start leave rows of their own: what comes takes their place.
        await connection.execute(f"DELETE FROM {table}")


def _batches(
    database: sqlite3.Connection, table: str, columns: list[str]
) -> Iterator[list[tuple[Any, ...]]]:
    cursor = database.execute(f"SELECT {', '.join(columns)} FROM {table}")
    while rows := cursor.fetchmany(BATCH):
        yield rows


async def _go_on_counting(connection: Any, table: str, columns: list[str]) -> None:
    """A counter of the target goes on after the last number that was copied."""
    if "id" not in columns:
        return
    name = await connection.fetchval("SELECT pg_get_serial_sequence($1, 'id')", table)
    if name is not None:
        await connection.fetchval(
            f"SELECT setval('{name}', greatest((SELECT coalesce(max(id), 0) FROM {table}), 1))"
        )
