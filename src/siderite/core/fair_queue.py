"""A bounded queue before something costly, in which nobody can keep others out by asking often.

Whoever waits does so under a name. Names are served in turn, so that a thousand who ask under one
name delay another by one place. When it is full, the name with the most waiting loses its newest;
and nobody waits for longer than a client would.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from siderite.core.errors import Unavailable

WAIT_S = 20.0


class FairQueue:
    """Lets some in at once, and has at most so many wait."""

    def __init__(self, at_once: int, most: int, full: str) -> None:
        """`full` is what those are told who find no place."""
        self._free = at_once
        self._most = most
        self._full = full
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """Wait for one's turn under a name; Unavailable if too many do."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(name)
        try:
            yield
        finally:
            self._next()

    async def _wait(self, name: str) -> None:
        self._make_room(name)
        mine = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, deque()).append(mine)
        try:
            async with asyncio.timeout(WAIT_S):
                await self._called(mine)
        except TimeoutError as why:
            raise Unavailable(self._full) from why
        finally:
            self._leave(name, mine)

    async def _called(self, mine: asyncio.Future[None]) -> None:
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled() and mine.exception() is None:
                self._next()  # it had just become our turn
            raise

    def _leave(self, name: str, mine: asyncio.Future[None]) -> None:
        """Who gave up takes no place any more."""
        line = self._waiting.get(name)
        if line is not None and mine in line:
            line.remove(mine)
            if not line:
                del self._waiting[name]

    def _make_room(self, name: str) -> None:
        if sum(map(len, self._waiting.values())) < self._most:
            return
        longest = max(self._waiting, key=lambda one: len(self._waiting[one]))
        if len(self._waiting[longest]) <= len(self._waiting.get(name, ())) + 1:
            raise Unavailable(self._full)
        last = self._waiting[longest].pop()
        if not last.done():
            last.set_exception(Unavailable(self._full))

    def _next(self) -> None:
        """Let in the first under the name that has waited longest for its turn."""
        while self._waiting:
            name = next(iter(self._waiting))
            line = self._waiting.pop(name)
            first = line.popleft()
            if line:
                self._waiting[name] = line
            if not first.done():
                first.set_result(None)
                return
        self._free += 1
