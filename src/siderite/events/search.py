"""An index of resources, kept up to date from the log alone, full text and by field.

What a `create`, `update` or `delete` says at its start, or when it failed, is not so (yet) and is
passed by; every other fact carries its resource as it is. Payloads of different kinds have
different fields: the document is what was said last of each.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

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
_UNTRUE = tuple(
    f".{action}.{status}" for action in ("create", "update", "delete") for status in
    ("start", "error")
)  # fmt: skip

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
_UNWORD = (
    f"DELETE FROM search_words WHERE rowid IN"
    f" (SELECT id FROM search_docs WHERE (uuid, type) IN {_KEYS})"
)
_WORD = (
    "INSERT INTO search_words (rowid, words) SELECT d.id, json_extract(value, '$[6]')"
    " FROM json_each(?) JOIN search_docs d"
    " ON d.uuid = json_extract(value, '$[0]') AND d.type = json_extract(value, '$[1]')"
)


class Search:
    """Keeps the index, and answers from it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def deal(self, entries: Sequence[Entry]) -> list[Op]:
        """Take facts into account: of each resource, what they come to."""
        dialect = self._store.dialect
        told = [entry for entry in entries if not entry.event_type.endswith(_UNTRUE)]
        keys = sorted({(entry.resource, entry.resource_type) for entry in told})
        rows = await self._store.fetch(_OLD[dialect], (packed(keys),))
        docs: dict[Key, dict[str, Any]] = {
            (str(row[0]), str(row[1])): msgspec.json.decode(str(row[2])) for row in rows
        }
        last: dict[Key, Entry] = {}
        for entry in told:
            key = (entry.resource, entry.resource_type)
            last[key] = entry
            if entry.event_type.endswith(".delete.end"):
                docs.pop(key, None)
            else:
                docs[key] = docs.get(key, {}) | words.data(msgspec.json.decode(entry.payload))
        return self._ops([(key, entry, docs.get(key)) for key, entry in last.items()])

    def _ops(self, changed: Sequence[tuple[Key, Entry, dict[str, Any] | None]]) -> list[Op]:
        gone = packed([key for key, _, doc in changed if doc is None])
        kept = packed(
            [
                (*key, entry.project, entry.seq, entry.at, _text(doc), words.of(doc))
                for key, entry, doc in changed
                if doc is not None
            ]
        )
        dialect = self._store.dialect
        ops = [Op(_FORGET[dialect], (gone,)), Op(_KEEP[dialect], (kept,))]
        if dialect == "sqlite":
            keys = packed([key for key, _, _ in changed])
            ops = [Op(_UNWORD, (keys,)), *ops, Op(_WORD, (kept,))]
        return ops

    async def find(self, question: Question) -> tuple[list[dict[str, Any]], int | None, int]:
        """What matches, the number to go on after if there is more, and the number of the log that
        the index is current to.
        """
        at = await place.seq_of(self._store, NAME)
        where, args = ["d.id > ?"], list[Value]([question.after])
        if question.type is not None:
            where.append("d.type = ?")
            args.append(question.type)
        if question.project is not None:
            where.append("d.project = ?")
            args.append(question.project)
        wanted = question.words()
        if wanted:
            condition, match = _match(self._store.dialect, wanted)
            where.append(condition)
            args.append(match)
        rows = await self._store.fetch(
            "SELECT d.id, d.type, d.uuid, d.project, d.seq, d.at, d.doc FROM search_docs d"
            f" WHERE {' AND '.join(where)} ORDER BY d.id LIMIT ?",
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

    async def rebuild(self) -> None:
        """Read the whole log again; what it no longer holds stays as it is."""
        await self._store.commit([place.restarted(NAME)])


def _match(dialect: str, wanted: Sequence[tuple[str, bool]]) -> tuple[str, str]:
    """A condition, and its argument: words are letters and digits only, so that they can be put
    together without ado.
    """
    if dialect == "sqlite":
        match = " AND ".join(f'"{word}"{"*" if begins else ""}' for word, begins in wanted)
        return "d.id IN (SELECT rowid FROM search_words WHERE search_words MATCH ?)", match
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


def _text(doc: dict[str, Any]) -> str:
    return msgspec.json.encode(doc).decode()
