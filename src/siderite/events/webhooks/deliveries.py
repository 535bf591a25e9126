"""The rows of what is to be delivered, was, or was given up."""

from collections.abc import Sequence

import msgspec

from siderite.core.eventlog import Entry
from siderite.core.store import Line
from siderite.core.store import Op
from siderite.core.store import Store
from siderite.core.store import Value
from siderite.core.times import iso
from siderite.events.rows import packed
from siderite.events.rows import unpacked

STATES = ("pending", "delivered", "dead")


class Delivery(msgspec.Struct, frozen=True):
    """One fact for one webhook."""

    id: int
    webhook: str
    seq: int
    message_id: str
    event_type: str
    resource: str
    state: str
    attempts: int
    due: float
    since: float
    at: float | None
    status: int | None
    error: str | None
    event: str | None


_COLUMNS = (
    "id, webhook, seq, message_id, event_type, resource, state, attempts, due, since, at, status,"
    " error, event"
)
_ADD = (
    "INSERT INTO webhook_deliveries (webhook, seq, message_id, event_type, resource, state,"
    " attempts, due, since) "
)


def add(dialect: str, webhook: str, entries: Sequence[Entry], now: float) -> Op:
    """Facts are to be delivered, in this order."""
    rows = [
        (webhook, e.seq, e.message_id, e.event_type, e.resource, "pending", 0, now, now)
        for e in entries
    ]
    types = ("text", "bigint", "text", "text", "text", "text", "bigint", "float8", "float8")
    return Op(_ADD + unpacked(dialect, *types), (packed(rows),), len(rows))


def shift(back_s: float) -> Op:
    """The clock was set back by so much: what is to be delivered is due as much earlier."""
    return Op(
        "UPDATE webhook_deliveries SET due = due - ?, since = since - ? WHERE state = 'pending'",
        (back_s, back_s),
    )


def begun(webhook: str, seq: int) -> Op:
    """A new webhook begins after a number."""
    return Op("INSERT INTO webhook_places (webhook, seq) VALUES (?, ?)", (webhook, seq), 1)


def ended(webhook: str) -> Op:
    """A webhook is no more."""
    return Op("DELETE FROM webhook_places WHERE webhook = ?", (webhook,), 1)


async def places(store: Store) -> dict[str, tuple[int, int]]:
    """How far each webhook is, and how much it lost."""
    rows = await store.fetch("SELECT webhook, seq, lost FROM webhook_places")
    return {str(row[0]): (int(row[1] or 0), int(row[2] or 0)) for row in rows}


async def place(store: Store, webhook: str) -> int | None:
    """How far a webhook is; None if it is no more."""
    rows = await store.fetch("SELECT seq FROM webhook_places WHERE webhook = ?", (webhook,))
    return int(rows[0][0] or 0) if rows else None


def looked(webhook: str, *, before: int, reached: int, lost: int = 0) -> Op:
    """The log was looked through for a webhook, up to a number."""
    return Op(
        "UPDATE webhook_places SET seq = ?, lost = lost + ? WHERE webhook = ? AND seq = ?",
        (reached, lost, webhook, before),
        1,
    )


def delivered(delivery: Delivery, *, status: int, now: float) -> Op:
    """The receiver has it."""
    return Op(
        "UPDATE webhook_deliveries SET state = 'delivered', attempts = ?, at = ?, status = ?,"
        " error = NULL, event = NULL WHERE id = ? AND state = 'pending'",
        (delivery.attempts + 1, now, status, delivery.id),
    )


def failed(delivery: Delivery, *, status: int | None, error: str, now: float, due: float) -> Op:
    """It is tried again. What waited for another has not been tried, so that its time begins with
    its first attempt.
    """
    since = delivery.since if delivery.attempts else now
    return Op(
        "UPDATE webhook_deliveries SET attempts = ?, at = ?, status = ?, error = ?, due = ?,"
        " since = ? WHERE id = ? AND state = 'pending'",
        (delivery.attempts + 1, now, status, error, due, since, delivery.id),
    )


def given_up(
    delivery: Delivery, *, status: int | None, error: str, now: float, event: str | None
) -> Op:
    """It is a dead letter, and keeps what it would have said."""
    return Op(
        "UPDATE webhook_deliveries SET state = 'dead', attempts = ?, at = ?, status = ?,"
        " error = ?, event = ? WHERE id = ? AND state = 'pending'",
        (delivery.attempts + 1, now, status, error, event, delivery.id),
    )


def revived(delivery: Delivery, now: float) -> Op:
    """A dead letter is to be delivered after all."""
    return Op(
        "UPDATE webhook_deliveries SET state = 'pending', attempts = 0, due = ?, since = ?"
        " WHERE id = ? AND state = 'dead'",
        (now, now, delivery.id),
        1,
    )


def forgotten(webhook: str, state: str | None = None) -> Op:
    """A webhook's deliveries are no longer known: all, or those in a state."""
    sql = "DELETE FROM webhook_deliveries WHERE webhook = ?"
    return Op(sql, (webhook,)) if state is None else Op(sql + " AND state = ?", (webhook, state))


