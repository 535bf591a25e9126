"""A resource's table: the whole value as a JSON document, what the wire shows of it, and columns
to find it by.

`doc` is the value itself (with its secrets), `body` what clients may read of it, rendered once
when it is written; `columns` are attributes that filters, sorting and uniqueness need. A change is
a compare-and-swap on `version`, and writes only the columns that differ.
"""

import re
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from itertools import compress
from operator import attrgetter
from operator import ne
from typing import Generic
from typing import Literal
from typing import Protocol
from typing import TypeVar

import msgspec

from siderite.core import metrics
from siderite.core.errors import Unreadable
from siderite.core.log import get_logger
from siderite.core.store import Line
from siderite.core.store import Op
from siderite.core.store import Row
from siderite.core.store import Store
from siderite.core.store import Value

log = get_logger("store")

LARGE = 32 * 1024
"""The length of documents whose values are not kept in mind: a config drive may have many MiB."""

_UUID = re.compile(r'"uuid":\s*"([^"]{1,64})"')


class Resource(Protocol):
    """What every stored value has."""

    @property
    def uuid(self) -> str: ...
    @property
    def version(self) -> int: ...


R = TypeVar("R", bound=Resource)


class Beside(msgspec.Struct, frozen=True):
    """A narrow table that says the same, where PostgreSQL has it in place of an index: its name,
    its column with the row's `id`, and the condition there.
    """

    table: str
    key: str
    sql: str


class Where(msgspec.Struct, frozen=True):
    """A condition of a list: SQL with `?` and its arguments.

    `finds` is what its index is worth: `few` rows meet it; `many` may; nearly `all` do, so that it
    needs no index; `none` has one. SQLite, which does not know, is led by it. A `slow` one takes
    its time for each row, and so is not for the loop.
    """

    sql: str
    args: tuple[Value, ...] = ()
    finds: Literal["few", "many", "all", "none"] = "few"
    slow: bool = False
    beside: Beside | None = None


class Page(msgspec.Struct, frozen=True):
    """Which part of a list, in which order. `sort` is a column or a scalar attribute of the
    document.
    """

    limit: int
    marker: str | None = None
    sort: str = "id"
    descending: bool = False


