"""The networks that hosts offer, and the ports that servers have on them."""

from dataclasses import dataclass

from siderite.compute.domain.network import Network
from siderite.compute.domain.network import Port
from siderite.compute.domain.server import Server
from siderite.compute.store import SERVERS
from siderite.compute.usecases.context import Context
from siderite.core.store import Value
from siderite.core.who import Who


@dataclass(frozen=True, slots=True)
class Plugged:
    """A port, the server it is of, and its network."""

    port: Port
    server: Server
    network: Network


async def ports(ctx: Context, who: Who, *, server: str | None = None) -> list[Plugged]:
    """Ports of the servers that the caller may see, or of one of them."""
    where, args = "deleted = 0 AND addresses_text <> ''", list[Value]()
    if not who.is_admin:
        where += " AND project_id = ?"
        args.append(who.project_id or "")
    if server is not None:
        where += " AND uuid = ?"
        args.append(server)
    sql = f"SELECT doc FROM servers WHERE {where} ORDER BY id"  # noqa: S608
    networks = {network.name: network for network in ctx.settings.networks}
    found = []
    for row in await ctx.door.store.fetch(sql, args):
        value = SERVERS.value(row[0])
        for port in value.ports:
            network = networks.get(port.network)
            if network is not None:
                found.append(Plugged(port, value, network))
    return found
