"""How each kind of provisioning work ends: what the node then shows, and which event is fired."""

from functools import partial
from typing import Any

import msgspec

from siderite.baremetal.domain import facts
from siderite.baremetal.domain.hardware import Found
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import Event
from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Job
from siderite.baremetal.usecases.beside import allocations
from siderite.baremetal.usecases.beside import inspection_rules
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life import abort
from siderite.baremetal.usecases.life import cut_short
from siderite.baremetal.usecases.life import progress
from siderite.baremetal.usecases.life.progress import Run
from siderite.baremetal.usecases.machine import console
from siderite.baremetal.usecases.node import details
from siderite.baremetal.usecases.node import vifs
from siderite.baremetal.usecases.power import power_schedule
from siderite.core.fact import Fact
from siderite.core.ids import new_uuid
from siderite.core.times import iso
from siderite.core.transition import Change

_FAULTS = {Family.CLEAN: "clean failure", Family.SERVICE: "service failure"}
_LEAVE_NOTHING = (Family.RESCUE, Family.DEPLOY, Family.INSPECT)
"""A rescue system without a password for its user is none, what a deploy has left on the disk is
neither the old nor the new, and nobody waits for what an inspection finds any more: none of them
goes on running when it failed.
"""
_WIPED: dict[str, Any] = {
    "instance_info": {},
    "instance_uuid": None,
    "instance_name": None,
    "console_enabled": False,
    "allocation_uuid": None,
}


async def verified(
    ctx: Context, run: Run, power: PowerState, changes: dict[str, Any], found: Found,
    *, last: Done | None = None,
) -> None:  # fmt: skip
    """The machine answered: it can be managed. `changes` is what else it told of itself, `found`
    what is kept beside the node, `last` what came of switching it off, if it was.
    """

    async def kept(change: Change, node: Node) -> None:
        await details.put(ctx, change, node.uuid, found)
        change.put(power_schedule.look_soon(node.uuid, change.now))

    def told(before: Node, after: Node) -> list[Fact]:
        if last is not None or before.power_state == after.power_state:
            return []
        return [facts.power_corrected(after, before.power_state)]

    def fields(node: Node) -> dict[str, Any]:
        known = {} if last is None else progress.remembered(node, last.remember)
        return {**changes, **known, "power_state": power.wire, "last_error": None}

    await progress.moved(
        ctx, run, Event.DONE, run.job, changes=fields, facts=told, also=kept, outcome=last
    )


async def finished(ctx: Context, run: Run, last: Done) -> Run | None:
    """All steps are done; `last` is what the last of them answered."""
    changes = last.changes
    if run.family is Family.TEARDOWN:
        return await progress.moved(
            ctx, run, Event.CLEAN, Job(op=new_uuid()),
            changes=lambda node: {
                **changes, **progress.remembered(node, last.remember), **_WIPED, "deploy_step": {},
            },
            facts=_console_stopped, also=partial(_released, ctx), outcome=last,
        )  # fmt: skip
    if run.family is Family.INSPECT:
        await _inspected(ctx, run, last)
        return None
    event = Event.DONE
    if run.family is Family.CLEAN and (
        run.node.target_provision_state == P.MANAGEABLE or run.node.retired
    ):
        event = Event.MANAGE
    await progress.moved(
        ctx, run, event, run.job, changes=lambda node: _ended_well(ctx, run, last, node),
        outcome=last,
    )  # fmt: skip
    return None


async def _inspected(ctx: Context, run: Run, last: Done) -> None:
    """The rules have their say in what follows. If they give the node to others, its console ends
    with that.
    """
    court = await inspection_rules.court(ctx, run.node.uuid)
    verdict = court.judge(msgspec.structs.replace(run.node, **last.changes))
    inspection_rules.say(run.node, verdict)
    if verdict.failure is not None:
        await failed(ctx, run, verdict.failure, in_step=False, last=last)
        return
    is_given = False

    def fields(node: Node) -> dict[str, Any]:
        nonlocal is_given
        judged = court.judge(msgspec.structs.replace(node, **last.changes)).changes
        is_given = console.changes_hands(node, judged)
        if is_given:
            judged["console_enabled"] = False
        return _ended_well(ctx, run, last, node, judged)

    async def shut(change: Change, node: Node) -> None:
        if is_given:
            await _no_console(ctx, change, node)

    await progress.moved(
        ctx, run, Event.DONE, run.job, changes=fields, also=shut, outcome=last,
        facts=_console_stopped,
    )  # fmt: skip


