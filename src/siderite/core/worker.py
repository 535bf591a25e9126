"""Carries out durable work: claims what is due, runs each job as a task, keeps the leases alive.

A job's handler does everything for it, commits included. A handler that raises has met a bug or a
lost database: its job is tried again with back-off until its deadline, when its own handler fails
it.
"""

import asyncio
import contextlib
from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Mapping
from functools import partial

from siderite.core import metrics
from siderite.core import work
from siderite.core.clock import now as wall_clock
from siderite.core.log import get_logger
from siderite.core.store import Lost
from siderite.core.store import Store
from siderite.core.work import Work

log = get_logger("worker")

Handler = Callable[[Work], Awaitable[None]]

LEASE_S = 10.0
POLL_S = 0.5
BACK_OFF_S = 60.0


class Worker:
    """One process's hands."""

    def __init__(
        self,
        store: Store,
        handlers: Mapping[str, Handler],
        *,
        owner: str,
        slots: int,
        clock: Callable[[], float] = wall_clock,
    ) -> None:
        self._store = store
        self._handlers = handlers
        self._owner = owner
        self._slots = slots
        self._clock = clock
        self._wake = asyncio.Event()
        self._running: dict[int, asyncio.Task[None]] = {}

    def kick(self) -> None:
        """There may be something due."""
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled; then jobs under way are let go of, for whoever comes next."""
        renewing = asyncio.create_task(self._renew())
        try:
            while True:
                self._wake.clear()
                try:
                    pause = await self._claim()
                except Exception as why:
                    log.error("cannot claim work", error=repr(why))
                    pause = POLL_S
                if pause > 0:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(pause):
                            await self._wake.wait()
        finally:
            renewing.cancel()
            tasks = list(self._running.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, renewing, return_exceptions=True)
            with contextlib.suppress(Exception):
                await work.forget_leases(self._store, self._owner)

    async def _claim(self) -> float:
        """Start what is due; seconds until it is worth looking again."""
        free = self._slots - len(self._running)
        if free <= 0:
            return POLL_S
        now = self._clock()
        claimed = await work.claim(
            self._store, self._owner, now=now, lease_s=LEASE_S, limit=min(free, 100)
        )
        for item in claimed:
            task = asyncio.create_task(self._do(item))
            self._running[item.id] = task
            task.add_done_callback(partial(self._ended, item.id))
        if claimed:
            return 0.0
        due = await work.next_due(self._store)
        return POLL_S if due is None else max(0.001, min(POLL_S, due - now))

    def _ended(self, id: int, task: asyncio.Task[None]) -> None:
        if self._running.get(id) is task:  # its row may have been claimed anew already
            del self._running[id]
        self._wake.set()

    async def _do(self, item: Work) -> None:
        handler = self._handlers.get(item.kind)
        with metrics.job(item.kind):
            try:
                if handler is None:
                    raise LookupError(f"no handler for work of kind {item.kind!r}")
                await handler(item)
            except Lost:
                log.info("work went on without us", kind=item.kind, machine=item.machine)
            except Exception as why:
                log.error(
                    "job failed unexpectedly",
                    kind=item.kind,
                    machine=item.machine,
                    error=repr(why),
                    trace=why,
                )
                await self._again(item, why)

    async def _again(self, item: Work, why: Exception) -> None:
        wait = min(BACK_OFF_S, 0.5 * 2 ** min(item.attempts, 10))
        reason = f"unexpected error ({type(why).__name__}), trying again: see the log"
        parked = work.again(item, due=self._clock() + wait, reason=reason)
        with contextlib.suppress(Exception):
            await self._store.commit([parked])

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(LEASE_S / 3)
            if not self._running:
                continue
            try:
                ours = await work.renew(
                    self._store, self._owner, now=self._clock(), lease_s=LEASE_S
                )
            except Exception as why:
                log.error("cannot renew leases", error=repr(why))
                continue
            for id, task in list(self._running.items()):
                if id not in ours:
                    task.cancel()  # somebody else has it now: stop driving the machine
