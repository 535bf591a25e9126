"""Hosts: added, looked at, removed; what they offer, as they tell it."""

from collections.abc import Sequence

import msgspec

from siderite.compute import store as rows
from siderite.compute.domain import record_facts
from siderite.compute.domain.host import Host
from siderite.compute.store import HOSTS
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.fleet import aggregates
from siderite.compute.usecases.server import find
from siderite.core import work
from siderite.core.errors import Conflict
from siderite.core.errors import Invalid
from siderite.core.ids import new_uuid
from siderite.core.store import Duplicate
from siderite.core.store import Lost
from siderite.core.store import Op
from siderite.core.store.table import Where
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.work import Work

NO_LIMIT = 10**9
_GONE = "its host does not have it any more"


class Offer(msgspec.Struct, frozen=True):
    """What a hypervisor node offers, as the worker heard it."""

    node: str
    type: str
    version: int
    vcpus: int
    ram_mib: int
    disk_gib: int
    resource_class: str | None
    traits: frozenset[str]
    address: str
    cpu_info: str
    is_available: bool
    why_not: str | None


async def add(
    ctx: Context, name: str, driver: str, uri: str, options: dict[str, str], *, group: str = ""
) -> Host:
    """A new host; what it offers is asked next."""
    if driver not in ctx.cards:
        raise Invalid(f"There is no driver {driver!r}; there are: {', '.join(sorted(ctx.cards))}.")
    unknown = sorted(set(options) - ctx.cards[driver].options)
    if unknown:
        known = ", ".join(sorted(ctx.cards[driver].options)) or "none"
        raise Invalid(
            f"Hosts of the driver {driver} have no option {unknown[0][:80]!r}; they have: {known}."
        )
    change = ctx.door.change(Cause())
    host = Host(
        uuid=new_uuid(), created_at=iso(change.now), name=name, driver=driver, uri=uri,
        options=options, conductor_group=group,
    )  # fmt: skip
    change.put(HOSTS.insert(host))
    try:
        await ctx.door.commit(change)
    except Duplicate as clash:
        raise Conflict(f"There is a host {name!r} already; choose another name.") from clash
    return host


async def every(ctx: Context, group: str | None = None) -> list[Host]:
    """All hosts, or those of a conductor group, oldest first; one whose record is spoilt does not
    hide the others.
    """
    docs = [row[0] for row in await HOSTS.select(ctx.door.store, "doc", ())]
    found = (host for host in HOSTS.readable(docs) if host is not None)
    return [host for host in found if group in (None, host.conductor_group)]


async def silent(ctx: Context) -> list[Host]:
    """Hosts that could be given servers, had they been heard of lately."""
    since = ctx.door.clock() - ctx.settings.host_patience_s
    found = await HOSTS.find(ctx.door.store, Where("seen_at < ?", (since,)))
    return [host for host in found if not (host.disabled or host.forced_down)]


async def named(ctx: Context, name: str) -> Host | None:
    """The host of this name."""
    found = await HOSTS.find(ctx.door.store, Where("name = ?", (name,)))
    return found[0] if found else None


async def known(ctx: Context, name: str) -> Host:
    """The same, which must be there."""
    host = await named(ctx, name)
    if host is None:
        raise find.missing_host(name)
    return host


# Whose workers act on it

_ITS_WORK = "machine IN (SELECT server FROM claims WHERE host = ?) OR machine LIKE ? ESCAPE '!'"


async def regroup(ctx: Context, name: str, group: str, *, cause: Cause) -> Host:
    """A host is another conductor group's from now on, and so is the work that waits for it."""

    async def decide(change: Change) -> Host:
        host = await known(ctx, name)
        if host.conductor_group == group:
            return host
        after = host.changed(change.now, {"conductor_group": group})
        change.put(HOSTS.swap(host, after))
        change.tell(record_facts.service(after))
        if host.conductor_group:
            left_there = "%@" + name.replace("_", "!_")
            change.work(
                work.regroup_all(
                    host.conductor_group, group or None, _ITS_WORK, (name, left_there), change.now
                )
            )
        return after

    return await ctx.door.attempt(cause, "host:" + name, decide)


async def why_passed_on(ctx: Context, host: Host) -> tuple[str, bool]:
    """Why work is for other workers than the one that had it; and whether one of them is up."""
    group = host.conductor_group
    why = f"host {host.name} is for workers of the conductor group {group}"
    if await ctx.workers.serve(group):
        return why, True
    return f"{why}, and none is up: start one with worker_groups = {group}", False


def pass_on(change: Change, held: Work, host: Host, job: str, reason: str) -> None:
    """The work is for workers of the host's group, if that is still its group."""
    change.put(HOSTS.hold(host))
    change.work(work.pass_on(held, host.conductor_group, job=job, now=change.now, reason=reason))


