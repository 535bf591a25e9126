"""SQLite in the event loop: WAL, durable commits, all that was handed in meanwhile in one commit.

Statements are short and run straight in the loop (a thread hop costs more than they do). So are
small commits where the disk is quick; a longer wait for it is spent in threads (`sqlite_disk`), and
what is handed in meanwhile forms the next commit. Reads see what is committed: while a commit is
under way by a connection of their own, else by the writer's, whose pages are at hand (another's are
out of date after each commit). Only one process may have the file open: a lock beside it says so,
and names the remedy. So the values that were written last are known without a look.
"""

import asyncio
import fcntl
import os
import sqlite3
from collections import deque
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextlib import contextmanager
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from siderite.core.errors import Unavailable
from siderite.core.pattern import is_in
from siderite.core.pattern import is_in_a_word
from siderite.core.store import Duplicate
from siderite.core.store import Line
from siderite.core.store import Lost
from siderite.core.store import Op
from siderite.core.store import Row
from siderite.core.store import Value
from siderite.core.store.sqlite_disk import Disk
from siderite.core.store.sqlite_disk import Log

_TOLD_AT_ONCE = 8
_TURNS = 8
"""Of the loop, in which more is gathered for a commit as long as each brings some."""
_SMALL = 512 * 1024
"""The length of all texts in a small commit, at the most."""
_KNOWN = 256
_HandedIn = tuple[Sequence[Op], "asyncio.Future[Any]", bool]
_Answer = tuple["asyncio.Future[Any]", Any, BaseException | None]


