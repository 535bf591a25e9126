"""A step on a node's children: all are asked, and then waited for."""

import msgspec

from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Outcome
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.domain.steps import CHILD_STEPS
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.domain.steps import UnknownArgument
from siderite.baremetal.domain.steps import UnknownStep
from siderite.baremetal.domain.steps import asked_for
from siderite.baremetal.drivers.contract import Driver
from siderite.baremetal.drivers.contract import Drivers
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.contract import gone
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life import progress
from siderite.baremetal.usecases.life.progress import Run
from siderite.baremetal.usecases.node import children
from siderite.baremetal.usecases.node import details
from siderite.baremetal.usecases.node.children import ChildJob
from siderite.core.errors import Busy
from siderite.core.errors import SideriteError
from siderite.core.work import Work

_AGAIN_S = 1.0


async def on_children(
    ctx: Context, run: Run, step: Step, only: list[str], target: PowerTarget | None
) -> Outcome:
    """Bring the children to this power, or have each run the step; one piece at a time."""
    family = await children.of(ctx, run.node.uuid, only)
    asked = children.asked(run)
    for child in family:
        if child.uuid in asked:
            continue
        begin = children.power_of(ctx, run, target) if target else children.step_of(ctx, run, step)
        try:
            await children.ask(ctx, run, child, begin)
        except Busy as why:
            return Wait(why.sentence, _AGAIN_S)
        except SideriteError as why:
            return Failed(why.sentence)
        return Wait(f"child node {child.uuid} was asked for {target or step.step}", 0.0)
    for child in family:
        outcome = _power_of(run, child, target) if target else _step_of(run, child)
        if outcome is not None:
            return outcome
    return Done(remember={CHILD_STEPS: None})


def _power_of(run: Run, child: Node, target: PowerTarget) -> Wait | Failed | None:
    """Why the step is not done with a child; None if it is."""
    if child.target_power_state is not None:
        return Wait(f"child node {child.uuid} is on its way to {target.leads_to}", _AGAIN_S)
    # One that was to be rebooted has that power anyway, whatever came of it. Earlier versions,
    # which may run beside this one, left it as the child's error only.
    lasting = {"error": child.last_error if target.is_reboot else None}
    error = (children.came_of(run, child) or lasting).get("error")
    if child.power_state != target.leads_to or error is not None:
        said = error or f"its power is {child.power_state or 'unknown'}"
        return Failed(f"child node {child.uuid}: {said}")
    return None


def _step_of(run: Run, child: Node) -> Wait | Failed | None:
    """The same of a step."""
    known = children.came_of(run, child)
    if known is None:
        return Failed(f"child node {child.uuid}: what came of the step is not known")
    if not known.get("ended"):
        return Wait(f"child node {child.uuid} runs the step", _AGAIN_S)
    error = known.get("error")
    return None if error is None else Failed(f"child node {child.uuid}: {error}")


class ChildSteps:
    """The handler of steps that a node runs for its parent."""

    def __init__(self, ctx: Context, drivers: Drivers) -> None:
        self._ctx = ctx
        self._drivers = drivers

    async def handle(self, held: Work) -> None:
        """Begin the step, or look how it is going."""
        node = await progress.load_or_abandon(self._ctx, held)
        if node is None:
            return
        job = msgspec.json.decode(held.job, type=ChildJob)
        driver = self._drivers.get(node.driver)
        if driver is None:
            outcome: Outcome = Failed(gone(node.driver))
        elif self._ctx.door.clock() >= held.deadline:
            outcome = Failed(f"the step was not done in time (last: {held.reason})")
        else:
            step = await _chosen(driver, Endpoint.of(node), job)
            if isinstance(step, Step):
                at = Endpoint.of(node, worked=job.waiting)
                target = step.switches_first(node)
                if target is not None and not job.waiting:
                    job = await children.switches(self._ctx, held, job, target)
                outcome = await _run(driver, at, step, job)
            else:
                outcome = step
        if isinstance(outcome, Wait):
            await children.waits(self._ctx, held, job, outcome)
            return
        if isinstance(outcome, Done) and outcome.found is not None:
            await details.keep(self._ctx, node.uuid, outcome.found)
        if isinstance(outcome, Failed) and driver is not None:
            await driver.steps.forget(Endpoint.of(node), job.token)
        await children.ended(self._ctx, held, job, outcome)


async def _chosen(driver: Driver, at: Endpoint, job: ChildJob) -> Step | Failed:
    """The step as the child's own driver has it, or why it cannot run."""
    known = await driver.steps.steps(at, job.family)
    wish = {"interface": job.step.interface, "step": job.step.step, "args": job.step.args}
    chosen = asked_for(known, [wish], merge=False)
    if isinstance(chosen, UnknownStep | UnknownArgument):
        return Failed(str(chosen))
    if chosen[0].in_band:
        return Failed("the step runs in a ramdisk, and child nodes are not booted into one")
    return chosen[0]


async def _run(driver: Driver, at: Endpoint, step: Step, job: ChildJob) -> Outcome:
    outcome = await driver.steps.run(at, job.family, step, job.token)
    if isinstance(outcome, Wait) and outcome.callback:
        return Failed(f"the step waits for a ramdisk to call ({outcome.reason})")
    return outcome
