"""SQLite in the event loop: WAL, durable commits, all that was handed in during a tick in one
commit.

Calls are short and run straight in the loop (a thread hop costs more than the call). Only one
process may have the file open for writing: a lock beside it says so, and names the remedy.
"""

import asyncio
import fcntl
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from siderite.core.store import Duplicate
from siderite.core.store import Line
from siderite.core.store import Lost
from siderite.core.store import Op
from siderite.core.store import Value


class SqliteStore:
    """The embedded store."""

    dialect = "sqlite"

    def __init__(self, path: str) -> None:
        self._lock = _sole_owner(path) if path != ":memory:" else None
        self._db = sqlite3.connect(path, isolation_level=None, cached_statements=512)
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            "cache_size=-16384",
            "temp_store=MEMORY",
        ):
            self._db.execute(f"PRAGMA {pragma}")
        self._queue: list[tuple[Sequence[Op], asyncio.Future[Any], bool]] = []

    async def fetch(self, sql: str, args: Sequence[Value] = ()) -> Sequence[Line]:
        return self._db.execute(sql, args).fetchall()

    async def commit(self, ops: Sequence[Op]) -> None:
        await self._hand_in(ops, returning=False)

    async def write(self, sql: str, args: Sequence[Value] = ()) -> Sequence[Line]:
        rows: Sequence[Line] = await self._hand_in([Op(sql, tuple(args))], returning=True)
        return rows

    async def close(self) -> None:
        if self._queue:
            self._flush()
        self._db.close()
        if self._lock is not None:
            os.close(self._lock)

    def script(self, sql: str) -> None:
        """Run a migration's statements; the caller wraps them in a transaction."""
        self._db.executescript(sql)

    def _hand_in(self, ops: Sequence[Op], *, returning: bool) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        if not self._queue:
            loop.call_soon(self._flush)
        self._queue.append((ops, done, returning))
        return done

    def _flush(self) -> None:
        """One durable commit for everything handed in since the last one."""
        queue, self._queue = self._queue, []
        execute = self._db.execute
        answers: list[tuple[asyncio.Future[Any], Any, Exception | None]] = []
        try:
            execute("BEGIN IMMEDIATE")
            for ops, done, returning in queue:
                execute("SAVEPOINT one")
                try:
                    rows = self._run(ops, returning=returning)
                except (Lost, Duplicate, sqlite3.Error) as why:
                    execute("ROLLBACK TO one")
                    answers.append((done, None, why))
                else:
                    answers.append((done, rows, None))
                execute("RELEASE one")
            execute("COMMIT")
        except sqlite3.Error as why:
            if self._db.in_transaction:
                execute("ROLLBACK")
            answers = [(done, None, why) for _, done, _ in queue]
        for done, rows, error in answers:
            if done.cancelled():
                continue
            if error is None:
                done.set_result(rows)
            else:
                done.set_exception(error)

    def _run(self, ops: Sequence[Op], *, returning: bool) -> Sequence[Line] | None:
        execute = self._db.execute
        for op in ops:
            try:
                cursor = execute(op.sql, op.args)
            except sqlite3.IntegrityError as why:
                raise _meaning(why) from why
            if returning:
                return cursor.fetchall()
            if op.rows is not None and cursor.rowcount != op.rows:
                raise Lost(op.sql)
        return None


def _meaning(why: sqlite3.IntegrityError) -> Exception:
    text = str(why)
    if text.startswith("UNIQUE constraint failed: "):
        return Duplicate(text.removeprefix("UNIQUE constraint failed: ").split(",")[0])
    return why


def _sole_owner(path: str) -> int:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(path + ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as why:
        os.close(lock)
        raise RuntimeError(
            f"{path} is in use by another siderite process; stop that one first, "
            "or use PostgreSQL to run several."
        ) from why
    return lock
