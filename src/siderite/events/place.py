"""How far a durable reader of the log is: a row per name, written with what the reader keeps.

Who follows for a name has a lease on its row, so that it is done once per deployment and by another
process when this one dies. Every commit names the fence that the lease was given: who lost it loses
the commit too.
"""

from dataclasses import dataclass

from siderite.core.store import Op
from siderite.core.store import Store

LEASE_S = 10.0


@dataclass(frozen=True, slots=True)
class Place:
    """A name's row, as its holder took it."""

    name: str
    seq: int
    fence: int


@dataclass(frozen=True, slots=True)
class Standing:
    """A name's row, as anyone may see it."""

    name: str
    seq: int
    lost: int
    problem: str | None
    at: float
    owner: str | None


_BEGIN = """
INSERT INTO event_followers (name, seq, at) VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING
"""
_TAKE = """
UPDATE event_followers SET owner = ?, lease_until = ?, fence = fence + 1
WHERE name = ? AND (owner IS NULL OR owner = ? OR lease_until < ?) RETURNING seq, fence
"""


async def take(
    store: Store, name: str, *, begin_at: int, owner: str, now: float, lease_s: float = LEASE_S
) -> Place | None:
    """The place of a name, if nobody else has it; a new name begins at a number."""
    await store.commit([Op(_BEGIN, (name, begin_at, now))])
    rows = await store.write(_TAKE, (owner, now + lease_s, name, owner, now))
    return Place(name, int(rows[0][0]), int(rows[0][1])) if rows else None  # type: ignore[arg-type]


async def renew(store: Store, place: Place, *, now: float, lease_s: float = LEASE_S) -> None:
    """Keep it for longer; `Lost` if another has it."""
    sql = "UPDATE event_followers SET lease_until = ? WHERE name = ? AND fence = ?"
    await store.commit([Op(sql, (now + lease_s, place.name, place.fence), 1)])


def moved(place: Place, seq: int, *, now: float, lost: int = 0) -> Op:
    """All up to a number was dealt with, by whoever has the place."""
    return Op(
        "UPDATE event_followers SET seq = ?, at = ?, lost = lost + ?, problem = NULL"
        " WHERE name = ? AND fence = ?",
        (seq, now, lost, place.name, place.fence),
        1,
    )


def troubled(place: Place, problem: str) -> Op:
    """Why it does not get on."""
    return Op(
        "UPDATE event_followers SET problem = ? WHERE name = ? AND fence = ?",
        (problem[:500], place.name, place.fence),
        1,
    )


def released(place: Place) -> Op:
    """Let go of the lease: another process may take it at once."""
    return Op(
        "UPDATE event_followers SET owner = NULL, lease_until = 0 WHERE name = ? AND fence = ?",
        (place.name, place.fence),
        1,
    )


def forgotten(name: str) -> Op:
    """Nobody follows by this name any more."""
    return Op("DELETE FROM event_followers WHERE name = ?", (name,))


async def forget_leases(store: Store) -> None:
    """An embedded database has one process only: whoever had a lease is dead."""
    await store.commit([Op("UPDATE event_followers SET owner = NULL, lease_until = 0")])


async def standings(store: Store) -> list[Standing]:
    """How far each name is."""
    rows = await store.fetch(
        "SELECT name, seq, lost, problem, at, owner FROM event_followers ORDER BY name"
    )
    return [Standing(*row) for row in rows]  # type: ignore[arg-type]
