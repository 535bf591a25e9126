"""Jobs that must run once, however many processes there are: sweeps, relays, pruning.

Each process offers to run the job; the one that has the lease does. It renews the lease while the
job runs; if it dies, the lease ends and another process takes over. A job that is slow to notice
that it lost its lease may run beside its successor for a moment, so it must do no harm twice: what
it commits is a compare-and-swap, as everywhere. An embedded database has one process only, and
needs no lease.

All jobs of a process renew at the same moments, so that their leases are one commit.
"""

import asyncio
import contextlib
from collections.abc import Awaitable
from collections.abc import Callable

from siderite.core.clock import now as wall_clock
from siderite.core.ids import new_uuid
from siderite.core.log import get_logger
from siderite.core.store import Lost
from siderite.core.store import Op
from siderite.core.store import Store

log = get_logger("singleton")

LEASE_S = 5.0
BACK_OFF_S = 5.0

_TAKE = """
INSERT INTO leases (name, owner, until) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until
  WHERE leases.owner = excluded.owner OR leases.until < ?
RETURNING owner
"""
_RENEW = "UPDATE leases SET until = ? WHERE name = ? AND owner = ?"


async def is_held(store: Store, name: str, *, now: float) -> bool:
    """Whether some process has the lease on a job's name."""
    return bool(await store.fetch("SELECT 1 FROM leases WHERE name = ? AND until > ?", (name, now)))


class Singleton:
    """One job, offered by this process under a name that all processes know."""

    def __init__(
        self,
        store: Store,
        name: str,
        job: Callable[[], Awaitable[None]],
        *,
        lease_s: float = LEASE_S,
        clock: Callable[[], float] = wall_clock,
    ) -> None:
        self._store = store
        self.name = name
        self._job = job
        self._lease_s = lease_s
        self._clock = clock
        self._owner = new_uuid()

    async def run(self) -> None:
        """Until cancelled: run the job whenever this process has the lease."""
        if self._store.dialect == "sqlite":
            await self._keep_going()
            return
        try:
            while True:
                wait_s = await self._taken_for()
                asked = self._clock()
                if wait_s <= 0 and await self._take():
                    await self._while_ours(asked + self._lease_s)
                await asyncio.sleep(max(wait_s, self._to_next_beat()))
        finally:
            with contextlib.suppress(Exception):
                await self._let_go()

    async def _while_ours(self, until: float) -> None:
        task = asyncio.create_task(self._keep_going())
        try:
            while True:
                # A database that does not answer keeps nobody at it for longer either.
                async with asyncio.timeout(until - self._clock()):
                    await asyncio.sleep(self._to_next_beat())
                    asked = self._clock()
                    taken = await self._renew()
                if taken:
                    until = asked + self._lease_s
                elif taken is False:
                    log.info("another process has taken over", job=self.name)
                    return
        except TimeoutError:
            log.warning("the lease could not be renewed in time", job=self.name)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _to_next_beat(self) -> float:
        """A third of the lease at most: what others ask for at that moment, too, goes together."""
        beat_s = self._lease_s / 3
        return beat_s - asyncio.get_running_loop().time() % beat_s

    async def _keep_going(self) -> None:
        """The job, again after a pause should it fail."""
        while True:
            try:
                await self._job()
                return
            except Exception as why:
                log.error("job failed unexpectedly", job=self.name, error=repr(why), trace=why)
                await asyncio.sleep(BACK_OFF_S)

    async def _taken_for(self) -> float:
        """How long another's lease lasts as it stands now; 0 if there is none. A question costs the
        database less than an attempt.
        """
        asked = "SELECT until FROM leases WHERE name = ? AND owner <> ?"
        try:
            rows = await self._store.fetch(asked, (self.name, self._owner))
        except Exception as why:
            log.warning("cannot ask for the lease", job=self.name, error=repr(why))
            return self._lease_s / 3
        left = float(rows[0][0] or 0) - self._clock() if rows else 0.0
        return min(max(left, 0.0), self._lease_s)

    async def _renew(self) -> bool | None:
        """The same for a lease that was ours."""
        try:
            until = self._clock() + self._lease_s
            await self._store.commit([Op(_RENEW, (until, self.name, self._owner), 1)])
        except Lost:
            return await self._take()
        except Exception as why:
            log.warning("cannot renew the lease", job=self.name, error=repr(why))
            return None
        return True

    async def _take(self) -> bool | None:
        """Whether the lease is ours now; None if the database cannot say."""
        now = self._clock()
        args = (self.name, self._owner, now + self._lease_s, now)
        try:
            return bool(await self._store.write(_TAKE, args))
        except Exception as why:
            log.warning("cannot ask for the lease", job=self.name, error=repr(why))
            return None

    async def _let_go(self) -> None:
        gone = "DELETE FROM leases WHERE name = ? AND owner = ?"
        await self._store.commit([Op(gone, (self.name, self._owner))])
