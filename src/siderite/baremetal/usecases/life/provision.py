"""A client asks for a verb: the machine is fired and the work that follows is made."""

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from typing import Any

from siderite.baremetal.domain import facts
from siderite.baremetal.domain import hook_facts
from siderite.baremetal.domain.driver_card import DriverCard
from siderite.baremetal.domain.hook_facts import By
from siderite.baremetal.domain.node import Json
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import INTERNAL
from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.node_machine import VERBS
from siderite.baremetal.domain.node_machine import Event
from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.domain.node_machine import legal_verbs
from siderite.baremetal.domain.steps import Job
from siderite.baremetal.domain.steps import job_of
from siderite.baremetal.domain.steps import job_text
from siderite.baremetal.usecases.beside import runbooks
from siderite.baremetal.usecases.beside import templates
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life import abort
from siderite.baremetal.usecases.life.refusals import check_own_master
from siderite.baremetal.usecases.life.refusals import check_steady
from siderite.baremetal.usecases.life.refusals import once_steady
from siderite.baremetal.usecases.life.refusals import protected
from siderite.baremetal.usecases.machine.hardware import card_of
from siderite.baremetal.usecases.machine.hardware import lacking
from siderite.baremetal.usecases.node import children
from siderite.baremetal.usecases.node import find
from siderite.baremetal.usecases.node.find import Guard
from siderite.baremetal.usecases.node.find import allow
from siderite.baremetal.usecases.node.validate import why_not_deployed
from siderite.core import work
from siderite.core.errors import Busy
from siderite.core.errors import IllegalVerb
from siderite.core.errors import Invalid
from siderite.core.errors import Unsupported
from siderite.core.ids import new_uuid
from siderite.core.machine import Kind
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.transition import apply
from siderite.core.who import Who

_NOT_IN_MAINTENANCE = frozenset({
    Event.DEPLOY, Event.REBUILD, Event.CLEAN, Event.SERVICE, Event.RESCUE, Event.UNRESCUE,
})  # fmt: skip
_NEEDS = {Event.INSPECT: "inspect", Event.RESCUE: "rescue"}
_WORDS = {Event.INSPECT: "inspected", Event.RESCUE: "rescued"}


@dataclass(frozen=True, slots=True)
class Ask:
    """A verb and what came with it, checked for its form."""

    verb: str
    steps: Sequence[Json] = ()
    configdrive: str | Json | None = None
    rescue_password: str | None = field(default=None, repr=False)
    disable_ramdisk: bool = False
    runbook: str | None = None
    """The runbook, by UUID or name, whose steps are asked for."""

    @property
    def event(self) -> Event:
        """The event that the verb fires."""
        return VERBS[self.verb]


@dataclass(frozen=True, slots=True)
class Guards:
    """What the caller may do to the node: ask for the verb at all, choose the steps that are run,
    end what a hook holds.
    """

    verb: Guard = allow
    steps: Guard = allow
    hold: Guard = allow


ALLOW = Guards()
"""The guards that let everything pass."""


async def ask(
    ctx: Context, ident: str, wish: Ask, *, who: Who, cause: Cause, guards: Guards = ALLOW
) -> Node:
    """Fire the verb, or say why not."""

    async def decide(change: Change) -> Node:
        node = await find.node(ctx, ident, who, guards.verb)
        _check(ctx, node, wish)
        if wish.event is Event.ABORT:
            return await abort.abort(ctx, change, node, guards.hold)
        if wish.event is Event.UNHOLD:
            return await _unhold(ctx, change, node, guards.hold)
        steps, disable_ramdisk = await _steps(ctx, node, wish, who, guards)
        if wish.event in (Event.DEPLOY, Event.REBUILD):
            await templates.steps_for(ctx, node, steps)
        job = Job(
            op=new_uuid(),
            asked=list(steps) or None,
            args={"disable_ramdisk": True} if disable_ramdisk else {},
        )
        changes = {"last_error": None, **_recorded(node, wish, change.now)}
        held = NODE.states[node.provision_state].kind in (Kind.HOLD, Kind.WAIT)
        if held:
            changes |= abort.without_steps(node)
        after = apply(change, ctx.rules, node, wish.event, job=job_text(job), changes=changes).value
        if held:
            await _end_hold(ctx, change, node, after, verb=wish.verb, guard=guards.hold)
        return after

    patience_s = ctx.settings.power_wait_s
    return await once_steady(lambda: ctx.door.attempt(cause, ident, decide), patience_s)


