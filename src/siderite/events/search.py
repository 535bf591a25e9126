"""An index of resources, kept up to date from the log alone, full text and by field.

What a `create`, `update` or `delete` says at its start, or when it failed, is not so (yet) and is
passed by; every other fact carries its resource as it is. Payloads of different kinds have
different fields: the document is what was said last of each.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from itertools import islice
from typing import Any
from typing import TypeVar

import msgspec

from siderite.core import eventlog
from siderite.core import shape
from siderite.core.clock import now as wall_clock
from siderite.core.eventlog import Head
from siderite.core.store import Line
from siderite.core.store import Op
from siderite.core.store import Store
from siderite.core.store import Value
from siderite.core.times import iso
from siderite.events import pace
from siderite.events import place
from siderite.events import words
from siderite.events.discretion import Discretion
from siderite.events.rows import packed
from siderite.events.rows import unpacked

NAME = "search"
AT_ONCE = {"sqlite": 5, "postgresql": 25}
"""How many resources are written at a time: an index may be late, an answer may not."""
PATIENCE = 50
"""How many turns of a busy loop are left to requests and work in between."""
_UNTRUE = tuple(
    f".{action}.{status}" for action in ("create", "update", "delete") for status in
    ("start", "error")
)  # fmt: skip
_GONE = (".delete.end", ".delete")
"""Of flavors, images and the like one word says it."""
_PHASES = ("start", "success", "end", "error")
_ABOUT_IT = ("scheduler.", "compute_task.")
"""These tell what is asked for a server, not what it is."""

T = TypeVar("T")
Key = tuple[str, str]
"""UUID and type."""


class Question(msgspec.Struct, frozen=True):
    """What is looked for: words, a type, fields with their values, a project's things only."""

    text: str = ""
    type: str | None = None
    fields: tuple[tuple[str, str], ...] = ()
    project: str | None = None
    after: int = 0
    limit: int = 100
    whole: bool = True
    """Whether who asks sees all that is known of a thing, and so may look for it."""

    def words(self) -> list[tuple[str, bool]]:
        """The words that must all be there, and whether each is only the beginning of one."""
        return [(word, True) for word in words.asked(self.text)] + [
            (words.of_field(name, value), False) for name, value in self.fields
        ]


NAMES = ("name", "display_name")
"""Where resources have their names: servers have theirs in the latter."""
_DIALECTS = ("sqlite", "postgresql")
# An offset keeps PostgreSQL from taking a query apart: each document is looked up by its key, and
# words in their index, whatever it thinks of how many there are.
_OLD = {
    "sqlite": "SELECT uuid, type, doc FROM search_docs WHERE (uuid, type) IN"
    f" ({unpacked('sqlite', 'text', 'text')})",
    "postgresql": "SELECT d.uuid, d.type, d.doc FROM jsonb_array_elements(?::jsonb) AS k"
    " CROSS JOIN LATERAL (SELECT uuid, type, doc FROM search_docs"
    " WHERE uuid = k.value ->> 0 AND type = k.value ->> 1 OFFSET 0) AS d",
}
_NEAR = 1000
"""Documents that PostgreSQL looks at one by one before it asks the index for all that have the
words: of those that many have it would read all for a page.
"""
_LOOKED_AT = 1000
"""Documents in which a name of users is looked for: where there are more, any name may be."""
_HAS = (
    "SELECT count(*), max(CASE WHEN doc LIKE ? ESCAPE '!' AND"
    " (CAST(? AS TEXT) IS NULL OR project = ?) THEN 1 ELSE 0 END) FROM"
    " (SELECT project, doc FROM search_docs WHERE type = ? ORDER BY id DESC LIMIT ?) AS d"
)
_FOUND = "d.id, d.type, d.uuid, d.project, d.seq, d.at, d.doc"
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
# Earlier versions, which may run beside this one, left out what a later fact said again: until they
# were at `owed`, the index was current to `known_to` only.
_CURRENT_TO = (
    "SELECT CASE WHEN f.seq >= o.owed OR f.seq < o.known_to THEN f.seq ELSE o.known_to END"
    " FROM event_followers f CROSS JOIN search_owed o WHERE f.name = ?"
)


