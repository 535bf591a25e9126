"""What is wanted of a machine's firmware: boot mode and secure boot, changed by durable work, and
the RAID configuration, which the steps of interface `raid` work from.
"""

from typing import Any

import msgspec

from siderite.baremetal.domain import facts
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life.refusals import busy
from siderite.baremetal.usecases.life.refusals import check_own_master
from siderite.baremetal.usecases.machine.hardware import check_reach
from siderite.baremetal.usecases.machine.hardware import lacking
from siderite.baremetal.usecases.machine.hardware import unsupported
from siderite.baremetal.usecases.node import find
from siderite.baremetal.usecases.node.find import Guard
from siderite.core import work
from siderite.core.errors import Busy
from siderite.core.errors import NotFound
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who
from siderite.core.work import Work

LANE = "firmware"
ABILITY = {"boot_mode": "boot_modes", "secure_boot": "secure_boot"}
"""The driver's ability that a node's field needs to be changed."""


class SettingJob(msgspec.Struct, frozen=True):
    """The job in the work row: a field of the node and its new value."""

    field: str
    value: str | bool
    task: dict[str, Any] | None = None
    """What the driver says of the BMC's task that changes it, if there is one."""
    looks: int = 0
    """How often that was found not to run."""


async def ask(
    ctx: Context,
    ident: str,
    field: str,
    value: str | bool,
    *,
    who: Who,
    cause: Cause,
    guard: Guard,
) -> Node:
    """Have the boot mode or secure boot changed; the work follows."""

    async def decide(change: Change) -> Node:
        node = await find.node(ctx, ident, who, guard)
        if not ctx.hardware.can(node, ABILITY[field]):
            raise unsupported(node, ABILITY[field])
        check_reach(ctx.cards, node)
        await _check_free(ctx, node)
        after = node.changed(change.now, {"last_error": None})
        change.put(NODES.swap(node, after))
        job = SettingJob(field, value)
        change.work(
            work.add(
                node.uuid, LANE, "firmware_setting", job=msgspec.json.encode(job).decode(),
                now=change.now, deadline=change.now + ctx.settings.power_timeout_s,
                reason=f"{field} {value} was asked for", request_id=cause.request_id,
                pool=ctx.rules.pool(node),
            )
        )  # fmt: skip
        return after

    return await ctx.door.attempt(cause, ident, decide)


async def _check_free(ctx: Context, node: Node) -> None:
    check_own_master(node)
    if NODE.states[node.provision_state].moves_by_itself:
        where = f"is {node.provision_state}, on its way to {node.target_provision_state}"
        raise busy(node, where)
    for item in await work.of_machine(ctx.door.store, node.uuid):
        if item.lane == LANE:
            why = str(item.reason).rstrip(".")
            raise Busy(f"Node {node.uuid} is being changed already: {why}.")


async def waits(ctx: Context, held: Work, job: SettingJob, reason: str, *, again_in: float) -> None:
    """The machine does not answer, or is at it: let go of the work for a while."""
    change = ctx.door.change(Cause(held.request_id))
    text = msgspec.json.encode(job).decode()
    change.put(work.park(held, job=text, due=change.now + again_in, reason=reason))
    await ctx.door.commit(change)


async def ended(ctx: Context, held: Work, job: SettingJob, error: str | None) -> None:
    """The machine has changed, or cannot; either is announced as an update of its node. Who follows
    the log takes nothing from an update that failed: that the node says why is one of its own.
    """

    async def decide(change: Change) -> None:
        change.put(work.done(held))
        node = await NODES.get(ctx.door.store, held.machine)
        if node is None:
            return
        changes = {job.field: job.value} if error is None else {"last_error": error}
        after = node.changed(change.now, changes)
        change.put(NODES.swap(node, after))
        if error is not None:
            change.tell(*facts.node_updated(node, after, failed=True))
        change.tell(*facts.node_updated(node, after))

    await ctx.door.attempt(Cause(held.request_id), held.machine, decide, held=held)


async def set_target_raid(
    ctx: Context, ident: str, config: dict[str, Any], *, who: Who, cause: Cause, guard: Guard
) -> None:
    """What the next RAID configuration shall be."""

    async def decide(change: Change) -> None:
        node = await find.node(ctx, ident, who, guard)
        card = ctx.cards.get(node.driver)
        if card is None or not card.supports(node, "raid"):
            # Upstream answers so, and clients tell it from a wrong configuration by that.
            raise NotFound(lacking(node, "raid", "raid"))
        if config != node.target_raid_config:
            after = node.changed(change.now, {"target_raid_config": config})
            change.put(NODES.swap(node, after))
            change.tell(*facts.node_updated(node, after))

    await ctx.door.attempt(cause, ident, decide)
