"""Who carries out work: each host of the service says now and then that it is there.

The hosts are what the bare metal API calls conductors.
"""

import msgspec

from siderite.baremetal.usecases.context import Context
from siderite.core.store import Op
from siderite.core.times import iso

BEAT_S = 10.0
SILENT_S = 60.0
"""After how much silence a host is taken for dead."""
FORGOTTEN_S = 7 * 86400.0
"""After how much it is no longer spoken of: hosts in containers have a new name with each start. An
embedded database has one host only, and whatever had another name was that one.
"""

_BEAT = """
INSERT INTO conductors (hostname, conductor_group, drivers, created_at, updated_at, seen_at)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (hostname) DO UPDATE SET conductor_group = excluded.conductor_group,
  drivers = excluded.drivers,
  updated_at = excluded.updated_at, seen_at = excluded.seen_at
"""
_GONE = "DELETE FROM conductors WHERE hostname <> ? AND updated_at < ?"
_COLUMNS = "hostname, conductor_group, drivers, created_at, updated_at, seen_at"


class Conductor(msgspec.Struct, frozen=True):
    """A host, as it last said itself."""

    hostname: str
    conductor_group: str
    drivers: list[str]
    created_at: str
    updated_at: str
    alive: bool


async def beat(ctx: Context, groups: str = "") -> None:
    """Say that this host is there, and for which conductor groups."""
    now, host = ctx.door.clock(), ctx.door.host
    drivers = ",".join(sorted(ctx.cards))
    args = (host, groups, drivers, iso(now), iso(now), now)
    gone = Op(_GONE, (host, iso(now - FORGOTTEN_S)))
    if ctx.door.store.dialect == "sqlite":
        gone = Op("DELETE FROM conductors WHERE hostname <> ?", (host,))
    await ctx.door.store.commit([Op(_BEAT, args, 1), gone])


def shift(back_s: float) -> Op:
    """The clock was set back by so much: who was silent still is."""
    return Op("UPDATE conductors SET seen_at = seen_at - ? WHERE seen_at > 0", (back_s,))


async def leave(ctx: Context) -> None:
    """Say that this host is going."""
    gone = Op("UPDATE conductors SET seen_at = 0 WHERE hostname = ?", (ctx.door.host,))
    await ctx.door.store.commit([gone])


async def all_of_them(ctx: Context) -> list[Conductor]:
    """Every host there is or was, oldest first."""
    rows = await ctx.door.store.fetch(f"SELECT {_COLUMNS} FROM conductors ORDER BY id")  # noqa: S608
    now = ctx.door.clock()
    return [
        Conductor(
            str(host), str(group), str(drivers).split(","), str(created), str(updated),
            now - float(seen or 0) < SILENT_S,
        )
        for host, group, drivers, created, updated, seen in rows
    ]  # fmt: skip
