"""What workers report: each report is one commit that moves the node, its job and its facts on
together (`core.report`).
"""

from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import msgspec

from siderite.baremetal.domain import facts as telling
from siderite.baremetal.domain import switching
from siderite.baremetal.domain import watch_facts
from siderite.baremetal.domain.hook import Hook
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import Event
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.domain.power_truth import with_power
from siderite.baremetal.domain.steps import CHILD_STEPS
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Job
from siderite.baremetal.domain.steps import job_text
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life.abort import STEP_FIELDS
from siderite.baremetal.usecases.life.abort import without_password
from siderite.baremetal.usecases.power import tell_compute
from siderite.core import work
from siderite.core.fact import Fact
from siderite.core.report import report
from siderite.core.store import Lost
from siderite.core.store import Op
from siderite.core.times import iso
from siderite.core.times import seconds
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.transition import apply
from siderite.core.work import Work

Decide = Callable[[Change, Node], Awaitable[Node]]
"""What becomes of the node, put into the change."""

SHOWN_LATE_S = 60.0
"""How far a node's deadline may be behind that of its work: not each call of a ramdisk is a reason
to write the node.
"""
_FAMILIES = {family.value: family for family in Family}


class Run(msgspec.Struct, frozen=True):
    """What a worker knows of its work: the lease, the node and the job as last committed."""

    held: Work
    node: Node
    job: Job
    hooks: tuple[float, Sequence[Hook]] = (0.0, ())
    """When hooks were last read for it, and which there were."""

    @property
    def family(self) -> Family:
        """The kind of work."""
        return _FAMILIES[self.held.kind]


_SHIFT = """
UPDATE work SET job = json_set(job, '$.since', json_extract(job, '$.since') - ?)
WHERE CASE WHEN json_valid(job) THEN json_type(job, '$.since') END IN ('real', 'integer')
"""


def shift(back_s: float) -> Op:
    """The clock was set back by so much: the steps that are under way began as much earlier."""
    return Op(_SHIFT, (back_s,))


async def load(ctx: Context, machine: str) -> Node | None:
    """The node of a piece of work."""
    return await NODES.get(ctx.door.store, machine)


async def load_or_abandon(ctx: Context, held: Work) -> Node | None:
    """The node of a piece of work; work on one that is gone ends."""
    if isinstance(held.known, Node):
        return held.known
    node = await load(ctx, held.machine)
    if node is None:
        await abandon(ctx, held)
    return node


async def reported(ctx: Context, run: Run, decide: Decide) -> Node:
    """Commit what `decide` says of the node; again if only the node has changed."""
    return await report(ctx.door, run.held, NODES, run.node, decide=decide, still=_same_state)


def _same_state(known: Node, fresh: Node) -> bool:
    return fresh.provision_state == known.provision_state


def shown_step(family: Family, job: Job, node: Node) -> dict[str, Any]:
    """The node's fields that show where a job with visible steps stands."""
    field = STEP_FIELDS.get(family)
    if field is None or job.steps is None:
        return {}
    step = job.current
    info = dict(node.driver_internal_info)
    info[f"{family}_steps"] = [s.shown() for s in job.steps]
    info[f"{family}_step_index"] = job.index
    return {field: {} if step is None else step.shown(), "driver_internal_info": info}


def cleared_step(family: Family, node: Node) -> dict[str, Any]:
    """The same fields when the work is over; a rescue's password goes with it."""
    if family in (Family.RESCUE, Family.UNRESCUE):
        return without_password(node)
    field = STEP_FIELDS.get(family)
    if field is None:
        return {}
    gone = {f"{family}_steps", f"{family}_step_index", CHILD_STEPS}
    info = {key: value for key, value in node.driver_internal_info.items() if key not in gone}
    return {field: {}, "driver_internal_info": info}


def remembered(node: Node, remember: Mapping[str, Any]) -> dict[str, Any]:
    """The node's field that holds what a driver wants to be told again."""
    if not remember:
        return {}
    info = {**node.driver_internal_info, **remember}
    return {
        "driver_internal_info": {key: value for key, value in info.items() if value is not None}
    }