_FORGET = """
DELETE FROM webhook_deliveries WHERE state <> 'pending' AND at < ? AND id IN (
  SELECT id FROM webhook_deliveries WHERE state <> 'pending' ORDER BY id LIMIT ?) RETURNING 1
"""


async def forget_old(store: Store, before: float, *, limit: int) -> int:
    """What ended long ago is no longer known: how many of the first so many that ended. The rest
    is not looked at, as it is younger, but for what took long to be delivered.
    """
    return len(await store.write(_FORGET, (before, limit)))


_FIRST = """
SELECT min(e.id) FROM webhook_deliveries e WHERE e.webhook = ? AND e.state = 'pending'
GROUP BY e.resource"""
_IS_FIRST = {
    "sqlite": f"d.id IN ({_FIRST})",
    "postgresql": f"d.id = ANY(ARRAY({_FIRST})) AND d.webhook = ?",
}
"""Of its resource: what waits behind it cannot be sent, whenever it is due. PostgreSQL, where it
counted a table while that was empty, takes it for empty until it counts again, and would look for
the first ones anew for each row; an array is made once.
"""


def _first(store: Store, sql: str, webhook: str) -> tuple[str, tuple[str, ...]]:
    """The query for those that are first, and its first arguments."""
    is_first = _IS_FIRST[store.dialect]
    return sql.format(is_first=is_first), (webhook,) * is_first.count("?")


_DUE = f"""
SELECT {_COLUMNS} FROM webhook_deliveries d
WHERE {{is_first}} AND d.due <= ? ORDER BY d.due, d.id LIMIT ?
"""
_NEXT_DUE = "SELECT min(d.due) FROM webhook_deliveries d WHERE {is_first}"


async def due(store: Store, webhook: str, *, now: float, limit: int) -> list[Delivery]:
    """What can be sent now: of each resource its first, and of those what is due for longest."""
    sql, names = _first(store, _DUE, webhook)
    return [_delivery(row) for row in await store.fetch(sql, (*names, now, limit))]


async def next_due(store: Store, webhook: str) -> float | None:
    """When something can be sent next; None if nothing waits."""
    sql, names = _first(store, _NEXT_DUE, webhook)
    return (await store.fetch(sql, names))[0][0]  # type: ignore[return-value]


async def waiting(store: Store, webhook: str) -> tuple[int, int]:
    """How many are to be delivered, and of how many resources they are."""
    rows = await store.fetch(
        "SELECT count(*), count(DISTINCT resource) FROM webhook_deliveries"
        " WHERE webhook = ? AND state = 'pending'",
        (webhook,),
    )
    return int(rows[0][0] or 0), int(rows[0][1] or 0)


async def counts(store: Store) -> dict[str, dict[str, int]]:
    """Per webhook, how many are pending and how many dead."""
    rows = await store.fetch(
        "SELECT webhook, state, count(*) FROM webhook_deliveries WHERE state = 'pending'"
        " GROUP BY webhook, state UNION ALL SELECT webhook, state, count(*)"
        " FROM webhook_deliveries WHERE state = 'dead' GROUP BY webhook, state"
    )
    found: dict[str, dict[str, int]] = {}
    for webhook, state, count in rows:
        found.setdefault(str(webhook), {})[str(state)] = int(count or 0)
    return found


async def first_pending(store: Store) -> dict[str, int]:
    """Per webhook, the oldest fact that is yet to be delivered."""
    rows = await store.fetch(
        "SELECT webhook, min(seq) FROM webhook_deliveries WHERE state = 'pending' GROUP BY webhook"
    )
    return {str(row[0]): int(row[1] or 0) for row in rows}


async def one(store: Store, webhook: str, id: int) -> Delivery | None:
    """A delivery by its number."""
    rows = await store.fetch(
        f"SELECT {_COLUMNS} FROM webhook_deliveries WHERE id = ? AND webhook = ?", (id, webhook)
    )
    return _delivery(rows[0]) if rows else None


async def page(
    store: Store, webhook: str, *, state: str | None, before: int | None, limit: int
) -> list[Delivery]:
    """The newest first."""
    where, args = "webhook = ?", list[Value]([webhook])
    if state is not None:
        where += " AND state = ?"
        args.append(state)
    if before is not None:
        where += " AND id < ?"
        args.append(before)
    rows = await store.fetch(
        f"SELECT {_COLUMNS} FROM webhook_deliveries WHERE {where} ORDER BY id DESC LIMIT ?",
        (*args, limit),
    )
    return [_delivery(row) for row in rows]


def shown(delivery: Delivery) -> dict[str, object]:
    """What may be read of it."""
    return {
        "id": delivery.id,
        "seq": delivery.seq,
        "message_id": delivery.message_id,
        "event_type": delivery.event_type,
        "resource": delivery.resource,
        "state": delivery.state,
        "attempts": delivery.attempts,
        "next_attempt_at": iso(delivery.due) if delivery.state == "pending" else None,
        "last_attempt_at": None if delivery.at is None else iso(delivery.at),
        "status": delivery.status,
        "error": delivery.error,
    }


def _delivery(row: Line) -> Delivery:
    return Delivery(*row)  # type: ignore[arg-type]
