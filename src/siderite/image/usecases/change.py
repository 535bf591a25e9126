"""Making, changing and forgetting image records."""

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

from siderite.core import work
from siderite.core.errors import Conflict
from siderite.core.errors import Forbidden
from siderite.core.errors import NotFound
from siderite.core.ids import new_uuid
from siderite.core.store import Duplicate
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who
from siderite.image import store as rows
from siderite.image.domain import access
from siderite.image.domain import facts
from siderite.image.domain.image import Image
from siderite.image.domain.image import Status
from siderite.image.domain.image import Visibility
from siderite.image.store import IMAGES
from siderite.image.usecases import find
from siderite.image.usecases.context import Context

MAX_TAGS = 128


async def create(ctx: Context, fields: Mapping[str, Any], *, who: Who, cause: Cause) -> Image:
    """A new record, without data."""
    _may_set(fields, who)
    change = ctx.door.change(cause)
    now = iso(change.now)
    made = {"owner": who.project_id, **fields, "uuid": fields.get("uuid") or new_uuid()}
    new = Image(created_at=now, updated_at=now, **made)
    change.put(IMAGES.insert(new), rows.give_id(new.uuid))
    change.tell(facts.fact("create", new))
    try:
        await ctx.door.commit(change)
    except Duplicate as clash:
        raise Conflict(
            f"Image ID {new.uuid} already exists, or was that of an image that is deleted; leave"
            " the id out to get a new one."
        ) from clash
    return new


async def update(
    ctx: Context,
    uuid: str,
    changes: Callable[[Image], dict[str, Any]],
    *,
    who: Who,
    cause: Cause,
) -> Image:
    """Change a record by what `changes` makes of it."""

    async def decide(change: Change) -> Image:
        before = await find.own(ctx, uuid, who)
        new = {k: v for k, v in changes(before).items() if v != getattr(before, k)}
        if not new:
            return before
        _may_set(new, who)
        formats = {"disk_format", "container_format"} & set(new)
        if formats and before.status != Status.QUEUED:
            raise Forbidden(
                f"Attribute '{min(formats)}' can only be changed while the image has no data; it is"
                f" {before.status}."
            )
        after = before.changed(change.now, new)
        change.put(IMAGES.swap(before, after))
        change.tell(facts.fact("update", after))
        return after

    return await ctx.door.attempt(cause, uuid, decide)


def _may_set(fields: Mapping[str, Any], who: Who) -> None:
    if who.is_admin:
        return
    if fields.get("visibility") == Visibility.PUBLIC:
        raise Forbidden("Only administrators may make an image public; community is for all.")
    if "owner" in fields and fields["owner"] != who.project_id:
        raise Forbidden("Only administrators may give an image to another project.")
    if who.project_id is None:
        raise Forbidden("An image belongs to a project; log in to one to make or change images.")


async def remove(ctx: Context, uuid: str, *, who: Who, cause: Cause) -> str | None:
    """Forget an image; the name of its file, if it has one."""

    async def decide(change: Change) -> str | None:
        found = await find.own(ctx, uuid, who)
        access.check_deletable(found)
        change.put(IMAGES.remove(found))
        change.put(rows.remove_members(found.uuid), rows.remove_tasks(found.uuid))
        change.put(*work.drop(found.uuid))
        change.tell(facts.fact("delete", found))
        return found.file

    return await ctx.door.attempt(cause, uuid, decide)


async def add_tag(ctx: Context, uuid: str, tag: str, *, who: Who, cause: Cause) -> None:
    """Tag an image; again changes nothing."""

    def tagged(image: Image) -> dict[str, Any]:
        tags = image.tags if tag in image.tags else (*image.tags, tag)
        if len(tags) > MAX_TAGS:
            raise Conflict(f"An image has at most {MAX_TAGS} tags; remove one first.")
        return {"tags": tags}

    await update(ctx, uuid, tagged, who=who, cause=cause)


async def remove_tag(ctx: Context, uuid: str, tag: str, *, who: Who, cause: Cause) -> None:
    """Take a tag away."""

    def untagged(image: Image) -> dict[str, Any]:
        if tag not in image.tags:
            raise NotFound(f"Image {image.uuid} has no tag {tag[:80]!r}.")
        return {"tags": tuple(one for one in image.tags if one != tag)}

    await update(ctx, uuid, untagged, who=who, cause=cause)


async def activate(ctx: Context, uuid: str, *, on: bool, who: Who, cause: Cause) -> None:
    """Let an image be used, or keep it from being used."""

    def switched(image: Image) -> dict[str, Any]:
        if image.status not in (Status.ACTIVE, Status.DEACTIVATED):
            verb = "activated again" if on else "deactivated"
            raise Forbidden(f"Image {image.uuid} is {image.status} and cannot be {verb}.")
        return {"status": Status.ACTIVE if on else Status.DEACTIVATED}

    await update(ctx, uuid, switched, who=who, cause=cause)