class Search:
    """Keeps the index, and answers from it. `fields` are the names that resources' fields have by
    their form, `freely_named` the kinds of which users name some.
    """

    def __init__(
        self,
        store: Store,
        *,
        fields: frozenset[str] = frozenset(),
        freely_named: Sequence[str] = (),
        discretion: Discretion | None = None,
        clock: Callable[[], float] = wall_clock,
    ) -> None:
        self._store = store
        self.fields = fields
        self._freely_named = freely_named
        self._discretion = discretion or Discretion()
        self._clock = clock

    async def deal(self, heads: Sequence[Head]) -> list[Op]:
        """Take facts into account: of each resource, what they come to. To do so again, should the
        place not be written after all, changes nothing; but who comes late to it, after another
        process has taken over, must not write what was true before.
        """
        told = _by_resource(head for head in heads if _tells(head.event_type))
        size = AT_ONCE[self._store.dialect]
        first, since = heads[0].seq, self._clock()
        if len(told) > size:
            await self._store.commit([place.claimed(NAME, first=first, now=since)])
        ops: list[Op] = []
        for some in _batched(told.items(), size):
            if ops:
                await self._store.commit([place.held(NAME, first=first, since=since), *ops])
                await pace.breath(PATIENCE)
            ops = await self._ops(some)
        return ops

    async def _ops(self, told: Sequence[tuple[Key, list[Head]]]) -> list[Op]:
        """What some resources come to with what is told of them."""
        dialect, store = self._store.dialect, self._store
        rows = await store.fetch(_OLD[dialect], (packed([key for key, _ in told]),))
        docs = {(str(row[0]), str(row[1])): str(row[2]) for row in rows}
        news = {key: _news(facts) for key, facts in told}
        said = await eventlog.payloads(store, [n for one in news.values() for n in one.numbers])
        gone, kept = list[Key](), list[tuple[Value, ...]]()
        for key, facts in told:
            if news[key].is_gone:
                gone.append(key)
                continue
            old = "{}" if news[key].is_anew else docs.get(key, "{}")
            doc, last = _come_to(old, [said[n] for n in news[key].numbers if n in said]), facts[-1]
            if not doc:
                gone.append(key)  # all that was said of it has been pruned meanwhile
                continue
            kept.append((*key, last.project, last.seq, last.at, _text(doc), words.of(doc)))
        new_rows = packed(kept)
        ops = [Op(_FORGET[dialect], (packed(gone),)), Op(_KEEP[dialect], (new_rows,))]
        if dialect == "sqlite":
            keys = packed([key for key, _ in told])
            ops = [Op(_UNWORD, (keys,)), *ops, Op(_WORD, (new_rows,))]
        return ops

    async def find(self, question: Question) -> tuple[list[dict[str, Any]], int | None, int]:
        """What matches, the number to go on after if there is more, and the number of the log that
        the index is current to.
        """
        # Read first: what is found then is no older than it says.
        row = await self._store.fetch(_CURRENT_TO, (NAME,))
        at = int(row[0][0] or 0) if row else 0
        rows: Sequence[Line] = ()
        for sql, args in _asked(self._store.dialect, question):
            rows = await self._store.fetch(sql, args)
            if len(rows) == question.limit:
                break
        more = int(rows[-1][0] or 0) if len(rows) == question.limit else None
        found = [_shown(row) for row in rows]
        if not question.whole:
            found = [one for one in found if self._is_told(one, question.words())]
        return found, more, at

    def _is_told(self, found: dict[str, Any], wanted: Sequence[tuple[str, bool]]) -> bool:
        """Whether it has the words that are looked for without what is hidden, which goes."""
        doc = self._discretion.document(found["type"], msgspec.json.decode(found["data"]))
        found["data"] = msgspec.Raw(_text(doc).encode())
        known = words.of(doc).split(" ")
        return all(
            any(one.startswith(word) if begins else one == word for one in known)
            for word, begins in wanted
        )

    async def named(self, name: str, project: str | None) -> list[tuple[str, str]]:
        """Type and UUID of what has this very name, a few of them if there are many."""
        found: dict[tuple[str, str], None] = {}
        for field in NAMES:
            asked = Question(fields=((field, name),), project=project)
            for one in (await self.find(asked))[0]:
                if msgspec.json.decode(one["data"]).get(field) == name:  # the index has no capitals
                    found[one["type"], one["id"]] = None
        return list(found)

    async def may_have(self, name: str, project: str | None) -> bool:
        """Whether a field may have this name in what a project (None: everybody) sees: by its form,
        or as users named it there. Of those only the newest are looked at.
        """
        if name in self.fields:
            return True
        mark = name.replace("!", "!!").replace("_", "!_").replace("%", "!%")
        for kind in self._freely_named:
            ((count, has),) = await self._store.fetch(
                _HAS, (f'%"{mark}":%', project, project, kind, _LOOKED_AT)
            )
            if has or int(count or 0) == _LOOKED_AT:
                return True
        return False

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


