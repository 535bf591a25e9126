"""PostgreSQL by asyncpg: a commit is one statement, one round trip, perhaps shared with others.

The ops of a commit become the data-modifying parts of one `WITH`, and a small function of ours,
which raises, is called when one of them touched another number of rows than it must: the statement
is then undone as a whole. All parts see the same snapshot, so one commit may not touch the same row
twice.
"""

import asyncio
from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from functools import partial
from typing import Any

import asyncpg

from siderite.core.errors import Invalid
from siderite.core.errors import Unavailable
from siderite.core.log import get_logger
from siderite.core.store import Duplicate
from siderite.core.store import Line
from siderite.core.store import Lost
from siderite.core.store import Op
from siderite.core.store import Value
from siderite.core.store.postgres_batch import Args
from siderite.core.store.postgres_batch import Batch
from siderite.core.store.postgres_connect import Connector
from siderite.core.store.postgres_connect import check
from siderite.core.store.postgres_connect import check_sessions
from siderite.core.store.postgres_many import Many
from siderite.core.store.postgres_many import Shape
from siderite.core.store.postgres_many import can_be_asked
from siderite.core.store.postgres_many import parts_of
from siderite.core.store.postgres_many import question
from siderite.core.store.postgres_pool import STATEMENTS
from siderite.core.store.postgres_pool import Pool

log = get_logger("postgres")

SIZE = 12
"""Connections of one process, beside the one that listens."""
COMMITS, COMMIT_S = 2, 0.05
READS, READ_S = 1, 0.01
"""How many of these are on the way at a time, unless they take longer than that: the others gather.
The more go together, the less each of them costs.
"""
LARGE = 1 << 20
"""The length of a text that goes by itself: many of them, as config drives, would be a message of
hundreds of MiB.
"""
COMMAND_S = 60.0
"""How long a statement of the pool's may take."""
KNOWN = 4096
"""How many texts of reads are kept in mind: those of lists have what callers ask for in them."""
LOST = "SD409"
"""The SQLSTATE that `siderite_lost` raises."""

# Several processes may start at once: each makes it in turn.
_LOST = f"""
SELECT pg_advisory_xact_lock(734001);
CREATE OR REPLACE FUNCTION siderite_lost() RETURNS int AS $$
BEGIN
  RAISE EXCEPTION 'lost' USING ERRCODE = '{LOST}';
END $$ LANGUAGE plpgsql
"""

_GONE = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # told that the server goes down just as it was to ask something
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # shuts down, starts up, ends sessions, drops the database
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,  # a replica that is not promoted yet
)
_FULL = (asyncpg.DiskFullError, asyncpg.OutOfMemoryError, asyncpg.PostgresIOError)
"""What its server's owner must mend, and no caller can."""
_STOPPED = (asyncpg.QueryCanceledError, asyncpg.LockNotAvailableError)
"""A statement was undone because it took too long (statement_timeout, lock_timeout), or by a hand.
"""
_NOTIFY = "SELECT pg_notify(name, '') FROM unnest($1::text[]) AS name"
_QUIET_S = 0.02
"""Between two signals: one stands for all that happened meanwhile."""
_CLASH = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)