def after_step(family: Family, job: Job, node: Node, outcome: Done | Wait) -> dict[str, Any]:
    """All of the node's fields that follow from what a step answered."""
    memory = remembered(node, outcome.remember)
    changes = outcome.changes if isinstance(outcome, Done) else _power(outcome)
    known = msgspec.structs.replace(node, **memory) if memory else node
    return {**changes, **memory, **shown_step(family, job, known)}


def _power(outcome: Wait) -> dict[str, Any]:
    return {} if outcome.power is None else {"power_state": outcome.power.wire}


def learned(node: Node, outcome: Wait) -> dict[str, Any]:
    """The node's fields that follow from what a step says which waits."""
    return with_power({**_power(outcome), **remembered(node, outcome.remember)})


async def switches(ctx: Context, run: Run, target: PowerTarget) -> Run:
    """A step is about to change the node's power: that is announced before it does."""
    job = run.job.with_(waiting=True, switching=target)

    async def decide(change: Change, node: Node) -> Node:
        change.tell(telling.power_set("start", node, target))
        change.put(work.keep(run.held, job=job_text(job)))
        # Whoever ends the work just now ends this as well.
        after = node.touched()
        change.put(NODES.swap(node, after))
        return after

    return Run(run.held, await reported(ctx, run, decide), job, run.hooks)


async def step_on(ctx: Context, run: Run, job: Job, outcome: Done) -> Run:
    """A step ended: the next one begins."""
    job = switching.after(job, outcome)

    async def decide(change: Change, node: Node) -> Node:
        fields = switching.recorded(run.job.switching, after_step(run.family, job, node, outcome))
        after = node
        if fields:
            after = node.changed(change.now, {**fields, "wait_reason": None})
            change.put(NODES.swap(node, after))
            change.tell(*watch_facts.settled(node, after))
            tell_compute.note(ctx, change, node, after)
        change.tell(*switching.ended(run.job.switching, node, after))
        change.put(work.keep(run.held, job=job_text(job)))
        return after

    return Run(run.held, await reported(ctx, run, decide), job)


async def moved(
    ctx: Context,
    run: Run,
    event: str,
    job: Job,
    *,
    changes: Callable[[Node], dict[str, Any]] = lambda node: {},
    facts: Callable[[Node, Node], list[Fact]] = lambda before, after: [],
    also: Callable[[Change, Node], Awaitable[None]] | None = None,
    reason: str | None = None,
    due_in: float = 0.0,
    outcome: Done | Wait | Failed | None = None,
) -> Run:
    """The machine moves: with it the job goes on, is parked, or ends; `also` adds what else
    becomes true with it, and `facts` what else is told of the node before and after. `outcome` is
    what its step answered, if that is why.
    """
    begun, job = run.job.switching, switching.after(job, outcome)

    async def decide(change: Change, node: Node) -> Node:
        if event == Event.RESUME and node.target_power_state is not None:
            raise Lost(f"the power of {node.uuid} is being changed since it was looked at")
        fields = switching.recorded(begun if isinstance(outcome, Done) else None, changes(node))
        if reason is not None:
            fields = {"wait_reason": reason, **fields}
        if outcome is not None:
            change.tell(*switching.of_move(begun, node, fields, change.now, outcome))
        applied = apply(
            change, ctx.rules, node, event, job=job_text(job), held=run.held, reason=reason,
            due_in=due_in, changes=fields,
        )  # fmt: skip
        change.tell(*facts(node, applied.value), *watch_facts.settled(node, applied.value))
        if also is not None:
            await also(change, node)
        tell_compute.note(ctx, change, node, applied.value)
        return applied.value

    node = await reported(ctx, run, decide)
    kind = ctx.rules.machine.states[node.provision_state].work or run.held.kind
    held = work.moved_on(run.held, kind=kind, deadline=ctx.door.clock() + _deadline(ctx, node))
    return Run(held, node, job)


