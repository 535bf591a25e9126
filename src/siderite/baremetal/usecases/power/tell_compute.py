"""A compute service is told of each real change of power of a node that carries a server.

What is to be told is a row, written in the commit that makes it true; per node the rows are sent in
their order, by one piece of work that ends when none is left (`workers.tell_compute`).
"""

import msgspec

from siderite.baremetal.domain import watch_facts
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.power_truth import is_hushed
from siderite.baremetal.domain.power_truth import told_power
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.context import Context
from siderite.core import work
from siderite.core.store import Lost
from siderite.core.store import Op
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.work import Work

LANE = "tell compute"
KIND = "tell_compute"
_PREFIX = "compute of "
"""Not the node itself: a compute service that hangs is no reason for the node to wait."""

_TAGS = {PowerState.ON.value: "POWER_ON", PowerState.OFF.value: "POWER_OFF"}


class Update(msgspec.Struct, frozen=True):
    """Something to tell."""

    id: int
    node: str
    server: str
    tag: str
    at: float
    request_id: str | None


class Answer(msgspec.Struct, frozen=True):
    """What the compute service said of it for good."""

    code: int
    reason: str | None = None
    """Why it was refused."""


def note(ctx: Context, change: Change, before: Node, after: Node) -> None:
    """If the node's power has changed and it carries a server, or did until this change, that is to
    be told: what a repair does to it, once the maintenance is over, and only what has come of it.
    """
    server, power = after.instance_uuid or before.instance_uuid, after.power_state
    if not ctx.settings.tells_compute or server is None or power is None:
        return
    if is_hushed(after) or power == told_power(before):
        return
    request_id = change.cause.request_id
    change.put(
        Op(
            "INSERT INTO power_updates (node, server, tag, at, request_id) VALUES (?, ?, ?, ?, ?)",
            (after.uuid, server, _TAGS[power], change.now, request_id),
            1,
        )
    )
    change.work(
        work.ring(
            _PREFIX + after.uuid, LANE, KIND, now=change.now,
            reason="a change of power is to be told", request_id=request_id,
        )
    )  # fmt: skip


async def next_update(ctx: Context, held: Work) -> Update | None:
    """The oldest thing that is to be told of the node."""
    rows = await ctx.door.store.fetch(
        "SELECT id, node, server, tag, at, request_id FROM power_updates WHERE node = ?"
        " ORDER BY id LIMIT 1",
        (held.machine.removeprefix(_PREFIX),),
    )
    return Update(*rows[0]) if rows else None  # type: ignore[arg-type]


async def told(ctx: Context, held: Work, update: Update, answer: Answer) -> None:
    """It was taken, or refused for good: it is not told again."""
    change = ctx.door.change(Cause(update.request_id))
    change.put(work.still_ours(held))
    change.put(Op("DELETE FROM power_updates WHERE id = ?", (update.id,), 1))
    node = await NODES.get(ctx.door.store, update.node)
    if node is not None:
        status = "end" if answer.reason is None else "error"
        change.tell(
            watch_facts.power_update(
                status, node, server=update.server, tag=update.tag, code=answer.code,
                reason=answer.reason,
            )
        )  # fmt: skip
    await ctx.door.commit(change)


async def later(ctx: Context, held: Work, reason: str, again_in: float) -> None:
    """It could not be told: try again."""
    change = ctx.door.change(Cause(held.request_id))
    change.put(work.again(held, due=change.now + again_in, reason=reason))
    await ctx.door.commit(change)


async def all_told(ctx: Context, held: Work) -> None:
    """Nothing is left; if something has come meanwhile, the work is taken up again."""
    change = ctx.door.change(Cause(held.request_id))
    change.put(work.done_unless_rung(held))
    try:
        await ctx.door.commit(change)
    except Lost:
        await later(ctx, held, "more is to be told", 0.0)