async def remove(ctx: Context, name: str) -> None:
    """Forget a host that carries nothing, nor is given anything at this moment."""

    async def decide(change: Change) -> None:
        host = await known(ctx, name)
        counts = (await ctx.door.store.fetch(_CARRIED, (name,)))[0]
        nodes, carried = int(counts[0] or 0), int(counts[1] or 0)
        if carried:
            raise Conflict(
                f"Host {name} still carries servers ({carried}); move or delete them first."
            )
        change.put(HOSTS.remove(host))
        gone = "DELETE FROM hypervisors WHERE host = ? AND servers = 0"
        change.put(Op(gone, (name,), nodes))
        await aggregates.forget_host(ctx, change, name)

    await ctx.door.attempt(Cause(), "host:" + name, decide)


_CARRIED = "SELECT count(*), SUM(servers) FROM hypervisors WHERE host = ?"


_OFFER = """
INSERT INTO hypervisors (uuid, host, node, type, version, address, cpu_info, resource_class, traits,
  vcpus, ram_mib, disk_gib, vcpus_limit, ram_limit, disk_limit, servers_limit, is_available,
  why_not)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (host, node) DO UPDATE SET type = excluded.type, version = excluded.version,
  address = excluded.address, cpu_info = excluded.cpu_info,
  resource_class = excluded.resource_class, traits = excluded.traits, vcpus = excluded.vcpus,
  ram_mib = excluded.ram_mib, disk_gib = excluded.disk_gib, vcpus_limit = excluded.vcpus_limit,
  ram_limit = excluded.ram_limit, disk_limit = excluded.disk_limit,
  servers_limit = excluded.servers_limit, is_available = excluded.is_available,
  why_not = excluded.why_not
"""


def shift(back_s: float) -> Op:
    """The clock was set back by so much: who was silent still is."""
    return Op("UPDATE hosts SET seen_at = seen_at - ? WHERE seen_at > 0", (back_s,))


async def alive(ctx: Context, host: str, last: float) -> float | None:
    """A host answered, and offers what was written down at a time; when that was said, or None if
    it is not so written any more: another process asked it, or the database went back.
    """
    now = ctx.door.clock()
    try:
        await ctx.door.store.commit([rows.seen(host, now, last)])
    except Lost:
        return None
    return now


def _as_known(offers: Sequence[Offer], carrying: Sequence[str]) -> Sequence[Offer]:
    """A hypervisor that is called otherwise today is the same one, by the name that it carries
    servers under: else its room were there twice. (libvirt's name of a host hangs on the name
    server that the host asks.)
    """
    if len(offers) != 1 or not carrying:
        return offers
    (offer,) = offers
    if offer.resource_class is not None or offer.node in carrying:
        return offers
    return [msgspec.structs.replace(offer, node=carrying[0])]


async def heard(ctx: Context, host: str, offers: Sequence[Offer]) -> float:
    """A host answered: it is up, and offers this; when that was written down. `Lost` if the host
    was removed meanwhile.
    """
    ratios = ctx.settings
    now = ctx.door.clock()
    known = await ctx.door.store.fetch(
        "SELECT node, servers FROM hypervisors WHERE host = ?", (host,)
    )
    offers = _as_known(offers, [str(node) for node, servers in known if servers])
    there = {offer.node for offer in offers}
    ops: list[Op] = []
    for offer in offers:
        is_metal = offer.resource_class is not None
        ops.append(
            Op(
                _OFFER,
                (
                    new_uuid(), host, offer.node, offer.type, offer.version, offer.address,
                    offer.cpu_info, offer.resource_class, " ".join(sorted(offer.traits)),
                    offer.vcpus, offer.ram_mib, offer.disk_gib,
                    int(offer.vcpus * ratios.cpu_allocation_ratio),
                    int(offer.ram_mib * ratios.ram_allocation_ratio),
                    int(offer.disk_gib * ratios.disk_allocation_ratio),
                    1 if is_metal else NO_LIMIT, int(offer.is_available), offer.why_not,
                ),
            )
        )  # fmt: skip
    for row in known:
        if row[0] not in there:
            gone = (
                "UPDATE hypervisors SET is_available = 0, why_not = ? WHERE host = ? AND node = ?"
            )
            ops.append(Op(gone, (_GONE, host, row[0])))
    for at in range(0, max(1, len(ops)), 100):
        await ctx.door.store.commit([rows.seen(host, now), *ops[at : at + 100]])
    return now


async def forget_gone(ctx: Context) -> None:
    """Forget nodes that their hosts do not have any more, once they carry nothing."""
    where, args = (
        "FROM hypervisors WHERE is_available = 0 AND servers = 0 AND why_not = ?",
        (_GONE,),
    )
    if await ctx.door.store.fetch(f"SELECT 1 {where} LIMIT 1", args):
        await ctx.door.store.commit([Op(f"DELETE {where}", args)])
