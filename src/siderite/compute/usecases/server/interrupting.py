"""An action that another one interrupts: what is on record of it ends too."""

import msgspec

from siderite.compute import store as rows
from siderite.compute.domain.job import Job
from siderite.compute.domain.job import events_text
from siderite.compute.domain.job import job_of
from siderite.compute.domain.server import Server
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.server import kinds
from siderite.core import work
from siderite.core.store import Op
from siderite.core.times import iso
from siderite.core.transition import Change
from siderite.core.work import Work

_MOVES = frozenset({"resize", "migrate", "live-migration", "evacuate"})
_FILLS = frozenset({"createImage", "createBackup"})
DISCARD, REMOVE = "discard", "remove"
"""What becomes of an image that somebody was filling: it goes unless it is whole by now, or in any
case. They are arguments of the work that interrupts it, too.
"""


async def _item(ctx: Context, server: Server) -> Work | None:
    if server.task_state is None:
        return None
    for item in await work.of_machine(ctx.door.store, server.uuid):
        if item.lane == ctx.rules.lane:
            return item
    return None


async def under_way(ctx: Context, server: Server) -> Job | None:
    """What is being done to a server, if anything is."""
    item = await _item(ctx, server)
    return None if item is None else job_of(item.job)


async def give_up(
    ctx: Context, change: Change, server: Server, *, for_action: str
) -> dict[str, str]:
    """End the action under way, if there is one; the image that will not be filled, if any, by what
    is to become of it.
    """
    item = await _item(ctx, server)
    if item is None:
        return {}
    job, why = job_of(item.job), f"given up: {for_action} was asked for"
    if job.request_id is not None:
        change.put(_ended(change, server, job, why))
    change.tell(*kinds.given_up(item.kind.removeprefix("server."), server, job, why))
    if job.action in _MOVES:
        change.put(rows.migration_becomes(job.op, "cancelled", iso(change.now)))
    return _unfilled(server, job)


def _unfilled(server: Server, job: Job) -> dict[str, str]:
    if job.action in _FILLS:
        return {DISCARD: job.args["image"]}
    if job.action == "shelve" and job.args["image"] != server.shelved_image:
        return {REMOVE: job.args["image"]}
    return {word: job.args[word] for word in (DISCARD, REMOVE) if word in job.args}


def _ended(change: Change, server: Server, job: Job, why: str) -> Op:
    at = iso(change.now)
    events = [
        event
        if event.finish_time is not None
        else msgspec.structs.replace(event, finish_time=at, result="Error", details=why)
        for event in job.events
    ]
    return rows.action_goes_on(
        server.uuid, job.request_id or "", job.action, at=at, message="Error",
        events=events_text(events),
    )  # fmt: skip
