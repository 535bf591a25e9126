"""An image's data fetched from an address: queued, then importing, then active, or queued again
with a sentence why.

The download is durable work. The record speaks of no file until all of it is there, so that whoever
carries on after a crash begins the download anew, and nobody ever sees half an image.
"""

import msgspec

from siderite.core import work
from siderite.core.errors import Busy
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.ids import is_uuid
from siderite.core.ids import new_uuid
from siderite.core.store import Lost
from siderite.core.store import Op
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who
from siderite.core.work import Work
from siderite.image import store as rows
from siderite.image.domain import facts
from siderite.image.domain.content import check
from siderite.image.domain.image import Image
from siderite.image.domain.image import Status
from siderite.image.domain.task import Progress
from siderite.image.domain.task import Task
from siderite.image.domain.task import without_query
from siderite.image.files import Written
from siderite.image.store import IMAGES
from siderite.image.store import TASKS
from siderite.image.usecases import data
from siderite.image.usecases import find
from siderite.image.usecases.context import Context

LANE = "import"
KIND = "image.import"
WITHIN_S = 86400.0
"""How long an import may take altogether."""
MOST = 32
"""Images of one project that may be importing at once."""


class Job(msgspec.Struct, frozen=True):
    """What the work is: all of the address, and how often it was tried in vain."""

    uri: str
    task: str
    tries: int = 0


async def begin(ctx: Context, uuid: str, uri: str, *, who: Who, cause: Cause) -> None:
    """The image's data is to be fetched from an address that was checked."""

    async def decide(change: Change) -> None:
        before = await data.may_upload(ctx, uuid, who)
        left = await data.room(ctx, before)
        if left is not None and left <= 0:
            raise data.over_quota(ctx)
        if await rows.importing(ctx.door.store, before.owner) >= MOST:
            raise Busy(f"{MOST} images of this project are importing; wait until one has ended.")
        known = {"status": Status.IMPORTING, "properties": data.without_error(before)}
        after = before.changed(change.now, known)
        task = Task(
            uuid=new_uuid(), image_id=after.uuid, uri=without_query(uri), owner=after.owner,
            created_at=iso(change.now), updated_at=iso(change.now), user_id=cause.user,
            request_id=cause.request_id,
        )  # fmt: skip
        change.put(IMAGES.swap(before, after), rows.remove_tasks(after.uuid), TASKS.insert(task))
        change.tell(facts.fact("prepare", after))
        job = msgspec.json.encode(Job(uri, task.uuid)).decode()
        change.work(
            work.add(
                after.uuid, LANE, KIND, job=job, now=change.now, deadline=change.now + WITHIN_S,
                reason="the download begins", request_id=cause.request_id,
            )
        )  # fmt: skip

    await ctx.door.attempt(cause, uuid, decide)


async def image_of(ctx: Context, held: Work) -> Image | None:
    """The image whose import this is; None, and the work is done with, if it is not importing."""
    found = await IMAGES.get(ctx.door.store, held.machine)
    if found is None or found.status != Status.IMPORTING:
        await ctx.door.store.commit([work.done(held)])
        return None
    return found


async def _still(ctx: Context, held: Work) -> Image:
    """The image; Lost if the import is over, or somebody else carries it out."""
    found = await IMAGES.get(ctx.door.store, held.machine)
    mine = await work.of_machine(ctx.door.store, held.machine)
    is_ours = held.fence in [one.fence for one in mine]
    if found is None or found.status != Status.IMPORTING or not is_ours:
        raise Lost(f"the import of image {held.machine} is over, or another's")
    return found


async def tell(ctx: Context, held: Work, job: Job, message: str) -> None:
    """How far it has come; Lost if somebody else carries it out by now."""
    await _commit(ctx, work.still_ours(held), job, Progress.PROCESSING, message)


async def later(ctx: Context, held: Work, job: Job, *, again_in: float, reason: str) -> None:
    """It goes on from the beginning after a while."""
    due = ctx.door.clock() + again_in
    parked = work.park(held, job=msgspec.json.encode(job).decode(), due=due, reason=reason)
    await _commit(ctx, parked, job, Progress.PENDING, reason)


async def _commit(ctx: Context, op: Op, job: Job, status: Progress, message: str) -> None:
    change = ctx.door.change(Cause())
    change.work(op)
    await _note(ctx, change, job, status, message)
    await ctx.door.commit(change)


async def _note(ctx: Context, change: Change, job: Job, status: Progress, message: str) -> None:
    task = await TASKS.get(ctx.door.store, job.task)
    if task is not None:
        after = task.changed(change.now, {"status": status, "message": message})
        change.put(TASKS.swap(task, after))


async def complete(ctx: Context, held: Work, job: Job, written: Written) -> None:
    """All of it is there: the image is active."""
    check(written.head)
    owner = (await _still(ctx, held)).owner

    async def decide(change: Change) -> None:
        before = await _still(ctx, held)
        await data.fill(ctx, change, before, written, to=Status.ACTIVE)
        await _note(ctx, change, job, Progress.SUCCESS, f"Copied {written.size} bytes.")
        change.work(work.done(held))

    async with ctx.door.turns.of(f"images:{owner}"):  # or they would lose against each other
        await ctx.door.attempt(Cause(held.request_id), held.machine, decide)


async def fail(ctx: Context, held: Work, job: Job, why: str) -> None:
    """It brings nothing: the image is queued again, and says why."""

    async def decide(change: Change) -> None:
        before = await _still(ctx, held)
        properties = {**before.properties, data.IMPORT_ERROR: why}
        after = before.changed(change.now, {"status": Status.QUEUED, "properties": properties})
        change.put(IMAGES.swap(before, after))
        change.tell(facts.fact("update", after))
        await _note(ctx, change, job, Progress.FAILURE, why)
        change.work(work.done(held))

    await ctx.door.attempt(Cause(held.request_id), held.machine, decide)


async def tasks(ctx: Context, uuid: str, who: Who) -> list[Task]:
    """The last import of an image that the caller may see, if there was one."""
    found = await find.image(ctx, uuid, who)
    return await TASKS.find(ctx.door.store, rows.of_image(found.uuid))


async def every(
    ctx: Context,
    who: Who,
    status: str | None,
    *,
    limit: int,
    marker: str | None,
    oldest_first: bool,
) -> list[Task]:
    """The last imports of the images of the caller's project, or of all."""
    where = [] if who.sees_all else [rows.of_project(who.project_id or "")]
    if status is not None:
        where.append(rows.in_status(Progress(status)))
    if marker is not None:
        try:
            marker = (await task(ctx, marker, who)).uuid
        except NotFound as why:
            raise Invalid(f"marker: {why.sentence}") from why
    return await rows.task_page(
        ctx.door.store, where, limit=limit, after=marker, oldest_first=oldest_first
    )


async def task(ctx: Context, uuid: str, who: Who) -> Task:
    """One import, of an image that the caller may see."""
    found = await TASKS.get(ctx.door.store, uuid.lower()) if is_uuid(uuid) else None
    if found is not None:
        try:
            await find.image(ctx, found.image_id, who)
        except NotFound:
            found = None
    if found is None:
        raise NotFound(f"No task found with ID {uuid[:64]}; an image's tasks tell of its import.")
    return found