class Table(Generic[R]):
    """Rows of one resource as values, and the ops that write them."""

    def __init__(
        self,
        name: str,
        kind: type[R],
        columns: Sequence[str],
        render: Callable[[R], str],
        numbers: Sequence[str] = (),
        *,
        required: Sequence[str] = (),
        slim: bool = False,
        recalled: bool = False,
    ) -> None:
        """`numbers` are columns that are no text, `required` those that are never NULL; a `slim`
        table has an index of all columns by id, for SQLite. The store may know by itself what a
        `recalled` one holds: all that writes it are the ops of this class, and nobody changes a
        value, or anything in it.
        """
        self.name = name
        self.kind = kind
        self.columns = tuple(columns)
        self._values = _getter(self.columns)
        self._numbers = frozenset(numbers)
        self._required = frozenset((*required, "uuid"))
        self._slim = slim
        self._recalled = recalled
        self.render = render
        self._decoder = msgspec.json.Decoder(kind)
        self._encoder = msgspec.json.Encoder()
        names = ", ".join(("uuid", "version", "doc", "body", *self.columns))
        marks = ", ".join("?" * (4 + len(self.columns)))
        self._insert = f"INSERT INTO {name} ({names}) VALUES ({marks})"
        self._updates: dict[tuple[str, ...], str] = {}
        self._told: set[str] = set()

    def insert(self, value: R) -> Op:
        """The op that adds a new value."""
        found = map(_plain, self._values(value))
        doc = self._doc(value)
        args = (value.uuid, value.version, doc, self.render(value), *found)
        return self._op(self._insert, args, value.uuid, value if len(doc) < LARGE else None)

    def swap(self, before: R, after: R) -> Op:
        """The op that puts `after` in the place of `before`, if that is still there."""
        now = self._values(after)
        differs = tuple(map(ne, self._values(before), now))
        key = tuple(compress(self.columns, differs))
        sql = self._updates.get(key)
        if sql is None:
            sets = ", ".join(f"{column} = ?" for column in ("version", "doc", "body", *key))
            sql = f"UPDATE {self.name} SET {sets} WHERE uuid = ? AND version = ?"
            self._updates[key] = sql
        doc = self._doc(after)
        values = (
            after.version,
            doc,
            self.render(after),
            *map(_plain, compress(now, differs)),
            before.uuid,
            before.version,
        )
        return self._op(sql, values, after.uuid, after if len(doc) < LARGE else None)

    def hold(self, value: R) -> Op:
        """The op that changes nothing, if the value is still the one that was read: for decisions
        that rest on it. It does not keep the row from being deleted afterwards."""
        return Op(
            f"UPDATE {self.name} SET version = version WHERE uuid = ? AND version = ?",
            (value.uuid, value.version),
            1,
        )

    def remove(self, value: R) -> Op:
        """The op that deletes the value, if it is still the one that was read."""
        sql = f"DELETE FROM {self.name} WHERE uuid = ? AND version = ?"
        return self._op(sql, (value.uuid, value.version), value.uuid, None)

    def forget(self, uuid: str) -> Op:
        """The op that deletes the value with this uuid, whatever it is, if there is one."""
        sql = f"DELETE FROM {self.name} WHERE uuid = ?"
        return self._op(sql, (uuid,), uuid, None, rows=None)

    def _op(
        self,
        sql: str,
        args: tuple[Value, ...],
        uuid: str,
        value: R | None,
        rows: int | None = 1,
    ) -> Op:
        if self._recalled:
            return Row(sql, args, rows, self.name, uuid, value)
        return Op(sql, args, rows)

    async def get(self, store: Store, uuid: str) -> R | None:
        """The value with this uuid."""
        known = store.recall(self.name, uuid) if self._recalled else None
        if isinstance(known, self.kind):
            return known
        rows = await store.fetch(f"SELECT doc FROM {self.name} WHERE uuid = ?", (uuid,))
        return self.value(rows[0][0]) if rows else None

    async def all(self, store: Store) -> Sequence[R]:
        """All values, oldest first: for a small recalled table that is read again and again."""
        known = store.recall(self.name, "")
        if isinstance(known, list):
            return known
        found = await self.find(store)
        if self._recalled:
            store.remember(self.name, found)
        return found

    async def find(self, store: Store, *where: Where) -> list[R]:
        """All values that meet the conditions, oldest first."""
        clause, args = _all(where)
        rows = await store.fetch(f"SELECT doc FROM {self.name}{clause} ORDER BY id", args)
        return [self.value(row[0]) for row in rows]

    def value(self, doc: Value) -> R:
        """The value of a document."""
        assert isinstance(doc, str)  # noqa: S101 - the column is text
        try:
            return self._decoder.decode(doc)
        except msgspec.DecodeError as why:
            raise self._unreadable(doc, why) from why

    def readable(self, docs: Iterable[Value]) -> Iterator[R | None]:
        """The values of documents for a sweep or a list that one of them must not end: None for
        what cannot be read, which the log and a metric tell of once.
        """
        for doc in docs:
            try:
                yield self.value(doc)
            except Unreadable:
                yield None

    def _unreadable(self, doc: str, why: msgspec.DecodeError) -> Unreadable:
        found = _UUID.search(doc)
        uuid = found[1] if found else "whose uuid is lost"
        if uuid not in self._told:
            self._told.add(uuid)
            metrics.unreadable(self.name)
            log.error("a record cannot be read", table=self.name, uuid=uuid, error=str(why))
        return Unreadable(
            f"The record {uuid} in the table {self.name} cannot be read ({why}): nothing was"
            " changed. Mend its column doc, or restore a backup."
        )

    async def select(
        self, store: Store, what: str, where: Sequence[Where], page: Page | None = None
    ) -> Sequence[Line]:
        """Columns `what` of a page of the rows that meet the conditions, by keyset."""
        source, conditions, also = self.name, list(where), ""
        if store.dialect == "postgresql":
            source, conditions, also = self._beside(where)
        if page is None:
            clause, args = _all(conditions)
            return await store.fetch(f"SELECT {what} FROM {source}{clause} ORDER BY id", args)
        key = by = self._sort_expression(store.dialect, page.sort)
        is_sought = self._slim and store.dialect == "sqlite" and not _is_walk(page, where)
        if is_sought:
            # A plus keeps SQLite from using an index for what comes after it.
            conditions = [
                Where("+" + one.sql, one.args) if one.finds == "many" else one for one in where
            ]
            if key != "id" and any(one.finds != "all" for one in where):
                by = "+" + key
        if page.marker is not None:
            conditions.append(await self._beyond(store, by, page))
            if also and by == "id":  # PostgreSQL does not see that it holds there, too
                conditions.append(self._after_marker(also, page))
        clause, args = _all(conditions)
        sought = f"FROM {source}{clause} {_order(by, page)} LIMIT {page.limit}"
        if is_sought:
            sought = f"FROM {self.name} WHERE id IN (SELECT id {sought}) {_order(key, page)}"
        # What is no column stands in the documents: all of them have to be read.
        is_column = key == "id" or page.sort in (*self.columns, *self._required)
        fetch = store.fetch if is_column else store.scan
        return await fetch(f"SELECT {what} {sought}", args)

    def _beside(self, where: Sequence[Where]) -> tuple[str, list[Where], str]:
        """The tables to look in, what is looked for there, and what else has the row's `id`."""
        for one in where:
            if one.beside is not None:
                beside, others = one.beside, [other for other in where if other is not one]
                source = f"{self.name} JOIN {beside.table} ON {beside.key} = {self.name}.id"
                return source, [Where(beside.sql, one.args), *others], beside.key
        return self.name, list(where), ""

    def _after_marker(self, key: str, page: Page) -> Where:
        """What comes after the marker in the order of `id`, which `key` has."""
        sign = "<" if page.descending else ">"
        at = f"(SELECT id FROM {self.name} WHERE uuid = ?)"
        return Where(f"{key} {sign} {at}", (page.marker,), "all")

    async def _beyond(self, store: Store, key: str, page: Page) -> Where:
        """What comes after the marker."""
        if key == "id":
            return self._after_marker(key, page)
        at, sign = f"FROM {self.name} WHERE uuid = ?", "<" if page.descending else ">"
        found = await store.fetch(f"SELECT {key}, id {at}", (page.marker,))
        if not found:
            return Where("1 = 0")
        # The first says the same as the others, in a way that an index can follow.
        value, number = found[0]
        return Where(
            f"{key} {sign}= ? AND ({key} {sign} ? OR ({key} = ? AND id {sign} ?))",
            (value, value, value, number),
            "all",
        )

    def _sort_expression(self, dialect: str, key: str) -> str:
        if key == "id" or key in self._required:
            return key
        if key in self._numbers:
            return f"COALESCE({key}, 0)"
        if key in self.columns:
            return f"COALESCE({key}, '')"
        if dialect == "sqlite":
            return f"CAST(COALESCE(json_extract(doc, '$.{key}'), '') AS TEXT)"
        return f"COALESCE(doc::json ->> '{key}', '')"

    def _doc(self, value: R) -> str:
        return self._encoder.encode(value).decode()


