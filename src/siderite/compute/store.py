"""Rows of the compute service and the values they stand for."""

from collections.abc import Sequence
from functools import lru_cache

from siderite.compute.domain import flavor_wire
from siderite.compute.domain import wire
from siderite.compute.domain.flavor import Flavor
from siderite.compute.domain.host import Amount
from siderite.compute.domain.host import Host
from siderite.compute.domain.host import Hypervisor
from siderite.compute.domain.host import carries
from siderite.compute.domain.network import Port
from siderite.compute.domain.server import Server
from siderite.core.store import Line
from siderite.core.store import Op
from siderite.core.store import Store
from siderite.core.store import Value
from siderite.core.store.table import Table

SERVER_COLUMNS = (
    "project_id", "user_id", "name", "description", "hostname", "vm_state", "task_state",
    "power_state", "progress", "host", "node", "availability_zone", "flavor_id", "image_id",
    "key_name", "group_uuid", "reservation_id", "launch_index", "config_drive", "locked_by",
    "access_ip_v4", "access_ip_v6", "root_device_name", "tag_text", "addresses_text", "vcpus",
    "ram_mib", "deleted", "created_at", "changed_at", "launched_at", "terminated_at",
)  # fmt: skip
SERVER_NUMBERS = (
    "power_state", "progress", "launch_index", "config_drive", "vcpus", "ram_mib", "deleted",
)  # fmt: skip
SERVERS: Table[Server] = Table(
    "servers", Server, SERVER_COLUMNS, wire.render, numbers=SERVER_NUMBERS, recalled=True
)

_FLAVOR_COLUMNS = (
    "flavorid", "name", "vcpus", "ram_mib", "disk_gib", "is_public", "created_at", "updated_at",
)  # fmt: skip
FLAVORS: Table[Flavor] = Table(
    "flavors", Flavor, _FLAVOR_COLUMNS, flavor_wire.render,
    numbers=("vcpus", "ram_mib", "disk_gib", "is_public"),
)  # fmt: skip

_HOST_COLUMNS = (
    "name", "driver", "disabled", "disabled_reason", "forced_down", "conductor_group",
)  # fmt: skip
HOSTS: Table[Host] = Table("hosts", Host, _HOST_COLUMNS, lambda host: "")


# Hypervisor nodes and what is claimed of them

_HYPERVISOR = (
    "SELECT v.id, v.uuid, v.host, v.node, v.type, v.version, v.address, v.cpu_info,"
    " v.resource_class, v.traits, v.vcpus, v.ram_mib, v.disk_gib, v.vcpus_limit, v.ram_limit,"
    " v.disk_limit, v.vcpus_used, v.ram_used, v.disk_used, v.servers, v.is_available, v.why_not,"
    " h.driver, h.disabled, h.disabled_reason, h.forced_down, h.seen_at,"
    " h.conductor_group"
    " FROM hypervisors v JOIN hosts h ON h.name = v.host"
)


@lru_cache(256)
def _traits(text: str) -> frozenset[str]:
    """Hosts of a kind have the same, and many."""
    return frozenset(text.split())


def _hypervisor(row: Line) -> Hypervisor:
    values = list(row)
    values[9] = _traits(str(row[9]))  # type: ignore[call-overload]
    for at in (20, 23, 25):
        values[at] = bool(row[at])
    return Hypervisor(*values)  # type: ignore[arg-type]


async def hypervisors(
    store: Store,
    where: str = "",
    args: Sequence[Value] = (),
    *,
    order: str = "v.id",
    limit: int | None = None,
) -> list[Hypervisor]:
    """Hypervisor nodes with their hosts' condition; `v` and `h` in `where` are the two tables."""
    clause = f" WHERE {where}" if where else ""
    end = "" if limit is None else f" LIMIT {limit}"
    rows = await store.fetch(f"{_HYPERVISOR}{clause} ORDER BY {order}{end}", args)
    return [_hypervisor(row) for row in rows]


def claim(server: str, slot: str, *, host: str, node: str, amount: Amount) -> list[Op]:
    """The ops that claim room on a hypervisor node, if there is still enough."""
    take = Op(
        "UPDATE hypervisors SET vcpus_used = vcpus_used + ?, ram_used = ram_used + ?,"
        " disk_used = disk_used + ?, servers = servers + 1"
        " WHERE host = ? AND node = ? AND vcpus_used + ? <= vcpus_limit"
        " AND ram_used + ? <= ram_limit AND disk_used + ? <= disk_limit"
        " AND servers < servers_limit",
        (
            amount.vcpus, amount.ram_mib, amount.disk_gib, host, node,
            amount.vcpus, amount.ram_mib, amount.disk_gib,
        ),
        1,
    )  # fmt: skip
    note = Op(
        "INSERT INTO claims (server, slot, host, node, vcpus, ram_mib, disk_gib)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (server, slot, host, node, amount.vcpus, amount.ram_mib, amount.disk_gib),
        1,
    )
    return [take, note]


Claim = tuple[str, str, str, Amount]
"""Slot, host, node and amount."""


