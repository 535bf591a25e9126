"""Carries out durable work: claims what is due, runs each job as a task, keeps the leases alive.

A job's handler does everything for it, commits included. A handler that raises has met a bug or a
lost database: its job is tried again with back-off until its deadline, when its own handler fails
it.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from contextvars import ContextVar
from functools import partial

from siderite.core import leases
from siderite.core import metrics
from siderite.core import work
from siderite.core.clock import now as wall_clock
from siderite.core.log import get_logger
from siderite.core.store import Lost
from siderite.core.store import Store
from siderite.core.work import Work

log = get_logger("worker")

Handler = Callable[[Work], Awaitable[None]]

HELD: ContextVar[int] = ContextVar("held", default=0)
"""The fence of the job that a task carries out: for hardware that keeps account of its callers."""
LEASE_S = 10.0
RENEW_S = LEASE_S / 4
PATIENCE_S = LEASE_S / 2
"""How long the database may take to renew: a slow one is waited for, and for one that never answers
there is time to ask once more.
"""
POLL_S = 0.5
STAND_BACK_S = (0.025, 0.2)
"""How long a worker leaves due jobs to others that were quicker than it, at first and at most."""
FEW = 32
"""Jobs under way, from which on a worker lets others go first."""
BACK_OFF_S = 60.0
MOMENT_S = 0.1
"""How long who asked for something waits to hear that it is done, where that is the rule."""
RECENT = 10
"""How many jobs of a kind show whether it is, more or less."""
SLIGHT_S = 10.0
"""By so much a deadline may be off and nobody minds."""


class Worker:
    """One process's hands."""

    def __init__(
        self,
        store: Store,
        handlers: Mapping[str, Handler],
        *,
        owner: str,
        slots: int,
        pools: Sequence[str] = (),
        drain_s: float = 0.0,
        clock: Callable[[], float] = wall_clock,
        is_settled: Callable[[], bool] = wall_clock.is_settled,
    ) -> None:
        self._store = store
        self._handlers = handlers
        self._owner = owner
        self._slots = slots
        self._pools = pools
        self._drain_s = drain_s
        self._clock = clock
        self._is_settled = is_settled
        self._wake = asyncio.Event()
        self._in_a_hurry = asyncio.Event()
        self._running: dict[int, asyncio.Task[None]] = {}  # by fence
        self._latest: dict[str, tuple[str, asyncio.Task[None]]] = {}  # kind and job, by machine
        self._takes_s: dict[str, float] = {}  # on the average, by kind
        self._busy: dict[str, int] = {}  # machines, and how many jobs of theirs are under way here
        self._jobs = 0  # under way here
        self._next = 0.0  # when something may be due
        self._own = math.inf  # when something is that this process knows of by itself
        self._expects = False  # something should be found then
        self._back_s = 0.0  # for how long others go first, where there are any
        self._left_behind = False  # something is due that could not be claimed yet
        self._handed_back: set[str] = set()  # machines, since the last claim began
        self._open = False
        self._sure_until = 0.0  # leases that are ours now are so until then
        self._sure_at = 0.0  # the same by a clock that nobody can set back

    @property
    def is_draining(self) -> bool:
        """Whether this process is about to stop: let go of jobs where that costs nothing."""
        return not self._open

    def hurry(self) -> None:
        """Wait for nothing when stopping: others go on with what is under way, at once."""
        self._in_a_hurry.set()

    def kick(self) -> None:
        """There may be something due."""
        self.due(0.0)

    def due(self, at: float) -> None:
        """Something is due at this time."""
        self._own = min(self._own, at)
        self._look_at(at)

    def hear(self) -> None:
        """Another process says that something is due. All workers hear it: those that found nothing
        the last time leave it to the others for a moment, so that few look and find much.
        """
        self._expects = True
        self._look_at(self._clock() + self._stand_back())

    def _look_at(self, at: float) -> None:
        if at < self._next:
            self._next = at
            self._wake.set()

    def take(self, job: Work) -> tuple[str, float] | None:
        """Reserve a place for a job that is about to be committed: its lease."""
        machine = job.machine
        if not self._open or machine in self._busy or self._jobs >= self._slots:
            return None
        if self._pools and job.pool is not None and job.pool not in self._pools:
            return None
        self._reserve(machine)
        return self._owner, self._clock() + LEASE_S

    def _reserve(self, machine: str) -> None:
        self._jobs += 1
        self._busy[machine] = self._busy.get(machine, 0) + 1

    def let_go(self, machine: str) -> None:
        """The place is free again."""
        self._jobs -= 1
        count = self._busy.pop(machine)
        if count > 1:
            self._busy[machine] = count - 1

    def begin(self, item: Work, lease_until: float) -> None:
        """Carry out a job that has our lease, in a place that was reserved."""
        left_s = lease_until - self._clock()
        if not leases.GRACE_S <= left_s <= LEASE_S + leases.GRACE_S:
            # It took too long to hear of it, and it may be another's now; or the clock was set
            # meanwhile, and its times were moved.
            self.let_go(item.machine)
            return
        task = asyncio.create_task(self._do(item))
        self._running[item.fence] = task
        self._latest[item.machine] = item.kind, task
        task.add_done_callback(partial(self._ended, item, time.monotonic()))

    async def wait_a_moment(self, machine: str) -> None:
        """Until the job of a machine that was begun last is over, if those of its kind have been a
        matter of milliseconds of late, and no longer than such a one may take.
        """
        kind, task = self._latest.get(machine, ("", None))
        if task is not None and self._takes_s.get(kind, 0.0) < MOMENT_S:
            await asyncio.wait((task,), timeout=MOMENT_S)

    def start_over(self, back_s: float) -> None:
        """The clock was set back by so much, and with it the times in all rows: who is at a job
        with those of before stops, and the job is claimed anew; unless they differ by little, as
        what is under way in this process may have to begin at its beginning.
        """
        self._sure_until -= back_s
        if abs(back_s) > SLIGHT_S:
            for task in self._running.values():
                task.cancel()
        self.kick()

    async def run(self) -> None:
        """Until cancelled; then jobs under way are let go of, for whoever comes next."""
        self._be_sure(self._clock(), time.monotonic())
        keeping = [asyncio.create_task(job()) for job in (self._renew, self._fence_ourselves)]
        self._open = True
        try:
            while True:
                try:
                    await self._claim()
                except Exception as why:
                    log.error("cannot claim work", error=repr(why))
                    self._next = self._clock() + POLL_S
                await self._rest()
        finally:
            await self._drain()
            for tasks in (list(self._running.values()), keeping):  # what one ends may take its time
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            with contextlib.suppress(Exception):
                await leases.forget(self._store, self._clock(), self._owner)

    async def _drain(self) -> None:
        """Take no more, and give what is under way time to come to a place where it can rest."""
        self._open = False
        if self._running and self._drain_s:
            log.info("finishing steps that are under way", jobs=len(self._running))
            hurry = asyncio.create_task(self._in_a_hurry.wait())
            ended = asyncio.gather(*self._running.values(), return_exceptions=True)
            await asyncio.wait(
                (hurry, ended), timeout=self._drain_s, return_when=asyncio.FIRST_COMPLETED
            )
            hurry.cancel()

    async def _rest(self) -> None:
        """Until it is worth looking again; at once if that is further off than it was set: the
        clock was set back meanwhile.
        """
        with contextlib.suppress(TimeoutError):
            while 0 < (pause := self._next - self._clock()) < 2 * POLL_S:
                self._wake.clear()
                async with asyncio.timeout(pause):
                    await self._wake.wait()

    async def _claim(self) -> None:
        """Start what is due, and know when to look again."""
        now = self._clock()
        free, self._next = self._slots - self._jobs, now + POLL_S
        self._left_behind = free <= 0 or not self._may_claim(now)
        if self._left_behind:
            return
        back_s = 0.0 if self._own <= now else self._stand_back()
        limit, self._own = min(free, 100), math.inf if self._own <= now else self._own
        expected, self._expects = self._expects, False
        self._handed_back.clear()
        claimed, due = await leases.claim(
            self._store, self._owner, now=now, lease_s=LEASE_S, limit=limit, pools=self._pools,
            waited_s=back_s, takes_over=self._is_settled(),
        )  # fmt: skip
        for item in claimed:
            if item.machine not in self._handed_back:  # else it may be another's by now
                self._reserve(item.machine)
                self.begin(item, now + LEASE_S)
        first, most = STAND_BACK_S
        self._back_s = min(2 * self._back_s or first, most) if expected and not claimed else 0.0
        if len(claimed) == limit:
            self._next = 0.0
        elif due is not None and due <= now - back_s:
            # Its machine has another job under way, here or elsewhere.
            self._left_behind = True
        elif due is not None:
            self._expects = True
            self._look_at(due + self._stand_back())

    def _may_claim(self, now: float) -> bool:
        """Whether what is claimed now can be begun: not while leases that we had may be lost, as
        all would be stopped again with those. Where we have none, none is.
        """
        if self._busy:
            return self._sure_for() > 0
        self._be_sure(now, time.monotonic())
        return True

    def _stand_back(self) -> float:
        """For how long others may have what is due before this worker takes it."""
        if self._store.dialect == "sqlite":
            return 0.0  # there are none
        return max(STAND_BACK_S) if self._jobs >= FEW else self._back_s

    def _ended(self, item: Work, began: float, task: asyncio.Task[None]) -> None:
        if self._running.get(item.fence) is task:
            del self._running[item.fence]
        if self._latest.get(item.machine) == (item.kind, task):
            del self._latest[item.machine]
        # A long one is seen at once, and forgotten after a few.
        took_s = min(time.monotonic() - began, 2 * RECENT * MOMENT_S)
        before_s = self._takes_s.get(item.kind, 0.0)
        self._takes_s[item.kind] = before_s + (took_s - before_s) / RECENT
        self.let_go(item.machine)
        if self._left_behind:
            self.kick()

    async def _do(self, item: Work) -> None:
        handler = self._handlers.get(item.kind)
        HELD.set(item.fence)
        metrics.job_begins(item.kind)
        try:
            if item.kind == work.GONE:
                await self._store.commit([work.done(item)])
                return
            if handler is None:
                raise LookupError(f"no handler for work of kind {item.kind!r}")
            await handler(item)
        except Lost:
            log.info("work went on without us", kind=item.kind, machine=item.machine)
            if self._busy[item.machine] == 1:  # else the lease is that of another job, begun since
                await self._hand_back(item.machine)
        except Exception as why:
            log.error(
                "job failed unexpectedly",
                kind=item.kind,
                machine=item.machine,
                error=repr(why),
                trace=why,
            )
            await self._again(item, why)
        finally:
            metrics.job_ended()

    async def _hand_back(self, machine: str) -> None:
        """Our lease may be on a job that took the place of ours: let anyone have it."""
        self._handed_back.add(machine)
        with contextlib.suppress(Exception):
            await self._store.commit([leases.release(self._owner, machine, self._clock())])
            self.kick()

    async def _again(self, item: Work, why: Exception) -> None:
        wait = min(BACK_OFF_S, 0.5 * 2 ** min(item.attempts, 10))
        reason = f"unexpected error ({type(why).__name__}), trying again: see the log"
        parked = work.again(item, due=self._clock() + wait, reason=reason)
        with contextlib.suppress(Exception):
            await self._store.commit([parked])
            self.due(self._clock() + wait)

    async def _renew(self) -> None:
        rest_s = RENEW_S
        while True:
            await asyncio.sleep(rest_s)
            now, moment = self._clock(), time.monotonic()
            # What begins or ends meanwhile may be in the answer or not.
            running, busy = list(self._running), set(self._busy)
            try:
                async with asyncio.timeout(PATIENCE_S):
                    ours = await leases.renew(self._store, self._owner, now=now, lease_s=LEASE_S)
                    self._be_sure(now, moment)
                    for fence in running:
                        if fence not in ours and fence in self._running:
                            self._running[fence].cancel()  # another's now: stop driving the machine
                    # A job that broke while the database was away has a lease and nobody at work.
                    idle = set(ours.values()).difference(busy, self._busy)
                    await asyncio.gather(*map(self._hand_back, idle))
            except Exception as why:
                log.error("cannot renew leases", error=repr(why))
            rest_s = max(0.0, moment + RENEW_S - time.monotonic())

    def _be_sure(self, now: float, moment: float) -> None:
        """The leases are ours as of now."""
        self._sure_until = now + LEASE_S - leases.GRACE_S
        self._sure_at = moment + LEASE_S - leases.GRACE_S

    def _sure_for(self) -> float:
        """For how many seconds they still are, whatever was done to the clock meanwhile."""
        return min(self._sure_until - self._clock(), self._sure_at - time.monotonic())

    async def _fence_ourselves(self) -> None:
        """Cut off from the database, stop driving machines before others may begin to."""
        while True:
            await asyncio.sleep(max(0.05, self._sure_for()))
            if self._sure_for() > 0 or not self._running:
                continue
            log.error("leases could not be renewed in time: stopping", jobs=len(self._running))
            for task in list(self._running.values()):
                task.cancel()
