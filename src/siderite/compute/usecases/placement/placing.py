"""Finding a place for a server, on what is recorded of hosts, aggregates and groups."""

import asyncio
from collections import Counter
from collections.abc import Mapping

from msgspec.structs import replace

from siderite.compute.domain.flavor import Flavor
from siderite.compute.domain.host import Hypervisor
from siderite.compute.domain.placement import Placement
from siderite.compute.domain.placement import Wanted
from siderite.compute.domain.placement import aggregate_specs_of
from siderite.compute.domain.placement import place
from siderite.compute.domain.placement import traits_of
from siderite.compute.domain.server import Server
from siderite.compute.domain.server import amount_of
from siderite.compute.domain.server_group import HARD
from siderite.compute.store import hypervisors
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.fleet import aggregates
from siderite.compute.usecases.placement import kept_room
from siderite.compute.usecases.placement.located import located
from siderite.compute.usecases.placement.shortlist import Shortlist
from siderite.compute.usecases.project import server_groups
from siderite.core.store import Op
from siderite.core.store import indexed

_MEMBERS = """
SELECT uuid, host FROM servers {index} WHERE group_uuid = ? AND uuid <> ? AND deleted = 0
  AND host IS NOT NULL
UNION
SELECT s.uuid, c.host FROM servers AS s {index} JOIN claims c ON c.server = s.uuid
  WHERE s.group_uuid = ? AND s.uuid <> ? AND s.deleted = 0
"""


_TO_CHOOSE_FROM = 5
"""So many places are found for one that moves, if there are: it may be that some are not tidy."""
_AT_A_TIME = 500
HERE = "where it is: it asks for another host"


class NotYet(Exception):
    """A place cannot be sought now, but soon."""


async def find_place(
    ctx: Context,
    server: Server,
    *,
    flavor: Flavor | None = None,
    host: str | None = None,
    zone: str | None = None,
    avoid: Mapping[str, str] | None = None,
    is_move: bool = False,
    is_flight: bool = False,
) -> Placement:
    """Where the server could go, in its own or another size; `host` asks for one, checked. The host
    that was named when the server was asked for holds for its first place only, and a move is to a
    host of the same driver. One that flees from a host that is down need not be beside those of its
    group that are down too: the first to leave says where the others go.
    """
    size = flavor or server.flavor
    wanted = await _wanted(ctx, server, size, zone or server.pinned_zone)
    if host is not None or is_move:
        wanted = replace(wanted, host=host, node=None, is_forced=False)
    if is_move:  # where it could not be made once, it may well be moved to
        wanted = replace(wanted, driver=server.driver, avoid={})
    if is_move and server.host is not None:
        wanted = replace(wanted, conductor_group=await _group_of(ctx, server.host))
    if avoid is not None:
        wanted = replace(wanted, avoid={**wanted.avoid, **avoid})
    if is_flight and wanted.policy == "affinity" and wanted.members:
        wanted = replace(wanted, members=await _of_those_up(ctx, wanted.members))
    atlas, kept = await aggregates.atlas(ctx), await kept_room.kept(ctx)
    enough = _TO_CHOOSE_FROM if is_move else 1
    found = await Shortlist(ctx, server.uuid, kept, atlas).best(wanted, enough=enough)
    if found is not None:
        return found
    there = kept_room.less(kept, server.uuid, await candidates(ctx, size.resource_class))
    return place(wanted, there, now=ctx.door.clock(), patience_s=ctx.settings.host_patience_s)


async def _of_those_up(ctx: Context, members: Mapping[str, int]) -> dict[str, int]:
    """How many members of a group are on each host that is not down."""
    now, patience_s = ctx.door.clock(), ctx.settings.host_patience_s
    marks = ", ".join("?" * len(members))
    there = await hypervisors(ctx.door.store, f"v.host IN ({marks})", tuple(members))
    up = {at.host for at in there if at.is_up(now, patience_s)}
    return {name: count for name, count in members.items() if name in up}


async def first_wish(ctx: Context, server: Server) -> Wanted:
    """What a server needs that was never placed."""
    return await _wanted(ctx, server, server.flavor, server.pinned_zone)


async def _group_of(ctx: Context, host: str) -> str:
    rows = await ctx.door.store.fetch("SELECT conductor_group FROM hosts WHERE name = ?", (host,))
    return str(rows[0][0]) if rows else ""


