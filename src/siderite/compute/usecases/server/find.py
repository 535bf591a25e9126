"""Servers, as far as a caller may see them."""

from siderite.compute.domain.server import Server
from siderite.compute.store import SERVERS
from siderite.compute.usecases.context import Context
from siderite.core.errors import NotFound
from siderite.core.errors import SideriteError
from siderite.core.ids import is_uuid
from siderite.core.who import Who

_BODY = "SELECT body, project_id FROM servers WHERE uuid = ? AND deleted = 0"


def may_see(who: Who, project: str) -> bool:
    """Whether the caller may know of what belongs to a project."""
    return who.is_admin or (who.project_id is not None and who.project_id == project)


def missing(uuid: str) -> NotFound:
    """What is said of a server that is not there, or not for the caller."""
    return NotFound(
        f"Instance {uuid[:80]} could not be found. `server list` shows those of your project."
    )


def missing_host(name: str, kind: type[SideriteError] = NotFound) -> SideriteError:
    """What is said of a host that is not there: 404 if it is what is asked about."""
    return kind(f"Compute host {name[:80]} could not be found. `compute service list` shows all.")


async def body_of(ctx: Context, uuid: str, who: Who) -> str:
    """A server as it is shown, rendered."""
    rows = await ctx.door.store.fetch(_BODY, (uuid.lower(),)) if is_uuid(uuid) else ()
    if not rows or not may_see(who, str(rows[0][1])):
        raise missing(uuid)
    return rows[0][0]  # type: ignore[return-value]


async def server(ctx: Context, uuid: str, who: Who, *, deleted: bool = False) -> Server:
    """A server as a value, if the caller may see it; one that is gone only if asked for."""
    found = await SERVERS.get(ctx.door.store, uuid.lower()) if is_uuid(uuid) else None
    if found is None or (found.deleted and not deleted) or not may_see(who, found.project_id):
        raise missing(uuid)
    return found
