"""The event log: one row per fact, written in the commit that makes the fact true.

Readers see facts by `seq`, which has no gaps and never goes back. On PostgreSQL commits overtake
each other, so a fact has no place until `place` gives it one; on SQLite the single writer does at
once.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from siderite.core.fact import Fact
from siderite.core.ids import new_uuid
from siderite.core.store import Op
from siderite.core.store import Store
from siderite.core.store import Value


class Entry(msgspec.Struct, frozen=True):
    """A fact as a reader of the log gets it."""

    seq: int
    message_id: str
    event_type: str
    at: float
    publisher_id: str
    priority: str
    request_id: str | None
    resource_type: str
    resource: str
    project: str | None
    payload: msgspec.Raw


_COLUMNS = (
    "message_id, event_type, at, publisher_id, priority, request_id,"
    " resource_type, resource, project, payload"
)
_ONE = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERTS = {
    n: f"INSERT INTO events ({_COLUMNS}) VALUES {', '.join([_ONE] * n)}" for n in range(1, 9)
}


def record(facts: Sequence[Fact], *, at: float, host: str, request_id: str | None) -> list[Op]:
    """The ops that write these facts, in this order."""
    ops = []
    for start in range(0, len(facts), 8):
        some = facts[start : start + 8]
        args: list[Value] = []
        for fact in some:
            args += (
                new_uuid(),
                fact.event_type,
                at,
                f"{fact.publisher}.{host}",
                fact.priority,
                request_id,
                fact.resource_type,
                fact.resource,
                fact.project,
                fact.payload,
            )
        ops.append(Op(_INSERTS[len(some)], tuple(args), len(some)))
    return ops


async def read(store: Store, *, after: int = 0, limit: int = 1000) -> list[Entry]:
    """The facts after a number, oldest first."""
    rows = await store.fetch(
        f"SELECT seq, {_COLUMNS} FROM events WHERE seq > ? ORDER BY seq LIMIT {int(limit)}",
        (after,),
    )
    return [Entry(*row[:-1], msgspec.Raw(str(row[-1]).encode())) for row in rows]  # type: ignore[arg-type, call-arg]


_PLACE = """
WITH unplaced AS (
  SELECT id, row_number() OVER (ORDER BY id) AS n FROM events WHERE seq IS NULL
), placed AS (
  UPDATE events SET seq = $1 + unplaced.n FROM unplaced WHERE events.id = unplaced.id RETURNING 1
)
UPDATE event_head SET seq = $1 + (SELECT count(*) FROM placed) RETURNING seq
"""


async def place(store: Any) -> int:
    """Give committed facts their place in the log (PostgreSQL); the last number given.

    A fact of one resource is committed after the one before it was visible, so the order of `id` is
    right per resource; the lock on the head makes it one sequencer at a time.
    """
    async with store.pool.acquire() as connection, connection.transaction():
        head = await connection.fetchval("SELECT seq FROM event_head FOR UPDATE")
        return int(await connection.fetchval(_PLACE, head))
