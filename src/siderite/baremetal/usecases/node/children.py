"""Steps on the children of a node: each child is asked, and the parent's work notes, in the same
commit, whom it has asked. Power is changed as if a client had asked for it. Any other step is a job
of the child's own, so that nothing else is done to it meanwhile; what came of it stands on the
child, under `OWN`. Meanwhile clients' verbs are refused (`domain.steps.serves_its_parent`).
"""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import msgspec

from siderite.baremetal.domain import facts
from siderite.baremetal.domain import switching
from siderite.baremetal.domain import watch_facts
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.domain.steps import CHILD_STEPS
from siderite.baremetal.domain.steps import OWN
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Json
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.domain.steps import job_text
from siderite.baremetal.domain.steps import on_children
from siderite.baremetal.domain.steps import serves_its_parent
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life import progress
from siderite.baremetal.usecases.life.progress import Run
from siderite.baremetal.usecases.node import find
from siderite.baremetal.usecases.node.find import Guard
from siderite.baremetal.usecases.power import power
from siderite.baremetal.usecases.power import tell_compute
from siderite.core import work
from siderite.core.errors import Busy
from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.store.table import Where
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who
from siderite.core.work import Work

KIND = LANE = "parent_step"


class ChildJob(msgspec.Struct, frozen=True):
    """The job in the work row of a child."""

    parent: str
    family: Family
    step: Step
    token: str
    waiting: bool = False
    """The step was begun, if it is one that begins with a change of power."""
    switching: PowerTarget | None = None
    """What the step brings the child's power to: that it does so was announced."""

    def with_(self, **changes: Any) -> "ChildJob":
        """The job with these fields changed."""
        return msgspec.structs.replace(self, **changes)


Begin = Callable[[Change, Node], object]
"""Puts what is asked of a child into the change, or says why it cannot be now."""


async def of(ctx: Context, parent: str, only: Sequence[str]) -> list[Node]:
    """The children of a node, or those of them that are named."""
    found = await NODES.find(ctx.door.store, Where("parent_node = ?", (parent,)))
    return [child for child in found if not only or child.uuid in only]


async def check(ctx: Context, node: Node, steps: Sequence[Json], who: Who, guard: Guard) -> None:
    """Refuse steps on children that are none, or that the caller may do nothing to."""
    for step in steps:
        only = on_children(step)
        if only is None:
            continue
        children = await of(ctx, node.uuid, only)
        missing = sorted({*only} - {child.uuid for child in children})
        if missing:
            raise Invalid(f"Node {node.uuid} has no child {missing[0]}; name only its children.")
        for child in children:
            if not find.may_see(who, child.owner, child.lessee):
                raise Forbidden(
                    f"Node {node.uuid} has children of other projects; name those that are yours"
                    " in limit_child_node_execution."
                )
            guard(child)


def asked(run: Run) -> list[str]:
    """The children that the current step has asked already."""
    memory = run.node.driver_internal_info.get(CHILD_STEPS) or {}
    return list(memory["asked"]) if memory.get("token") == run.job.token else []


def power_of(ctx: Context, run: Run, target: PowerTarget) -> Begin:
    """A child's power is to be changed."""
    return lambda change, child: power.begin(ctx, change, child, target, step=token_of(run, child))


def step_of(ctx: Context, run: Run, step: Step) -> Begin:
    """A step is to run on a child."""

    def begin(change: Change, child: Node) -> None:
        moves = NODE.states[child.provision_state].moves_by_itself
        serves = serves_its_parent(child.driver_internal_info)
        if moves or serves or child.target_power_state is not None:
            raise Busy(f"child node {child.uuid} has work of its own ({child.provision_state})")
        job = ChildJob(run.node.uuid, run.family, step, token_of(run, child))
        info = {**child.driver_internal_info, OWN: {"token": job.token}}
        after = child.changed(change.now, {"driver_internal_info": info})
        change.put(NODES.swap(child, after))
        change.work(
            work.add(
                child.uuid, LANE, KIND, job=_text(job), now=change.now,
                deadline=run.held.deadline, reason=f"a step of its parent {run.node.uuid}",
                request_id=change.cause.request_id, pool=ctx.rules.pool(child), known=after,
            )
        )  # fmt: skip

    return begin


