"""New servers: checked, counted against the quota, recorded with all that it takes to make them."""

import re
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from siderite.compute import store as rows
from siderite.compute.domain import facts
from siderite.compute.domain.flavor import Flavor
from siderite.compute.domain.host import DEFAULT_ZONE
from siderite.compute.domain.image import Image
from siderite.compute.domain.image import usable
from siderite.compute.domain.job import ActionEvent
from siderite.compute.domain.job import Job
from siderite.compute.domain.job import events_text
from siderite.compute.domain.job import job_text
from siderite.compute.domain.network import Port
from siderite.compute.domain.network import check_ports
from siderite.compute.domain.server import Request
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import BUILD_S
from siderite.compute.domain.server_machine import V
from siderite.compute.store import SERVERS
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.context import actor
from siderite.compute.usecases.fleet import addresses
from siderite.compute.usecases.fleet import aggregates
from siderite.compute.usecases.fleet import hosts
from siderite.compute.usecases.project import flavors
from siderite.compute.usecases.project import keypairs
from siderite.compute.usecases.project import quota
from siderite.compute.usecases.project import server_groups
from siderite.compute.usecases.server import delete
from siderite.compute.usecases.server import find
from siderite.compute.usecases.server.kinds import work_kind
from siderite.core import work
from siderite.core.errors import Busy
from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.errors import SideriteError
from siderite.core.ids import new_request_id
from siderite.core.ids import new_uuid
from siderite.core.store import Duplicate
from siderite.core.store import Op
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who

AT_ONCE = 25
"""How many servers one commit makes."""
_TRIES = 8


class Create(msgspec.Struct, frozen=True):
    """What a user wants."""

    flavor: str
    image: Image | None
    fields: dict[str, Any]
    """Fields of the server as they are: name, metadata, tags …"""
    request: Request
    min_count: int = 1
    max_count: int = 1
    ports: tuple[tuple[str, str | None, str | None], ...] | None = None
    """Networks by name or id, each with a fixed address and a tag if asked for; None is auto."""


async def create(ctx: Context, wish: Create, *, who: Who, cause: Cause) -> list[Server]:
    """Make the servers' records; their building follows."""
    flavor = await flavors.for_server(ctx, wish.flavor, who)
    if wish.image is not None:
        usable(wish.image, flavor.ram_mib, flavor.disk_gib)
    if flavor.disk_gib == 0 and flavor.resource_class is None and not who.is_admin:
        raise Forbidden(
            "Only volume-backed servers are allowed for flavors with zero disk, and there are no"
            " volumes here; choose a flavor with a disk, or have an administrator make the server."
        )
    if flavor.resource_class is not None and wish.request.personality:
        raise Invalid("Files cannot be put into a bare metal server; use user_data.")
    _check_disks(wish.request.block_devices, flavor)
    check_ports(len(_wanted(ctx, wish)))
    quota.check_files(wish.request.personality)
    await quota.check_metadata(ctx, who.project_id or "", wish.fields.get("metadata", {}))
    await _check_group(ctx, wish, who)
    await _check_host(ctx, wish.request)
    await check_zone(ctx, wish.fields.get("pinned_zone"))
    wish = await _with_key(ctx, wish, who)
    count = await quota.how_many(
        ctx, who.project_id or "", flavor, least=wish.min_count, most=wish.max_count
    )
    await _join(ctx, wish, who.project_id or "", count)  # all of them, before the first is made
    batch = _Batch(wish, flavor, "r-" + new_uuid()[:8], count, who)
    made: list[Server] = []
    while len(made) < count:
        some = range(len(made), min(count, len(made) + AT_ONCE))
        try:
            made += await _some(ctx, batch, some, cause)
        except SideriteError:
            if len(made) >= wish.min_count:
                break
            # Fewer than are of use: nobody is told of these, so nobody would delete them.
            for server in made:
                await delete.ask(ctx, server.uuid, who=who, cause=cause, force=True)
            raise
    return made


class _Batch(msgspec.Struct, frozen=True):
    """Servers that are made by one request."""

    wish: Create
    flavor: Flavor
    reservation: str
    count: int
    who: Who


def _check_disks(devices: Sequence[Mapping[str, Any]], flavor: Flavor) -> None:
    """Further disks are those of the flavor: refuse what asks for more of them."""
    if sum(str(device.get("boot_index")) == "0" for device in devices) > 1:
        raise Invalid("Block Device Mapping is Invalid: only one disk can be booted from.")
    blank = [device for device in devices if device.get("source_type") == "blank"]
    swap = [device for device in blank if device.get("guest_format") == "swap"]
    others = [device for device in blank if device.get("guest_format") != "swap"]
    for name, found, most, unit in (
        ("swap", swap, flavor.swap_mib, "MiB"), ("ephemeral", others, flavor.ephemeral_gib, "GiB")
    ):  # fmt: skip
        size = sum(int(device.get("volume_size") or most or 1) for device in found)
        if len(found) > 1 or size > most:
            raise Invalid(
                f"Block Device Mapping is Invalid: the flavor gives one {name} disk of {most}"
                f" {unit}, or none if that is 0; choose another flavor."
            )


async def _check_group(ctx: Context, wish: Create, who: Who) -> None:
    group = wish.fields.get("group")
    if group is None:
        return
    found = await server_groups.get(ctx, group)
    if found is None or (found.project_id != who.project_id and not who.is_admin):
        raise Invalid(
            f"Instance group {group} could not be found. It is the hint to the scheduler;"
            " `server group list` shows yours."
        )