def _getter(columns: Sequence[str]) -> Callable[[object], tuple[object, ...]]:
    """Reads all columns of a value at once."""
    if len(columns) > 1:
        return attrgetter(*columns)
    return lambda value: tuple(getattr(value, column) for column in columns)


def _order(key: str, page: Page) -> str:
    way = "DESC" if page.descending else "ASC"
    return f"ORDER BY {key} {way}" + (f", id {way}" if key != "id" else "")


def _is_walk(page: Page, where: Sequence[Where]) -> bool:
    """Whether the page's rows follow each other in an index, so that there is nothing to look for
    before they are read.
    """
    kinds = [one.finds for one in where if one.finds != "all"]
    if page.sort != "id" or "none" in kinds:
        return False
    return "many" not in kinds or kinds == ["many"]


def _all(conditions: Sequence[Where]) -> tuple[str, list[Value]]:
    if not conditions:
        return "", []
    args = [arg for condition in conditions for arg in condition.args]
    return " WHERE " + " AND ".join(condition.sql for condition in conditions), args


def _plain(value: object) -> Value:
    """A column's value: booleans as 0 and 1, enums as their text, unset as NULL."""
    if isinstance(value, bool):
        return int(value)
    if value is None or type(value) in (str, int, float):
        return value  # type: ignore[return-value]
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"{value!r} cannot be a column")