def _text(job: ChildJob) -> str:
    return msgspec.json.encode(job).decode()


def token_of(run: Run, child: Node) -> str:
    """Names the run of the current step on a child."""
    return f"{run.job.token}/{child.uuid}"


def came_of(run: Run, child: Node) -> Json | None:
    """What is known of the current step on a child; None if nothing (any more)."""
    own = child.driver_internal_info.get(OWN) or {}
    return own if own.get("token") == token_of(run, child) else None


async def ask(ctx: Context, run: Run, child: Node, begin: Begin) -> None:
    """Ask a child, once; Conflict and the like if it cannot be now."""

    async def decide(change: Change, node: Node) -> Node:
        fresh = await NODES.get(ctx.door.store, child.uuid)
        if fresh is not None:
            begin(change, fresh)
        memory = {"token": run.job.token, "asked": [*asked(run), child.uuid]}
        info = {**node.driver_internal_info, CHILD_STEPS: memory}
        after = node.changed(change.now, {"driver_internal_info": info})
        change.put(NODES.swap(node, after))
        change.put(work.keep(run.held, job=job_text(run.job)))
        return after

    await progress.reported(ctx, run, decide)


async def switches(ctx: Context, held: Work, job: ChildJob, target: PowerTarget) -> ChildJob:
    """The step is about to change the child's power: that is announced before it does."""
    job = job.with_(waiting=True, switching=target)

    async def decide(change: Change) -> None:
        change.put(work.keep(held, job=_text(job), reason=held.reason))
        node = await NODES.get(ctx.door.store, held.machine)
        if node is not None:
            change.tell(facts.power_set("start", node, target))
            change.put(NODES.swap(node, node.touched()))

    await ctx.door.attempt(Cause(held.request_id), held.machine, decide, held=held)
    return job


async def waits(ctx: Context, held: Work, job: ChildJob, outcome: Wait) -> None:
    """The step on the child goes on: let go of its job for a while."""
    after = job.with_(switching=switching.left(job.switching, outcome))

    async def decide(change: Change) -> None:
        due = change.now + outcome.again_in
        change.put(work.park(held, job=_text(after), due=due, reason=outcome.reason))
        node = await NODES.get(ctx.door.store, held.machine)
        if node is not None:
            progress.shown_waiting(
                ctx, change, node, progress.learned(node, outcome),
                begun=job.switching, outcome=outcome,
            )  # fmt: skip

    await ctx.door.attempt(Cause(held.request_id), held.machine, decide, held=held)


async def ended(ctx: Context, held: Work, job: ChildJob, outcome: Done | Failed) -> None:
    """The step on the child is over; its parent looks at what came of it."""
    done, error = (outcome, None) if isinstance(outcome, Done) else (Done(), outcome.reason)

    async def decide(change: Change) -> None:
        change.put(work.done(held))
        change.work(work.wake(job.parent, ctx.rules.lane, change.now))
        node = await NODES.get(ctx.door.store, held.machine)
        if node is None:
            return
        told = {"token": job.token, "ended": True, "error": error}
        memory = progress.remembered(node, {**done.remember, OWN: told})
        begun = job.switching if error is None else None
        changes = switching.recorded(begun, {**done.changes, **memory})
        after = node.changed(change.now, changes)
        change.put(NODES.swap(node, after))
        change.tell(*switching.of_move(job.switching, node, changes, change.now, outcome))
        if done.changes:
            change.tell(*facts.node_updated(node, after))
        change.tell(*watch_facts.settled(node, after))
        tell_compute.note(ctx, change, node, after)

    await ctx.door.attempt(Cause(held.request_id), held.machine, decide, held=held)