class SqliteStore:
    """The embedded store."""

    dialect = "sqlite"

    def __init__(self, path: str) -> None:
        self._lock = _sole_owner(path) if path != ":memory:" else None
        self._writer = _connect(path)
        # In memory there is nothing to wait for at a commit, and no second way in.
        self._reader = self._writer if path == ":memory:" else _connect(path)
        self._path = path
        log = Log(self._writer, partial(_connect, path)) if path != ":memory:" else None
        self._disk = Disk(self._writer, log)
        self._scans = ThreadPoolExecutor(1, "sqlite-scan")
        self._queue: list[_HandedIn] = []
        self._committing: asyncio.Future[None] | None = None
        self._untold: deque[_Answer] = deque()
        self._known: dict[tuple[str, str], object] = {}  # rows that were written last
        # Kept in mind, as to ask for it takes a system call.
        self._loop: asyncio.AbstractEventLoop | None = None
        self.troubles = 0

    async def fetch(self, sql: str, args: Sequence[Value] = ()) -> Sequence[Line]:
        while self._committing is not None and self._reader is self._writer:
            await asyncio.wait([self._committing])
        connection = self._writer if self._committing is None else self._reader
        try:
            return connection.execute(sql, args).fetchall()
        except sqlite3.DatabaseError as why:
            raise _meaning(why) from why

    def recall(self, table: str, uuid: str) -> object:
        return self._known.get((table, uuid))

    def remember(self, table: str, value: object) -> None:
        self._known[table, ""] = value

    async def scan(self, sql: str, args: Sequence[Value] = ()) -> Sequence[Line]:
        if self._path == ":memory:":
            return await self.fetch(sql, args)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._scans, partial(self._scan, sql, args))

    def _scan(self, sql: str, args: Sequence[Value]) -> Sequence[Line]:
        """In a thread: on a connection of its own, which is rarely wanted and so not kept."""
        try:
            with closing(_connect(self._path)) as connection:
                return connection.execute(sql, args).fetchall()
        except sqlite3.DatabaseError as why:
            raise _meaning(why) from why

    async def commit(self, ops: Sequence[Op]) -> None:
        await self._hand_in(ops, returning=False)

    async def write(self, sql: str, args: Sequence[Value] = ()) -> Sequence[Line]:
        rows: Sequence[Line] = await self._hand_in([Op(sql, tuple(args))], returning=True)
        return rows

    def signal(self, name: str) -> None:
        """There is no other process."""

    async def listen(self, heard: Mapping[str, Callable[[], None]]) -> None:
        """There is nobody to hear."""

    async def close(self) -> None:
        while self._queue or self._committing is not None or self._untold:
            if self._committing is not None:
                await asyncio.wait([self._committing])
                continue
            if self._queue:
                self._flush()
            await asyncio.sleep(0)
        self._disk.close()
        self._scans.shutdown()
        self._reader.close()
        self._writer.close()
        if self._lock is not None:
            _let_go(self._lock)

    def script(self, sql: str) -> None:
        """Run a migration's statements; the caller wraps them in a transaction."""
        self._writer.executescript(sql)

    def _hand_in(self, ops: Sequence[Op], *, returning: bool) -> asyncio.Future[Any]:
        loop = self._loop
        if loop is None or not loop.is_running():
            loop = self._loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        if not self._queue and self._committing is None:
            loop.call_soon(self._gather, 0, _TURNS)
        self._queue.append((ops, done, returning))
        return done

    def _gather(self, before: int, turns: int) -> None:
        """Begin a commit when a turn of the loop has brought no more for it, or after a few: what
        comes together costs less.
        """
        if self._committing is not None or not self._queue:
            return
        if turns and len(self._queue) > before:
            loop = asyncio.get_running_loop()
            loop.call_soon(self._gather, len(self._queue), turns - 1)
        else:
            self._flush()

    def _flush(self) -> None:
        """One commit for all that was handed in."""
        queue, self._queue = self._queue, []
        try:
            self._undo()
            answers, rows = self._run_all(queue)
        except sqlite3.Error as why:
            self._failed(queue, _meaning(why))
            return
        if self._disk.is_quick and _is_small(queue):
            self._committed(queue, answers, rows, self._disk.commit_now())
            return
        self._forget(rows)  # reads may see them before we hear that they are committed
        self._committing = asyncio.get_running_loop().create_future()
        self._disk.commit(partial(self._landed, self._committing, queue, answers, rows))

    def _landed(
        self,
        over: asyncio.Future[None],
        queue: list[_HandedIn],
        answers: list[_Answer],
        rows: list[Row],
        why: BaseException | None,
    ) -> None:
        self._committing = None
        self._committed(queue, answers, rows, why)
        over.set_result(None)

    def _committed(
        self,
        queue: list[_HandedIn],
        answers: list[_Answer],
        rows: list[Row],
        why: BaseException | None,
    ) -> None:
        if why is None:
            self._know(rows)
            self._over(answers)
        else:
            self._failed(queue, _meaning(why))

    def _failed(self, queue: list[_HandedIn], why: BaseException) -> None:
        with suppress(sqlite3.Error):  # it is tried again before the next; who waits must hear
            self._undo()
        self._over([(done, None, why) for _, done, _ in queue])

    def _over(self, answers: list[_Answer]) -> None:
        self.troubles += any(isinstance(error, Unavailable) for _, _, error in answers)
        is_telling = bool(self._untold)
        self._untold += answers
        if not is_telling:
            self._tell()
        asyncio.get_running_loop().call_soon(self._gather, 0, _TURNS)

    def _forget(self, rows: list[Row]) -> None:
        for row in rows:
            self._known.pop((row.table, row.uuid), None)
            self._known.pop((row.table, ""), None)

    def _know(self, rows: list[Row]) -> None:
        """No other process writes: what these rows hold need not be read for a while."""
        self._forget(rows)
        known = self._known
        for row in rows:
            if row.value is not None:
                known[row.table, row.uuid] = row.value
            else:  # it may have been written by another of these commits
                known.pop((row.table, row.uuid), None)
        for key in list(islice(known, max(0, len(known) - _KNOWN))):
            del known[key]

    def _tell(self) -> None:
        """Answer a few in each turn of the loop: who asks meanwhile need not wait for all of it.

        The next commit is begun after the first of them: what they hand in next is in it too, and
        the disk works while the others are answered.
        """
        untold = self._untold
        _answer([untold.popleft() for _ in range(min(len(untold), _TOLD_AT_ONCE))])
        if untold:
            asyncio.get_running_loop().call_soon(self._tell)

    def _undo(self) -> None:
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")

    def _run_all(self, queue: list[_HandedIn]) -> tuple[list[_Answer], list[Row]]:
        """Run what was handed in within one transaction; what fails is left out of it. The answers,
        and the rows that are part of it.

        A commit that fails half-way is rare, and undone by beginning again without it: that is
        cheaper than a savepoint for each one that does not. So is one that made SQLite itself undo
        all of it, as a full disk may.
        """
        failed: dict[int, BaseException] = {}
        while True:
            self._writer.execute("BEGIN IMMEDIATE")
            answers: list[_Answer] = []
            rows: list[Row] = []
            for number, (ops, done, returning) in enumerate(queue):
                if number in failed:
                    answers.append((done, None, failed[number]))
                    continue
                try:
                    answers.append((done, self._run(ops, returning=returning), None))
                    rows += [op for op in ops if isinstance(op, Row)]
                except _HalfWay as half:
                    failed[number] = half.why
                    self._undo()
                    break
                except Exception as why:
                    failed[number] = why
                    if not self._writer.in_transaction:
                        break
                    answers.append((done, None, why))
            else:
                return answers, rows

    def _run(self, ops: Sequence[Op], *, returning: bool) -> Sequence[Line] | None:
        execute = self._writer.execute
        touched = False
        for op in ops:
            try:
                cursor = execute(op.sql, op.args)
                if returning:
                    return cursor.fetchall()
                if op.rows is not None and cursor.rowcount != op.rows:
                    touched = touched or cursor.rowcount > 0
                    self._known.clear()  # should a hand have written a row, it is read now
                    raise Lost(op.sql)
            except Exception as why:
                meaning = _meaning(why)
                if touched:
                    raise _HalfWay(meaning) from why
                raise meaning from why
            touched = touched or cursor.rowcount > 0
        return None


