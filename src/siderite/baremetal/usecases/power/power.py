"""A power change is asked for, and ends."""

from collections.abc import Mapping
from typing import Any

import msgspec

from siderite.baremetal.domain import facts
from siderite.baremetal.domain import watch_facts
from siderite.baremetal.domain.agent import without_ramdisk
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.domain.power_truth import with_power
from siderite.baremetal.domain.steps import OWN
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life.progress import remembered
from siderite.baremetal.usecases.life.refusals import check_idle
from siderite.baremetal.usecases.life.refusals import check_own_master
from siderite.baremetal.usecases.life.refusals import check_steady
from siderite.baremetal.usecases.life.refusals import once_steady
from siderite.baremetal.usecases.machine.hardware import check_reach
from siderite.baremetal.usecases.node import find
from siderite.baremetal.usecases.node.find import Guard
from siderite.baremetal.usecases.node.find import allow
from siderite.baremetal.usecases.power import power_schedule
from siderite.baremetal.usecases.power import tell_compute
from siderite.core import work
from siderite.core.errors import Conflict
from siderite.core.errors import IllegalVerb
from siderite.core.ids import new_uuid
from siderite.core.machine import Kind
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who
from siderite.core.work import Work

LANE = "power"
LAST_CHANGE = "last_power_state_change"
"""In `driver_internal_info`: when a change of power was last begun. Who asked for one and did not
hear the answer finds out by it whether that was taken.
"""


class PowerJob(msgspec.Struct, frozen=True, omit_defaults=True):
    """The job in the work row."""

    target: str
    token: str
    keeps_record: bool = False
    """The machine is being put back to what the record says: if it fails, the record stays."""
    hard: bool = False
    """The operating system was asked softly and did not follow in time."""
    step: str | None = None
    """Names the step that the node's parent asked for it with: it looks at what came of it."""
    has_begun: bool = False
    """The machine was told."""


async def ask(
    ctx: Context,
    ident: str,
    target: PowerTarget,
    *,
    timeout_s: float | None,
    who: Who,
    cause: Cause,
    guard: Guard = allow,
) -> Node:
    """Have the node's power changed; the work follows."""

    async def decide(change: Change) -> Node:
        node = await find.node(ctx, ident, who, guard)
        check_reach(ctx.cards, node)
        if target is PowerTarget.OFF and await _is_asked_softly(ctx, node):
            # It is overruled: its work is replaced, and does not tell of its end any more.
            change.tell(facts.power_set("error", node, PowerTarget.SOFT_OFF))
            node = msgspec.structs.replace(node, target_power_state=None)
        return begin(ctx, change, node, target, timeout_s)

    patience_s = ctx.settings.power_wait_s
    return await once_steady(lambda: ctx.door.attempt(cause, ident, decide), patience_s)


async def _is_asked_softly(ctx: Context, node: Node) -> bool:
    """Whether its operating system is being asked to switch it off, and by no force yet."""
    if node.target_power_state is None:
        return False
    for item in await work.of_machine(ctx.door.store, node.uuid):
        if item.lane == LANE and item.kind == "power":
            job = msgspec.json.decode(item.job, type=PowerJob)
            return job.target == PowerTarget.SOFT_OFF and not job.hard
    return False


def begin(
    ctx: Context,
    change: Change,
    node: Node,
    target: PowerTarget,
    timeout_s: float | None = None,
    *,
    step: str | None = None,
) -> Node:
    """Put into the change what has the node's power changed; or say why not."""
    _check(node, target)
    info = node.driver_internal_info
    if target is not PowerTarget.ON:
        # Whatever ramdisk ran is gone then, and its token with it, unless its medium has that.
        info = without_ramdisk(info)
    changes: dict[str, Any] = {
        "target_power_state": target.leads_to.value,
        "last_error": None,
        "driver_internal_info": {**info, LAST_CHANGE: iso(change.now)},
    }
    after = node.changed(change.now, changes)
    change.put(NODES.swap(node, after))
    order(ctx, change, after, target, timeout_s, step=step)
    return after


