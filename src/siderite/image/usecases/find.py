"""Images as a caller may see them; what they may not see is not there for them."""

from collections.abc import Sequence

from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.ids import is_uuid
from siderite.core.store import Line
from siderite.core.store.table import Where
from siderite.core.who import Who
from siderite.image import store as rows
from siderite.image.domain import access
from siderite.image.domain.image import Image
from siderite.image.domain.image import Visibility
from siderite.image.store import IMAGES
from siderite.image.store import Order
from siderite.image.usecases.context import Context


async def image(ctx: Context, uuid: str, who: Who) -> Image:
    """An image that the caller may see."""
    found = await IMAGES.get(ctx.door.store, uuid.lower()) if is_uuid(uuid) else None
    if found is None or not await _sees(ctx, found, who):
        raise access.missing(uuid)
    return found


async def body_of(ctx: Context, uuid: str, who: Who) -> str:
    """An image that the caller may see, as it is shown, rendered."""
    sql = "SELECT doc, body FROM images WHERE uuid = ?"
    found = await ctx.door.store.fetch(sql, (uuid.lower(),)) if is_uuid(uuid) else ()
    if not found or not await _sees(ctx, IMAGES.value(found[0][0]), who):
        raise access.missing(uuid)
    return str(found[0][1])


async def own(ctx: Context, uuid: str, who: Who) -> Image:
    """An image that the caller may change."""
    found = await image(ctx, uuid, who)
    if not (who.is_admin or access.is_owner(found, who.project_id)):
        raise access.not_owner(found)
    return found


async def _sees(ctx: Context, found: Image, who: Who) -> bool:
    if who.sees_all or access.is_open(found) or access.is_owner(found, who.project_id):
        return True
    if found.visibility != Visibility.SHARED or who.project_id is None:
        return False
    return await rows.member(ctx.door.store, found.uuid, who.project_id) is not None


def seen_by(who: Who, visibility: str | None, member_status: str) -> list[Where]:
    """The condition that cuts a list to what the caller may see and asks for."""
    if visibility is not None and visibility not in ("all", *Visibility):
        raise Invalid(
            f"visibility must be one of all, {', '.join(Visibility)}, not {visibility[:40]!r}."
        )
    kept = [] if visibility in (None, "all") else [Where("visibility = ?", (visibility,))]
    if who.sees_all:
        return kept
    me = who.project_id
    shared = "visibility = 'shared' AND uuid IN (SELECT image_id FROM image_members WHERE"
    status, args = "", tuple[str | None, ...]((me, me))
    if member_status != "all":
        status, args = " AND status = ?", (me, me, member_status)
    ways = ["owner = ?", "visibility = 'public'", f"{shared} member_id = ?{status})"]
    if visibility in ("community", "all"):
        ways.append("visibility = 'community'")
    return [*kept, Where(" OR ".join(ways), args)]


async def page(
    ctx: Context,
    where: Sequence[Where],
    order: Sequence[tuple[str, bool]],
    *,
    limit: int,
    marker: str | None,
    who: Who,
) -> Sequence[Line]:
    """uuid and body of a page of images; the order is some keys, each from the largest or not."""
    after = None
    if marker is not None:
        try:
            after = await image(ctx, marker, who)
        except NotFound as why:
            raise Invalid(f"marker: {why.sentence}") from why
    keys = [Order(key, descending) for key, descending in order]
    return await rows.page(ctx.door.store, where, keys, limit=limit, after=after)


def tagged(ctx: Context, tag: str) -> Where:
    """Images that have a tag."""
    return rows.has_tag(ctx.door.store.dialect, tag)


def with_property(ctx: Context, name: str, value: str) -> Where:
    """Images that have a property of this value."""
    return rows.has_property(ctx.door.store.dialect, name, value)
