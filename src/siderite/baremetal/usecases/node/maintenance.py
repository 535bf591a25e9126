"""A user takes a node out of automatic care, or gives it back."""

from siderite.baremetal.domain import facts
from siderite.baremetal.domain import watch_facts
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.power_truth import POWER_FAILURE
from siderite.baremetal.domain.power_truth import with_hush
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.node import find
from siderite.baremetal.usecases.node.find import Guard
from siderite.baremetal.usecases.node.find import allow
from siderite.baremetal.usecases.power import power_schedule
from siderite.baremetal.usecases.power import tell_compute
from siderite.core.errors import Busy
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who


async def set_maintenance(
    ctx: Context,
    ident: str,
    *,
    on: bool,
    reason: str | None,
    who: Who,
    cause: Cause,
    guard: Guard = allow,
) -> Node:
    """Maintenance on, with a reason, or off, which also clears the fault.

    What a user sets stays set: the power watch no longer ends it, though it was the first to.
    It begins with what is wanted, as upstream does; what failed ends with the node as it is.
    """
    tried: list[tuple[Node, Node]] = []

    async def decide(change: Change) -> Node:
        node = await find.node(ctx, ident, who, guard)
        changes = {"maintenance": on, "maintenance_reason": reason if on else None}
        if not on or node.fault == POWER_FAILURE:
            changes["fault"] = None
        if not on:
            change.put(power_schedule.look_soon(node.uuid, change.now))
        after = node.changed(change.now, with_hush(node, changes))
        tried[:] = [(node, after)]
        change.put(NODES.swap(node, after))
        change.tell(facts.maintenance_set("start", after))
        change.tell(facts.maintenance_set("end", after), *watch_facts.settled(node, after))
        tell_compute.note(ctx, change, node, after)
        return after

    try:
        return await ctx.door.attempt(cause, ident, decide)
    except Busy:
        failed = ctx.door.change(cause)
        before, wanted = tried[0]
        failed.tell(facts.maintenance_set("start", wanted), facts.maintenance_set("error", before))
        await ctx.door.commit(failed)
        raise