async def _steps(
    ctx: Context, node: Node, wish: Ask, who: Who, guards: Guards
) -> tuple[Sequence[Json], bool]:
    """The steps that are asked for, and whether no ramdisk is to be booted for them. Those of a
    public runbook are an administrator's choice; what else is run, the caller's project chose.
    """
    steps, disable_ramdisk, guard = wish.steps, wish.disable_ramdisk, guards.steps
    if wish.runbook is not None:
        runbook = await runbooks.for_node(ctx, wish.runbook, node, who)
        steps, disable_ramdisk = runbook.in_order, disable_ramdisk or runbook.disable_ramdisk
        guard = guards.verb if runbook.public else guards.steps
    if steps:
        guard(node)
    await children.check(ctx, node, steps, who, guard)
    return steps, disable_ramdisk


def _check(ctx: Context, node: Node, wish: Ask) -> None:
    event, state = wish.event, node.provision_state
    if node.maintenance and event in _NOT_IN_MAINTENANCE:
        raise Invalid(
            f"The provisioning operation can't be performed on node {node.uuid} because it's in"
            " maintenance mode. Clear maintenance first."
        )
    if node.protected and event in (Event.DELETE, Event.REBUILD):
        raise protected(node)
    if not is_legal(state, event):
        raise _refusal(node, wish.verb)
    if node.retired and event is Event.PROVIDE:
        raise Invalid(
            f"Node {node.uuid} is retired and cannot be made available; clear `retired` first."
        )
    check_steady(node)
    check_own_master(node)
    card = card_of(ctx.cards, node)
    kind = _NEEDS.get(event)
    if kind is not None:
        if not card.supports(node, kind):
            raise Unsupported(lacking(node, kind, kind))
        problem = card.shortcoming(node, kind)
        if problem is not None:
            raise Invalid(f"Node {node.uuid} cannot be {_WORDS[event]}: {problem.rstrip('.')}.")
    if event in (Event.DEPLOY, Event.REBUILD):
        _check_deployable(card, node)


def _check_deployable(card: DriverCard, node: Node) -> None:
    problem = why_not_deployed(card, node)
    if problem is not None:
        raise Invalid(
            f"Failed to validate deploy or power info for node {node.uuid}. Error: {problem}"
        )


def is_legal(state: str, event: Event) -> bool:
    """Whether a client may fire this event in this state."""
    if event in INTERNAL or state == P.DELETING or (state == P.CLEANING and event is Event.MANAGE):
        return False
    return NODE.can(state, event)


def _refusal(node: Node, verb: str) -> IllegalVerb | Busy:
    text = (
        f'The requested action "{verb}" can not be performed on node "{node.uuid}" while it is in'
        f' state "{node.provision_state}".'
    )
    if NODE.states[node.provision_state].kind is Kind.ACTIVE:
        # What drives it now ends, so that asking again helps: an Ironic would hold its lock.
        return Busy(
            f"{text} It is on its way to {node.target_provision_state!r}; please retry after the"
            " current operation is completed."
        )
    return IllegalVerb(f"{text} Legal here: {', '.join(legal_verbs(node.provision_state))}.")


def _recorded(node: Node, wish: Ask, now: float) -> dict[str, Any]:
    """What the node must remember of the request."""
    event = wish.event
    if event is Event.INSPECT:
        return {"inspection_started_at": iso(now), "inspection_finished_at": None}
    if event is Event.RESCUE:
        return {"instance_info": {**node.instance_info, "rescue_password": wish.rescue_password}}
    if event in (Event.DEPLOY, Event.REBUILD) and wish.configdrive is not None:
        return {"instance_info": {**node.instance_info, "configdrive": wish.configdrive}}
    return {}


async def _end_hold(
    ctx: Context, change: Change, before: Node, after: Node, *, verb: str, guard: Guard
) -> None:
    """The verb takes the place of work that may be held at a hook: whoever was asked is told."""
    for item in await work.of_machine(ctx.door.store, before.uuid):
        job = job_of(item.job) if item.lane == ctx.rules.lane else None
        if job is not None and job.switching is not None:
            change.tell(facts.power_set("error", after, job.switching))
        if job is not None and job.hold is not None:
            abort.check_hook(item, job, before, guard)
            change.tell(hook_facts.hook("error", after, job, job.hold, by=By.ABORT, reason=verb))


async def _unhold(ctx: Context, change: Change, node: Node, guard: Guard) -> Node:
    """Go on where the work was held; if that was at a hook, for whoever the guard lets."""
    held = [
        item
        for item in await work.of_machine(ctx.door.store, node.uuid)
        if item.lane == ctx.rules.lane
    ]
    job = job_of(held[0].job) if held else Job(op=new_uuid())
    hold, job = job.hold, job.released()
    if hold is not None:
        guard(node)
    applied = apply(
        change, ctx.rules, node, Event.UNHOLD, job=job_text(job),
        kind=held[0].kind if held else None, reason="the hold was released",
    )  # fmt: skip
    if hold is not None:
        change.tell(hook_facts.hook("end", applied.value, job, hold, by=By.UNHOLD, reason="unhold"))
    return applied.value
