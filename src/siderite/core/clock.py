"""The clock of this process: the computer's, or the database's where computers share one.

What is due, a lease and a deadline are written by one process and compared by another: were each to
go by its own computer's clock, one that is a minute ahead would take work from those that are at
it. Domain and store never ask: `now` comes in from whoever does.

Either is read now and then only, and counted on from there by one that nobody can set. So there is
one moment at which the time jumps, and what waits can be set along with it (`core.waits`).
"""

import asyncio
import time

from siderite.core.log import get_logger
from siderite.core.store import Store

log = get_logger("clock")

LOOK_S = 3.0
_AGAIN_S = 0.5
_VAGUE_S = 1.0
"""An answer that took this long tells too little of the time."""
_STEADY_S = 0.05
"""By so much a clock may be off and is not corrected: time that jumps to and fro is worse."""
JUMP_S = 1.0
"""What is more than a correction."""
SETTLE_S = 15.0
"""How long after a jump leases of others may still be by another time; longer than they last."""
_ASK = "SELECT extract(epoch FROM clock_timestamp())::float8"
# It goes on while the computer sleeps, and nobody can set it.
_TICKS = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock:
    """Seconds since 1970, by the computer's clock until another is followed."""

    def __init__(self) -> None:
        self._epoch: float | None = None
        self._jumped_at = -SETTLE_S

    def __call__(self) -> float:
        if self._epoch is None:
            return time.time()
        return time.clock_gettime(_TICKS) + self._epoch

    async def look(self, store: Store) -> None:
        """Follow the clock of a database that others have, too; else the computer's."""
        if store.dialect == "sqlite":
            self.look_here()
            return
        asked = time.clock_gettime(_TICKS)
        theirs = float((await store.scan(_ASK))[0][0] or 0.0)
        self.hear(theirs, asked, time.clock_gettime(_TICKS))

    def look_here(self) -> float:
        """Follow the computer's clock: by how much it was set back since the last look, if it was
        set; less than 0 is forward.
        """
        asked = time.clock_gettime(_TICKS)
        epoch = time.time() - asked
        unsure_s = time.clock_gettime(_TICKS) - asked
        back_s = 0.0 if self._epoch is None else self._epoch - epoch
        if self._epoch is not None and (unsure_s > _STEADY_S or abs(back_s) <= _STEADY_S):
            return 0.0  # where we were stopped in between, it would seem to have jumped
        self._epoch = epoch
        return back_s if abs(back_s) > JUMP_S else 0.0

    def hear(self, theirs: float, asked: float, answered: float) -> None:
        """It was `theirs` at some moment between two ticks of our own."""
        unsure_s = (answered - asked) / 2
        epoch = theirs - asked - unsure_s
        if self._epoch is None:
            _tell(epoch + answered - time.time())
        elif unsure_s > _VAGUE_S / 2 or abs(epoch - self._epoch) <= max(unsure_s, _STEADY_S):
            return
        elif abs(epoch - self._epoch) > JUMP_S:
            _tell(epoch - self._epoch)
            self._jumped_at = answered
        self._epoch = epoch

    def is_settled(self) -> bool:
        """Whether all who follow the same clock have heard by now of a jump that it made."""
        return time.clock_gettime(_TICKS) >= self._jumped_at + SETTLE_S

    async def keep(self, store: Store) -> None:
        """Until cancelled: look again and again at a shared one, as clocks drift, are set, and
        databases replaced by others.
        """
        rest_s = LOOK_S
        while True:
            await asyncio.sleep(rest_s)
            try:
                await self.look(store)
                rest_s = LOOK_S
            except Exception as why:
                log.warning("cannot ask the database for the time", error=repr(why))
                rest_s = _AGAIN_S


def _tell(off_s: float) -> None:
    if abs(off_s) > JUMP_S:
        log.warning(
            "the database's clock is followed: ours is off; synchronise them (chrony)",
            off_s=round(off_s, 1),
        )


now = Clock()
