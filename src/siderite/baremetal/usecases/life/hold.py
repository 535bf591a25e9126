"""A node that is held at a hook: what it is held for, and the outside service's answer."""

import msgspec

from siderite.baremetal.domain import hook_facts
from siderite.baremetal.domain.hook_facts import By
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Hold
from siderite.baremetal.domain.steps import Job
from siderite.baremetal.domain.steps import job_of
from siderite.baremetal.domain.steps import job_text
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life import abort
from siderite.baremetal.usecases.life import hooks
from siderite.baremetal.usecases.life.refusals import check_own_master
from siderite.baremetal.usecases.life.refusals import check_steady
from siderite.baremetal.usecases.life.refusals import once_steady
from siderite.baremetal.usecases.node import find
from siderite.baremetal.usecases.node.find import Guard
from siderite.core import work
from siderite.core.errors import Conflict
from siderite.core.errors import NotFound
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.transition import apply
from siderite.core.who import Who
from siderite.core.work import Work


class Answer(msgspec.Struct, frozen=True):
    """What the outside service says: `proceed`, `fail` with a reason, or `extend` by seconds.

    `hold` names the stop that is meant; without it, whichever there is.
    """

    word: str
    reason: str | None = None
    seconds: int = 0
    hold: str | None = None


class Held(msgspec.Struct, frozen=True):
    """A held node, its work and its stop."""

    node: Node
    work: Work
    job: Job
    stop: Hold


async def _find(ctx: Context, node: Node) -> Held | None:
    for item in await work.of_machine(ctx.door.store, node.uuid):
        if item.lane == ctx.rules.lane:
            job = job_of(item.job)
            if job.hold is not None:
                return Held(node, item, job, job.hold)
    return None


async def show(ctx: Context, ident: str, who: Who) -> Held:
    """What a node is held for."""
    node = await find.node(ctx, ident, who)
    held = await _find(ctx, node)
    if held is None:
        raise NotFound(f"Node {node.uuid} is not held at a hook; it is {node.provision_state}.")
    return held


async def answer(
    ctx: Context, ident: str, said: Answer, *, who: Who, cause: Cause, guard: Guard
) -> Node:
    """The outside service has decided."""

    async def decide(change: Change) -> Node:
        node = await find.node(ctx, ident, who, guard)
        held = await _find(ctx, node)
        if held is None or said.hold not in (None, held.stop.id):
            raise Conflict(
                f"Node {node.uuid} is not held for that (any more): it is {node.provision_state}."
            )
        if said.word == "extend":
            return _extend(ctx, change, held, said)
        check_own_master(node)
        check_steady(node)
        if said.word == "fail":
            return _fail(ctx, change, held, said)
        return _proceed(ctx, change, held, said)

    patience_s = ctx.settings.power_wait_s
    return await once_steady(lambda: ctx.door.attempt(cause, ident, decide), patience_s)


def _proceed(ctx: Context, change: Change, held: Held, said: Answer) -> Node:
    job = held.job.released()
    applied = apply(
        change, ctx.rules, held.node, hooks.going_on(held.node), job=job_text(job),
        kind=held.work.kind, reason=f"hook {held.stop.name} let it go on",
    )  # fmt: skip
    change.tell(
        hook_facts.hook("end", applied.value, job, held.stop, by=By.ANSWER, reason=said.reason)
    )
    return applied.value


def _fail(ctx: Context, change: Change, held: Held, said: Answer) -> Node:
    reason = f"hook {held.stop.name} said no: {said.reason}"
    fields = hooks.failed_fields(Family(held.work.kind), held.node, reason)
    applied = apply(change, ctx.rules, held.node, hooks.failing(held.node), changes=fields)
    if held.work.kind != Family.SERVICE:  # its abort brings the workload back
        abort.tidy_up(ctx, change, held.node, held.job.token)
    change.tell(
        hook_facts.hook(
            "error", applied.value, held.job, held.stop, by=By.ANSWER, reason=said.reason
        )
    )
    return applied.value


def _extend(ctx: Context, change: Change, held: Held, said: Answer) -> Node:
    stop = msgspec.structs.replace(held.stop, until=change.now + said.seconds)
    job = held.job.with_(hold=stop)
    reason = hooks.why_held(stop)
    after = held.node.changed(change.now, {"deadline": iso(stop.until), "wait_reason": reason})
    change.put(NODES.swap(held.node, after))
    change.work(
        work.add(
            held.node.uuid, ctx.rules.lane, held.work.kind, job=job_text(job), now=change.now,
            due=stop.until, deadline=work.FAR, reason=reason, request_id=held.work.request_id,
            pool=held.work.pool,
        )
    )  # fmt: skip
    change.tell(hook_facts.hook("success", after, job, stop, by=By.ANSWER, reason=said.reason))
    return after
