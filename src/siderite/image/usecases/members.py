"""Sharing an image with other projects, and what they think of it."""

from msgspec.structs import replace

from siderite.core.errors import Conflict
from siderite.core.errors import Forbidden
from siderite.core.errors import NotFound
from siderite.core.store import Duplicate
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who
from siderite.image import store as rows
from siderite.image.domain import access
from siderite.image.domain import facts
from siderite.image.domain.image import Image
from siderite.image.domain.image import Member
from siderite.image.domain.image import Visibility
from siderite.image.store import IMAGES
from siderite.image.usecases import find
from siderite.image.usecases.context import Context

MAX_MEMBERS = 128


async def members(ctx: Context, uuid: str, who: Who) -> list[Member]:
    """The members: all of them for the owner, themselves for others."""
    found = await _shared(ctx, uuid, who, mine=False)
    every = await rows.members(ctx.door.store, found.uuid)
    if _sees_all_of(found, who):
        return every
    return [one for one in every if one.member_id == who.project_id]


async def member(ctx: Context, uuid: str, member_id: str, who: Who) -> Member:
    """One member, for the owner and for itself."""
    return await _visible(ctx, await _shared(ctx, uuid, who, mine=False), member_id, who)


async def _visible(ctx: Context, found: Image, member_id: str, who: Who) -> Member:
    known = await rows.member(ctx.door.store, found.uuid, member_id)
    if known is None or not (_sees_all_of(found, who) or member_id == who.project_id):
        raise _none(member_id, found.uuid)
    return known


async def add(ctx: Context, uuid: str, member_id: str, *, who: Who, cause: Cause) -> Member:
    """Offer an image to a project."""

    async def decided(change: Change) -> Member:
        found = await _shared(ctx, uuid, who, mine=True)
        if len(await rows.members(ctx.door.store, found.uuid)) >= MAX_MEMBERS:
            raise Conflict(f"An image has at most {MAX_MEMBERS} members; remove one first.")
        now = iso(change.now)
        new = Member(
            image_id=found.uuid, member_id=member_id, status="pending", created_at=now,
            updated_at=now,
        )  # fmt: skip
        # Whoever else adds one at the same moment finds another version, and counts again.
        change.put(IMAGES.swap(found, replace(found, version=found.version + 1)))
        change.put(rows.add_member(new))
        change.tell(facts.fact("update", found))
        return new

    try:
        return await ctx.door.attempt(cause, uuid, decided)
    except Duplicate as clash:
        raise Conflict(f"Project {member_id} is a member of image {uuid} already.") from clash


async def decide(
    ctx: Context, uuid: str, member_id: str, status: str, *, who: Who, cause: Cause
) -> Member:
    """A member accepts or rejects an image, or has not made up its mind."""

    async def decided(change: Change) -> Member:
        found = await _shared(ctx, uuid, who, mine=False)
        known = await _visible(ctx, found, member_id, who)
        if not (who.is_admin or who.project_id == member_id):
            raise Forbidden("Only the member itself says whether it accepts an image.")
        changed = Member(
            image_id=known.image_id, member_id=member_id, status=status,
            created_at=known.created_at, updated_at=iso(change.now),
        )  # fmt: skip
        change.put(IMAGES.hold(found), rows.set_member(changed))
        change.tell(facts.fact("update", found))
        return changed

    return await ctx.door.attempt(cause, uuid, decided)


async def remove(ctx: Context, uuid: str, member_id: str, *, who: Who, cause: Cause) -> None:
    """Share it with this project no more."""

    async def decided(change: Change) -> None:
        found = await _shared(ctx, uuid, who, mine=True)
        known = await rows.member(ctx.door.store, found.uuid, member_id)
        if known is None:
            raise _none(member_id, uuid)
        change.put(IMAGES.hold(found), rows.remove_member(known))
        change.tell(facts.fact("update", found))

    await ctx.door.attempt(cause, uuid, decided)


async def _shared(ctx: Context, uuid: str, who: Who, *, mine: bool) -> Image:
    found = await find.image(ctx, uuid, who)
    if mine and not (who.is_admin or access.is_owner(found, who.project_id)):
        raise access.not_owner(found)
    if found.visibility != Visibility.SHARED:
        raise Forbidden(
            f"Only shared images have members; image {found.uuid} is {found.visibility}. Make it"
            " shared first."
        )
    return found


def _sees_all_of(found: Image, who: Who) -> bool:
    return who.sees_all or access.is_owner(found, who.project_id)


def _none(member_id: str, uuid: str) -> NotFound:
    return NotFound(f"Project {member_id[:80]} is not a member of image {uuid}.")
