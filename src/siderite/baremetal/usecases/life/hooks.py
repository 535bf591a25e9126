"""Hooks: registered by operators; and the stop that one makes of the work on a node.

While a node is held its work is parked until the hold's deadline. Whoever answers first, the
outside service, an operator (`unhold`, `abort`) or the deadline, wins by the compare-and-swap of
the node; the others find that it is not held any more.
"""

from typing import Any

from siderite.baremetal.domain import facts
from siderite.baremetal.domain import hook_facts
from siderite.baremetal.domain.hook import FAIL
from siderite.baremetal.domain.hook import FAMILIES
from siderite.baremetal.domain.hook import Hook
from siderite.baremetal.domain.hook_facts import By
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.node_machine import Event
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Hold
from siderite.baremetal.domain.steps import serves_its_parent
from siderite.baremetal.store import HOOKS
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.beside.records import Records
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life import abort
from siderite.baremetal.usecases.life import progress
from siderite.baremetal.usecases.life.progress import Run
from siderite.core import work
from siderite.core.ids import new_uuid
from siderite.core.times import iso
from siderite.core.transition import Change

LOOK_AGAIN_S = 10.0
"""How soon an overdue hold is looked at again while its node is in maintenance."""
STEADY_S = 1.0
"""The same while something else is done to its machine."""
RECENT_S = 0.05
"""How long what was read of hooks is good for, within one piece of work."""

RECORDS = Records(
    kind=Hook,
    table=HOOKS,
    facts=facts.HOOK,
    command="hook",
    unique={"name": "A hook with name {0.name} already exists; choose another name."},
)


async def at(ctx: Context, run: Run) -> tuple[Run, Hook | None]:
    """The hook that stops the work here, if there is one: the oldest that has not let it pass; and
    the run, which knows of the hooks for a moment. Those that were there before it began are so
    always seen.
    """
    if run.family not in FAMILIES or run.job.waiting:
        return run, None
    now = ctx.door.clock()
    if not 0 <= now - run.hooks[0] < RECENT_S:
        found = await HOOKS.all(ctx.door.store)
        run = Run(run.held, run.node, run.job, (now, found))
    return run, next((hook for hook in run.hooks[1] if hook.wants(run.node, run.job)), None)


async def hold(ctx: Context, run: Run, hook: Hook) -> None:
    """The node is held, and says for whom and until when."""
    stop = hook.hold(new_uuid(), run.job.index, ctx.door.clock())
    job = run.job.with_(hold=stop)
    reason = why_held(stop)

    def fields(node: Node) -> dict[str, Any]:
        shown = progress.shown_step(run.family, job, node)
        return {**shown, "deadline": iso(stop.until)}

    await progress.moved(
        ctx, run, holding(run.node), job, reason=reason, due_in=hook.deadline_s, changes=fields,
        facts=lambda _, node: [hook_facts.hook("start", node, job, stop, reason=reason)],
    )  # fmt: skip


def why_held(stop: Hold) -> str:
    """What a node shows while it is held."""
    then = "the work then fails" if stop.on_deadline == FAIL else "the work then goes on"
    return f"held by hook {stop.name} for an answer by {iso(stop.until)}; {then}"


async def looked_at(ctx: Context, run: Run) -> Run | None:
    """A held node's work was woken: if the hold's time is up, its hook's own policy is followed,
    though not in maintenance, where nothing is done to a node for the time that it took. What is to
    be gone on with at once, if anything. A hold that a step made has no such time.
    """
    stop, now = run.job.hold, ctx.door.clock()
    if stop is None or now < stop.until:
        due = work.FAR if stop is None else stop.until
        await _stays(ctx, run, due, run.held.reason)
        return None
    if run.node.maintenance:
        reason = f"{why_held(stop)}: overdue, but the node is in maintenance"
        await _stays(ctx, run, now + LOOK_AGAIN_S, reason)
        return None
    other = _other_work(run.node)
    if other is not None:
        await _stays(ctx, run, now + STEADY_S, f"{why_held(stop)}: overdue, but {other}")
        return None
    reason = f"hook {stop.name} had no answer by {iso(stop.until)}"
    if stop.on_deadline == FAIL:
        await _fail_late(ctx, run, stop, reason)
        return None
    job, event = run.job.released(), going_on(run.node)
    after = await progress.moved(
        ctx, run, event, job, reason=reason,
        facts=lambda _, node: [
            hook_facts.hook("end", node, job, stop, by=By.DEADLINE, reason=reason)
        ],
    )  # fmt: skip
    return after if event is Event.RESUME else None


def _other_work(node: Node) -> str | None:
    """What is done to the machine though its work is held."""
    if node.target_power_state is not None:
        return "the machine's power is being changed"
    if serves_its_parent(node.driver_internal_info):
        return f"it runs a step for its parent {node.parent_node}"
    return None


async def _stays(ctx: Context, run: Run, due: float, reason: str | None) -> None:
    """The node is still held, and its work looked at again when it is due."""

    async def decide(change: Change, node: Node) -> Node:
        after = node
        if reason is not None and node.wait_reason != reason:
            after = node.changed(change.now, {"wait_reason": reason})
            change.put(NODES.swap(node, after))
        change.put(work.park(run.held, due=due, deadline=work.FAR, reason=reason))
        return after

    await progress.reported(ctx, run, decide)


async def _fail_late(ctx: Context, run: Run, stop: Hold, reason: str) -> None:
    async def tidy(change: Change, node: Node) -> None:
        if run.family is not Family.SERVICE:  # its abort brings the workload back
            abort.tidy_up(ctx, change, node, run.job.token)

    await progress.moved(
        ctx, run, failing(run.node), run.job, also=tidy,
        changes=lambda node: failed_fields(run.family, node, reason),
        facts=lambda _, node: [
            hook_facts.hook("error", node, run.job, stop, by=By.DEADLINE, reason=reason)
        ],
    )  # fmt: skip


def holding(node: Node) -> Event:
    """The event by which work on a node stops: into its hold state, or else its wait state."""
    return Event.HOLD if NODE.can(node.provision_state, Event.HOLD) else Event.WAIT


def going_on(node: Node) -> Event:
    """The event by which a held node's work goes on."""
    return Event.UNHOLD if NODE.can(node.provision_state, Event.UNHOLD) else Event.RESUME


def failing(node: Node) -> Event:
    """The event by which a held node fails."""
    return Event.FAIL if NODE.can(node.provision_state, Event.FAIL) else Event.ABORT


def failed_fields(family: Family, node: Node, reason: str) -> dict[str, Any]:
    """What a node shows whose hook let it fail."""
    return {"last_error": reason, "deadline": None, **progress.cleared_step(family, node)}
