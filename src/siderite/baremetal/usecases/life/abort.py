"""A client aborts what a node waits for.

A step that can be interrupted is given up at once; one that cannot is let finish, and the abort
happens then: the node shows `abort_after` on its step.
"""

from typing import Any

import msgspec

from siderite.baremetal.domain import facts
from siderite.baremetal.domain import hook_facts
from siderite.baremetal.domain.hook import GIVEN_UP
from siderite.baremetal.domain.hook_facts import By
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.node_machine import Event
from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.domain.steps import CHILD_STEPS
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Job
from siderite.baremetal.domain.steps import job_of
from siderite.baremetal.domain.steps import job_text
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.node.find import Guard
from siderite.core import work
from siderite.core.errors import Conflict
from siderite.core.machine import Kind
from siderite.core.times import iso
from siderite.core.transition import Change
from siderite.core.transition import apply
from siderite.core.work import Work

CLEANUP_S = 600.0

STEP_FIELDS = {
    Family.CLEAN: "clean_step",
    Family.DEPLOY: "deploy_step",
    Family.SERVICE: "service_step",
}


class Cleanup(msgspec.Struct, frozen=True):
    """What is left to do after an abort: forget the run of `token` (without one, any ramdisk in
    place of the workload), then perhaps fire `then`, if the node has not moved on `since` then;
    with `back`, the workload is to run again.
    """

    token: str
    then: str | None = None
    since: str | None = None
    back: bool = False

    def is_of(self, node: Node) -> bool:
        """Whether the node is still where the abort has brought it."""
        return self.since in (None, node.provision_updated_at)


async def abort(ctx: Context, change: Change, node: Node, guard: Guard) -> Node:
    """Give up what the node waits for, now or as soon as its step allows. The guard lets those pass
    who may answer its hook.
    """
    if node.provision_state == P.SERVICEFAIL:
        if node.maintenance:
            raise Conflict(
                f"Node {node.uuid} is in maintenance; clear that before aborting its service."
            )
        tidy_up(ctx, change, node, "", back=True)
        return apply(
            change, ctx.rules, node, Event.ABORT,
            changes={"last_error": None, **without_steps(node)},
        ).value  # fmt: skip
    held = next(
        (
            item
            for item in await work.of_machine(ctx.door.store, node.uuid)
            if item.lane == ctx.rules.lane
        ),
        None,
    )
    job = job_of(held.job) if held is not None else None
    if held is not None and job is not None:
        check_hook(held, job, node, guard)
    step = job.current if job is not None else None
    waits = NODE.states[node.provision_state].kind is Kind.WAIT
    if held is not None and job is not None and step is not None:
        visible = held.kind in STEP_FIELDS
        if waits and visible and job.waiting and not step.abortable:
            return _later(change, node, held, job)
    return _now(ctx, change, node, job)


def check_hook(held: Work, job: Job, node: Node, guard: Guard) -> None:
    """Refuse to end work that a hook holds to whom the guard does not let, unless it is theirs."""
    if job.hold is not None and held.kind not in GIVEN_UP:
        guard(node)


def _later(change: Change, node: Node, held: Work, job: Job) -> Node:
    field = STEP_FIELDS[Family(held.kind)]
    if job.abort:
        return node  # that was asked for already
    after = node.changed(change.now, {field: {**getattr(node, field), "abort_after": True}})
    change.put(NODES.swap(node, after))
    change.tell(*facts.node_updated(node, after))
    # Anew: whoever looks at the step just now does not know of this, and must not write over it.
    change.work(
        work.add(node.uuid, held.lane, held.kind, job=job_text(job.with_(abort=True)),
                 now=change.now, due=held.due, deadline=held.deadline,
                 reason="to be aborted when the current step ends", request_id=held.request_id,
                 pool=held.pool)
    )  # fmt: skip
    return after


def without_steps(node: Node) -> dict[str, Any]:
    """The node's fields without steps of work that has been given up, as far as it shows any."""
    changes: dict[str, Any] = {field: {} for field in STEP_FIELDS.values() if getattr(node, field)}
    gone = {f"{family}_step{end}" for family in STEP_FIELDS for end in ("s", "_index")}
    gone.add(CHILD_STEPS)
    info = node.driver_internal_info
    if not gone.isdisjoint(info):
        kept = {key: value for key, value in info.items() if key not in gone}
        changes["driver_internal_info"] = kept
    return changes


def without_password(node: Node) -> dict[str, Any]:
    """The node's field without the password of a rescue that has ended, if there is one."""
    if "rescue_password" not in node.instance_info:
        return {}
    kept = {key: value for key, value in node.instance_info.items() if key != "rescue_password"}
    return {"instance_info": kept}


def _now(ctx: Context, change: Change, node: Node, job: Job | None) -> Node:
    step = job.current if job is not None and job.waiting else None
    doing = f" during step {step.interface}.{step.step}" if step is not None else ""
    what = node.provision_state
    changes: dict[str, Any] = {"last_error": f"Aborted by request in state {what}{doing}."}
    changes |= without_password(node) | without_steps(node)
    applied = apply(change, ctx.rules, node, Event.ABORT, changes=changes)
    servicing = node.provision_state in (P.SERVICEWAIT, P.SERVICEHOLD)
    then = Event.ABORT if servicing else None
    tidy_up(ctx, change, node, job.token if job is not None else "", then, back=servicing)
    if job is not None and job.switching is not None:
        change.tell(facts.power_set("error", applied.value, job.switching))
    if job is not None and job.hold is not None:
        change.tell(
            hook_facts.hook("error", applied.value, job, job.hold, by=By.ABORT, reason="aborted")
        )
    return applied.value


def tidy_up(
    ctx: Context,
    change: Change,
    node: Node,
    token: str,
    then: Event | None = None,
    *,
    back: bool = False,
) -> None:
    """Have the driver forget the run of `token` of a node that moves with this change; then perhaps
    fire an event. See `Cleanup`.
    """
    cleanup = Cleanup(token, then, iso(change.now), back)
    change.work(
        work.add(node.uuid, "cleanup", "cleanup", job=msgspec.json.encode(cleanup).decode(),
                 now=change.now, deadline=change.now + CLEANUP_S,
                 reason="tidying up after an abort",
                 request_id=change.cause.request_id, pool=ctx.rules.pool(node))
    )  # fmt: skip
