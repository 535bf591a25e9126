"""The ports that servers have on the networks that hosts offer, from the record of addresses."""

from collections.abc import Sequence

import msgspec

from siderite.compute.domain.network import Network
from siderite.compute.domain.network import mac_of
from siderite.compute.store import SERVERS
from siderite.compute.usecases.context import Context
from siderite.core.store import Op
from siderite.core.store import Value
from siderite.core.store.table import Where
from siderite.core.who import Who


class Plugged(msgspec.Struct, frozen=True):
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
) -> tuple[list[Plugged], str | None]:
    """A page of the ports of the servers that the caller may see, by id, and the id that it ends
    with if there is more; `a` and `s` in `where` are the tables of addresses and of servers.
    """
    conditions = ["a.port > ?", "s.deleted = 0", *(f"({one.sql})" for one in where)]
    args: list[Value] = [after, *(arg for one in where for arg in one.args)]
    join = "CROSS JOIN"  # to SQLite it says: in this order, by the index of ports
    if not who.is_admin:
        conditions.append("s.project_id = ?")
        args.append(who.project_id or "")
        join = ","
    rows = await ctx.door.store.fetch(
        "SELECT a.port, a.network, a.address, s.uuid, s.project_id, s.availability_zone, s.host"  # noqa: S608
        f" FROM addresses a {join} servers s WHERE s.uuid = a.server"
        f" AND {' AND '.join(conditions)} ORDER BY a.port LIMIT {limit + 1}",
        args,
    )
    networks = {network.name: network for network in ctx.settings.networks}
    found = [
        Plugged(
            str(row[0]), networks[str(row[1])], str(row[2]), str(row[3]), str(row[4]),
            str(row[5] or ""), None if row[6] is None else str(row[6]),
        )
        for row in rows[:limit]
        if row[1] in networks  # others are not offered any more
    ]  # fmt: skip
    return found, str(rows[limit - 1][0]) if len(rows) > limit else None


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