def _ended_well(
    ctx: Context, run: Run, last: Done, node: Node, judged: dict[str, Any] | None = None
) -> dict[str, Any]:
    """What a node shows whose work has ended well."""
    memory = progress.remembered(node, last.remember)
    known = msgspec.structs.replace(node, **memory) if memory else node
    return {
        "last_error": None,
        **last.changes,
        **(judged or {}),
        **memory,
        **progress.cleared_step(run.family, known),
        **_memories(run.family, ctx.door.clock()),
    }


def _memories(family: Family, now: float) -> dict[str, Any]:
    """What the node remembers of work that went well."""
    if family is Family.INSPECT:
        return {"inspection_finished_at": iso(now)}
    return {}


async def failed(
    ctx: Context, run: Run, reason: str, *, in_step: bool, last: Done | None = None
) -> None:
    """It cannot be done. A step that failed half-way leaves the machine in an unknown state; with
    `last` all went well, and what came of it will not do.
    """
    text = f"{_WORDS[run.family]} failed: {reason}"

    def fields(node: Node) -> dict[str, Any]:
        changes: dict[str, Any] = {"last_error": text, **progress.cleared_step(run.family, node)}
        if last is not None and "power_state" in last.changes:
            changes["power_state"] = last.changes["power_state"]
        fault = _FAULTS.get(run.family)
        if in_step and fault is not None and not run.job.abort:
            changes |= {"maintenance": True, "maintenance_reason": text, "fault": fault}
        if run.family is Family.TEARDOWN:
            changes |= _WIPED
        return changes

    if run.family is Family.TEARDOWN:
        await progress.moved(
            ctx, run, Event.FAIL, run.job, changes=fields, facts=_console_stopped,
            also=partial(_released, ctx), outcome=Failed(text),
        )  # fmt: skip
        return
    also = partial(_no_ramdisk, ctx, run, None) if run.family in _LEAVE_NOTHING else None
    await progress.moved(
        ctx, run, Event.FAIL, run.job, changes=fields, also=also, outcome=last or Failed(text)
    )


async def aborted(ctx: Context, run: Run, reason: str) -> None:
    """A step that could not be interrupted has ended, and with it what a client has aborted: as
    any abort, it leaves no ramdisk, and a service brings the node back to `active`.
    """
    then = Event.ABORT if run.family is Family.SERVICE else None
    text = f"{_WORDS[run.family]} failed: {reason}"
    await progress.moved(
        ctx, run, Event.FAIL, run.job, also=partial(_no_ramdisk, ctx, run, then),
        changes=lambda node: {"last_error": text, **progress.cleared_step(run.family, node)},
        outcome=Failed(text),
    )  # fmt: skip


async def _no_ramdisk(
    ctx: Context, run: Run, then: Event | None, change: Change, node: Node
) -> None:
    abort.tidy_up(ctx, change, node, run.job.token, then, back=then is not None)


async def _released(ctx: Context, change: Change, node: Node) -> None:
    """The instance is gone: so are its allocation, its virtual interfaces and its console."""
    await allocations.end_with(ctx, change, node)
    await vifs.release_all(ctx, change, node)
    await _no_console(ctx, change, node)


async def _no_console(ctx: Context, change: Change, node: Node) -> None:
    await cut_short.consoles(ctx, change, node)
    change.put(console.forget(node.uuid))


def _console_stopped(before: Node, after: Node) -> list[Fact]:
    """An instance's console ends with it: whoever comes next does not find it open."""
    if after.console_enabled or not before.console_enabled:
        return []
    return [facts.console("console_stop", status, after) for status in ("start", "end")]


_WORDS = {
    Family.VERIFY: "verifying",
    Family.CLEAN: "cleaning",
    Family.DEPLOY: "deploying",
    Family.SERVICE: "servicing",
    Family.INSPECT: "inspection",
    Family.ADOPT: "adoption",
    Family.RESCUE: "rescue",
    Family.UNRESCUE: "unrescue",
    Family.TEARDOWN: "tearing down",
}
