"""Hosts and hypervisors as administrators see them: what is up, what it offers and carries."""

from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
from typing import Any

import msgspec

from siderite.compute import record_store as rows
from siderite.compute import store
from siderite.compute.domain import record_facts as facts
from siderite.compute.domain.host import Amount
from siderite.compute.domain.host import Host
from siderite.compute.domain.host import Hypervisor
from siderite.compute.store import HOSTS
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.fleet import aggregates
from siderite.compute.usecases.fleet import hosts as usecases
from siderite.compute.usecases.placement import kept_room
from siderite.compute.usecases.placement.kept_room import Kept
from siderite.core.check import is_whole
from siderite.core.errors import NotFound
from siderite.core.store import Line
from siderite.core.store.table import Where
from siderite.core.transition import Cause
from siderite.core.transition import Change

Amounts = tuple[int, int, int]
"""VCPUs, MiB of memory, GiB of disk."""
NOTHING: Amounts = (0, 0, 0)
_FEW = 1000


class Service(msgspec.Struct, frozen=True):
    """A host, its number, and whether it answers; why it does not, as far as that is known."""

    number: int
    host: Host
    seen_at: float
    is_up: bool
    zone: str
    why_down: str | None = None


class Shown(msgspec.Struct, frozen=True):
    """A hypervisor with its host's part in the API."""

    hypervisor: Hypervisor
    service: Service
    servers: Sequence[Line] | None = None
    kept: Sequence[Kept] = ()


async def services(ctx: Context, *where: Where) -> list[Service]:
    """All hosts, or those that meet the conditions."""
    now, patience = ctx.door.clock(), ctx.settings.host_patience_s
    atlas = await aggregates.atlas(ctx)
    found = []
    for number, seen_at, host in await rows.hosts(ctx.door.store, *where):
        is_up = not host.forced_down and now - seen_at <= patience
        zone = atlas.place(host.name).zone
        why = None if is_up else await _why_down(ctx, host)
        found.append(Service(number, host, seen_at, is_up, zone, why))
    return found


async def zones(ctx: Context) -> dict[str, bool]:
    """The zones that hosts are in, and whether one of these is enabled. All users ask for them:
    records are not read for it.
    """
    atlas = await aggregates.atlas(ctx)
    found: dict[str, bool] = {}
    for name, disabled in await ctx.door.store.fetch("SELECT name, disabled FROM hosts"):
        zone = atlas.place(str(name)).zone
        found[zone] = found.get(zone, False) or not disabled
    return found


async def _why_down(ctx: Context, host: Host) -> str:
    if host.forced_down:
        return "it was forced down"
    why, is_served = await usecases.why_passed_on(ctx, host)
    if host.conductor_group and not is_served:
        return why
    return "it has not answered lately: `siderite host check` asks it now"


async def service(ctx: Context, key: str) -> Service:
    """A host by its number, UUID or name."""
    where = Where("id = ?", (int(key),)) if is_whole(key, 15) else Where("uuid = ?", (key,))
    for found in await services(ctx, where):
        if key in (str(found.number), found.host.uuid):
            return found
    raise NotFound(f"Service {key[:80]} not found. `compute service list` shows all.")


async def named(ctx: Context, name: str) -> Service:
    """A host by its name."""
    for found in await services(ctx, Where("name = ?", (name,))):
        return found
    raise NotFound(
        f"Could not find binary nova-compute on host {name[:255]}. `compute service list` shows"
        " all hosts."
    )


async def change(ctx: Context, uuid: str, changes: Mapping[str, Any], *, cause: Cause) -> Service:
    """A host is enabled, disabled, forced down."""

    async def decide(change: Change) -> None:
        before = await HOSTS.get(ctx.door.store, uuid)
        if before is None:
            raise NotFound(f"Service {uuid} not found. `compute service list` shows all.")
        after = before.changed(change.now, changes)
        change.put(HOSTS.swap(before, after))
        change.tell(facts.service(after))

    await ctx.door.attempt(cause, "host:" + uuid, decide)
    return await service(ctx, uuid)


async def hypervisors(
    ctx: Context,
    *,
    pattern: str | None = None,
    with_servers: bool = False,
    after: int | None = None,
    limit: int | None = None,
) -> list[Shown]:
    """Hypervisors whose names contain a text, or a page of all beyond a number."""
    where = []
    if pattern is not None:
        where.append(Where("v.node LIKE ? ESCAPE '!'", (f"%{_escaped(pattern)}%",)))
    if after is not None:
        where.append(Where("v.id > ?", (after,)))
    return await _shown(ctx, where, with_servers=with_servers, limit=limit)


