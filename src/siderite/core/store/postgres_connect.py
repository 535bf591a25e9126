"""Connections to PostgreSQL, wherever its primary is now.

A URL may name several servers (`postgresql://user@a,b/name`). All are asked at once, and the first
that takes writes is the one: a machine without power answers nothing, and waiting for it first
would keep us from its successor. For the same reason a connection whose other end is silent is
given up soon.
"""

import asyncio
import contextlib
import re
import socket
import time
from collections.abc import AsyncIterator
from collections.abc import Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl
from urllib.parse import urlsplit

import asyncpg

TIMEOUT_S = 5.0
"""For one attempt to connect."""
SILENT_S = 8
"""After how long without a sign of life from the other end a connection is lost."""
PAUSE_S = 0.5
"""How long after an attempt failed the next ones fail as well, untried: nobody queues up."""

_OURS = """
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;
SELECT set_config('default_toast_compression', 'lz4', false) FROM pg_settings
WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)
"""
"""Whatever the owner has set for others: commits check by themselves what they were decided on, and
documents are compressed in a fraction of the time that the default takes, where the server can.
"""

_MARK = "siderite.session"
_PATIENCE = """
SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('statement_timeout',
  'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')
"""


class Connection(asyncpg.Connection):
    """A connection that notices when the other end is gone without a word."""

    def __init__(self, protocol: Any, transport: Any, *rest: Any) -> None:
        super().__init__(protocol, transport, *rest)
        self.asked: set[str] = set()  # statements that it was lent for, whose plans it has
        _stay_awake(transport.get_extra_info("socket"))


def _stay_awake(used: socket.socket) -> None:
    if used.family not in (socket.AF_INET, socket.AF_INET6):
        return
    used.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    used.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, SILENT_S // 2)
    used.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    used.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, SILENT_S // 2)
    used.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENT_S * 1000)


def check(url: str) -> None:
    """Refuse what the library would stumble over: it repeats the part, perhaps of a password."""
    try:
        can_be = True
        for one in servers(url):
            parts = urlsplit(one)
            can_be = can_be and parts.port != 0 and not parts.fragment
            parse_qsl(parts.query, strict_parsing=bool(parts.query))
    except ValueError:
        can_be = False
    if not can_be:
        raise RuntimeError(
            "the address of the database (db) is no URL such as"
            " postgresql://user:password@host:5432/name; in a password, write @ : / ? # [ ] and %"
            " as %40 %3A %2F %3F %23 %5B %5D %25."
        )


def servers(url: str) -> list[str]:
    """The URL of each server that a URL names."""
    # Not urlsplit: a list of places is none to it if one of them is in brackets.
    where = re.split("[/?#]", url.partition("://")[2], maxsplit=1)[0]
    account, at, places = where.rpartition("@")
    if "," not in places:
        return [url]
    return [url.replace(where, account + at + place, 1) for place in places.split(",")]


class Connector:
    """Makes the connections of one store."""

    def __init__(self, url: str) -> None:
        self._servers = servers(url)
        self._failed_at = -PAUSE_S
        self._why: Exception | None = None
        self._spare: Any = None
        self.is_short = False
        """Whether the server has hardly any connections for us, so that none is kept."""

    async def connect(self, *_: object, **options: Any) -> Any:
        """A connection to the server that takes writes; whoever comes just after a failure gets the
        same again.
        """
        if self._why is not None and time.monotonic() < self._failed_at + PAUSE_S:
            raise self._why.with_traceback(None)
        known = {"timeout": TIMEOUT_S, "target_session_attrs": "read-write", **options}
        known["connection_class"] = Connection
        try:
            made = await _first([_connect(url, known) for url in self._servers])
        except Exception as why:
            self._failed_at, self._why = time.monotonic(), why
            raise
        self._why = None
        return made

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[Any]:
        """A connection of one's own, whose statements may take as long as they do: to change a
        large table, or to wait for another process that does. Limits that the database's owner has
        set are for requests. A start needs one several times: it is kept for the next.
        """
        connection = await self.take_spare()
        try:
            await connection.execute(_PATIENCE, timeout=TIMEOUT_S)
            yield connection
        except BaseException:
            connection.terminate()
            raise
        self.let_go_of_spare()
        if self.is_short:
            connection.terminate()
        else:
            self._spare = connection

    async def take_spare(self) -> Any:
        """The connection that was used alone before and that nobody uses, or another."""
        connection, self._spare = self._spare, None
        if connection is None or connection.is_closed():
            connection = await self.connect()
        return connection

    def let_go_of_spare(self) -> None:
        """Keep no connection for later."""
        if self._spare is not None:
            self._spare.terminate()
            self._spare = None


async def check_sessions(one: Any, two: Any) -> None:
    """Refuse a pool in between that gives each transaction another of its sessions: statements that
    were prepared, and signals that are listened for, would be a stranger's.
    """
    await one.execute(f"SET {_MARK} = 'ours'")
    async with two.transaction():  # which has the session that was just used, if it is shared
        await two.execute(f"SELECT set_config('{_MARK}', 'theirs', false)")
        with contextlib.suppress(asyncpg.InvalidSQLStatementNameError):
            if await one.fetchval(f"SELECT current_setting('{_MARK}', true)") == "ours":
                return
    raise RuntimeError(
        "the database is reached through a pool that gives each transaction another session"
        " (PgBouncer: pool_mode = transaction), and Siderite needs sessions that stay: name"
        " PostgreSQL itself in --db, or a pool with pool_mode = session."
    )


async def _connect(url: str, options: dict[str, Any]) -> Any:
    made = await asyncpg.connect(url, **options)
    try:
        await made.execute(_OURS, timeout=TIMEOUT_S)
    except BaseException:
        made.terminate()
        raise
    return made


async def _first(attempts: Sequence[Any]) -> Any:
    """What the first attempt gives that succeeds; if none does, why the first in order failed."""
    if len(attempts) == 1:
        return await attempts[0]
    tasks = [asyncio.ensure_future(attempt) for attempt in attempts]
    chosen = None
    try:
        for done in asyncio.as_completed(tasks):
            with contextlib.suppress(OSError, asyncpg.PostgresError, asyncpg.InternalClientError):
                chosen = await done
                return chosen
        return await tasks[0]
    finally:
        for task in tasks:
            task.cancel()
        for other in await asyncio.gather(*tasks, return_exceptions=True):
            if not isinstance(other, BaseException) and other is not chosen:
                other.terminate()
