"""New facts for all who follow the log: each is read and rendered once.

Woken by the door's commits (on PostgreSQL by whoever gives facts their place, in this process or
another), and now and then unwoken, as word may be lost, it keeps the newest facts at hand. Readers
take them from here at their own pace; who falls behind what is kept reads the log.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

from siderite.core import eventlog
from siderite.core.eventlog import Entry
from siderite.core.eventlog import Wanted
from siderite.core.log import get_logger
from siderite.core.store import Store
from siderite.events import query
from siderite.events import views

log = get_logger("events")

KEPT = 1024
MOST_KEPT = 16 * 1024 * 1024
"""The length of the facts at hand, from which on the oldest is let go of."""
GATHER_S = 0.01
POLL_S = 0.5
UNWOKEN_S = 2.0
"""How often to look unwoken: on PostgreSQL word may be lost with a connection; on SQLite the disk
may take longer than the door waits with its word for a task that was cancelled meanwhile.
"""
BATCH = 100
"""How many facts are looked at for one chunk: bounds what waits for a slow reader."""


class Hub:
    """The newest facts, and who waits for the next."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.is_closed = False
        self.era = 0
        """Another one begins when the log goes back: its database was restored to an earlier
        moment, or lost commits when a replica took over.
        """
        self.agreed: int | None = None
        """The last number, as far as is known, that stands for the same fact as in the last era."""
        self._kept: deque[tuple[Entry, bytes]] = deque()
        self._kept_size = 0
        self._head = 0
        self._head_id: str | None = None
        self._readers = 0
        self._woken = asyncio.Event()
        self._news = asyncio.Event()
        self._listeners: tuple[Callable[[], None], ...] = ()

    def on_news(self, listener: Callable[[], None]) -> None:
        """Call `listener` from now on when there may be new facts; it must be quick."""
        self._listeners += (listener,)

    def wake(self) -> None:
        """There may be new facts."""
        if self._readers:
            self._woken.set()
        for listener in self._listeners:
            listener()

    def close(self) -> None:
        """End all streams."""
        self.is_closed = True
        self._spread()

    @contextmanager
    def reader(self) -> Iterator[None]:
        """Somebody follows the log."""
        self._readers += 1
        self._woken.set()
        try:
            yield
        finally:
            self._readers -= 1

    async def run(self) -> None:
        """Look for new facts as long as the process lives."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(UNWOKEN_S):
                    await self._woken.wait()
            self._woken.clear()
            if not self._readers:
                continue
            try:
                await self._look()
            except Exception as why:
                log.warning("cannot look for new facts", error=repr(why))
                await asyncio.sleep(POLL_S)
                self._woken.set()
            await asyncio.sleep(GATHER_S)  # many facts at a time cost little more than one

    async def _look(self) -> None:
        newest, head_id = await eventlog.newest_and(self.store, self._head)
        # It may have grown past our number since; one that is not there has been pruned.
        is_other = None not in (head_id, self._head_id) and head_id != self._head_id
        if 0 < newest < self._head or is_other:
            agreed = await self._last_agreed()
            log.error(
                "the log has gone back; its readers begin anew",
                was=self._head, now=newest, same_to=agreed,
            )  # fmt: skip
            await self._jump(newest)
            self.agreed = agreed
            self.era += 1
            self._spread()
        elif newest - self._head > KEPT:  # nobody has listened, or a flood: the log has it
            await self._jump(newest)
            self._spread()
        elif newest > self._head:
            entries = await eventlog.read(self.store, after=self._head, limit=KEPT)
            for entry in entries:
                self._keep(entry)
            self._head, self._head_id = entries[-1].seq, entries[-1].message_id
            self._spread()
            if self._head < newest:
                self._woken.set()

    def _keep(self, entry: Entry) -> None:
        frame = views.frame(entry)
        self._kept.append((entry, frame))
        self._kept_size += len(frame)
        while len(self._kept) > KEPT or self._kept_size > MOST_KEPT:
            self._kept_size -= len(self._kept.popleft()[1])

    async def _jump(self, newest: int) -> None:
        """Go on from the end of the log, whatever came before."""
        found = await eventlog.message_ids(self.store, newest, newest)
        self._kept.clear()
        self._kept_size = 0
        self._head, self._head_id = newest, found.get(newest)

    async def _last_agreed(self) -> int | None:
        """The last of the facts at hand that still has its number."""
        if not self._kept:
            return None
        now = await eventlog.message_ids(self.store, self._kept[0][0].seq, self._head)
        same = (entry.seq for entry, _ in self._kept if now.get(entry.seq) == entry.message_id)
        return max(same, default=None)

    def _spread(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def more(
        self, wanted: Wanted, after: int, told: Callable[[Entry], Entry] | None = None
    ) -> tuple[bytes, int]:
        """Wanted facts after a number, rendered (as they are `told`, if that is not all), and how
        far was looked; waits while the number is the last one. Nothing, and the same number, when
        the hub is closed or another era begins; `Gone` if what comes next was pruned.
        """
        era = self.era
        while not self.is_closed and self.era == era:
            if after >= self._head:
                await self._news.wait()
            elif after >= self._head - len(self._kept):
                return self._from_kept(wanted, after, told)
            else:
                return await self._from_log(wanted, after, told)
        return b"", after

    def _from_kept(
        self, wanted: Wanted, after: int, told: Callable[[Entry], Entry] | None
    ) -> tuple[bytes, int]:
        first = after - (self._head - len(self._kept))
        some = list(islice(self._kept, first, first + BATCH))
        frames = [
            frame if told is None else views.frame(told(entry))
            for entry, frame in some
            if wanted.matches(entry)
        ]
        return b"".join(frames), some[-1][0].seq

    async def _from_log(
        self, wanted: Wanted, after: int, told: Callable[[Entry], Entry] | None
    ) -> tuple[bytes, int]:
        end = await eventlog.newest(self.store)
        entries, reached = await eventlog.page(
            self.store, wanted, after=after, limit=BATCH, end=end
        )
        await query.not_pruned(self.store, after)  # now: what was read may have had a hole
        shown = entries if told is None else map(told, entries)
        return b"".join([views.frame(entry) for entry in shown]), reached
