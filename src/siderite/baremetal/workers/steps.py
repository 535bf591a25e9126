"""Provisioning work, step by step.

One piece of work is one job: a list of steps and a place in it. `handle` goes on from wherever the
job stands, so that it makes no difference whether this process began it. Between two steps there
is a commit; a step that waits lets go of the work, and nothing holds a thread or a task meanwhile.
"""

import asyncio
from typing import assert_never

from siderite.baremetal.domain.agent import has_inspected
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.node_machine import Event
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Outcome
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.domain.steps import POWER_STEPS
from siderite.baremetal.domain.steps import RESERVED
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.domain.steps import job_of
from siderite.baremetal.drivers.contract import Driver
from siderite.baremetal.drivers.contract import Drivers
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.contract import gone
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life import hooks
from siderite.baremetal.usecases.life import progress
from siderite.baremetal.usecases.life.progress import Run
from siderite.baremetal.usecases.node import details
from siderite.baremetal.workers import children
from siderite.baremetal.workers import ends
from siderite.baremetal.workers.look import look
from siderite.baremetal.workers.plan import plan
from siderite.baremetal.workers.reading import read_power
from siderite.core.machine import Kind
from siderite.core.times import iso
from siderite.core.work import Work

VERIFY_PATIENCE_S = 10.0
STEADY_S = 0.5
"""How soon a node is looked at again whose power is being changed."""
_POWER_OFF = Step("power", "power_off")