class PostgresStore:
    """The store for several machines."""

    dialect = "postgresql"

    def __init__(self, connector: Connector, pool: Pool) -> None:
        self.connector = connector
        self.pool = pool
        self.troubles = 0
        self._is_ailing = False
        self._signals: set[str] = set()
        self._signalling: asyncio.Task[None] | None = None
        self._composed: dict[Shape, str] = {}
        self._shapes: dict[str, Shape] = {}
        self._many: dict[str, Many | None] = {}
        self._questions: dict[str, str] = {}
        self._numbered: dict[str, str] = {}
        self._commits = Batch[None](self._commit, COMMITS, COMMIT_S)
        self._reads = Batch[Sequence[Line]](self._read, READS, READ_S)

    @classmethod
    async def open(cls, url: str) -> "PostgresStore":
        """Connect; a server that cannot be reached is said with the remedy."""
        check(url)
        connector = Connector(url)
        pool = Pool(connector, SIZE, command_timeout=COMMAND_S, statement_cache_size=STATEMENTS)
        store = cls(connector, pool)
        try:
            async with connector.alone() as connection:
                await connection.execute(_LOST)
                try:
                    async with pool.acquire() as another:
                        await check_sessions(connection, another)
                except asyncpg.TooManyConnectionsError:
                    connector.is_short = True
        except BaseException as why:
            await store.close()
            if isinstance(why, (*_GONE, asyncpg.PostgresError)):
                raise RuntimeError(
                    f"cannot use the PostgreSQL database: {why}; check --db and that it runs."
                ) from why
            raise
        return store

    async def fetch(self, sql: str, args: Sequence[Value] = ()) -> Sequence[Line]:
        return await self._reads.do(sql, args)

    def recall(self, table: str, uuid: str) -> object:
        """Another process may have written it since."""
        return None

    def remember(self, table: str, value: object) -> None:
        """So it may at any time."""

    async def scan(self, sql: str, args: Sequence[Value] = ()) -> Sequence[Line]:
        return await self._ask(self._number(sql), args)

    async def _read(self, sql: str, several: Sequence[Args]) -> Sequence[Sequence[Line]]:
        """The rows of a query for each of these arguments, which are asked for once each."""
        answers: dict[Args, list[Line]] = {tuple(args): [] for args in several}
        if len(answers) == 1 or not can_be_asked(sql):
            one = self._number(sql)
            found = {args: await self._ask(one, args) for args in answers}
            return [found[tuple(args)] for args in several]
        asking = self._questions.get(sql)
        if asking is None:
            asking = question(sql, await self._types(self._number(sql)))
            _keep(self._questions, sql, asking)
        each = list(answers.values())
        rows: Any = await self._ask(asking, [list(one) for one in zip(*answers, strict=True)])
        for row in rows:
            each[row[0] - 1].append(row[1:])  # each row says whose it is
        return [answers[tuple(args)] for args in several]

    async def write(self, sql: str, args: Sequence[Value] = ()) -> Sequence[Line]:
        try:
            rows = await self._ask(self._number(sql), args)
            self._is_ailing = False
            return rows
        except asyncpg.UniqueViolationError as why:
            raise Duplicate(_column(why)) from why

    async def commit(self, ops: Sequence[Op]) -> None:
        sql, args = self._compose(ops), [arg for op in ops for arg in op.args]
        if any(isinstance(arg, str) and len(arg) > LARGE for arg in args):
            await self._commit(sql, (args,))
        else:
            await self._commits.do(sql, args)

    async def _commit(self, sql: str, several: Sequence[Args]) -> Sequence[None]:
        try:
            many = await self._for_many(sql) if len(several) > 1 else None
            args = many.args(several) if many is not None else None
            if len(several) == 1:
                await self._ask(sql, several[0])
            elif many is not None and args is not None:
                await self._ask(many.sql, args)
            else:
                await self._use(sql, lambda connection: connection.executemany(sql, several))
            self._is_ailing = False
            return [None] * len(several)
        except asyncpg.UniqueViolationError as why:
            raise Duplicate(_column(why)) from why
        except _CLASH as why:
            raise Lost(str(why)) from why
        except asyncpg.PostgresError as why:
            if why.sqlstate == LOST:
                raise Lost(sql) from None
            raise

    async def _for_many(self, sql: str) -> Many | None:
        """What a statement is for many commits at once, if it can be put so."""
        if sql not in self._many:
            parts = parts_of(self._shapes[sql])
            self._many[sql] = Many(parts, await self._types(sql)) if parts else None
        return self._many[sql]

    async def _types(self, sql: str) -> list[str]:
        """Of what types the arguments of a statement are."""
        prepared = await self._use("", lambda connection: connection.prepare(sql))
        return [one.name for one in prepared.get_parameters()]

    def signal(self, name: str) -> None:
        self._signals.add(name)
        if self._signalling is None or self._signalling.done():
            self._signalling = asyncio.create_task(self._signal())

    async def _signal(self) -> None:
        while self._signals:
            names, self._signals = self._signals, set()
            try:
                await self._ask(_NOTIFY, (list(names),))
            except (Unavailable, asyncpg.PostgresError):
                return  # they look by themselves from time to time
            await asyncio.sleep(_QUIET_S)

    async def listen(self, heard: Mapping[str, Callable[[], None]]) -> None:
        while True:
            try:
                await self._hear(heard)
            except (*_GONE, TimeoutError, asyncpg.PostgresError) as why:
                log.warning("cannot listen to other processes", error=repr(why))
            await asyncio.sleep(1.0)

    async def _hear(self, heard: Mapping[str, Callable[[], None]]) -> None:
        connection = await self.connector.take_spare()
        try:
            lost = asyncio.Event()
            connection.add_termination_listener(lambda *_: lost.set())
            for name, call in heard.items():
                await connection.add_listener(name, partial(_call, call))
                call()
            await lost.wait()
        finally:
            connection.terminate()

    async def close(self) -> None:
        if self._signalling is not None:
            self._signalling.cancel()
        await self._commits.close()
        await self._reads.close()
        await self.pool.close()
        self.connector.let_go_of_spare()

    async def _ask(self, sql: str, args: Sequence[Any]) -> Sequence[Line]:
        rows: Sequence[Line] = await self._use(sql, lambda connection: connection.fetch(sql, *args))
        return rows

    async def _use(self, sql: str, ask: Callable[[Any], Awaitable[Any]]) -> Any:
        """What a connection answers; an error that says so where there is none."""
        connection = None
        try:
            connection = await self.pool.take(sql)
            is_broken = True
            try:
                answer = await ask(connection)
                is_broken = False
                return answer
            except asyncpg.PostgresError as why:
                is_broken = isinstance(why, _GONE) and not isinstance(why, _STOPPED)
                raise
            finally:
                self.pool.give_back(connection, is_broken=is_broken)
        except asyncpg.InvalidRegularExpressionError as why:
            raise Invalid(f"The database does not know such a pattern: {why}.") from why
        except (*_FULL, *_STOPPED) as why:
            self._ails(why)
            raise Unavailable(_said(why)) from why
        except (*_GONE, asyncpg.PostgresError) as why:
            if connection is not None and not isinstance(why, _GONE):
                raise  # it answered, and has a reason
            if isinstance(why, asyncpg.ReadOnlySQLTransactionError):
                self.pool.expire()  # it was the primary: look for the new one
            self._ails(why)
            raise Unavailable("The database cannot be reached; try again in a moment.") from why

    def _ails(self, why: Exception) -> None:
        """The database itself is in trouble: the log says once which."""
        if not self._is_ailing:
            log.warning("the database cannot be used", error=repr(why))
        self._is_ailing = True
        self.troubles += 1

    def _number(self, sql: str) -> str:
        """`?` marks as `$1`, `$2` …"""
        known = self._numbered.get(sql)
        if known is None:
            parts = sql.split("?")
            known = parts[0] + "".join(f"${n}{part}" for n, part in enumerate(parts[1:], 1))
            _keep(self._numbered, sql, known)
        return known

    def _compose(self, ops: Sequence[Op]) -> str:
        key = tuple((op.sql, op.rows) for op in ops)
        known = self._composed.get(key)
        if known is None:
            parts, checks = [], []
            for n, op in enumerate(ops):
                parts.append(f"op{n} AS ({op.sql} RETURNING 1)")
                if op.rows is not None:
                    checks.append(f"(SELECT count(*) FROM op{n}) = {op.rows}")
            answer = "0"
            if checks:
                answer = f"CASE WHEN {' AND '.join(checks)} THEN 0 ELSE siderite_lost() END"
            known = self._number(f"WITH {', '.join(parts)} SELECT {answer}")
            self._composed[key] = known
            self._shapes[known] = key
        return known


def _keep(known: dict[str, str], sql: str, text: str) -> None:
    if len(known) >= KNOWN:
        known.clear()
    known[sql] = text


def _said(why: Exception) -> str:
    if isinstance(why, _STOPPED):
        return (
            f"The database gave a statement up ({why}): nothing was changed. Try again in a moment;"
            " should it stay so, see to its locks, its load and statement_timeout."
        )
    return (
        f"The database cannot be used just now ({why}): nothing was changed. See to its server,"
        " then try again."
    )


def _call(call: Callable[[], None], *_: object) -> None:
    call()


def _column(why: asyncpg.UniqueViolationError) -> str:
    """`table.column` from the name of the index, which by our habit is `table_column_key`."""
    table = why.table_name or ""
    name = (why.constraint_name or "").removeprefix(table + "_").removesuffix("_key")
    return f"{table}.{name}"
