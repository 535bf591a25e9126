"""Rows of what servers refer to: keypairs, limits, aggregates, groups; and of what they used."""

from collections.abc import Iterable
from collections.abc import Sequence

from siderite.compute.domain.aggregate import Aggregate
from siderite.compute.domain.host import Host
from siderite.compute.domain.keypair import Keypair
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_group import ServerGroup
from siderite.compute.store import HOSTS
from siderite.compute.store import SERVERS
from siderite.core.store import Line
from siderite.core.store import Op
from siderite.core.store import Store
from siderite.core.store import Value
from siderite.core.store import indexed
from siderite.core.store.table import Table
from siderite.core.store.table import Where


def _no_body(_: object) -> str:
    return ""


KEYPAIRS: Table[Keypair] = Table("keypairs", Keypair, ("user_id", "name"), _no_body)
AGGREGATES: Table[Aggregate] = Table("aggregates", Aggregate, ("name",), _no_body)
SERVER_GROUPS: Table[ServerGroup] = Table("server_groups", ServerGroup, ("project_id",), _no_body)


async def keypair(store: Store, user: str, name: str) -> tuple[int, Keypair] | None:
    """A user's key of this name, and its number."""
    rows = await store.fetch(
        "SELECT id, doc FROM keypairs WHERE user_id = ? AND name = ?", (user, name)
    )
    return (int(rows[0][0]), KEYPAIRS.value(rows[0][1])) if rows else None  # type: ignore[arg-type]


async def keypairs(
    store: Store, user: str, *, after: str | None = None, limit: int | None = None
) -> list[Keypair]:
    """A user's keys by name, beyond one of them."""
    where, args = "user_id = ?", [user]
    if after is not None:
        where += " AND name > ?"
        args.append(after)
    end = "" if limit is None else f" LIMIT {limit}"
    sql = f"SELECT doc FROM keypairs WHERE {where} ORDER BY name{end}"  # noqa: S608
    return [KEYPAIRS.value(row[0]) for row in await store.fetch(sql, args)]


async def count(store: Store, table: str, column: str, value: str) -> int:
    """How many rows have this value."""
    rows = await store.fetch(f"SELECT count(*) FROM {table} WHERE {column} = ?", (value,))  # noqa: S608
    return int(rows[0][0])  # type: ignore[arg-type]


# Limits

DEFAULTS = ""
"""The project whose limits are everybody's."""


async def limits(store: Store, project: str) -> tuple[dict[str, int], dict[str, int]]:
    """What was set for everybody, and for the project."""
    rows = await store.fetch(
        "SELECT project_id, resource, value FROM quota_limits WHERE project_id IN (?, ?)",
        (DEFAULTS, project),
    )
    every = {str(r[1]): int(r[2]) for r in rows if r[0] == DEFAULTS}  # type: ignore[arg-type]
    own = {str(r[1]): int(r[2]) for r in rows if r[0] != DEFAULTS}  # type: ignore[arg-type]
    return every, own


def set_limit(project: str, resource: str, value: int) -> Op:
    """A limit becomes this."""
    return Op(
        "INSERT INTO quota_limits (project_id, resource, value) VALUES (?, ?, ?)"
        " ON CONFLICT (project_id, resource) DO UPDATE SET value = excluded.value",
        (project, resource, value),
    )


def forget_limits(project: str) -> Op:
    """The defaults hold again."""
    return Op("DELETE FROM quota_limits WHERE project_id = ?", (project,))


# Aggregates


async def aggregates(store: Store) -> list[tuple[int, Aggregate]]:
    """All of them, with their numbers."""
    rows = await store.fetch("SELECT id, doc FROM aggregates ORDER BY id")
    return [(int(row[0]), AGGREGATES.value(row[1])) for row in rows]  # type: ignore[arg-type]


async def aggregate_versions(store: Store) -> list[Line]:
    """What differs as soon as one of them does: UUID and version of each."""
    rows = await store.fetch("SELECT uuid, version FROM aggregates ORDER BY id")
    return [tuple(row) for row in rows]


# Groups


async def server_groups(
    store: Store, project: str | None, *, limit: int, offset: int
) -> list[ServerGroup]:
    """A project's groups, or everybody's."""
    clause, args = ("", ()) if project is None else (" WHERE project_id = ?", (project,))
    sql = f"SELECT doc FROM server_groups{clause} ORDER BY id LIMIT ? OFFSET ?"  # noqa: S608
    rows = await store.fetch(sql, (*args, limit, offset))
    return [SERVER_GROUPS.value(row[0]) for row in rows]


async def members(store: Store, groups: Iterable[str]) -> dict[str, list[str]]:
    """The servers of each group."""
    every = list(groups)
    index = indexed(store, "servers_group")
    found: dict[str, list[str]] = {uuid: [] for uuid in every}
    for at in range(0, len(every), 500):
        some = every[at : at + 500]
        marks = ", ".join("?" * len(some))
        rows = await store.fetch(
            f"SELECT group_uuid, uuid FROM servers {index}"  # noqa: S608
            f" WHERE group_uuid IN ({marks}) AND deleted = 0 ORDER BY id",
            some,
        )
        for group, server in rows:
            found[str(group)].append(str(server))
    return found


# Hosts


async def hosts(store: Store, *where: Where) -> list[tuple[int, float, Host]]:
    """Hosts with their numbers and when they were last heard of."""
    rows = await HOSTS.select(store, "id, seen_at, doc", where)
    hosts = HOSTS.readable(row[2] for row in rows)
    return [
        (int(row[0]), float(row[1]), host)  # type: ignore[arg-type]
        for host, row in zip(hosts, rows, strict=True)
        if host is not None
    ]


At = tuple[str, str]
"""A host and a node of it: nodes of two hosts may have the same name."""


async def servers_on(store: Store, nodes: Sequence[At]) -> dict[At, list[Line]]:
    """Node, UUID and name of the servers on each host's nodes."""
    found: dict[At, list[Line]] = {at: [] for at in nodes}
    names = sorted({host for host, _ in nodes})
    index = indexed(store, "servers_host")
    for at in range(0, len(names), 500):
        some: list[Value] = list(names[at : at + 500])
        marks = ", ".join("?" * len(some))
        rows = await store.fetch(
            f"SELECT node, uuid, name, host FROM servers {index}"  # noqa: S608
            f" WHERE host IN ({marks}) AND deleted = 0 ORDER BY id",
            some,
        )
        for row in rows:
            *line, host = row
            if (at_node := (str(host), str(row[0]))) in found:
                found[at_node].append(tuple(line))
    return found


# Usage


async def ran_between(
    store: Store, begin: str, end: str, *, project: str | None, after: int, limit: int
) -> list[tuple[int, Server]]:
    """Servers that ran at some time in between, oldest first, each with its number."""
    where = "launched_at < ? AND (terminated_at IS NULL OR terminated_at > ?) AND id > ?"
    args: list[Value] = [end, begin, after]
    if project is not None:
        where += " AND project_id = ?"
        args.append(project)
    sql = f"SELECT id, doc FROM servers WHERE {where} ORDER BY id LIMIT {limit}"  # noqa: S608
    return [(int(row[0] or 0), SERVERS.value(row[1])) for row in await store.fetch(sql, args)]


async def number_of(store: Store, server: str) -> int:
    """A server's place in the order of age; 0 if it is not there."""
    rows = await store.fetch("SELECT id FROM servers WHERE uuid = ?", (server,))
    return int(rows[0][0] or 0) if rows else 0