def _deadline(ctx: Context, node: Node) -> float:
    state = ctx.rules.machine.states[node.provision_state]
    return (state.deadline_s or 0.0) * ctx.settings.deadline_scale


async def waits(ctx: Context, run: Run, job: Job, outcome: Wait) -> None:
    """Nothing moves yet: let go of the lease for a while, and show why."""
    reason, before = outcome.reason, job
    job = switching.after(before, outcome)

    async def decide(change: Change, node: Node) -> Node:
        shown = {"wait_reason": reason, **with_power(after_step(run.family, job, node, outcome))}
        after = shown_waiting(ctx, change, node, shown, begun=before.switching, outcome=outcome)
        change.put(
            work.park(run.held, job=job_text(job), due=change.now + outcome.again_in, reason=reason)
        )
        return after

    await reported(ctx, run, decide)


def shown_waiting(
    ctx: Context,
    change: Change,
    node: Node,
    shown: dict[str, Any],
    *,
    begun: PowerTarget | None,
    outcome: Wait,
) -> Node:
    """The node with what it shows while its step waits, and what that step says of its power."""
    after, begins = node, switching.left(begun, outcome)
    if any(getattr(node, name) != value for name, value in shown.items()):
        after = node.changed(change.now, shown)
        change.put(NODES.swap(node, after))
    if begun is None and begins is not None:
        change.tell(telling.power_set("start", after, begins))
    elif outcome.power is not None:
        ended = switching.ended(begun, node, after)
        change.tell(*ended, *watch_facts.settled(node, after))
        tell_compute.note(ctx, change, node, after)
    return after


async def still_silent(ctx: Context, run: Run, outcome: Wait) -> None:
    """Still waiting for a call back. If the ramdisk is there, the time that it may be silent begins
    anew; one that calls and does not answer, or is away, has only what is left.
    """
    job = switching.after(run.job, outcome)

    async def decide(change: Change, node: Node) -> Node:
        shown = {"wait_reason": outcome.reason, **learned(node, outcome)}
        deadline, due = run.held.deadline, change.now + outcome.again_in
        if outcome.is_away:
            due = deadline
        elif outcome.callback:
            patience_s = ctx.settings.callback_timeout_s
            deadline = due = change.now + patience_s
            if _is_off(node.deadline, deadline, min(SHOWN_LATE_S, patience_s / 10)):
                shown["deadline"] = iso(deadline)
        after = shown_waiting(ctx, change, node, shown, begun=run.job.switching, outcome=outcome)
        change.put(
            work.park(
                run.held, job=job_text(job), due=due, deadline=deadline, reason=outcome.reason
            )
        )
        return after

    await reported(ctx, run, decide)


def _is_off(shown: str | None, deadline: float, by_s: float) -> bool:
    return shown is None or abs(deadline - seconds(shown)) > by_s


async def abandon(ctx: Context, held: Work) -> None:
    """The node is gone, and its work with it."""
    change = ctx.door.change(Cause(held.request_id))
    change.put(work.done(held))
    await ctx.door.commit(change)


async def wake(ctx: Context, machine: str) -> None:
    """Have the parked provisioning work of a node looked at now."""
    change = ctx.door.change(Cause())
    change.work(work.wake(machine, ctx.rules.lane, change.now))
    await ctx.door.commit(change)


async def cleanup_waits(ctx: Context, held: Work, node: Node, outcome: Wait) -> None:
    """What an abort left behind cannot be tidied up yet. What is to be remembered is so if `node`
    is as the driver was told.
    """

    async def decide(change: Change) -> None:
        change.put(work.park(held, due=change.now + outcome.again_in, reason=outcome.reason))
        if outcome.remember and await NODES.get(ctx.door.store, node.uuid) == node:
            fields = remembered(node, outcome.remember)
            change.put(NODES.swap(node, node.changed(change.now, fields)))

    await ctx.door.attempt(Cause(held.request_id), held.machine, decide, held=held)