def order(
    ctx: Context,
    change: Change,
    node: Node,
    target: PowerTarget,
    timeout_s: float | None = None,
    *,
    step: str | None = None,
) -> None:
    """Put the fact and the work into a change by which a node is on its way to another power."""
    change.tell(facts.power_set("start", node, target))
    job = PowerJob(target.value, new_uuid(), step=step)
    change.work(
        work.add(
            node.uuid, LANE, "power", job=msgspec.json.encode(job).decode(), now=change.now,
            deadline=change.now + _patience(ctx, target, timeout_s),
            reason=f"{target} was asked for", request_id=change.cause.request_id,
            pool=ctx.rules.pool(node), known=node,
        )
    )  # fmt: skip


def _patience(ctx: Context, target: PowerTarget, timeout_s: float | None) -> float:
    if timeout_s is not None:
        return timeout_s
    if target.is_soft:
        return ctx.settings.soft_power_off_timeout_s
    return ctx.settings.power_timeout_s


def _check(node: Node, target: PowerTarget) -> None:
    check_own_master(node)
    if node.provision_state in (P.CLEANING, P.CLEANWAIT):
        raise IllegalVerb(
            f'The requested action "{target}" can not be performed on node "{node.uuid}"'
            f" while it is"
            f' in state "{node.provision_state}"; wait until cleaning is done, or abort it.'
        )
    check_steady(node)
    check_idle(node)
    if node.disable_power_off and target.leads_to is PowerState.OFF:
        raise Conflict(
            f"Failed to set node power state to {target}: power off is disabled for node"
            f" {node.uuid}"
            " (disable_power_off)."
        )


async def waits(ctx: Context, held: Work, job: PowerJob, outcome: Wait) -> None:
    """The hardware is not ready: let go of the work for a while, and show why on the node."""
    reason = outcome.reason
    text = msgspec.json.encode(job).decode()

    async def decide(change: Change) -> None:
        change.put(work.park(held, due=change.now + outcome.again_in, reason=reason, job=text))
        node = await NODES.get(ctx.door.store, held.machine)
        if node is None:
            return
        changes = {**_reason(node, reason), **remembered(node, outcome.remember)}
        if any(getattr(node, name) != value for name, value in changes.items()):
            change.put(NODES.swap(node, node.changed(change.now, changes)))

    await ctx.door.attempt(Cause(held.request_id), held.machine, decide, held=held)


def _reason(node: Node, reason: str | None) -> dict[str, Any]:
    """What a node shows that it waits for; other work that waits has its own reason there."""
    at_rest = NODE.states[node.provision_state].kind in (Kind.STABLE, Kind.FAILED)
    return {"wait_reason": reason} if at_rest else {}


async def harden(ctx: Context, held: Work, job: PowerJob) -> None:
    """The operating system did not follow in time: go on without asking it."""
    change = ctx.door.change(Cause(held.request_id))
    harder = msgspec.structs.replace(job, hard=True)
    change.put(
        work.park(
            held, job=msgspec.json.encode(harder).decode(), due=change.now,
            deadline=change.now + ctx.settings.power_timeout_s,
            reason="the operating system did not follow in time; now by force",
        )
    )  # fmt: skip
    await ctx.door.commit(change)


async def ended(
    ctx: Context,
    held: Work,
    job: PowerJob,
    *,
    node: Node,
    error: str | None,
    observed: str | None,
    remember: Mapping[str, Any],
) -> None:
    """The work is over: done, or failed for a reason. `observed` is what the hardware last said.

    `node` is what the worker read; if that has changed meanwhile, it is read again.
    """
    cause = Cause(held.request_id)
    known = [node]

    async def decide(change: Change) -> None:
        change.put(work.done(held))
        node = known.pop() if known else await NODES.get(ctx.door.store, held.machine)
        if node is None:
            return
        changes: dict[str, Any] = {"target_power_state": None, **_reason(node, None)}
        told = {OWN: {"token": job.step, "ended": True, "error": error}} if job.step else {}
        changes |= remembered(node, {**remember, **told})
        if error is None:
            changes["power_state"] = PowerTarget(job.target).leads_to.value
        else:
            changes["last_error"] = error
            if observed is not None and not job.keeps_record:
                changes["power_state"] = observed
        after = node.changed(change.now, with_power(changes))
        change.put(NODES.swap(node, after))
        if not job.keeps_record:
            change.put(power_schedule.look_soon(node.uuid, change.now))
        change.tell(facts.power_set("error" if error else "end", after, job.target))
        change.tell(*watch_facts.settled(node, after))
        tell_compute.note(ctx, change, node, after)

    await ctx.door.attempt(cause, held.machine, decide, held=held)
