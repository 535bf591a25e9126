"""What waits in an embedded database is set along with the computer's clock.

Due times, leases and deadlines are times of day. When the clock is set by an hour, all of them are
moved by that hour, in one commit and at the moment from which this process goes by the new time; so
what was to wait for 5 seconds waits for 5 seconds. What happened keeps the time that it was told
with. Whoever is at work with times of before starts over from the rows.

The database knows how late it has been: if it is earlier at a start, the clock was set back
meanwhile. Several processes on one PostgreSQL hear of its jumps one after the other, and have none
of this.
"""

import asyncio
from collections.abc import Callable
from collections.abc import Sequence

from siderite.core.clock import JUMP_S
from siderite.core.clock import LOOK_S
from siderite.core.clock import Clock
from siderite.core.log import get_logger
from siderite.core.store import Op
from siderite.core.store import Store

log = get_logger("waits")

Shift = Callable[[float], Op]
"""What waits in one table comes earlier by so many seconds."""

REMEMBER_S = 9.0
"""How often it is written down how late it is."""
_AGAIN_S = 0.5
_REMEMBER = """
INSERT INTO leases (name, owner, until) VALUES ('clock', '', ?)
ON CONFLICT (name) DO UPDATE SET until = excluded.until
"""
_LATEST = """
SELECT max(coalesce((SELECT until FROM leases WHERE name = 'clock'), 0),
  coalesce((SELECT max(created_at) FROM work), 0))
"""


class Waits:
    """All that waits, and those of this process who must hear when it is moved."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        shifts: Sequence[Shift],
        told: Sequence[Callable[[float], None]] = (),
    ) -> None:
        self._store = store
        self._clock = clock
        self._shifts = tuple(shifts)
        self._told = tuple(told)

    async def begin(self) -> float:
        """Before anybody works: move what was written by a clock that has been set back since; by
        how much.
        """
        rows = await self._store.fetch(_LATEST)
        ahead_s = float(rows[0][0] or 0.0) - self._clock()
        back_s = ahead_s if ahead_s > JUMP_S else 0.0
        if back_s:
            log.warning("the clock was set back while we were away", back_s=round(back_s, 1))
        await self._store.commit(self._ops(back_s))
        return back_s

    async def keep(self) -> None:
        """Until cancelled: look at the clock, and move what waits when it was set."""
        looks = 0
        while True:
            await asyncio.sleep(LOOK_S)
            back_s = self._clock.look_here()
            looks += 1
            if back_s:
                await self._move(back_s)
            elif looks * LOOK_S >= REMEMBER_S:
                await self._commit(self._ops(0.0))
            else:
                continue
            looks = 0

    async def _move(self, back_s: float) -> None:
        """Nothing may be awaited between the look and the commit: whatever is handed in after that
        is by the new time.
        """
        log.warning("the clock was set: what waits is moved by as much", back_s=round(back_s, 1))
        for tell in self._told:
            tell(back_s)
        while True:
            if await self._commit(self._ops(back_s)):
                return
            await asyncio.sleep(_AGAIN_S)

    async def _commit(self, ops: list[Op]) -> bool:
        try:
            await self._store.commit(ops)
        except Exception as why:
            log.warning("cannot write down the time", error=repr(why))
            return False
        return True

    def _ops(self, back_s: float) -> list[Op]:
        moved = [shift(back_s) for shift in self._shifts] if back_s else []
        return [*moved, Op(_REMEMBER, (self._clock(),))]