def free_many(server: str, found: Sequence[Claim]) -> list[Op]:
    """The ops that give claimed room back, exactly once; a row is touched once per commit."""
    ops = [
        Op("DELETE FROM claims WHERE server = ? AND slot = ?", (server, slot), 1)
        for slot, _, _, _ in found
    ]
    sums: dict[tuple[str, str], list[int]] = {}
    for _, host, node, amount in found:
        total = sums.setdefault((host, node), [0, 0, 0, 0])
        for at, more in enumerate((amount.vcpus, amount.ram_mib, amount.disk_gib, 1)):
            total[at] += more
    ops += [
        Op(
            "UPDATE hypervisors SET vcpus_used = vcpus_used - ?, ram_used = ram_used - ?,"
            " disk_used = disk_used - ?, servers = servers - ?,"
            # What its driver said of it when it was last asked is not so any more.
            " is_available = CASE WHEN why_not = ? THEN 1 ELSE is_available END,"
            " why_not = CASE WHEN why_not = ? THEN NULL ELSE why_not END"
            " WHERE host = ? AND node = ?",
            (*total, carries(server), carries(server), host, node),
        )
        for (host, node), total in sums.items()
    ]
    return ops


async def claims(store: Store, server: str) -> list[Claim]:
    """Slot, host, node and amount of a server's claims."""
    rows = await store.fetch(
        "SELECT slot, host, node, vcpus, ram_mib, disk_gib FROM claims WHERE server = ?", (server,)
    )
    return [(str(r[0]), str(r[1]), str(r[2]), Amount(*r[3:])) for r in rows]  # type: ignore[arg-type]


def seen(host: str, at: float, last: float | None = None) -> Op:
    """A host that is there answered; nobody has written down since `last` that it did."""
    if last is None:
        return Op("UPDATE hosts SET seen_at = ? WHERE name = ?", (at, host), 1)
    return Op("UPDATE hosts SET seen_at = ? WHERE name = ? AND seen_at = ?", (at, host, last), 1)


# What a project has

UNLIMITED = 10**15


def use(
    project: str,
    *,
    instances: int,
    cores: int,
    ram_mib: int,
    limits: tuple[int, int, int] = (UNLIMITED, UNLIMITED, UNLIMITED),
) -> Op:
    """A project's servers become more or fewer, within these limits on all three."""
    return Op(
        "INSERT INTO project_usage (project_id, instances, cores, ram_mib) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (project_id) DO UPDATE SET"
        " instances = project_usage.instances + excluded.instances,"
        " cores = project_usage.cores + excluded.cores,"
        " ram_mib = project_usage.ram_mib + excluded.ram_mib"
        " WHERE project_usage.instances + excluded.instances <= ?"
        " AND project_usage.cores + excluded.cores <= ?"
        " AND project_usage.ram_mib + excluded.ram_mib <= ?",
        (project, instances, cores, ram_mib, *limits),
        1,
    )


async def usage(store: Store, project: str) -> tuple[int, int, int] | None:
    """Instances, cores and MiB of memory that a project has; None if it never had any."""
    rows = await store.fetch(
        "SELECT instances, cores, ram_mib FROM project_usage WHERE project_id = ?", (project,)
    )
    return (int(rows[0][0]), int(rows[0][1]), int(rows[0][2])) if rows else None  # type: ignore[arg-type]


# Addresses


def take_address(port: Port, server: str) -> Op:
    """An address becomes a server's; Duplicate if it is another's."""
    return Op(
        "INSERT INTO addresses (network, address, server, port) VALUES (?, ?, ?, ?)",
        (port.network, port.address, server, port.id),
        1,
    )


def give_addresses(server: str) -> Op:
    """A server's addresses are free again."""
    return Op("DELETE FROM addresses WHERE server = ?", (server,))


def give_address(network: str, address: str, server: str) -> Op:
    """One of a server's addresses is free again."""
    return Op(
        "DELETE FROM addresses WHERE network = ? AND address = ? AND server = ?",
        (network, address, server),
    )


async def taken(store: Store, network: str, candidates: Sequence[str]) -> set[str]:
    """Which of these addresses are in use."""
    marks = ", ".join("?" * len(candidates))
    rows = await store.fetch(
        f"SELECT address FROM addresses WHERE network = ? AND address IN ({marks})",  # noqa: S608
        (network, *candidates),
    )
    return {str(row[0]) for row in rows}


async def all_taken(store: Store, network: str) -> set[str]:
    """All addresses of a network that are in use."""
    rows = await store.fetch("SELECT address FROM addresses WHERE network = ?", (network,))
    return {str(row[0]) for row in rows}


# What was done to a server


def action_begins(
    server: str, *, request_id: str, action: str, user: str | None, project: str | None, at: str,
    events: str, message: str | None = None,
) -> Op:  # fmt: skip
    """An action is recorded with the request that asked for it."""
    return Op(
        "INSERT INTO instance_actions (server, request_id, action, user_id, project_id,"
        " started_at, updated_at, message, events) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (server, request_id, action, user, project, at, at, message, events),
        1,
    )


def action_goes_on(
    server: str, request_id: str, action: str, *, at: str, message: str | None, events: str
) -> Op:
    """An action's events so far."""
    return Op(
        "UPDATE instance_actions SET updated_at = ?, message = ?, events = ?"
        " WHERE server = ? AND request_id = ? AND action = ?",
        (at, message, events, server, request_id, action),
    )


def migration_becomes(migration: str, status: str, at: str) -> Op:
    """A migration is further on, or over."""
    return Op(
        "UPDATE server_migrations SET status = ?, updated_at = ? WHERE uuid = ?",
        (status, at, migration),
    )


ACTION_COLUMNS = (
    "id, request_id, action, user_id, project_id, started_at, updated_at, message, events"
)
