"""How an image comes by its data: queued, then saving (or staged), then active.

The file is there, and locked, before a record speaks of it; whoever writes it calls these.
"""

from msgspec.structs import replace

from siderite.core.errors import Conflict
from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.errors import TooLarge
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who
from siderite.image import store as rows
from siderite.image.domain import facts
from siderite.image.domain.content import check
from siderite.image.domain.content import virtual_size
from siderite.image.domain.image import HASH
from siderite.image.domain.image import Image
from siderite.image.domain.image import Status
from siderite.image.files import Written
from siderite.image.store import IMAGES
from siderite.image.usecases import find
from siderite.image.usecases.context import Context

IMPORT_ERROR = "import_error"
"""The property that says why the last import of an image brought nothing."""


def without_error(image: Image) -> dict[str, str]:
    """An image's properties, as if no import of it had failed."""
    return {name: text for name, text in image.properties.items() if name != IMPORT_ERROR}


async def may_upload(ctx: Context, uuid: str, who: Who) -> Image:
    """The image, if it can take data now."""
    found = await find.own(ctx, uuid, who)
    if found.status != Status.QUEUED:
        raise Conflict(
            f"Image {found.uuid} is {found.status} and takes no data; only a queued image does."
        )
    if found.disk_format is None or found.container_format is None:
        raise Invalid(
            "Properties disk_format, container_format must be set prior to saving data; patch the"
            " image first."
        )
    return found


async def room(ctx: Context, image: Image) -> int | None:
    """How many bytes its project may have besides what it has; None is without limit."""
    if ctx.quota_gib < 0 or image.owner is None:
        return None
    return ctx.quota_gib * 2**30 - await rows.bytes_of(ctx.door.store, image.owner)


def over_quota(ctx: Context) -> TooLarge:
    """A project's images are larger together than they may be."""
    return TooLarge(
        f"The images of this project would have over {ctx.quota_gib} GiB of data together, the"
        " limit here (option quota_image_gib); delete some first."
    )


async def begin(
    ctx: Context, uuid: str, file: str, *, status: Status, who: Who, cause: Cause
) -> None:
    """Somebody writes the image's data into this file."""

    async def decide(change: Change) -> None:
        before = await may_upload(ctx, uuid, who)
        known = {"status": status, "file": file, "properties": without_error(before)}
        after = before.changed(change.now, known)
        change.put(IMAGES.swap(before, after))
        change.tell(facts.fact("prepare", after))

    await ctx.door.attempt(cause, uuid, decide)


async def complete(
    ctx: Context, uuid: str, written: Written, *, to: Status, owner: str | None, cause: Cause
) -> Image:
    """The data is complete; the image is active, or staged for the import that follows."""
    check(written.head)

    async def decide(change: Change) -> Image:
        before = await IMAGES.get(ctx.door.store, uuid)
        if before is None or before.file != written.name:
            raise Conflict(f"Image {uuid} was deleted while its data was uploaded.")
        return await fill(ctx, change, before, written, to=to)

    async with ctx.door.turns.of(f"images:{owner}"):  # or they would lose against each other
        return await ctx.door.attempt(cause, uuid, decide)


async def fill(
    ctx: Context, change: Change, before: Image, written: Written, *, to: Status
) -> Image:
    """The file is the image's data from now on, if its project may have so much."""
    await _count(ctx, change, before, written.size)
    shown = virtual_size(written.head, before.disk_format, written.size)
    known = {
        "status": to, "size": written.size, "virtual_size": shown, "checksum": written.md5,
        "os_hash_algo": HASH, "os_hash_value": written.sha512, "file": written.name,
    }  # fmt: skip
    after = before.changed(change.now, known)
    change.put(IMAGES.swap(before, after))
    change.tell(facts.fact("upload", after))
    if to is Status.ACTIVE:
        change.tell(facts.fact("activate", after))
    return after


async def _count(ctx: Context, change: Change, image: Image, size: int) -> None:
    """Refuse more data than the image's project may have; of those that are added at the same
    moment, by whatever process, each counts the others.
    """
    if ctx.quota_gib < 0 or image.owner is None:
        return
    number = await rows.additions(ctx.door.store, image.owner)  # before all is counted
    left = await room(ctx, image)
    if left is not None and size > left:
        raise over_quota(ctx)
    change.put(rows.addition(image.owner, number))


async def import_staged(ctx: Context, uuid: str, *, who: Who, cause: Cause) -> None:
    """A staged image becomes active: its data is there and checked."""

    async def decide(change: Change) -> None:
        before = await find.own(ctx, uuid, who)
        if before.status != Status.UPLOADING or before.size is None:
            raise Conflict(
                f"Image {before.uuid} is {before.status}; stage its data first, then import it."
            )
        after = before.changed(change.now, {"status": Status.ACTIVE})
        change.put(IMAGES.swap(before, after))
        change.tell(facts.fact("activate", after))

    await ctx.door.attempt(cause, uuid, decide)


async def give_up(ctx: Context, uuid: str, file: str) -> bool:
    """An upload ended without all of its data: the image is queued again. Whether the file is
    nobody's now; it is the image's if the upload was complete after all.
    """

    async def decide(change: Change) -> bool:
        before = await IMAGES.get(ctx.door.store, uuid)
        if before is not None and before.file is None:
            # A commit that nobody waits for any more may be on its way, and would make the file
            # the image's when it is gone: of the two only one is true.
            change.put(IMAGES.swap(before, replace(before, version=before.version + 1)))
        if before is None or before.file != file:
            return True
        if before.size is not None:
            return False
        after = before.changed(change.now, {"status": Status.QUEUED, "file": None})
        change.put(IMAGES.swap(before, after))
        change.tell(facts.fact("update", after))
        return True

    return await ctx.door.attempt(Cause(), uuid, decide)


async def readable(ctx: Context, uuid: str, who: Who) -> Image:
    """An image whose data the caller may read."""
    found = await find.image(ctx, uuid, who)
    if found.status == Status.DEACTIVATED and not who.is_admin:
        raise Forbidden(f"Image {found.uuid} is deactivated; an administrator may activate it.")
    return found