async def on_host(ctx: Context, name: str) -> list[Shown]:
    """The hypervisors of a host."""
    return await _shown(ctx, [Where("v.host = ?", (name,))], with_servers=False, limit=None)


async def claims(ctx: Context, name: str) -> dict[str, Amounts]:
    """What the servers on a host claim of it, by their projects."""
    # A plus keeps SQLite from an index of all servers that are there.
    where = Where("host = ? AND +deleted = 0", (name,))
    found: dict[str, Amounts] = {}
    for server in await store.SERVERS.find(ctx.door.store, where):
        flavor = server.flavor
        disk = flavor.disk_gib + flavor.ephemeral_gib
        claim = (flavor.vcpus, flavor.ram_mib, disk)
        found[server.project_id] = added(found.get(server.project_id, NOTHING), claim)
    return found


def added(one: Amounts, other: Amounts) -> Amounts:
    """Both together."""
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


async def hypervisor(ctx: Context, key: str, *, by_uuid: bool, with_servers: bool = False) -> Shown:
    """A hypervisor by its UUID, or by its number."""
    where = Where("v.uuid = ?", (key,))
    if not by_uuid:
        where = Where("v.id = ?", (int(key) if is_whole(key, 15) else -1,))
    found = await _shown(ctx, [where], with_servers=with_servers, limit=1)
    if not found:
        raise NotFound(
            f"Hypervisor with ID '{key[:80]}' could not be found. `hypervisor list` shows all."
        )
    return found[0]


async def _shown(
    ctx: Context, where: list[Where], *, with_servers: bool, limit: int | None
) -> list[Shown]:
    clause = " AND ".join(one.sql for one in where)
    args = [arg for one in where for arg in one.args]
    found = await store.hypervisors(ctx.door.store, clause, args, limit=limit)
    by_host = await _services_of(ctx, {one.host for one in found})
    carried: Mapping[tuple[str, str], Sequence[Line]] = {}
    if with_servers:
        carried = await rows.servers_on(ctx.door.store, [(one.host, one.node) for one in found])
    kept: dict[str, list[Kept]] = {}
    for some in await kept_room.kept(ctx):
        kept.setdefault(some.hypervisor, []).append(some)
    return [
        Shown(
            one,
            by_host[one.host],
            carried[one.host, one.node] if with_servers else None,
            kept.get(one.uuid, ()),
        )
        for one in found
        if one.host in by_host
    ]


async def _services_of(ctx: Context, names: Set[str]) -> dict[str, Service]:
    """The hosts of these names."""
    some = sorted(names)
    if not some:
        return {}
    where = [Where(f"name IN ({', '.join('?' * len(some))})", tuple(some))]
    found = await services(ctx, *(where if len(some) <= _FEW else ()))
    return {one.host.name: one for one in found}


class Sums(msgspec.Struct, frozen=True):
    """What all nodes come to whose hosts are up and enabled."""

    count: int
    servers: int
    there: Amount
    used: Amount


async def sums(ctx: Context) -> Sums:
    """The database adds them up."""
    since = ctx.door.clock() - ctx.settings.host_patience_s
    row = (await ctx.door.store.fetch(_SUMS, (since,)))[0]
    count, servers, *more = (int(str(value)) for value in row)
    return Sums(count, servers, Amount(*more[:3]), Amount(*more[3:]))


def _sum(what: str) -> str:
    return f"CAST(COALESCE(SUM({what}), 0) AS BIGINT)"


# As `Hypervisor.used` has it.
_WHOLE = "v.resource_class IS NOT NULL AND v.servers > 0"
_SUMS = (
    f"SELECT count(*), {_sum('v.servers')},"  # noqa: S608 - the words of this file
    f" {_sum('v.vcpus')}, {_sum('v.ram_mib')}, {_sum('v.disk_gib')},"
    f" {_sum(f'CASE WHEN {_WHOLE} THEN v.vcpus ELSE v.vcpus_used END')},"
    f" {_sum(f'CASE WHEN {_WHOLE} THEN v.ram_mib ELSE v.ram_used END')},"
    f" {_sum(f'CASE WHEN {_WHOLE} THEN v.disk_gib ELSE v.disk_used END')}"
    " FROM hypervisors v JOIN hosts h ON h.name = v.host"
    " WHERE h.disabled = 0 AND h.forced_down = 0 AND h.seen_at >= ?"
)


def _escaped(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
