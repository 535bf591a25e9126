"""Carries out the work on servers: goes through its plan step by step, each committed.

What a driver does in this process, such as copying a disk, no other process knows of. Its work
keeps its lease until that has ended; and if the lease is lost, because the server was deleted or
reset by way of another process, that is called off before anybody else may touch the server.
"""

import asyncio
from collections.abc import Awaitable
from collections.abc import Callable
from typing import assert_never

from msgspec.structs import replace

from siderite.compute.domain.job import job_of
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Wait
from siderite.compute.usecases.placement.placing import NotYet
from siderite.compute.usecases.server import kinds
from siderite.compute.usecases.server import progress
from siderite.compute.usecases.server.progress import Facts
from siderite.compute.usecases.server.progress import Report
from siderite.compute.usecases.server.progress import Run
from siderite.compute.workers.ends import Plan
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.hands import NotOurs
from siderite.compute.workers.hands import is_late
from siderite.compute.workers.placing import NoValidHost
from siderite.compute.workers.plans import PLANS
from siderite.compute.workers.steps import Park
from siderite.core.fact import Fact
from siderite.core.work import Work

_NOT_YET_S = 1.0
_LOOK_S = 2.0


class _Hold:
    """What goes on in this process for a piece of work."""

    def __init__(self) -> None:
        self.end: Callable[[], Awaitable[None]] | None = None

    async def call_off(self) -> None:
        """End it, if there is anything."""
        end, self.end = self.end, None
        if end is not None:
            await end()


class ServerWork:
    """The handler of every kind of work on servers."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        self._ctx = hands.ctx

    async def handle(self, held: Work) -> None:
        """Carry on from where the job stands."""
        server = await progress.load_for(self._ctx, held)
        if server is None or server.deleted:
            await progress.abandon(self._ctx, held)
            return
        run, hold = Run(held, server, job_of(held.job)), _Hold()
        plan = PLANS[run.kind]
        try:
            while (after := await self._step(plan, run, hold)) is not None:
                run = after
                if hold.end is None and self._ctx.door.is_draining:
                    return  # it is recorded how far it is: another process goes on from there
        except BaseException:
            if hold.end is not None and not await self._is_hurried(run):
                await hold.call_off()
            raise

    async def _is_hurried(self, run: Run) -> bool:
        """Whether what goes on here is still wanted, and our own process is the next to ask."""
        if self._ctx.door.is_draining:
            return False
        try:
            async with asyncio.timeout(_LOOK_S):
                return await progress.is_hurried(self._ctx, run)
        except (Exception, asyncio.CancelledError):
            return False

    async def _step(self, plan: Plan, run: Run, hold: _Hold) -> Run | None:
        """One step; the run as it is afterwards, or None if there is nothing more to do now."""
        if is_late(self._hands, run):
            await hold.call_off()
            why = f" (last: {run.held.reason})" if run.held.reason else ""
            return await self._fail(plan, run, Failed(f"it was not done in time{why}"))
        if run.server.group is None or run.job.step:
            return await self._take(plan, run, hold)
        # Members of a group are placed one after the other: each knows where the others are. What
        # other processes place at the same moment, the commit itself finds out.
        async with self._ctx.door.turns.of(f"group:{run.server.group}"):
            return await self._take(plan, run, hold)

    async def _take(self, plan: Plan, run: Run, hold: _Hold) -> Run | None:
        try:
            told = await plan.steps[run.job.step](self._hands, run)
        except NoValidHost as none:
            return await self._report(run, await plan.no_host(self._hands, run, none.placement))
        except NotOurs as why:
            await hold.call_off()
            await progress.pass_on(self._ctx, run, run.job.with_args(**why.done), why.host)
            return None
        except NotYet as why:
            await progress.waits(self._ctx, run, run.job, str(why), _NOT_YET_S)
            return None
        hold.end = told.call_off if isinstance(told, Wait | Park) else None
        match told:
            case Report():
                return await self._done(plan, run, told)
            case Wait() | Park() if hold.end is not None:
                return await self._goes_on(run, told, hold)
            case Wait():
                await progress.waits(self._ctx, run, run.job, told.reason, told.again_in)
            case Park():
                await progress.waits(
                    self._ctx, run, told.job, told.reason, told.again_in, facts=told.facts
                )
            case Failed():
                return await self._fail(plan, run, told)
            case _:
                assert_never(told)
        return None

    async def _goes_on(self, run: Run, told: Wait | Park, hold: _Hold) -> Run | None:
        """Look again in a moment; a process that is to stop leaves it to another."""
        job = told.job if isinstance(told, Park) else run.job
        if self._ctx.door.is_draining:
            await hold.call_off()
            await progress.waits(self._ctx, run, job, told.reason, 0.0)
            return None
        run = await progress.goes_on(self._ctx, run, job, told.reason)
        await asyncio.sleep(told.again_in)
        return run

    async def _done(self, plan: Plan, run: Run, told: Report) -> Run | None:
        job = told.job or run.job
        following = job.step + 1
        if told.ends or following >= len(plan.steps):
            last = Run(run.held, run.server, job)
            return await self._report(run, await plan.end(self._hands, last, told))
        return await self._report(run, _at_step(told, run, following))

    async def _fail(self, plan: Plan, run: Run, why: Failed) -> Run | None:
        told = await plan.fail(self._hands, run, why)
        stays = kinds.guest_stays(run.server, run.job, why.reason)
        if stays:
            told = replace(told, facts=_first(stays, told.facts))
        return await self._report(run, told)

    async def _report(self, run: Run, told: Report) -> Run | None:
        after = await progress.report(self._ctx, run, told)
        return None if told.ends else after


def _first(these: list[Fact], others: Facts) -> Facts:
    return lambda server: [*these, *others(server)]


def _at_step(told: Report, run: Run, step: int) -> Report:
    return replace(told, job=(told.job or run.job).at_step(step))