async def _join(ctx: Context, wish: Create, project: str, count: int) -> list[Op]:
    """The ops by which new servers come into their group, if they have one."""
    group = wish.fields.get("group")
    if group is None:
        return []
    return await server_groups.join(ctx, group, count, project)


async def check_zone(ctx: Context, zone: str | None) -> None:
    """A zone that is asked for must be there."""
    if zone in (None, DEFAULT_ZONE):
        return
    atlas = await aggregates.atlas(ctx)
    if all(place.zone != zone for place in atlas.places):
        raise Invalid(
            "The requested availability zone is not available. `availability zone list` shows those"
            " there are."
        )


async def _check_host(ctx: Context, request: Request) -> None:
    """A host or node that is asked for, to be checked like any other, must be there."""
    if request.wanted_host is not None and await hosts.named(ctx, request.wanted_host) is None:
        raise find.missing_host(request.wanted_host, Invalid)
    node = request.wanted_node
    if node is None:
        return
    found = await rows.hypervisors(ctx.door.store, "v.node = ?", (node,))
    if all(request.wanted_host not in (None, one.host) for one in found):
        raise find.missing_host(node, Invalid)


async def _with_key(ctx: Context, wish: Create, who: Who) -> Create:
    """The public key is kept as it is now."""
    name = wish.fields.get("key_name")
    if name is None:
        return wish
    key = await keypairs.public_key(ctx, who.user_id, name)
    return replace(wish, request=replace(wish.request, public_key=key))


async def _some(ctx: Context, batch: _Batch, some: range, cause: Cause) -> list[Server]:
    project = batch.who.project_id or ""
    for attempt in range(_TRIES):

        async def decide(change: Change, attempt: int = attempt) -> list[Server]:
            change.put(await quota.take(ctx, project, batch.flavor, len(some)))
            for op in await _join(ctx, batch.wish, project, len(some)):
                change.put(op)
            made: list[Server] = []
            for index in some:
                server = _server(batch, index, change)
                made.append(
                    await _record(ctx, change, batch.wish, server, attempt=attempt, others=made)
                )
            return made

        try:
            return await ctx.door.attempt(cause, f"create:{project}", decide)
        except Duplicate:
            continue  # an address was taken by another just now
    raise Busy("Too many servers ask for addresses at once; try again in a moment.")


def _server(batch: _Batch, index: int, change: Change) -> Server:
    wish, who = batch.wish, batch.who
    fields = dict(wish.fields)
    name = fields.pop("name")
    if batch.count > 1:
        name = f"{name}-{index + 1}"
    uuid = new_uuid()
    hostname = fields.pop("hostname", None) or hostname_of(name) or f"server-{uuid}"
    moment = iso(change.now)
    snapshot = replace(batch.flavor, projects=[])
    return Server(
        uuid=uuid,
        created_at=moment,
        name=name,
        hostname=hostname,
        project_id=who.project_id or "",
        user_id=who.user_id,
        reservation_id=batch.reservation,
        launch_index=index,
        vm_state=V.BUILDING.value,
        task_state="scheduling",
        flavor=snapshot,
        image=wish.image,
        request=wish.request,
        by=actor(change.cause),
        wait_reason="waits to be placed",
        deadline=iso(change.now + BUILD_S),
        **fields,
    )


async def _record(
    ctx: Context,
    change: Change,
    wish: Create,
    server: Server,
    *,
    attempt: int,
    others: Sequence[Server],
) -> Server:
    ports = list[Port]()
    for name, address, tag in _wanted(ctx, wish):
        network = ctx.network(name)
        if network is None:
            raise Invalid(f"Network {name[:80]} could not be found. `network list` shows all.")
        taken = [*ports, *(port for other in others for port in other.ports)]
        beside = {port.address for port in taken if port.network == network.name}
        port = await addresses.new_port(ctx, network, address, tag, attempt, beside=beside)
        change.put(rows.take_address(port, server.uuid))
        ports.append(port)
    server = replace(server, ports=ports)
    request_id = change.cause.request_id or new_request_id()
    at = iso(change.now)
    job = Job(
        op=new_uuid(), action="create", request_id=request_id, began=at,
        events=[ActionEvent("compute__do_build_and_run_instance", at)],
    )  # fmt: skip
    change.put(SERVERS.insert(server))
    change.put(
        rows.action_begins(
            server.uuid, request_id=request_id, action="create", user=change.cause.user,
            project=change.cause.project, at=at, events=events_text(job.events),
        )
    )  # fmt: skip
    change.work(
        work.add(
            server.uuid, ctx.rules.lane, work_kind("build"), job=job_text(job), now=change.now,
            deadline=change.now + BUILD_S * ctx.settings.deadline_scale,
            reason=server.wait_reason, request_id=request_id, known=server,
        )
    )  # fmt: skip
    change.tell(facts.update(server, server))
    return server


def _wanted(ctx: Context, wish: Create) -> tuple[tuple[str, str | None, str | None], ...]:
    if wish.ports is not None:
        return wish.ports
    return tuple((network.name, None, None) for network in ctx.settings.networks[:1])


_NOT_IN_A_HOSTNAME = re.compile(r"[^a-z0-9-]+")


def hostname_of(name: str) -> str:
    """A host name from a display name; nothing, if none of its characters can be in one."""
    plain = _NOT_IN_A_HOSTNAME.sub("", re.sub(r"[ _.]+", "-", name.lower())).strip("-")[:63]
    return plain.strip("-")
