"""What waits at the same time with the same statement goes together.

A statement costs PostgreSQL and us as much for its round trip, and a commit for its flush to disk,
as for what it does. So few are on the way at a time; those that come meanwhile wait, and when the
next may go, all that wait with the same statement go together, in the order in which they came. So
do those that come in one turn of the loop, where none has to wait:
commits become one transaction, reads one question. If one of them cannot be, none is, and each is
tried again apart: whoever lost hears of it, the others do not.
"""

import asyncio
from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Sequence
from typing import Generic
from typing import TypeVar

from siderite.core.errors import Unavailable
from siderite.core.store import Value

T = TypeVar("T")
Args = Sequence[Value]
Run = Callable[[str, Sequence[Args]], Awaitable[Sequence[T]]]
"""Run a statement with each of these arguments and give the answer to each, or an error: then
nothing has changed.
"""
Waiting = tuple[Args, asyncio.Future[T]]

MOST = 8
"""How many may be on the way at a time while some of them take long."""
TOGETHER = 32
"""The most that go together."""
_CLOSE_S = 5.0


class Batch(Generic[T]):
    """The commits of one process, or its reads; `on_the_way` is how many go at a time, not counting
    those that have taken longer than `long_s` while others waited.
    """

    def __init__(self, run: Run[T], on_the_way: int, long_s: float) -> None:
        self._run = run
        self._on_the_way = on_the_way
        self._long_s = long_s
        self._begun = 0
        self._count = 0  # on the way
        self._counting: set[int] = set()  # those of them that others wait for
        self._waiting: dict[str, list[Waiting[T]]] = {}
        self._along: dict[str, list[Waiting[T]]] = {}  # with what goes at the end of this turn
        self._tasks: set[asyncio.Task[None]] = set()
        self._look: asyncio.TimerHandle | None = None

    async def do(self, sql: str, args: Args) -> T:
        """Run the statement, perhaps with others like it."""
        along = self._along.get(sql)
        if along is None and self._may_go():
            return await self._first(sql, args)
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if along is not None and len(along) < TOGETHER - 1:
            along.append((args, done))
            return await done
        self._waiting.setdefault(sql, []).append((args, done))
        if self._look is None:
            self._look_later()
        return await done

    async def _first(self, sql: str, args: Args) -> T:
        """Go at the end of this turn, with all like it that come till then."""
        number = self._begin()
        along = self._along[sql] = []
        try:
            await asyncio.sleep(0)
        except BaseException:
            del self._along[sql]
            self._go(number, sql, along)
            raise
        del self._along[sql]
        if along:
            done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
            self._go(number, sql, [(args, done), *along])
            return await done
        try:
            return (await self._run(sql, (args,)))[0]
        finally:
            self._landed(number)

    async def close(self) -> None:
        """Wait, for a while, until all is through that was handed in."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_S)
        if self._look is not None:
            self._look.cancel()

    def _may_go(self) -> bool:
        return len(self._counting) < self._on_the_way and self._count < MOST

    def _begin(self) -> int:
        self._begun += 1
        self._count += 1
        self._counting.add(self._begun)
        return self._begun

    def _landed(self, number: int) -> None:
        self._counting.discard(number)
        self._count -= 1
        self._next()

    def _next(self) -> None:
        """What has waited longest goes, with all that is like it, if it may."""
        while self._waiting and self._may_go():
            sql = next(iter(self._waiting))
            some = self._waiting.pop(sql)
            if len(some) > TOGETHER:
                self._waiting[sql] = some[TOGETHER:]
                del some[TOGETHER:]
            self._go(self._begin(), sql, some)

    def _go(self, number: int, sql: str, some: Sequence[Waiting[T]]) -> None:
        task = asyncio.create_task(self._together(number, sql, some))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _hurry(self, begun: int) -> None:
        """Nobody waits any more for those that had begun when this look was set."""
        self._look = None
        self._counting = {number for number in self._counting if number > begun}
        self._next()
        if self._waiting:
            self._look_later()

    def _look_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._look = loop.call_later(self._long_s, self._hurry, self._begun)

    async def _together(self, number: int, sql: str, some: Sequence[Waiting[T]]) -> None:
        wanted = [one for one in some if not one[1].cancelled()]
        try:
            if wanted:
                await self._answer(sql, wanted)
        except BaseException as why:
            for _, done in wanted:
                _refuse(done, why)
        finally:
            self._landed(number)

    async def _answer(self, sql: str, wanted: Sequence[Waiting[T]]) -> None:
        try:
            answers = await self._run(sql, [args for args, _ in wanted])
        except Unavailable:
            raise
        except Exception:
            if len(wanted) == 1:
                raise
            await self._apart(sql, wanted)
            return
        for (_, done), answer in zip(wanted, answers, strict=True):
            if not done.done():
                done.set_result(answer)

    async def _apart(self, sql: str, wanted: Sequence[Waiting[T]]) -> None:
        for args, done in wanted:
            try:
                answer = (await self._run(sql, (args,)))[0]
            except Exception as why:
                _refuse(done, why)
                continue
            if not done.done():
                done.set_result(answer)


def _refuse(done: "asyncio.Future[T]", why: BaseException) -> None:
    if done.done():
        return
    if isinstance(why, asyncio.CancelledError):
        done.cancel()
    else:
        done.set_exception(why)