def _by_resource(told: Iterable[Head]) -> dict[Key, list[Head]]:
    found: dict[Key, list[Head]] = {}
    for head in told:
        found.setdefault((head.resource, head.resource_type), []).append(head)
    return found


class _News(msgspec.Struct, frozen=True):
    """What is to be read of the facts about one resource."""

    numbers: list[int]
    is_anew: bool
    """What was known before is of one that was deleted."""
    is_gone: bool


def _news(facts: Sequence[Head]) -> _News:
    """Of facts about one operation the last says all that those before it did."""
    last: dict[str, int] = {}
    is_anew = False
    for head in facts:
        operation, _, phase = head.event_type.rpartition(".")
        if phase not in _PHASES:
            operation = head.event_type
        if head.event_type.endswith(_GONE):
            is_anew, last = True, {}
        else:
            last.pop(operation, None)
            last[operation] = head.seq
    is_gone = facts[-1].event_type.endswith(_GONE)
    return _News([] if is_gone else list(last.values()), is_anew, is_gone)


def _come_to(doc: str, payloads: Sequence[str]) -> dict[str, Any]:
    """The document after what was said."""
    found: dict[str, Any] = msgspec.json.decode(doc)
    for payload in payloads:
        found |= words.data(msgspec.json.decode(payload))
    return found


def _asked(dialect: str, question: Question) -> Iterator[tuple[str, list[Value]]]:
    """Statements for the documents that are looked for: the next one has the answer where one does
    not fill a page.
    """
    wanted = question.words()
    source, by = "search_docs d", "d.id"
    if wanted and dialect == "sqlite":
        # In this order the words are followed only as far as the answer goes.
        source = "search_words CROSS JOIN search_docs d ON d.id = search_words.rowid"
        by = "search_words.rowid"
    where, args = f"{by} > ?", list[Value]([question.after])
    if question.type is not None:
        where += " AND d.type = ?"
        args.append(question.type)
    near = f"(SELECT * FROM {source} WHERE {where} ORDER BY {by} LIMIT {_NEAR}) AS d"
    only = list[str]()
    if wanted:
        condition, match = _match(dialect, wanted)
        only.append(condition)
        args.append(match)
    if question.project is not None:
        only.append("d.project = ?")
        args.append(question.project)
    args.append(question.limit)
    where, end = " AND ".join((where, *only)), f"ORDER BY {by} LIMIT ?"
    if wanted and dialect == "postgresql":
        yield f"SELECT {_FOUND} FROM {near} WHERE {' AND '.join(only)} {end}", args
        source = f"(SELECT * FROM {source} WHERE {where} OFFSET 0) AS d"
        where = "true"
    yield f"SELECT {_FOUND} FROM {source} WHERE {where} {end}", args


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
