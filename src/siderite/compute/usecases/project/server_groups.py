"""Server groups: made, shown with their members, forgotten."""

import msgspec

from siderite.compute import record_store as rows
from siderite.compute.domain import record_facts as facts
from siderite.compute.domain.server_group import ServerGroup
from siderite.compute.record_store import SERVER_GROUPS
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.project.quotas import limits_of
from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.ids import is_uuid
from siderite.core.ids import new_uuid
from siderite.core.store import Op
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who

Shown = tuple[ServerGroup, list[str]]


async def get(ctx: Context, uuid: str) -> ServerGroup | None:
    """A group, whoever asks."""
    return await SERVER_GROUPS.get(ctx.door.store, uuid)


async def join(ctx: Context, uuid: str, count: int, project: str) -> list[Op]:
    """The ops by which so many servers of a project come into a group, if its quota still allows
    them.
    """
    limit = (await limits_of(ctx, project)).server_group_members
    found = await get(ctx, uuid)
    if found is None:
        raise Invalid(
            f"Instance group {uuid} could not be found. It is the hint to the scheduler;"
            " `server group list` shows yours."
        )
    members = len((await rows.members(ctx.door.store, [uuid]))[uuid])
    if 0 <= limit < members + count:
        raise Forbidden(
            f"Quota exceeded, too many servers in group: {limit} are allowed, {members} are in it."
        )
    return [turn(found)]


def turn(group: ServerGroup) -> Op:
    """Whoever else joins or is placed at the same moment finds another version, and looks again."""
    return SERVER_GROUPS.swap(group, msgspec.structs.replace(group, version=group.version + 1))


async def create(
    ctx: Context, name: str, policy: str, rules: dict[str, int], *, who: Who, cause: Cause
) -> Shown:
    """A new group of the caller's project."""
    project = who.project_id or ""

    async def decide(change: Change) -> Shown:
        limit = (await limits_of(ctx, project)).server_groups
        if 0 <= limit <= await rows.count(ctx.door.store, "server_groups", "project_id", project):
            raise Forbidden(
                f"Quota exceeded, too many server groups: {limit} are allowed; delete one."
            )
        made = ServerGroup(
            uuid=new_uuid(), created_at=iso(change.now), name=name, project_id=project,
            user_id=who.user_id, policy=policy, rules=rules,
        )  # fmt: skip
        change.put(SERVER_GROUPS.insert(made))
        change.tell(facts.server_group("create", made, []))
        return made, []

    return await ctx.door.attempt(cause, f"server_groups:{project}", decide)


async def one(ctx: Context, uuid: str, who: Who) -> Shown:
    """A group that the caller may see, and its servers."""
    found = await SERVER_GROUPS.get(ctx.door.store, uuid) if is_uuid(uuid) else None
    if found is None or not (who.is_admin or found.project_id == who.project_id):
        raise NotFound(
            f"Instance group {uuid[:80]} could not be found. `server group list` shows yours."
        )
    return found, (await rows.members(ctx.door.store, [uuid]))[uuid]


async def page(ctx: Context, project: str | None, *, limit: int, offset: int) -> list[Shown]:
    """Groups of a project, or of all."""
    found = await rows.server_groups(ctx.door.store, project, limit=limit, offset=offset)
    members = await rows.members(ctx.door.store, [group.uuid for group in found])
    return [(group, members[group.uuid]) for group in found]


async def remove(ctx: Context, uuid: str, *, who: Who, cause: Cause) -> None:
    """Forget a group, though servers of it may be placed at this moment; they stay."""

    async def decide(change: Change) -> None:
        found, members = await one(ctx, uuid, who)
        change.put(SERVER_GROUPS.remove(found))
        change.tell(facts.server_group("delete", found, members))

    await ctx.door.attempt(cause, "server_group:" + uuid, decide)
