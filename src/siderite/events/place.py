"""How far a durable reader of the log is: a row per name, written with what the reader keeps.

Each step is a compare-and-swap on the number: should two processes follow by one name, one of them
loses.
"""

import msgspec

from siderite.core.store import Op
from siderite.core.store import Store


class Standing(msgspec.Struct, frozen=True):
    """A name's row."""

    name: str
    seq: int
    lost: int
    problem: str | None
    at: float


_BEGIN = """
INSERT INTO event_followers (name, seq, at) VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING
"""


async def seq(store: Store, name: str, *, begin_at: int, now: float) -> int:
    """How far a name is; a new name begins at a number."""
    rows = await store.fetch("SELECT seq FROM event_followers WHERE name = ?", (name,))
    if not rows:
        await store.commit([Op(_BEGIN, (name, begin_at, now))])
        rows = await store.fetch("SELECT seq FROM event_followers WHERE name = ?", (name,))
    return int(rows[0][0] or 0)


async def seq_of(store: Store, name: str) -> int:
    """How far a name is; 0 if it has not begun."""
    rows = await store.fetch("SELECT seq FROM event_followers WHERE name = ?", (name,))
    return int(rows[0][0] or 0) if rows else 0


def restarted(name: str) -> Op:
    """A name begins again with what there is."""
    return Op("UPDATE event_followers SET seq = 0 WHERE name = ?", (name,))


def moved(name: str, *, before: int, after: int, now: float, lost: int = 0) -> Op:
    """All up to a number was dealt with."""
    return Op(
        "UPDATE event_followers SET seq = ?, at = ?, lost = lost + ?, problem = NULL"
        " WHERE name = ? AND seq = ?",
        (after, now, lost, name, before),
        1,
    )


def claimed(name: str, *, first: int, now: float) -> Op:
    """Whoever is about to deal with facts from `first` on in several commits: until somebody else
    claims them, or has dealt with them, each of these holds what `held` asks for.
    """
    sql = "UPDATE event_followers SET at = ? WHERE name = ? AND seq < ?"
    return Op(sql, (now, name, first), 1)


def held(name: str, *, first: int, since: float) -> Op:
    """What was claimed at a time still is ours, or the commit is lost."""
    sql = "UPDATE event_followers SET at = at WHERE name = ? AND seq < ? AND at = ?"
    return Op(sql, (name, first, since), 1)


def troubled(name: str, problem: str) -> Op:
    """Why it does not get on."""
    return Op("UPDATE event_followers SET problem = ? WHERE name = ?", (problem[:500], name))


def forgotten(name: str) -> Op:
    """Nobody follows by this name any more."""
    return Op("DELETE FROM event_followers WHERE name = ?", (name,))


async def standings(store: Store) -> list[Standing]:
    """How far each name is."""
    rows = await store.fetch("SELECT name, seq, lost, problem, at FROM event_followers ORDER BY 1")
    return [Standing(*row) for row in rows]  # type: ignore[arg-type]
