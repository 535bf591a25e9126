"""Whose turn it is: several PENDING servers are looked after at once where they do not compete.

Two compete if the same hosts would do for both. The later one then waits until the earlier one has
its host or is given up, so that it takes neither the room that is freed for the other nor its turn;
that one is made on its host, which may take long, is not waited for. Bare
metal is given out whole, which makes one node as good as another of its kind: as long as the
earlier one only waits for its node, to be cleaned for instance, the later one is looked after too,
and on other nodes.
"""

import asyncio
from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import field
from typing import Any

from siderite.reaper.shown import is_bare_metal
from siderite.reaper.shown import wanted

AT_ONCE = 8
MOST = 64
"""With those that only wait."""

Shown = dict[str, Any]


@dataclass
class Turn:
    """A server's turn."""

    hosts: frozenset[str]
    """Those that would do."""
    is_whole: bool
    chosen: str | None = None
    is_waiting: bool = False
    """Whether all that is left is that others go."""
    may_be_left: bool = False
    """Whether room that would do is kept for servers of other reapers."""
    is_placed: bool = False
    """Whether it has its host: what is left there is for others."""

    @property
    def held(self) -> frozenset[str]:
        """The hosts that others must not count on meanwhile."""
        return self.hosts if self.chosen is None else frozenset((self.chosen,))

    def keeps_off(self, other: "Turn") -> bool:
        """Whether another one must wait for it."""
        if self.is_placed or (self.is_waiting and self.is_whole and other.is_whole):
            return False
        return not self.held.isdisjoint(other.hosts)


def _turn(server: Shown) -> Turn:
    return Turn(wanted(server), is_bare_metal(server))


@dataclass
class Turns:
    """Those whose turn it is, in the order they came."""

    taken: dict[str, Turn] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def begin(
        self,
        waiting: Sequence[Shown],
        serve: Callable[[Shown], Awaitable[None]],
        changed: Callable[[], None],
    ) -> list[Shown]:
        """Serve those whose turn it is; the others, in the same order. `changed` is called whenever
        it may be another one's.
        """
        left: list[Shown] = []
        before: list[Turn] = []
        for server in waiting:
            if server["id"] in self.taken:
                continue
            turn = _turn(server)
            if self._is_busy() or self._is_kept(turn, before):
                before.append(turn)
                left.append(server)
                continue
            self.taken[server["id"]] = turn
            task = asyncio.ensure_future(self._take(server, serve, changed))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return left

    def _is_busy(self) -> bool:
        busy = sum(not (turn.is_waiting or turn.is_placed) for turn in self.taken.values())
        return busy >= AT_ONCE or len(self.taken) >= MOST

    def _is_kept(self, turn: Turn, before: Iterable[Turn]) -> bool:
        return any(other.keeps_off(turn) for other in (*self.taken.values(), *before))

    async def _take(
        self, server: Shown, serve: Callable[[Shown], Awaitable[None]], changed: Callable[[], None]
    ) -> None:
        try:
            await serve(server)
        finally:
            self.taken.pop(server["id"], None)
            changed()

    def of(self, server: Shown) -> Turn:
        """A server's turn; of one that is looked after apart, one of its own."""
        return self.taken.get(server["id"]) or _turn(server)

    def is_early(self, turn: Turn) -> bool:
        """Whether an earlier one is about to be built on what would do for this one too."""
        for other in self.taken.values():
            if other is turn:
                return False
            if other.keeps_off(turn):
                return True
        return False

    def chosen_by_others(self, turn: Turn) -> frozenset[str]:
        """The hosts that were chosen for others, which are not there yet."""
        others = (other for other in self.taken.values() if other is not turn)
        chosen = (other.chosen for other in others if not other.is_placed)
        return frozenset(node for node in chosen if node is not None)

    @contextmanager
    def waiting(self, server: Shown, changed: Callable[[], None]) -> Iterator[None]:
        """Meanwhile a server only waits for others to go."""
        turn = self.of(server)
        turn.is_waiting = True
        changed()
        try:
            yield
        finally:
            turn.is_waiting = False

    async def end(self) -> None:
        """Leave all as it is."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.taken.clear()  # one that had not begun yet ends nothing
