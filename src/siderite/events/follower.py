"""A reader of the log that forgets nothing: it deals with batches of facts, one after the other,
and commits how far it is together with what it keeps of them.

It is run as a `core.singleton`. Whatever fails is tried again, with back-off, from the last commit:
a fact may be dealt with twice, never left out.
"""

import asyncio
import contextlib
from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Sequence
from typing import Generic
from typing import Protocol
from typing import TypeVar

from siderite.core import eventlog
from siderite.core.clock import now as wall_clock
from siderite.core.log import get_logger
from siderite.core.singleton import is_held
from siderite.core.store import Lost
from siderite.core.store import Op
from siderite.core.store import Store
from siderite.events import place

log = get_logger("events")


class Numbered(Protocol):
    """What is read of a fact: all of it, or its head."""

    @property
    def seq(self) -> int: ...


N = TypeVar("N", bound=Numbered)
N_co = TypeVar("N_co", bound=Numbered, covariant=True)


class Read(Protocol[N_co]):
    """Reads facts after a number, oldest first (`core.eventlog`)."""

    async def __call__(self, store: Store, *, after: int, limit: int) -> Sequence[N_co]: ...


Deal = Callable[[Sequence[N]], Awaitable[list[Op]]]
"""Deal with facts; the ops that keep what follows from them."""

POLL_S = 5.0
"""How often to look unwoken: word of new facts may be lost with a connection."""
READ_AT_ONCE = 500
BREATH_S = 0.002
"""Between two batches while there is more: requests are answered meanwhile."""
MANY, BUSY = 100, 5
"""So many facts at once are a sign of a busy time: then it is worth waiting so many times as long
for more, as what is said of one machine again and again costs once.
"""
UNFOLLOWED_S = 3600.0
UNFOLLOWED_LOOK_S = 20.0
BACK_OFF_S = (0.2, 0.5, 1.0, 2.0, 5.0)


class Follower(Generic[N]):
    """One name's reading of the log."""

    def __init__(
        self,
        store: Store,
        name: str,
        read: Read[N],
        deal: Deal[N],
        *,
        from_start: bool = True,
        batch: int = 500,
        gather_s: float = 0.0,
        let_go: Callable[[], Awaitable[None]] | None = None,
        clock: Callable[[], float] = wall_clock,
    ) -> None:
        self.name = name
        self._store = store
        self._read = read
        self._deal = deal
        self._from_start = from_start
        self._batch = batch
        self._gather_s = gather_s
        self._let_go = let_go
        self._clock = clock
        self._woken = asyncio.Event()
        self._tries = 0

    def wake(self) -> None:
        """There may be new facts."""
        self._woken.set()

    async def run(self) -> None:
        """Follow until cancelled."""
        try:
            while True:
                try:
                    await self._follow()
                except Lost:
                    log.info("somebody else moved on", follower=self.name)
                except Exception as why:
                    log.warning("the log is not followed", follower=self.name, error=repr(why))
                    with contextlib.suppress(Exception):
                        await self._store.commit([place.troubled(self.name, _said(why))])
                    await asyncio.sleep(self._back_off())
        finally:
            if self._let_go is not None:
                await self._let_go()

    async def _place(self) -> int:
        if self._from_start:
            begin_at = await eventlog.oldest(self._store) - 1
        else:
            begin_at = await eventlog.newest(self._store)
        return await place.seq(self._store, self.name, begin_at=begin_at, now=self._clock())

    async def _follow(self) -> None:
        seq = await self._place()
        while True:
            self._woken.clear()
            reached = await self._step(seq)
            self._tries = 0
            if reached == seq:
                reached = await self._place()  # it may have been told to begin again
            if reached == seq:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_S):
                        await self._woken.wait()
            await asyncio.sleep(self._pause(reached - seq))
            seq = reached

    def _pause(self, count: int) -> float:
        """After so many facts: many at a time cost little more than one, but no more than fit into
        a batch.
        """
        if count >= self._batch:
            return BREATH_S
        return self._gather_s * (BUSY if count >= MANY else 1)

    async def _step(self, seq: int) -> int:
        entries = list[N]()
        while len(entries) < self._batch:
            limit = min(READ_AT_ONCE, self._batch - len(entries))
            after = entries[-1].seq if entries else seq
            entries += (some := await self._read(self._store, after=after, limit=limit))
            if len(some) < limit:
                break
            await asyncio.sleep(0)
        if not entries:
            return seq
        # The log has no gaps: what is missing was pruned, if only while this was read.
        lost = entries[-1].seq - (seq or entries[0].seq - 1) - len(entries)
        if lost:
            log.warning("facts were pruned unread", follower=self.name, after=seq, count=lost)
        ops = await self._deal(entries)
        reached = entries[-1].seq
        now = self._clock()
        moved = place.moved(self.name, before=seq, after=reached, now=now, lost=lost)
        await self._store.commit([*ops, moved])
        return reached

    def _back_off(self) -> float:
        pause = BACK_OFF_S[min(self._tries, len(BACK_OFF_S) - 1)]
        self._tries += 1
        return pause


class Unfollowed:
    """Forgets a name's place when no process has followed by it for so long, as seen from one that
    does not: another may have been told to, and be away only for a while.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        *,
        after_s: float = UNFOLLOWED_S,
        clock: Callable[[], float] = wall_clock,
    ) -> None:
        self._store = store
        self._name = name
        self._after_s = after_s
        self._clock = clock
        self._since = clock()

    async def run(self) -> None:
        """Look now and then, until cancelled."""
        while True:
            await asyncio.sleep(UNFOLLOWED_LOOK_S)
            try:
                await self.look()
            except Exception as why:
                log.warning("cannot see who follows", follower=self._name, error=repr(why))

    async def look(self) -> None:
        """Whether somebody follows now, or it has been long enough."""
        now = self._clock()
        if not await is_held(self._store, job_of(self._name), now=now):
            if now - self._since < self._after_s:
                return
            await self._store.commit([place.forgotten(self._name)])
        self._since = now


def job_of(name: str) -> str:
    """What the job of following by a name is called, among all that run once."""
    return f"events.{name}"


def _said(why: Exception) -> str:
    return str(why) or type(why).__name__
