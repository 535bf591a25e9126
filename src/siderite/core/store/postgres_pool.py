"""A handful of connections to PostgreSQL, lent out one statement at a time.

The library's own pool wraps a connection each time it is lent and resets it afterwards, which takes
longer than most of our statements. This one lends the connection itself: we set nothing on it, so
that nothing has to be reset. One whose statement was broken off is not used again.

PostgreSQL plans a statement on each connection anew, and several times before it keeps the plan:
that takes longer than to carry it out. So a statement is given to a connection that knows it, if
one is idle, and another is made only when none has come back for a while: to make one takes longer
than most statements, too. Where the server has fewer connections for us than we may have, those we
got are waited for.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from siderite.core.store.postgres_connect import Connector

_CLOSE_S = 5.0
STATEMENTS = 512
"""How many a connection knows, those that were asked last."""
PATIENCE_S = 0.02
"""For how long the connections there are are waited for before another is made."""
FULL_S = 5.0
"""For how long a server that has no more connections for us is asked for none."""


class Pool:
    """At most `size` connections; who finds all lent waits for the next, in order."""

    def __init__(self, connector: Connector, size: int, **options: Any) -> None:
        self._connector = connector
        self._size = size
        self._options = options
        self._count = 0  # open, or about to be
        self._opening: asyncio.Task[Any] | None = None
        self._idle: list[Any] = []
        self._lent: set[Any] = set()
        self._stale: set[Any] = set()
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._calm = asyncio.Event()  # nothing is lent
        self._is_closed = False
        self._full_since = -FULL_S

    async def take(self, sql: str = "") -> Any:
        """A connection for a statement, to be given back."""
        is_late = False
        while not self._is_closed:
            if self._idle:
                connection = self._idle.pop(self._choose(sql))
                if connection.is_closed():
                    self._count -= 1
                    continue
            elif not self._count or (is_late and self._may_grow()):
                connection = await self._open()
                if connection is None:
                    continue
            else:
                connection = await self._turn(PATIENCE_S if self._may_grow() else None)
                if connection is None:
                    is_late = True
                    continue
            self._lent.add(connection)
            if sql:
                _note(connection.asked, sql)
            return connection
        raise asyncpg.InterfaceError("the pool is closed")

    def _may_grow(self) -> bool:
        """Whether another connection may be made: one at a time."""
        return self._count < self._size and self._opening is None and not self._is_full()

    def _is_full(self) -> bool:
        """Whether the server had no more connections for us just now: those we have must do."""
        return time.monotonic() < self._full_since + FULL_S

    def _choose(self, sql: str) -> int:
        """Which idle connection: one that knows the statement, or the one that was used last."""
        for n in range(len(self._idle) - 1, -1, -1):
            if sql in self._idle[n].asked:
                return n
        return -1

    async def _open(self) -> Any:
        """Another connection; None if the server has no more for us, and those we have must do. Who
        stops waiting for it does not break it off half-way, where its other end may be left open:
        it is for others then.
        """
        self._count += 1
        self._opening = asyncio.create_task(self._made())
        opening = self._opening
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(self._leave_to_others)
            raise

    async def _made(self) -> Any:
        try:
            return await self._connector.connect(**self._options)
        except BaseException as why:
            self._count -= 1
            if not self._count or not isinstance(why, asyncpg.TooManyConnectionsError):
                raise
            self._full_since = time.monotonic()
            return None
        finally:
            self._opening = None
            self._hand_over(None)  # who has waited longest may make the next

    def _leave_to_others(self, opening: asyncio.Task[Any]) -> None:
        if not opening.cancelled() and opening.exception() is None and opening.result() is not None:
            self.give_back(opening.result())

    async def _turn(self, patience_s: float | None) -> Any:
        """The next connection that is given back; None if there is room for another instead, or
        none came in time.
        """
        turn: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await asyncio.wait((turn,), timeout=patience_s)
        except asyncio.CancelledError:
            if not turn.cancel():
                self._put(turn.result())  # it came too late for us
            raise
        return None if turn.cancel() else turn.result()

    def give_back(self, connection: Any, *, is_broken: bool = False) -> None:
        """The connection is no longer used; broken means that nobody shall use it again."""
        self._lent.discard(connection)
        if not self._lent:
            self._calm.set()
        if is_broken or connection in self._stale or connection.is_closed():
            self._stale.discard(connection)
            self._count -= 1
            connection.terminate()
            connection = None
        self._put(connection)

    def _put(self, connection: Any) -> None:
        if self._is_closed and connection is not None:  # it was on its way to somebody till now
            self._count -= 1
            connection.terminate()
            connection = None
        if not self._hand_over(connection) and connection is not None:
            self._idle.append(connection)

    def _hand_over(self, connection: Any) -> bool:
        """To whoever has waited longest, if anybody has."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(connection)
                return True
        return False

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[Any]:
        """A connection for several statements, a transaction."""
        connection, is_broken = await self.take(), True
        try:
            yield connection
            is_broken = False
        except asyncpg.PostgresError:
            is_broken = False
            raise
        finally:
            self.give_back(connection, is_broken=is_broken)

    def expire(self) -> None:
        """Use none of the present connections again."""
        self._stale |= self._lent
        idle, self._idle = self._idle, []
        for connection in idle:
            self._count -= 1
            connection.terminate()

    async def close(self) -> None:
        """Let what is under way come to an end, for a while, and let go of all connections."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                while self._opening is not None:
                    await asyncio.wait([self._opening])
                while self._lent:
                    self._calm.clear()
                    await self._calm.wait()
                while self._idle:
                    await self._idle.pop().close()
        self._is_closed = True
        if self._opening is not None:  # one that was wanted meanwhile
            await asyncio.wait([self._opening])
        for connection in (*self._lent, *self._idle):
            connection.terminate()
        while self._hand_over(None):
            pass


def _note(asked: set[str], sql: str) -> None:
    """A connection is asked this; that it may have forgotten others does little harm."""
    if len(asked) >= STATEMENTS:
        asked.clear()
    asked.add(sql)
