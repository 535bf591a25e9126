"""An index of resources, kept up to date from the log alone, full text and by field.

What a `create`, `update` or `delete` says at its start, or when it failed, is not so (yet) and is
passed by; every other fact carries its resource as it is. Payloads of different kinds have
different fields: the document is what was said last of each.
"""

import asyncio
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any
from typing import TypeVar

import msgspec

from siderite.core import shape
from siderite.core.eventlog import Entry
from siderite.core.store import Line
from siderite.core.store import Op
from siderite.core.store import Store
from siderite.core.store import Value
from siderite.core.times import iso
from siderite.events import place
from siderite.events import words
from siderite.events.rows import packed
from siderite.events.rows import unpacked

NAME = "search"
AT_ONCE = 5
"""How many resources are written at a time: an index may be late, an answer may not."""
AHEAD = 500
"""How many facts are looked at for one that says all that a fact does."""
_UNTRUE = tuple(
    f".{action}.{status}" for action in ("create", "update", "delete") for status in
    ("start", "error")
)  # fmt: skip
_GONE = ".delete.end"
_ABOUT_IT = ("scheduler.", "compute_task.")
"""These tell what is asked for a server, not what it is."""

T = TypeVar("T")
Key = tuple[str, str]
"""UUID and type."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is looked for: words, a type, fields with their values, a project's things only."""

    text: str = ""
    type: str | None = None
    fields: tuple[tuple[str, str], ...] = ()
    project: str | None = None
    after: int = 0
    limit: int = 100

    def words(self) -> list[tuple[str, bool]]:
        """The words that must all be there, and whether each is only the beginning of one."""
        return [(word, True) for word in words.asked(self.text)] + [
            (words.of_field(name, value), False) for name, value in self.fields
        ]


_DIALECTS = ("sqlite", "postgresql")
_OLD = {
    dialect: "SELECT uuid, type, doc FROM search_docs WHERE (uuid, type) IN"
    f" ({unpacked(dialect, 'text', 'text')})"
    for dialect in _DIALECTS
}
_LATER = {
    dialect: "SELECT resource, event_type, max(seq) FROM events WHERE resource IN"
    f" ({unpacked(dialect, 'text')}) AND seq > ? AND seq <= ? GROUP BY resource, event_type"
    for dialect in _DIALECTS
}
_FORGET = {
    dialect: f"DELETE FROM search_docs WHERE (uuid, type) IN ({unpacked(dialect, 'text', 'text')})"
    for dialect in _DIALECTS
}
_KEYS = "(SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?))"
_KEEP = {
    "sqlite": "INSERT INTO search_docs (uuid, type, project, seq, at, doc) "
    + unpacked("sqlite", "text", "text", "text", "bigint", "float8", "text")
    + " ON CONFLICT (uuid, type) DO UPDATE SET project = excluded.project, seq = excluded.seq,"
    " at = excluded.at, doc = excluded.doc",
    "postgresql": "INSERT INTO search_docs (uuid, type, project, seq, at, doc, words)"
    " SELECT value ->> 0, value ->> 1, value ->> 2, (value ->> 3)::bigint, (value ->> 4)::float8,"
    " value ->> 5, array_to_tsvector(string_to_array(value ->> 6, ' '))"
    " FROM jsonb_array_elements(?::jsonb)"
    " ON CONFLICT (uuid, type) DO UPDATE SET project = excluded.project, seq = excluded.seq,"
    " at = excluded.at, doc = excluded.doc, words = excluded.words",
}


MOVED = ("uuid", "type", "project", "seq", "at", "doc")


def move(docs: Sequence[tuple[Any, ...]]) -> tuple[str, str]:
    """What has PostgreSQL keep documents that an embedded database had, as its columns `MOVED`: a
    statement and its argument. Their words are made anew.
    """
    rows = [(*row, words.of(msgspec.json.decode(row[-1]))) for row in docs]
    return _KEEP["postgresql"].replace("?", "$1"), packed(rows)


