"""Hosts and hypervisors as administrators see them: what is up, what it offers and carries."""

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from siderite.compute import record_store as rows
from siderite.compute import store
from siderite.compute.domain import record_facts as facts
from siderite.compute.domain.host import DEFAULT_ZONE
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


@dataclass(frozen=True, slots=True)
class Service:
    """A host, its number, and whether it answers; why it does not, as far as that is known."""

    number: int
    host: Host
    seen_at: float
    is_up: bool
    zone: str
    why_down: str | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """A hypervisor with its host's part in the API."""

    hypervisor: Hypervisor
    service: Service
    servers: Sequence[Line] | None = None
    kept: Sequence[Kept] = ()


async def services(ctx: Context) -> list[Service]:
    """All hosts."""
    now, patience = ctx.door.clock(), ctx.settings.host_patience_s
    places = await aggregates.places(ctx)
    found = []
    for number, seen_at, host in await rows.hosts(ctx.door.store):
        is_up = not host.forced_down and now - seen_at <= patience
        place = places.get(host.name)
        zone = (place.zone if place else None) or DEFAULT_ZONE
        why = None if is_up else await _why_down(ctx, host)
        found.append(Service(number, host, seen_at, is_up, zone, why))
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
    for found in await services(ctx):
        if key in (str(found.number), found.host.uuid):
            return found
    raise NotFound(f"Service {key[:80]} not found. `compute service list` shows all.")


async def named(ctx: Context, name: str) -> Service:
    """A host by its name."""
    for found in await services(ctx):
        if found.host.name == name:
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
    where = Where("host = ? AND deleted = 0", (name,))
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
    by_host = {one.host.name: one for one in await services(ctx)}
    carried: Mapping[str, Sequence[Line]] = {}
    if with_servers:
        carried = await rows.servers_on(ctx.door.store, [(one.host, one.node) for one in found])
    kept: dict[str, list[Kept]] = {}
    for some in await kept_room.kept(ctx):
        kept.setdefault(some.hypervisor, []).append(some)
    return [
        Shown(
            one,
            by_host[one.host],
            carried[one.node] if with_servers else None,
            kept.get(one.uuid, ()),
        )
        for one in found
        if one.host in by_host
    ]


def _escaped(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
