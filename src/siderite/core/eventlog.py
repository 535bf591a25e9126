"""The event log: one row per fact, written in the commit that makes the fact true.

Readers see facts by `seq`, which has no gaps and never goes back. On PostgreSQL commits overtake
each other, so a fact has no place until `sequencer` gives it one; on SQLite the single writer does
at once.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property
from functools import lru_cache

import msgspec

from siderite.core.fact import Fact
from siderite.core.ids import new_uuid
from siderite.core.store import Line
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


class Head(msgspec.Struct, frozen=True, gc=False):
    """The same without what it says: for a reader that needs only that of a few."""

    seq: int
    event_type: str
    at: float
    request_id: str | None
    resource_type: str
    resource: str
    project: str | None


@dataclass(frozen=True)
class Wanted:
    """Which facts a reader wants; None is all. `event_type` may hold `*` and `?`."""

    event_type: str | None = None
    resource: str | None = None
    project: str | None = None

    def matches(self, entry: Entry) -> bool:
        """The same choice as `where`, for facts that were read already."""
        return (
            self.resource in (None, entry.resource)
            and self.project in (None, entry.project)
            and (self.event_type is None or self._type.match(entry.event_type) is not None)
        )

    @cached_property
    def _type(self) -> re.Pattern[str]:
        # Its pattern does not try again what cannot match, however many stars there are.
        return re.compile(translate(self.event_type or "*"))

    def where(self, dialect: str) -> tuple[str, list[Value]]:
        """The choice as conditions in SQL, and their arguments."""
        sql, args = "", list[Value]()
        if self.event_type is not None:
            sql += " AND event_type LIKE ? ESCAPE '!'"
            args.append(self.event_type.replace("_", "!_").replace("*", "%").replace("?", "_"))
        if self.resource is not None:
            sql += f" AND {_ABOUT[dialect]}"
            args.append(self.resource)
        if self.project is not None:
            sql += " AND project = ?"
            args.append(self.project)
        return sql, args

    def number(self, dialect: str) -> str:
        """What facts are compared and put in order by. PostgreSQL would go through the numbers of
        the whole log beside the facts of a resource: it does not know how many are between two
        numbers that it is only told later. So they are not for its index there.
        """
        is_of_one = dialect == "postgresql" and self.resource is not None
        return "seq + 0" if is_of_one else "seq"


_ABOUT = {
    "sqlite": "seq IN (SELECT seq FROM event_places WHERE resource = ?)",
    "postgresql": "resource = ?",
}
EVERYTHING = Wanted()
MOST_LOOKED_AT = 10_000
"""How many facts one page looks at for those that are wanted, where no index finds them."""
FARTHEST_BACK = 200_000
"""How far the newest of those are looked for."""
MOST_SAID = 16 * 1024 * 1024
"""The length of what the facts of a page say, from which on it ends: the next one goes on."""
FIRST, AT_ONCE = 20, 100
"""How many facts are read until it is seen how much they say, at first and at most."""


_COLUMNS = (
    "message_id, event_type, at, publisher_id, priority, request_id,"
    " resource_type, resource, project, payload"
)
_ACTOR = "actor, actor_project"
_EVER = {
    dialect: f"(SELECT seq, {_COLUMNS}, {_ACTOR} FROM events WHERE {about} UNION ALL"
    f" SELECT seq, {_COLUMNS}, {_ACTOR} FROM past_events WHERE resource = ?) AS ever"
    for dialect, about in _ABOUT.items()
}
"""What the log has about a resource, and what has left it but is still remembered."""
REMEMBERED = 300
"""How many facts of a resource are remembered that have left the log."""
_ONE = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERTS = {
    n: f"INSERT INTO events ({_COLUMNS}, {_ACTOR}) VALUES {', '.join([_ONE] * n)}"
    for n in range(1, 9)
}


class Acted(msgspec.Struct, frozen=True):
    """A fact, and who made it true as far as the fact itself knows."""

    entry: Entry
    actor: str | None
    project: str | None


def record(
    facts: Sequence[Fact],
    *,
    at: float,
    host: str,
    request_id: str | None,
    actor: str | None = None,
    actor_project: str | None = None,
) -> list[Op]:
    """The ops that write these facts, in this order; `actor` is who asked, by name."""
    ops = []
    for start in range(0, len(facts), 8):
        some = facts[start : start + 8]
        args: list[Value] = []
        for fact in some:
            args += (
                new_uuid(),
                fact.event_type,
                at,
                _publisher_id(fact.publisher, host),
                fact.priority,
                request_id,
                fact.resource_type,
                fact.resource,
                fact.project,
                fact.payload,
                actor,
                actor_project,
            )
        ops.append(Op(_INSERTS[len(some)], tuple(args), len(some)))
    return ops


@lru_cache(64)
def _publisher_id(publisher: str, host: str) -> str:
    name, colon, own = publisher.partition(":")
    return f"{name}:{own or host}" if colon else f"{name}.{host}"


async def newest(store: Store) -> int:
    """The last number in the log; 0 while it is empty."""
    return int((await store.fetch("SELECT coalesce(max(seq), 0) FROM events"))[0][0] or 0)


async def newest_and(store: Store, seq: int) -> tuple[int, str | None]:
    """The last number in the log, and which fact has another number, if one has."""
    sql = "SELECT coalesce(max(seq), 0), (SELECT message_id FROM events WHERE seq = ?) FROM events"
    last, message_id = (await store.fetch(sql, (seq,)))[0]
    return int(last or 0), None if message_id is None else str(message_id)


async def message_ids(store: Store, first: int, last: int) -> dict[int, str]:
    """Which facts have the numbers from one to another."""
    sql = "SELECT seq, message_id FROM events WHERE seq >= ? AND seq <= ?"
    return {int(row[0] or 0): str(row[1]) for row in await store.fetch(sql, (first, last))}


async def oldest(store: Store) -> int:
    """The first number that is still in the log; 1 while it is empty."""
    return int((await store.fetch("SELECT coalesce(min(seq), 1) FROM events"))[0][0] or 1)


_AMONG = {
    "sqlite": "SELECT value FROM json_each(?)",
    "postgresql": "SELECT jsonb_array_elements_text(?::jsonb)::bigint",
}


async def those(store: Store, numbers: Sequence[int]) -> list[Entry]:
    """The facts with these numbers, as far as they are in the log."""
    if not numbers:
        return []
    rows = await store.fetch(
        f"SELECT seq, {_COLUMNS} FROM events WHERE seq IN ({_AMONG[store.dialect]}) ORDER BY seq",
        (msgspec.json.encode(numbers).decode(),),
    )
    return [_entry(row) for row in rows]


async def read(store: Store, *, after: int = 0, limit: int = 1000) -> list[Entry]:
    """The facts after a number, oldest first; fewer of those that say much."""
    return (await _some(store, EVERYTHING, after=after, limit=limit))[0]


_HEAD = ", ".join(Head.__struct_fields__)


async def heads(store: Store, *, after: int = 0, limit: int = 1000) -> list[Head]:
    """The heads of the facts after a number, oldest first."""
    rows = await store.fetch(
        f"SELECT {_HEAD} FROM events WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit)
    )
    return [Head(*row) for row in rows]  # type: ignore[arg-type]


async def payloads(store: Store, numbers: Sequence[int]) -> dict[int, str]:
    """What the facts with these numbers say, as far as they are in the log."""
    among = _AMONG[store.dialect]
    rows = await store.fetch(
        f"SELECT seq, payload FROM events WHERE seq IN ({among})",
        (msgspec.json.encode(numbers).decode(),),
    )
    return {int(row[0] or 0): str(row[1]) for row in rows}


async def page(
    store: Store, wanted: Wanted, *, after: int, limit: int, end: int
) -> tuple[list[Entry], int]:
    """Wanted facts after a number and up to `end`, and the last number that was looked at.

    `end` is what `newest` said before: all facts up to it can be seen, so that none is passed by.
    """
    if wanted != EVERYTHING and wanted.resource is None:
        end = min(end, after + MOST_LOOKED_AT)
    entries, is_all = await _some(store, wanted, after=after, limit=limit, end=end)
    return entries, max(after, end) if is_all else entries[-1].seq


async def _some(
    store: Store, wanted: Wanted, *, after: int, limit: int, end: int | None = None
) -> tuple[list[Entry], bool]:
    """Wanted facts after a number, oldest first, and whether those are all: no more are read than
    have room in memory.
    """
    number = wanted.number(store.dialect)
    condition, args = wanted.where(store.dialect)
    if end is not None:
        condition, args = f" AND {number} <= ?{condition}", [end, *args]
    sql = (
        f"SELECT seq, {_COLUMNS} FROM events WHERE {number} > ?{condition}"
        f" ORDER BY {number} LIMIT ?"
    )
    entries, said = list[Entry](), 0
    while len(entries) < limit and said < MOST_SAID:
        most = min(limit - len(entries), AT_ONCE, max(FIRST, 2 * len(entries)))
        some = [_entry(row) for row in await store.fetch(sql, (after, *args, most))]
        entries += some
        if len(some) < most:
            return entries, True
        after = some[-1].seq
        said += sum(len(entry.payload) for entry in some)
    return entries, False


async def tail(store: Store, wanted: Wanted, *, last: int, end: int) -> list[Entry]:
    """The newest wanted facts up to `end`, oldest first; fewer of those that say much. Where no
    index finds them, the log is walked back, as many at a time as a page looks at, and others are
    answered meanwhile.
    """
    is_indexed = wanted == EVERYTHING or wanted.resource is not None
    first = 0 if is_indexed else max(await oldest(store) - 1, end - FARTHEST_BACK)
    number = wanted.number(store.dialect)
    condition, args = wanted.where(store.dialect)
    found, said, ask = list[Entry](), 0, store.fetch
    while end > first and len(found) < last and said < MOST_SAID:
        start = first if is_indexed else max(first, end - MOST_LOOKED_AT)
        most = min(last - len(found), AT_ONCE, max(FIRST, 2 * len(found)))
        rows = await ask(
            f"SELECT seq, {_COLUMNS} FROM events WHERE {number} > ? AND {number} <= ?{condition}"
            f" ORDER BY {number} DESC LIMIT ?",
            (start, end, *args, most),
        )
        some = [_entry(row) for row in rows]
        found += some
        said += sum(len(entry.payload) for entry in some)
        if len(some) == most:
            end = some[-1].seq - 1
        else:
            end, ask = start, store.scan
    return found[::-1]


async def latest(store: Store, resource: str, types: Sequence[str], limit: int) -> list[Entry]:
    """The newest facts of a resource that are of these types, oldest first."""
    marks = ", ".join("?" * len(types))
    rows = await store.fetch(
        f"SELECT seq, {_COLUMNS} FROM {_EVER[store.dialect]} WHERE event_type IN ({marks})"
        " AND seq IS NOT NULL ORDER BY seq DESC LIMIT ?",
        (resource, resource, *types, limit),
    )
    return [_entry(row) for row in reversed(rows)]


async def of_resource(
    store: Store, resource: str, *, beyond: int | None, limit: int, descending: bool
) -> list[Acted]:
    """Facts of one resource after a number, or before it and newest first."""
    way, sign = ("DESC", "<") if descending else ("ASC", ">")
    start = "seq IS NOT NULL" if beyond is None else f"seq {sign} ?"
    rows = await store.fetch(
        f"SELECT {_ACTOR}, seq, {_COLUMNS} FROM {_EVER[store.dialect]} WHERE {start}"
        f" ORDER BY seq {way} LIMIT ?",
        (resource, resource, *(() if beyond is None else (beyond,)), limit),
    )
    return [Acted(_entry(row[2:]), row[0], row[1]) for row in rows]  # type: ignore[arg-type]


async def actors(
    store: Store, resource: str, requests: Sequence[str]
) -> dict[str, tuple[str | None, str | None]]:
    """Who made these requests, by the facts of a resource that know it."""
    marks = ", ".join("?" * len(requests))
    rows = await store.fetch(
        f"SELECT DISTINCT request_id, {_ACTOR} FROM {_EVER[store.dialect]}"
        f" WHERE actor IS NOT NULL AND request_id IN ({marks})",
        (resource, resource, *requests),
    )
    return {str(row[0]): (row[1], row[2]) for row in rows}  # type: ignore[misc]


def let_go(first: int, upto: int, kinds: Sequence[str] = ()) -> list[Op]:
    """The log ends to have these facts, which it begins with. Those about resources of these kinds
    become history; mere updates do not, and what was deleted has none once the log no longer says
    so.

    The first is told so that PostgreSQL sees how few they are, whatever went before them.
    """
    which, span = "seq >= ? AND seq <= ?", (first, upto)
    going = Op(f"DELETE FROM events WHERE {which}", span)
    if not kinds:
        return [going]
    marks = ", ".join("?" * len(kinds))
    gone = f"(SELECT resource FROM events WHERE {which} AND event_type LIKE '%.delete.end')"
    return [
        Op(
            f"INSERT INTO past_events (seq, {_COLUMNS}, {_ACTOR})"
            f" SELECT seq, {_COLUMNS}, {_ACTOR} FROM events WHERE {which}"
            f" AND resource_type IN ({marks}) AND event_type NOT LIKE '%.update.%'"
            f" AND resource NOT IN {gone}",
            (*span, *kinds, *span),
        ),
        Op(f"DELETE FROM past_events WHERE resource IN {gone}", span),
        going,
    ]


def remember_less(since: int) -> Op:
    """Of resources that got more history since a number, only the newest is kept."""
    return Op(
        "DELETE FROM past_events WHERE seq IN (SELECT seq FROM (SELECT seq,"
        " row_number() OVER (PARTITION BY resource ORDER BY seq DESC) AS place FROM past_events"
        " WHERE resource IN (SELECT resource FROM past_events WHERE seq > ?)) AS ranked"
        f" WHERE place > {REMEMBERED})",
        (since,),
    )


def forget(resource: str) -> Op:
    """The resource is gone, and its history with it, as far as it has left the log."""
    return Op("DELETE FROM past_events WHERE resource = ?", (resource,))


def _entry(row: Line) -> Entry:
    return Entry(*row[:-1], msgspec.Raw(str(row[-1]).encode()))  # type: ignore[arg-type, call-arg]
