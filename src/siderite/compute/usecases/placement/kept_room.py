"""Room that is made on a node for a PENDING server is kept for it: else whoever comes by, such as
those that went and were asked for anew, would have it first, and others went in vain.

It is kept for as long as somebody takes care of the server, and until it has a host: a row says
where and how much, the server itself says whether it still waits. Of two for which room is made on
the same node the one that was there first goes before.
"""

from collections.abc import Iterable
from collections.abc import Mapping

import msgspec

from siderite.compute.domain.host import Amount
from siderite.compute.domain.host import Hypervisor
from siderite.compute.domain.server import Server
from siderite.compute.usecases.context import Context
from siderite.core.errors import Invalid
from siderite.core.store import Op
from siderite.core.times import iso

_KEPT = """
SELECT k.server, k.hypervisor, k.vcpus, k.ram_mib, k.disk_gib
FROM kept_room k WHERE k.kept_until > ? AND (SELECT s.deleted = 0 AND s.host IS NULL
    AND (s.vm_state = 'pending' AND s.task_state IS NULL
      OR s.vm_state = 'building' AND s.task_state = 'scheduling')
  FROM servers s WHERE s.uuid = k.server)
ORDER BY k.since, k.server
"""
"""No join, which may begin with all servers that are being built: PostgreSQL takes them for few if
they were when it last looked, and a table in which nothing ever was for one with much in it.
"""


class Kept(msgspec.Struct, frozen=True):
    """Room on a node, and for whom. Nodes of two hosts may have the same name: it is the node's
    UUID that counts.
    """

    server: str
    hypervisor: str
    amount: Amount


async def kept(ctx: Context) -> list[Kept]:
    """All that is kept now, those first that were there first."""
    if not ctx.settings.use_pending_state:
        return []
    rows = await ctx.door.store.fetch(_KEPT, (iso(ctx.door.clock()),))
    return [Kept(str(row[0]), str(row[1]), Amount(*row[2:])) for row in rows]  # type: ignore[arg-type]


def less(all_kept: Iterable[Kept], server: str, found: list[Hypervisor]) -> list[Hypervisor]:
    """Hypervisor nodes without the room that is kept there for others than this server."""
    return without(rooms(all_kept, server), found)


def rooms(all_kept: Iterable[Kept], server: str) -> dict[str, Amount]:
    """By node, how much is kept for others than this server."""
    found: dict[str, Amount] = {}
    mine: set[str] = set()
    for one in all_kept:
        if one.server == server:
            mine.add(one.hypervisor)
        elif one.hypervisor not in mine:
            before = found.get(one.hypervisor, Amount(0, 0, 0))
            found[one.hypervisor] = _sum((before, one.amount))
    return found


def without(rooms: Mapping[str, Amount], found: list[Hypervisor]) -> list[Hypervisor]:
    """Hypervisor nodes without so much of their room."""
    if not rooms:
        return found
    return [
        msgspec.structs.replace(at, kept=rooms[at.uuid]) if at.uuid in rooms else at for at in found
    ]


def _sum(amounts: Iterable[Amount]) -> Amount:
    every = list(amounts)
    return Amount(
        sum(one.vcpus for one in every),
        sum(one.ram_mib for one in every),
        sum(one.disk_gib for one in every),
    )


async def hypervisor(ctx: Context, node: str) -> str:
    """The UUID of a node that is named by its name or its UUID."""
    rows = await ctx.door.store.fetch(
        "SELECT uuid FROM hypervisors WHERE node = ? OR uuid = ? LIMIT 2", (node, node)
    )
    if not rows:
        raise Invalid(f"There is no hypervisor {node}. `openstack hypervisor list` names them.")
    if len(rows) > 1:
        raise Invalid(
            f"Several hypervisors are called {node}. Name one by its ID, which"
            " `openstack hypervisor list` shows."
        )
    return str(rows[0][0])


def keep(server: Server, hypervisor: str, *, now: str, until: str) -> Op:
    """Keep room for a server, on this node alone. Asked for again, it is as old as before."""
    amount = server.amount
    return Op(
        "INSERT INTO kept_room (server, hypervisor, vcpus, ram_mib, disk_gib, since, kept_until)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (server) DO UPDATE SET"
        " since = CASE WHEN kept_room.hypervisor = excluded.hypervisor"
        " AND kept_room.kept_until > excluded.since THEN kept_room.since ELSE excluded.since END,"
        " hypervisor = excluded.hypervisor, vcpus = excluded.vcpus, ram_mib = excluded.ram_mib,"
        " disk_gib = excluded.disk_gib, kept_until = excluded.kept_until",
        (server.uuid, hypervisor, amount.vcpus, amount.ram_mib, amount.disk_gib, now, until),
        1,
    )


def keep_on(server: Server, until: str) -> Op:
    """What is kept for a server is kept until then."""
    return Op("UPDATE kept_room SET kept_until = ? WHERE server = ?", (until, server.uuid))


def let_go(server: Server) -> Op:
    """Nothing is kept for a server any more."""
    return Op("DELETE FROM kept_room WHERE server = ?", (server.uuid,))


async def forget_old(ctx: Context) -> None:
    """Forget what was kept."""
    now = (iso(ctx.door.clock()),)
    over = "FROM kept_room WHERE kept_until <= ?"
    if await ctx.door.store.fetch(f"SELECT 1 {over} LIMIT 1", now):
        await ctx.door.store.commit([Op(f"DELETE {over}", now)])