async def candidates(ctx: Context, resource_class: str | None) -> list[Hypervisor]:
    """All hypervisor nodes of the kind that is wanted, with what aggregates say of their hosts.
    There may be many: others have their turn meanwhile.
    """
    where = "v.resource_class IS NULL" if resource_class is None else "v.resource_class = ?"
    kind = () if resource_class is None else (resource_class,)
    atlas = await aggregates.atlas(ctx)
    found: list[Hypervisor] = []
    while True:
        last = found[-1].id if found else 0
        some = await hypervisors(
            ctx.door.store, f"{where} AND v.id > ?", (*kind, last), limit=_AT_A_TIME
        )
        found += located(atlas, some)
        if len(some) < _AT_A_TIME:
            return found
        await asyncio.sleep(0)


async def _wanted(ctx: Context, server: Server, flavor: Flavor, zone: str | None) -> Wanted:
    request = server.request
    hints = request.hints
    wanted = Wanted(
        amount=amount_of(flavor),
        project=server.project_id,
        resource_class=flavor.resource_class,
        required_traits=traits_of(flavor, "required"),
        forbidden_traits=traits_of(flavor, "forbidden"),
        zone=zone,
        host=request.forced_host or request.wanted_host,
        node=request.forced_node or request.wanted_node,
        is_forced=bool(request.forced_host or request.forced_node),
        avoid=dict.fromkeys(server.tried, "tried before: building it there failed"),
        aggregate_specs=aggregate_specs_of(flavor),
    )
    if hints.get("same_host"):
        beside = await _hosts_of(ctx, server, hints["same_host"])
        wanted = replace(wanted, same_host=beside)
    if hints.get("different_host"):
        wanted = replace(
            wanted, different_host=await _hosts_of(ctx, server, hints["different_host"])
        )
    if server.group is not None:
        wanted = await _grouped(ctx, server, wanted)
    return wanted


async def _hosts_of(ctx: Context, server: Server, named: object) -> frozenset[str]:
    """The hosts of the servers that a hint names, of the same project."""
    uuids = [str(item) for item in (named if isinstance(named, list) else [named])]
    found: set[str] = set()
    for at in range(0, len(uuids), _AT_A_TIME):
        some = uuids[at : at + _AT_A_TIME]
        rows = await ctx.door.store.fetch(
            f"SELECT DISTINCT host FROM servers WHERE project_id = ? AND deleted = 0"  # noqa: S608
            f" AND host IS NOT NULL AND uuid IN ({', '.join('?' * len(some))})",
            (server.project_id, *some),
        )
        found.update(str(row[0]) for row in rows)
    return frozenset(found)


async def _grouped(ctx: Context, server: Server, wanted: Wanted) -> Wanted:
    group = await server_groups.get(ctx, server.group or "")
    if group is None:
        return wanted
    places = await _members(ctx, server)
    return replace(
        wanted,
        policy=group.policy,
        members=Counter(host for hosts in places.values() for host in hosts),
        max_server_per_host=group.max_server_per_host,
    )


async def _members(ctx: Context, server: Server) -> dict[str, set[str]]:
    """Where the others of the server's group are or may be soon: one on its way has claimed both
    ends of it.
    """
    store = ctx.door.store
    sql = _MEMBERS.format(index=indexed(store, "servers_group"))
    rows = await store.fetch(sql, (server.group, server.uuid) * 2)
    places: dict[str, set[str]] = {}
    for uuid, host in rows:
        places.setdefault(str(uuid), set()).add(str(host))
    return places


async def turn(ctx: Context, server: Server) -> list[Op]:
    """For the commit that claims a place, asked for before the place is sought: two of a group that
    are placed at the same moment, by whatever processes, cannot both be right about each other.
    `NotYet` while it cannot be told where the group will be.
    """
    if server.group is None:
        return []
    group = await server_groups.get(ctx, server.group)
    if group is None or group.policy not in HARD:
        return []
    if group.policy == "affinity":
        places = await _members(ctx, server)
        moving = sorted(uuid for uuid, hosts in places.items() if len(hosts) > 1)
        if moving:
            raise NotYet(f"server {moving[0]} of its group is on its way to another host")
    return [server_groups.turn(group)]
