"""What the log keeps: everything for a while, and longer what a reader with a place has not had.

Only whole beginnings of the log are removed, so that it has no gaps. The newest fact always stays:
numbers go on from it.
"""

import asyncio
from collections.abc import Callable
from collections.abc import Sequence

import msgspec

from siderite.core import eventlog
from siderite.core import metrics
from siderite.core import shape
from siderite.core.clock import now as wall_clock
from siderite.core.log import get_logger
from siderite.core.store import Store
from siderite.core.times import iso
from siderite.events import place
from siderite.events.webhooks import deliveries

log = get_logger("retention")

EVERY_S = 60.0
CHUNK = 1000


class Reader(msgspec.Struct, frozen=True):
    """A reader with a place: it must have a fact before that may be removed."""

    name: str
    seq: int
    lost: int
    problem: str | None = None


class Pruned(msgspec.Struct, frozen=True):
    """What one pruning did; `unread` of them some reader had not had."""

    removed: int = 0
    unread: int = 0


class Retention:
    """Prunes, and tells about it. Times of 0 are for ever; facts about resources of the kinds
    `remembered` go on as their history.
    """

    def __init__(
        self,
        store: Store,
        *,
        keep_s: float,
        keep_unread_s: float,
        history_s: float,
        remembered: Sequence[str] = (),
        clock: Callable[[], float] = wall_clock,
    ) -> None:
        self._store = store
        self._keep_s = keep_s
        self._keep_unread_s = keep_unread_s
        self._history_s = history_s
        self._remembered = tuple(remembered)
        self._clock = clock

    async def run(self) -> None:
        """Now and then, until cancelled."""
        while True:
            try:
                await self.prune()
            except Exception as why:
                log.warning("cannot prune the log", error=repr(why))
            await asyncio.sleep(EVERY_S)

    async def readers(self) -> list[Reader]:
        """Everyone with a place, and how far they are."""
        found = [
            Reader(each.name, each.seq, each.lost, each.problem)
            for each in await place.standings(self._store)
        ]
        webhooks = await deliveries.places(self._store)
        pending = await deliveries.first_pending(self._store)  # after: nothing slips in between
        for webhook, (seq, lost) in webhooks.items():
            first = pending.get(webhook)
            had = seq if first is None else min(seq, first - 1)
            found.append(Reader(f"webhook {webhook}", had, lost))
        return found

    async def prune(self) -> Pruned:
        """Remove what need not be kept."""
        ended = self._clock() - self._history_s
        while await deliveries.forget_old(self._store, ended, limit=CHUNK):
            pass  # others are served while the disk is waited for
        if not self._keep_s:
            return Pruned()
        floor = min((reader.seq for reader in await self.readers()), default=None)
        newest = await eventlog.newest(self._store)
        first = left = await eventlog.oldest(self._store)
        while (going := await self._end_of_the_old(left, newest, floor)) >= left:
            while left <= going:
                upto = min(going, left + CHUNK - 1)
                await self._let_go(upto, first=left)
                left = upto + 1
                await asyncio.sleep(0)
        removed = left - first
        unread = 0 if floor is None else max(0, left - 1 - max(floor, first - 1))
        if removed:
            log.info("pruned the log", removed=removed)
        if unread:
            metrics.events_pruned_unread(unread)
            log.warning("pruned events that a reader has not had", count=unread)
        return Pruned(removed, unread)

    async def _end_of_the_old(self, first: int, newest: int, floor: int | None) -> int:
        """The last of some facts that may go; less than the first if none may. One with a time that
        has not come was told by a clock that was set back since: it is as old as what follows it.
        """
        after, last, now = first - 1, first - 1, self._clock()
        while last < first:
            rows = await self._store.fetch(
                "SELECT seq, at FROM events WHERE seq > ? AND seq < ? ORDER BY seq LIMIT ?",
                (after, newest, CHUNK),
            )
            for number, at in rows:
                after, told_at = int(number or 0), float(at or 0)
                if told_at > now:
                    continue
                if not self._may_go(after, now - told_at, floor):
                    return last
                last = after
            if len(rows) < CHUNK:
                break
            await asyncio.sleep(0)
        return last

    async def _let_go(self, upto: int, *, first: int) -> None:
        await self._store.commit(eventlog.let_go(first, upto, self._remembered))
        if self._remembered:
            await self._store.commit([eventlog.remember_less(first - 1)])

    def _may_go(self, seq: int, age: float, floor: int | None) -> bool:
        if floor is None or seq <= floor:
            return age > self._keep_s
        return bool(self._keep_unread_s) and age > max(self._keep_unread_s, self._keep_s)

    async def report(self) -> dict[str, object]:
        """What the log holds, for how long, and who holds it back."""
        oldest, newest = await eventlog.oldest(self._store), await eventlog.newest(self._store)
        rows = await self._store.fetch("SELECT at FROM events WHERE seq = ?", (oldest,))
        readers = await self.readers()
        return {
            "oldest": oldest,
            "newest": newest,
            "oldest_at": iso(float(rows[0][0] or 0)) if rows else None,
            "keep_s": self._keep_s,
            "keep_unread_s": self._keep_unread_s,
            "readers": [_shown(reader, newest) for reader in readers],
        }

    async def measure(self) -> None:
        """Give the figures to Prometheus; webhooks come and go, so that they are counted as one."""
        newest = await eventlog.newest(self._store)
        metrics.log_span(await eventlog.oldest(self._store), newest)
        behind: dict[str, int] = {}
        lost: dict[str, int] = {}
        for reader in await self.readers():
            name = reader.name.split(" ", maxsplit=1)[0]
            behind[name] = max(behind.get(name, 0), newest - reader.seq)
            lost[name] = lost.get(name, 0) + reader.lost
        metrics.log_readers(behind, lost)


def _shown(reader: Reader, newest: int) -> dict[str, object]:
    return {
        "name": reader.name,
        "at": reader.seq,
        "behind": max(0, newest - reader.seq),
        "lost": reader.lost,
        "problem": reader.problem,
    }


def form() -> shape.Json:
    """The form of the report."""
    readers = {"type": "array", "items": shape.wire(*(_shown(r, 1) for r in shape.both(Reader)))}
    one: shape.Json = {"type": "integer"}
    span: shape.Json = {"type": ["number", "null"]}
    every: dict[str, shape.Json] = {
        "oldest": one, "newest": one, "oldest_at": shape.or_null(shape.text()), "keep_s": span,
        "keep_unread_s": span, "readers": readers,
    }  # fmt: skip
    return shape.record(every, list(every))
