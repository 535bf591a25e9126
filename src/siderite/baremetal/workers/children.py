"""A step on a node's children: all are asked, and then waited for."""

from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Outcome
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.usecases import children
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.progress import Run
from siderite.core.errors import Busy
from siderite.core.errors import SideriteError

_AGAIN_S = 1.0


async def change_power(ctx: Context, run: Run, only: list[str], target: PowerTarget) -> Outcome:
    """Bring the children to this power, one piece at a time."""
    family = await children.of(ctx, run.node.uuid, only)
    asked = children.asked(run)
    for child in family:
        if child.uuid in asked:
            continue
        try:
            await children.ask(ctx, run, child, target)
        except Busy as why:
            return Wait(why.sentence, _AGAIN_S)
        except SideriteError as why:
            return Failed(why.sentence)
        return Wait(f"child node {child.uuid} was asked for {target}", 0.0)
    for child in family:
        if child.target_power_state is not None:
            return Wait(f"child node {child.uuid} is on its way to {target.leads_to}", _AGAIN_S)
        if child.power_state != target.leads_to:
            said = child.last_error or f"its power is {child.power_state or 'unknown'}"
            return Failed(f"child node {child.uuid}: {said}")
    return Done(remember={children.MEMORY: None})
