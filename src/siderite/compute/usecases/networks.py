"""The ports that servers have on the networks that hosts offer, from the record of addresses."""

from collections.abc import Sequence
from dataclasses import dataclass

from siderite.compute.domain.network import Network
from siderite.compute.domain.network import mac_of
from siderite.compute.store import SERVERS
from siderite.compute.usecases.context import Context
from siderite.core.store import Op
from siderite.core.store import Value
from siderite.core.store.table import Where
from siderite.core.who import Who


@dataclass(frozen=True, slots=True)
class Plugged:
    """A port, and what is told with it of its server."""

    id: str
    network: Network
    address: str
    server: str
    project: str
    zone: str
    host: str | None

    @property
    def mac(self) -> str:
        return mac_of(self.id)


async def ports(
    ctx: Context, who: Who, where: Sequence[Where], *, after: str = "", limit: int
) -> list[Plugged]:
    """Ports of the servers that the caller may see, by id; `a` and `s` in `where` are the tables
    of addresses and of servers.
    """
    conditions = ["a.port > ?", "s.deleted = 0", *(f"({one.sql})" for one in where)]
    args: list[Value] = [after, *(arg for one in where for arg in one.args)]
    if not who.is_admin:
        conditions.append("s.project_id = ?")
        args.append(who.project_id or "")
    networks = {network.name: network for network in ctx.settings.networks}
    marks = ", ".join("?" * len(networks))
    conditions.append(f"a.network IN ({marks})" if networks else "1 = 0")
    args += networks
    rows = await ctx.door.store.fetch(
        "SELECT a.port, a.network, a.address, s.uuid, s.project_id, s.availability_zone, s.host"  # noqa: S608
        " FROM addresses a JOIN servers s ON s.uuid = a.server"
        f" WHERE {' AND '.join(conditions)} ORDER BY a.port LIMIT {limit}",
        args,
    )
    return [
        Plugged(
            str(row[0]), networks[str(row[1])], str(row[2]), str(row[3]), str(row[4]),
            str(row[5] or ""), None if row[6] is None else str(row[6]),
        )
        for row in rows
    ]  # fmt: skip


async def count_ports(ctx: Context, project: str) -> int:
    """How many ports the servers of a project have."""
    rows = await ctx.door.store.fetch(
        "SELECT count(*) FROM addresses a JOIN servers s ON s.uuid = a.server"
        " WHERE s.project_id = ? AND s.deleted = 0",
        (project,),
    )
    return int(rows[0][0])  # type: ignore[arg-type]


async def complete(ctx: Context) -> None:
    """Addresses that a process of an earlier version took, before ports were on record with them,
    get theirs.
    """
    rows = await ctx.door.store.fetch(
        "SELECT a.network, a.address, s.doc FROM addresses a JOIN servers s ON s.uuid = a.server"
        " WHERE a.port IS NULL LIMIT 500"
    )
    ops = [
        Op(
            "UPDATE addresses SET port = ? WHERE network = ? AND address = ?",
            (port.id, port.network, port.address),
        )
        for network, address, doc in rows
        for port in SERVERS.value(doc).ports
        if (port.network, port.address) == (network, address)
    ]
    if ops:
        await ctx.door.store.commit(ops)
