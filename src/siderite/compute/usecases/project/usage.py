"""What projects used over a time: hours, and hours times size."""

import asyncio

import msgspec

from siderite.compute import record_store as rows
from siderite.compute.domain.server import Server
from siderite.compute.store import SERVERS
from siderite.compute.usecases.context import Context
from siderite.core.errors import Invalid
from siderite.core.times import iso
from siderite.core.times import seconds
from siderite.core.who import Who

_HOUR_S = 3600.0
_AT_A_TIME = 100


class Used(msgspec.Struct, frozen=True):
    """How long a server ran in the time that was asked about."""

    server: Server
    hours: float
    uptime_s: int


async def between(
    ctx: Context,
    begin: float,
    end: float,
    *,
    project: str | None,
    marker: str | None,
    limit: int,
    who: Who,
) -> list[Used]:
    """Servers that ran then, of a project or of all. There may be many: they are read some at a
    time, and others have their turn meanwhile.
    """
    after = 0
    if marker is not None:
        known = await SERVERS.get(ctx.door.store, marker)
        if known is None or not (who.is_admin or known.project_id == who.project_id):
            raise Invalid(f"marker [{marker[:80]}] not found. Ask from the start.")
        after = await rows.number_of(ctx.door.store, marker)
    found, now = list[Used](), ctx.door.clock()
    while (most := min(limit - len(found), _AT_A_TIME)) > 0:
        some = await rows.ran_between(
            ctx.door.store, iso(begin), iso(end), project=project, after=after, limit=most
        )
        found += [_used(server, begin, end, now) for _, server in some]
        if len(some) < most:
            break
        after = some[-1][0]
        await asyncio.sleep(0)
    return found


def _used(server: Server, begin: float, end: float, now: float) -> Used:
    started = seconds(server.launched_at or server.created_at)
    ended = seconds(server.terminated_at) if server.terminated_at else now
    hours = max(min(ended, end) - max(started, begin), 0.0) / _HOUR_S
    return Used(server, hours, max(int(ended - started), 0))
