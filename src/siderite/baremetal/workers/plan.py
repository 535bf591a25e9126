"""Which steps a piece of work has."""

from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.domain.steps import UnknownArgument
from siderite.baremetal.domain.steps import UnknownStep
from siderite.baremetal.domain.steps import asked_for
from siderite.baremetal.domain.steps import in_order
from siderite.baremetal.drivers.contract import Driver
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.usecases.beside import templates
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life.progress import Run
from siderite.core.errors import Invalid


async def plan(ctx: Context, run: Run, driver: Driver) -> list[Step] | Failed:
    """The list of steps to run, or why there is none."""
    if run.family is Family.CLEAN and not _wants_cleaning(ctx, run):
        return []
    at = Endpoint.of(run.node)
    known = await driver.steps.steps(at, run.family)
    asked = run.job.asked
    if run.family is Family.DEPLOY:
        try:
            asked = await templates.steps_for(ctx, run.node, asked or ()) or None
        except Invalid as why:
            return Failed(why.sentence)
    if asked is None:
        return await driver.steps.frame(at, run.family, in_order(known))
    chosen = asked_for(known, asked, merge=run.family is Family.DEPLOY)
    if isinstance(chosen, UnknownStep | UnknownArgument):
        return Failed(str(chosen))
    needy = next((step for step in chosen if step.in_band), None)
    if needy is not None and run.job.args.get("disable_ramdisk"):
        name = f"{needy.interface}.{needy.step}"
        return Failed(f"step {name} runs in the ramdisk, which disable_ramdisk forbids")
    return await driver.steps.frame(at, run.family, chosen)


def _wants_cleaning(ctx: Context, run: Run) -> bool:
    """A manual clean is always wanted; an automated one by the node's word, else the
    configuration's.
    """
    if run.node.target_provision_state == P.MANAGEABLE:
        return True
    own = run.node.automated_clean
    return ctx.settings.automated_clean if own is None else own