class _HalfWay(Exception):
    """A commit failed after a part of it had been done."""

    def __init__(self, why: BaseException) -> None:
        super().__init__(str(why))
        self.why = why


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, isolation_level=None, cached_statements=512, check_same_thread=False
    )
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        "cache_size=-8192",
        # Copied into the file beside the commits (`sqlite_disk`); if that cannot keep up, by them.
        "wal_autocheckpoint=64000",
        # While a backup reads, all that is written stays beside the file: give that room back.
        "journal_size_limit=67108864",
        "temp_store=MEMORY",
    ):
        connection.execute(f"PRAGMA {pragma}")
    for name, function in (("has_pattern", is_in), ("word_has_pattern", is_in_a_word)):
        connection.create_function(name, 2, function, deterministic=True)
    return connection


def _is_small(queue: list[_HandedIn]) -> bool:
    room = _SMALL
    for ops, _, _ in queue:
        for op in ops:
            for arg in op.args:
                if type(arg) is str:
                    room -= len(arg)
    return room >= 0


def _answer(answers: list[_Answer]) -> None:
    for done, rows, error in answers:
        if done.cancelled():
            continue
        if error is None:
            done.set_result(rows)
        else:
            done.set_exception(error)


_OUTSIDE = {
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB,
}  # fmt: skip
"""What the disk or its owner must mend, and no caller can."""


def _meaning(why: BaseException) -> BaseException:
    text = str(why)
    if text.startswith("UNIQUE constraint failed: "):
        return Duplicate(text.removeprefix("UNIQUE constraint failed: ").split(",")[0])
    if getattr(why, "sqlite_errorcode", 0) & 0xFF in _OUTSIDE:
        return Unavailable(
            f"The database cannot be used just now ({text}): nothing was changed. See to the disk"
            " that it is on, then try again."
        )
    return why


@contextmanager
def sole_owner(path: str) -> Iterator[None]:
    """While nobody else has the file, and none may open it: or an error that says who has."""
    lock = _sole_owner(path)
    try:
        yield
    finally:
        _let_go(lock)


def _sole_owner(path: str) -> int:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(path + ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as why:
        owner = os.pread(lock, 20, 0).decode().strip() or "unknown"
        os.close(lock)
        raise RuntimeError(
            f"{path} is in use by another siderite process ({owner}); stop that one first, "
            "or use PostgreSQL to run several."
        ) from why
    with suppress(OSError):  # a full disk: the lock holds without the number
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock


def _let_go(lock: int) -> None:
    with suppress(OSError):
        os.ftruncate(lock, 0)  # the number may soon be another process's
    os.close(lock)
