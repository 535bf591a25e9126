"""Aggregates of hosts, and the zones that they make."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from siderite.compute import record_store as rows
from siderite.compute.domain import record_facts as facts
from siderite.compute.domain.aggregate import ZONE
from siderite.compute.domain.aggregate import Aggregate
from siderite.compute.domain.aggregate import Atlas
from siderite.compute.domain.aggregate import check_zones
from siderite.compute.domain.aggregate import rezoned
from siderite.compute.record_store import AGGREGATES
from siderite.compute.store import HOSTS
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.server import find
from siderite.core.errors import Conflict
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.errors import SideriteError
from siderite.core.ids import new_uuid
from siderite.core.store import Duplicate
from siderite.core.store.table import Where
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change

_ALL = "aggregates"
"""Zones are decided over all aggregates, so changes of any take turns."""

_AT_ONCE = 500

Numbered = tuple[int, Aggregate]


async def atlas(ctx: Context) -> Atlas:
    """Where hosts are by their aggregates, which may name thousands of them: these are read again
    only when one has changed.
    """
    known = ctx.known_atlas
    versions = await rows.aggregate_versions(ctx.door.store)
    if versions != known.versions:
        # One that changes in between has another version than the one that is kept in mind.
        known.atlas = Atlas([aggregate for _, aggregate in await every(ctx)])
        known.versions = versions
    return known.atlas


async def every(ctx: Context) -> list[Numbered]:
    """All aggregates, with their numbers."""
    return await rows.aggregates(ctx.door.store)


async def one(ctx: Context, number: str) -> Numbered:
    """The aggregate of a number, or of a UUID."""
    for found in await every(ctx):
        if number in (str(found[0]), found[1].uuid):
            return found
    raise NotFound(f"Aggregate {number[:80]} could not be found. `aggregate list` shows all.")


async def create(ctx: Context, name: str, zone: str | None, *, cause: Cause) -> Numbered:
    """A new aggregate, without hosts."""
    change = ctx.door.change(cause)
    metadata = {} if zone is None else {ZONE: zone}
    made = Aggregate(uuid=new_uuid(), created_at=iso(change.now), name=name, metadata=metadata)
    change.put(AGGREGATES.insert(made))
    change.tell(*facts.aggregate("create", made, None))
    await _commit(ctx, change, made)
    return await one(ctx, made.uuid)


async def _change(
    ctx: Context, number: str, action: str, changes: Callable[[Aggregate], dict[str, Any]],
    *, cause: Cause, refusal: type[SideriteError] = Invalid,
) -> Numbered:  # fmt: skip
    async def decide(change: Change) -> Numbered:
        known, before = await one(ctx, number)
        after = before.changed(change.now, changes(before))
        others = [other for _, other in await every(ctx) if other.uuid != before.uuid]
        check_zones(after, others, refusal)
        await _check_empty(ctx, rezoned(before, after, others), refusal)
        change.put(AGGREGATES.swap(before, after))
        for other in others:
            if set(other.hosts) & {*before.hosts, *after.hosts}:
                change.put(AGGREGATES.hold(other))
        change.tell(*facts.aggregate(action, after, known))
        return known, after

    try:
        return await ctx.door.attempt(cause, _ALL, decide)
    except Duplicate as clash:
        raise Conflict("There is an aggregate of this name already; choose another.") from clash


async def _check_empty(ctx: Context, hosts: Sequence[str], refusal: type[SideriteError]) -> None:
    """Servers are in the zone that they were placed in: their hosts do not leave it with them."""
    for at in range(0, len(hosts), _AT_ONCE):
        some = hosts[at : at + _AT_ONCE]
        marks = ", ".join("?" * len(some))
        carried = await ctx.door.store.fetch(
            f"SELECT host FROM hypervisors WHERE host IN ({marks}) AND servers > 0 LIMIT 1",  # noqa: S608
            some,
        )
        if carried:
            raise refusal(
                f"One or more hosts contain instances in this zone: {carried[0][0]!s} does, and"
                " would be in another one; move them away from it first."
            )


async def update(
    ctx: Context, number: str, asked: Mapping[str, str | None], *, cause: Cause
) -> Numbered:
    """Another name, another zone, or both; null is no zone."""

    def changes(before: Aggregate) -> dict[str, Any]:
        new: dict[str, Any] = {"name": asked["name"]} if "name" in asked else {}
        if ZONE in asked:
            metadata = {**before.metadata, ZONE: asked[ZONE]}
            new["metadata"] = {key: one for key, one in metadata.items() if one is not None}
        return new

    return await _change(ctx, number, "update_prop", changes, cause=cause)


async def set_metadata(
    ctx: Context, number: str, metadata: Mapping[str, str | None], *, cause: Cause
) -> Numbered:
    """Add metadata; null takes away."""

    def changes(before: Aggregate) -> dict[str, Any]:
        merged = {**before.metadata, **metadata}
        return {"metadata": {key: value for key, value in merged.items() if value is not None}}

    return await _change(ctx, number, "update_metadata", changes, cause=cause)


async def add_host(ctx: Context, number: str, host: str, *, cause: Cause) -> Numbered:
    """A host comes into it."""
    if not await HOSTS.select(ctx.door.store, "name", (Where("name = ?", (host,)),)):
        raise find.missing_host(host)

    def changes(before: Aggregate) -> dict[str, Any]:
        if host in before.hosts:
            raise Conflict(f"Aggregate {number} already has host {host}.")
        return {"hosts": [*before.hosts, host]}

    return await _change(ctx, number, "add_host", changes, cause=cause, refusal=Conflict)


async def remove_host(ctx: Context, number: str, host: str, *, cause: Cause) -> Numbered:
    """A host goes out of it."""

    def changes(before: Aggregate) -> dict[str, Any]:
        if host not in before.hosts:
            there = ", ".join(before.hosts[:10]) or "none"
            raise NotFound(f"Aggregate {number} has no host {host[:255]}. It has: {there}.")
        return {"hosts": [one for one in before.hosts if one != host]}

    return await _change(ctx, number, "remove_host", changes, cause=cause, refusal=Conflict)


async def forget_host(ctx: Context, change: Change, host: str) -> None:
    """With this change a host is gone, from all aggregates too."""
    for known, before in await every(ctx):
        if host in before.hosts:
            left = [one for one in before.hosts if one != host]
            after = before.changed(change.now, {"hosts": left})
            change.put(AGGREGATES.swap(before, after))
            change.tell(*facts.aggregate("remove_host", after, known))


async def remove(ctx: Context, number: str, *, cause: Cause) -> None:
    """Forget an aggregate that has no hosts."""

    async def decide(change: Change) -> None:
        known, found = await one(ctx, number)
        if found.hosts:
            raise Invalid(
                f"Cannot remove host aggregate {known}: it has hosts; remove those from it first."
            )
        change.put(AGGREGATES.remove(found))
        change.tell(*facts.aggregate("delete", found, known))

    await ctx.door.attempt(cause, _ALL, decide)


async def _commit(ctx: Context, change: Change, made: Aggregate) -> None:
    try:
        await ctx.door.commit(change)
    except Duplicate as clash:
        raise Conflict(f"Aggregate {made.name} already exists. Choose another name.") from clash