class Steps:
    """The handler of all provisioning work."""

    def __init__(self, ctx: Context, drivers: Drivers) -> None:
        self._ctx = ctx
        self._drivers = drivers

    async def handle(self, held: Work) -> None:
        """Go on with a job until it ends or waits."""
        node = await progress.load_or_abandon(self._ctx, held)
        if node is None:
            return
        run: Run | None = Run(held, node, job_of(held.job))
        while run is not None:
            run = await self._advance(run)
            if run is not None and self._ctx.door.is_draining:
                return  # it is recorded how far the job is: another process goes on from there

    async def _advance(self, run: Run) -> Run | None:
        """One step further; None when there is nothing more to do now."""
        state = NODE.states[run.node.provision_state]
        at_hook = state.kind is Kind.WAIT and run.job.hold is not None
        if at_hook or state.kind is Kind.HOLD:
            return await hooks.looked_at(self._ctx, run)
        if not state.moves_by_itself:
            # The node was moved on by other means; its work has no meaning any more.
            await progress.abandon(self._ctx, run.held)
            return None
        now = self._ctx.door.clock()
        if now >= run.held.deadline:
            return await self._overdue(run, waiting=state.kind is Kind.WAIT)
        driver = self._drivers.get(run.node.driver)
        if driver is None:
            return await self._fail(run, gone(run.node.driver))
        if state.kind is Kind.WAIT:
            return await self._called_back(run, driver)
        if run.family is Family.VERIFY:
            return await self._verify(run, driver)
        if run.job.steps is None:
            settled = await plan(self._ctx, run, driver)
            if isinstance(settled, Failed):
                return await self._fail(run, settled.reason)
            # Not committed on its own: what comes of the first step carries the list with it.
            run = Run(run.held, run.node, run.job.with_(steps=settled, since=now))
        run, hook = await hooks.at(self._ctx, run)
        if hook is not None:
            await hooks.hold(self._ctx, run, hook)
            return None
        step = run.job.current
        if step is None:
            return await self._finish(run)
        has_begun = run.job.waiting or run.job.index > 0
        target = step.switches_first(run.node)
        if target is not None and not run.job.waiting:
            run = await progress.switches(self._ctx, run, target)
        return await self._outcome(run, await self._do(run, driver, step, has_begun=has_begun))

    async def _do(self, run: Run, driver: Driver, step: Step, *, has_begun: bool = True) -> Outcome:
        at = Endpoint.of(run.node, worked=has_begun)
        if step.children is not None:
            target = POWER_STEPS.get(step.step)
            return await children.on_children(self._ctx, run, step, step.children, target)
        if step.step in RESERVED:
            return await self._reserved(run, driver, step, at)
        if run.family is Family.INSPECT and has_inspected(run.node, iso(run.job.since)):
            return Done()  # the ramdisk has sent what it found
        outcome = await self._asked(run, driver, step, at)
        if isinstance(outcome, Done) and outcome.found is not None:
            # On its own: if we are stopped before the step is, it is found and kept once more.
            await details.keep(self._ctx, run.node.uuid, outcome.found)
        return outcome

    async def _asked(self, run: Run, driver: Driver, step: Step, at: Endpoint) -> Outcome:
        """What the driver answers: by the deadline, though it may fetch a large file meanwhile."""
        limit = asyncio.timeout(max(0.0, run.held.deadline - self._ctx.door.clock()))
        try:
            async with limit:
                return await driver.steps.run(at, run.family, step, run.job.token)
        except TimeoutError:
            if not limit.expired():
                raise
        return Wait(f"step {step.interface}.{step.step} has begun, and did not get further", 0.0)

    async def _reserved(self, run: Run, driver: Driver, step: Step, at: Endpoint) -> Outcome:
        if step.step in POWER_STEPS:
            target = POWER_STEPS[step.step]
            if at.stays_on and target is PowerTarget.OFF:
                return Failed("power off is disabled for this node (disable_power_off)")
            outcome = await driver.power.set(at, target, run.job.token)
            if isinstance(outcome, Done):
                return Done({"power_state": target.leads_to.value}, outcome.remember)
            return outcome
        if step.step == "wait":
            left = run.job.since + float(step.args.get("seconds", 0)) - self._ctx.door.clock()
            return Done() if left <= 0 else Wait(f"told to wait {step.args['seconds']} s", left)
        return Done()  # hold: the machine stops after it, see _outcome

    async def _outcome(self, run: Run, outcome: Outcome) -> Run | None:
        step = run.job.current
        match outcome:
            case Done():
                return await self._step_done(run, outcome)
            case Wait(callback=True):
                job = run.job.with_(waiting=True)
                patience = self._ctx.settings.callback_timeout_s
                parked = await progress.moved(
                    self._ctx,
                    run,
                    Event.WAIT,
                    job,
                    reason=outcome.reason,
                    due_in=patience,
                    changes=lambda node: progress.after_step(run.family, job, node, outcome),
                    outcome=outcome,
                )
                if not outcome.is_away:
                    await self._missed_call(parked)
                return None
            case Wait():
                await progress.waits(self._ctx, run, run.job.with_(waiting=True), outcome)
                return None
            case Failed():
                name = f"step {step.interface}.{step.step} failed: " if step is not None else ""
                return await self._fail(run, name + outcome.reason, in_step=True)
            case _:
                assert_never(outcome)

    async def _step_done(self, run: Run, outcome: Done) -> Run | None:
        step = run.job.current
        now = self._ctx.door.clock()
        job = run.job.with_(index=run.job.index + 1, waiting=False, since=now)
        if run.job.abort:
            return await self._aborted(run)
        if step is not None and step.step == "hold":
            reason = "held for an outside decision: unhold or abort"
            await progress.moved(
                self._ctx,
                run,
                Event.HOLD,
                job,
                reason=reason,
                changes=lambda node: progress.after_step(run.family, job, node, outcome),
                outcome=outcome,
            )
            return None
        if job.current is None:
            after, hook = await hooks.at(self._ctx, Run(run.held, run.node, job, run.hooks))
            if hook is None:
                return await self._finish(after, outcome)
        return await progress.step_on(self._ctx, run, job, outcome)

    async def _called_back(self, run: Run, driver: Driver) -> Run | None:
        """A node in a wait state was woken: its ramdisk called, or a hold was released. It stays
        there while a client has its power changed, which is refused once it goes on.
        """
        if run.node.target_power_state is not None:
            reason = "its ramdisk has called; its power is being changed, and that is let end"
            await progress.still_silent(self._ctx, run, Wait(reason, STEADY_S))
            return None
        step = run.job.current
        done = Done()
        job = run.job
        if job.waiting and step is not None:
            outcome = await self._do(run, driver, step)
            if isinstance(outcome, Wait):
                await progress.still_silent(self._ctx, run, outcome)
                return None
            if isinstance(outcome, Failed):
                return await self._outcome(run, outcome)
            if job.abort:
                return await self._aborted(run)
            done = outcome
            job = job.with_(index=job.index + 1, waiting=False, since=self._ctx.door.clock())
        return await progress.moved(
            self._ctx,
            run,
            Event.RESUME,
            job,
            changes=lambda node: progress.after_step(run.family, job, node, done),
            outcome=done,
        )

    async def _missed_call(self, run: Run) -> None:
        """The ramdisk may have called while we were about to wait for it: look once more."""
        driver = self._drivers[run.node.driver]
        step = run.job.current
        if step is None:
            return
        at = Endpoint.of(run.node, worked=True)
        outcome = await driver.steps.run(at, run.family, step, run.job.token)
        if not isinstance(outcome, Wait):
            await progress.wake(self._ctx, run.held.machine)

    async def _verify(self, run: Run, driver: Driver) -> Run | None:
        """Whether the machine can be managed: what it needs is there, and its power can be read."""
        problem = driver.card.problem(run.node)
        if problem is not None:
            return await self._fail(run, problem)
        if run.job.switching is not None:
            return await self._verify_off(run, driver)
        reading = await read_power(driver, Endpoint.of(run.node))
        if reading.power is PowerState.UNKNOWN:
            took = self._ctx.door.clock() - run.held.created_at
            is_over = reading.is_final or reading.refuses_login
            if is_over or took >= VERIFY_PATIENCE_S:
                return await self._fail(run, reading.why)
            await progress.waits(self._ctx, run, run.job, Wait(reading.why, 1.0))
            return None
        if self._is_switched_off(run.node, reading.power):
            target = PowerTarget.OFF
            return await self._verify_off(await progress.switches(self._ctx, run, target), driver)
        return await self._verified(run, driver, reading.power)

    def _is_switched_off(self, node: Node, power: PowerState) -> bool:
        """Whether a node with this power is to be off when it becomes manageable."""
        is_free = node.instance_uuid is None and not node.maintenance and not node.disable_power_off
        return self._ctx.settings.power_off_verified and power is PowerState.ON and is_free

    async def _verify_off(self, run: Run, driver: Driver) -> Run | None:
        """It can be managed if it can be switched off."""
        outcome = await self._do(run, driver, _POWER_OFF)
        if isinstance(outcome, Done):
            return await self._verified(run, driver, PowerState.OFF, outcome)
        return await self._outcome(run, outcome)

    async def _verified(
        self, run: Run, driver: Driver, power: PowerState, last: Done | None = None
    ) -> Run | None:
        changes, found = await look(driver, run.node, self._ctx.settings.hardware_timeout_s)
        await ends.verified(self._ctx, run, power, changes, found, last=last)
        return None

    async def _finish(self, run: Run, last: Done | None = None) -> Run | None:
        return await ends.finished(self._ctx, run, last or Done())

    async def _fail(self, run: Run, reason: str, *, in_step: bool = False) -> Run | None:
        await ends.failed(self._ctx, run, reason, in_step=in_step)
        return None

    async def _aborted(self, run: Run) -> Run | None:
        reason = "aborted by request, after the step that could not be interrupted"
        await ends.aborted(self._ctx, run, reason)
        return None

    async def _overdue(self, run: Run, *, waiting: bool) -> Run | None:
        if waiting and run.node.maintenance:
            reason = "overdue, but the node is in maintenance"
            await progress.still_silent(self._ctx, run, Wait(reason, 0.0, callback=True))
            return None
        if waiting:
            reason = f"nothing called back within {self._ctx.settings.callback_timeout_s:g} s"
        else:
            reason = f"{run.node.provision_state} was not done by its deadline"
        # After a mishap of ours the work knows of it, and the node only what was before.
        last = run.held.reason if run.held.attempts else run.node.wait_reason
        if last:
            reason += f" (last: {last})"
        return await self._fail(run, reason, in_step=run.job.waiting)
