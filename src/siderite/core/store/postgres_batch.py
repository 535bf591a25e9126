"""Commits with the same statement that wait at the same time become true in one transaction.

A commit costs PostgreSQL and us as much for its round trip and its flush to disk as for what it
writes. So few are on the way at a time; those that come meanwhile wait, and when the next may go,
all that wait with the same statement go together, in the order in which they came. If one of them
cannot be, none is, and each is tried again apart: whoever lost hears of it, the others do not.
"""

import asyncio
from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Sequence

from siderite.core.store import Duplicate
from siderite.core.store import Lost
from siderite.core.store import Value

Args = Sequence[Value]
Run = Callable[[str, Sequence[Args]], Awaitable[None]]
"""Run a statement with each of these arguments: all of it, or an error and none."""
Waiting = tuple[Args, "asyncio.Future[None]"]

ON_THE_WAY = 2
"""Transactions that the commits of one process are in at a time."""
MOST = 8
"""The same while some of them take long."""
LONG_S = 0.05
TOGETHER = 32
"""The most commits of one transaction."""
_CLOSE_S = 5.0


class Batch:
    """The commits of one process."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._count = 0
        self._waiting: dict[str, list[Waiting]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._landings = 0
        self._look: asyncio.TimerHandle | None = None

    async def commit(self, sql: str, args: Args) -> None:
        """Run the statement, perhaps with others like it."""
        if self._count < ON_THE_WAY:
            self._count += 1
            try:
                await self._run(sql, (args,))
            finally:
                self._landed()
            return
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._waiting.setdefault(sql, []).append((args, done))
        if self._look is None:
            self._look = loop.call_later(LONG_S, self._hurry, self._landings)
        await done

    async def close(self) -> None:
        """Wait, for a while, until all is through that was handed in."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_S)
        if self._look is not None:
            self._look.cancel()

    def _landed(self) -> None:
        self._count -= 1
        self._landings += 1
        if self._waiting and self._count < ON_THE_WAY:
            self._next()

    def _next(self) -> None:
        """What has waited longest goes, with all that is like it."""
        sql = next(iter(self._waiting))
        some = self._waiting.pop(sql)
        if len(some) > TOGETHER:
            self._waiting[sql] = some[TOGETHER:]
            del some[TOGETHER:]
        self._count += 1
        task = asyncio.create_task(self._together(sql, some))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _hurry(self, landings: int) -> None:
        """If nothing has come through for long, what waits does not wait for that."""
        self._look = None
        if not self._waiting:
            return
        if landings == self._landings and self._count < MOST:
            self._next()
        loop = asyncio.get_running_loop()
        self._look = loop.call_later(LONG_S, self._hurry, self._landings)

    async def _together(self, sql: str, some: Sequence[Waiting]) -> None:
        try:
            wanted = [one for one in some if not one[1].cancelled()]
            try:
                if wanted:
                    await self._run(sql, [args for args, _ in wanted])
            except (Lost, Duplicate) as why:
                await self._apart(sql, wanted, why)
            except BaseException as why:
                _tell(wanted, why)
            else:
                _tell(wanted, None)
        finally:
            self._landed()

    async def _apart(self, sql: str, wanted: Sequence[Waiting], why: Exception) -> None:
        if len(wanted) == 1:
            _tell(wanted, why)
            return
        for one in wanted:
            try:
                await self._run(sql, (one[0],))
            except BaseException as its_own:
                _tell((one,), its_own)
            else:
                _tell((one,), None)


def _tell(wanted: Sequence[Waiting], why: BaseException | None) -> None:
    for _, done in wanted:
        if done.done():
            continue
        if why is None:
            done.set_result(None)
        elif isinstance(why, asyncio.CancelledError):
            done.cancel()
        else:
            done.set_exception(why)