_UNWORD = (
    f"DELETE FROM search_words WHERE rowid IN"
    f" (SELECT id FROM search_docs WHERE (uuid, type) IN {_KEYS})"
)
_WORD = (
    "INSERT INTO search_words (rowid, words) SELECT d.id, json_extract(value, '$[6]')"
    " FROM json_each(?) JOIN search_docs d"
    " ON d.uuid = json_extract(value, '$[0]') AND d.type = json_extract(value, '$[1]')"
)
_OWE = (
    "UPDATE search_owed SET known_to = CASE WHEN owed >= ? THEN known_to ELSE ? END,"
    " owed = CASE WHEN owed > ? THEN owed ELSE ? END"
)
_CURRENT_TO = (
    "SELECT CASE WHEN f.seq >= o.owed OR f.seq < o.known_to THEN f.seq ELSE o.known_to END"
    " FROM event_followers f CROSS JOIN search_owed o WHERE f.name = ?"
)


class Search:
    """Keeps the index, and answers from it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def deal(self, entries: Sequence[Entry]) -> list[Op]:
        """Take facts into account: of each resource, what they come to. To do so again, should the
        place not be written after all, changes nothing.
        """
        dialect = self._store.dialect
        await asyncio.sleep(0)
        told, owing = await self._not_outdated([e for e in entries if _tells(e.event_type)])
        await asyncio.sleep(0)
        keys = sorted({(entry.resource, entry.resource_type) for entry in told})
        rows = await self._store.fetch(_OLD[dialect], (packed(keys),))
        docs: dict[Key, dict[str, Any]] = {
            (str(row[0]), str(row[1])): msgspec.json.decode(str(row[2])) for row in rows
        }
        ops: list[Op] = []
        for some in _batched(_by_resource(told).items(), AT_ONCE):
            if ops:
                await self._store.commit(ops)
            await asyncio.sleep(0)
            ops = self._ops(docs, some)
        return [*ops, *owing]

    async def _not_outdated(self, told: Sequence[Entry]) -> tuple[list[Entry], list[Op]]:
        """Without the facts after which the log has another that says all they do: when the index
        is behind, most resources have moved on meanwhile, or are gone. And what says that until
        those are indexed, it is not current to what it left out.
        """
        if not told:
            return [], []
        resources = {entry.resource for entry in told}
        first = told[0].seq
        rows = await self._store.fetch(
            _LATER[self._store.dialect],
            (packed([(one,) for one in resources]), first, first + AHEAD),
        )
        said = {(row[0], row[1]): int(row[2] or 0) for row in rows}
        gone = {one: seq for (one, kind), seq in said.items() if str(kind).endswith(_GONE)}
        kept, left_out = list[Entry](), list[tuple[int, int]]()
        for entry in told:
            again = said.get((entry.resource, entry.event_type), 0)
            later = max(again, gone.get(entry.resource, 0))
            if later <= entry.seq:
                kept.append(entry)
            elif later > told[-1].seq:
                left_out.append((entry.seq, later))
        if not left_out:
            return kept, []
        known_to, owed = left_out[0][0] - 1, max(later for _, later in left_out)
        return kept, [Op(_OWE, (first, known_to, owed, owed))]

    def _ops(
        self, docs: dict[Key, dict[str, Any]], told: Sequence[tuple[Key, list[Entry]]]
    ) -> list[Op]:
        """What some resources come to with what is told of them."""
        gone, kept = list[Key](), list[tuple[Value, ...]]()
        for key, facts in told:
            doc, last = _come_to(docs.get(key, {}), facts), facts[-1]
            if doc is None:
                gone.append(key)
            else:
                known = (last.project, last.seq, last.at, _text(doc), words.of(doc))
                kept.append((*key, *known))
        dialect, rows = self._store.dialect, packed(kept)
        ops = [Op(_FORGET[dialect], (packed(gone),)), Op(_KEEP[dialect], (rows,))]
        if dialect == "sqlite":
            keys = packed([key for key, _ in told])
            ops = [Op(_UNWORD, (keys,)), *ops, Op(_WORD, (rows,))]
        return ops

    async def find(self, question: Question) -> tuple[list[dict[str, Any]], int | None, int]:
        """What matches, the number to go on after if there is more, and the number of the log that
        the index is current to.
        """
        # Read first: what is found then is no older than it says.
        row = await self._store.fetch(_CURRENT_TO, (NAME,))
        at = int(row[0][0] or 0) if row else 0
        wanted = question.words()
        source, by = "search_docs d", "d.id"
        if wanted and self._store.dialect == "sqlite":
            # In this order the words are followed only as far as the answer goes.
            source = "search_words CROSS JOIN search_docs d ON d.id = search_words.rowid"
            by = "search_words.rowid"
        where, args = [f"{by} > ?"], list[Value]([question.after])
        if question.type is not None:
            where.append("d.type = ?")
            args.append(question.type)
        if question.project is not None:
            where.append("d.project = ?")
            args.append(question.project)
        if wanted:
            condition, match = _match(self._store.dialect, wanted)
            where.append(condition)
            args.append(match)
        rows = await self._store.fetch(
            f"SELECT d.id, d.type, d.uuid, d.project, d.seq, d.at, d.doc FROM {source}"
            f" WHERE {' AND '.join(where)} ORDER BY {by} LIMIT ?",
            (*args, question.limit),
        )
        more = int(rows[-1][0] or 0) if len(rows) == question.limit else None
        return [_shown(row) for row in rows], more, at

    async def names(self) -> set[str]:
        """The names of fields that documents have, as far as one of each type tells."""
        rows = await self._store.fetch(
            "SELECT doc FROM search_docs WHERE id IN"
            " (SELECT max(id) FROM search_docs GROUP BY type)"
        )
        return {name for row in rows for name in msgspec.json.decode(str(row[0]))}

    async def has(self, name: str) -> bool:
        """Whether any document has a field of this name: a look at all of them."""
        mark = name.replace("!", "!!").replace("_", "!_").replace("%", "!%")
        rows = await self._store.scan(
            "SELECT 1 FROM search_docs WHERE doc LIKE ? ESCAPE '!' LIMIT 1", (f'%"{mark}":%',)
        )
        return bool(rows)

    async def rebuild(self) -> None:
        """Read the whole log again; what it no longer holds stays as it is."""
        forgiven = Op("UPDATE search_owed SET known_to = 0, owed = 0")
        await self._store.commit([forgiven, place.restarted(NAME)])


def _batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some


def _tells(event_type: str) -> bool:
    """Whether the fact carries its resource as it is."""
    return not event_type.endswith(_UNTRUE) and not event_type.startswith(_ABOUT_IT)


def _by_resource(told: Sequence[Entry]) -> dict[Key, list[Entry]]:
    found: dict[Key, list[Entry]] = {}
    for entry in told:
        found.setdefault((entry.resource, entry.resource_type), []).append(entry)
    return found


def _come_to(doc: dict[str, Any], facts: Sequence[Entry]) -> dict[str, Any] | None:
    """The document after these facts; None if the resource is gone. Of facts about one operation
    the last says all that those before it did.
    """
    last: dict[str, Entry] = {}
    for entry in facts:
        operation = entry.event_type.rpartition(".")[0]
        if entry.event_type.endswith(_GONE):
            doc, last = {}, {}
        last.pop(operation, None)
        last[operation] = entry
    if facts[-1].event_type.endswith(_GONE):
        return None
    for entry in last.values():
        doc = doc | words.data(msgspec.json.decode(entry.payload))
    return doc


def _match(dialect: str, wanted: Sequence[tuple[str, bool]]) -> tuple[str, str]:
    """A condition, and its argument: words are letters and digits only, so that they can be put
    together without ado.
    """
    if dialect == "sqlite":
        match = " AND ".join(f'"{word}"{"*" if begins else ""}' for word, begins in wanted)
        return "search_words MATCH ?", match
    match = " & ".join(f"'{word}'{':*' if begins else ''}" for word, begins in wanted)
    return "d.words @@ ?::tsquery", match


def _shown(row: Line) -> dict[str, Any]:
    _, kind, uuid, project, seq, at, doc = row
    return {
        "type": kind,
        "id": uuid,
        "project": project,
        "seq": seq,
        "time": iso(float(at or 0)),
        "data": msgspec.Raw(str(doc).encode()),
    }


def form() -> shape.Json:
    """The form of an answer; what a resource is has its own API's form."""
    rows = [(1, "", "", project, 1, 1.5, "{}") for project in ("", None)]
    found = shape.wire(*map(_shown, rows))
    found["properties"]["data"] = shape.OBJECT
    shown: dict[str, shape.Json] = {
        "results": {"type": "array", "items": found},
        "current_to": {"type": "integer"},
        "next": {"type": ["integer", "null"]},
    }
    return shape.record(shown, list(shown))


def _text(doc: dict[str, Any]) -> str:
    return msgspec.json.encode(doc).decode()
