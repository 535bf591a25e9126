"""Keeping things: one small layer over SQLite (embedded) and PostgreSQL.

Everything that becomes true together is a list of `Op`; `Store.commit` makes all of it true or
none. An `Op` that says how many rows it must touch is a compare-and-swap: if it touches another
number, the whole commit is undone and `Lost` is raised, and the caller reads again and decides
again. There are no open transactions: a decision is made on what was read, and the commit checks
that it still holds.

SQL is written once, with `?` for arguments, in the file that owns the table.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Protocol

import msgspec

Value = str | int | float | bytes | None
Line = Sequence[Value]
"""A row as the database gives it."""


class Op(msgspec.Struct, frozen=True):
    """One statement of a commit; `rows` is how many rows it must touch, None for any number."""

    sql: str
    args: tuple[Value, ...] = ()
    rows: int | None = None


class Row(Op, frozen=True):
    """The whole row of a resource is written; `value` is what it then holds, None if it is gone or
    too large to be kept in mind.
    """

    table: str = ""
    uuid: str = ""
    value: object = None


class Lost(Exception):
    """A compare-and-swap found another version than the one that was read."""


class Duplicate(Exception):
    """A unique value is there already; `column` is `table.column` as far as the database tells."""

    def __init__(self, column: str) -> None:
        super().__init__(f"duplicate {column}")
        self.column = column


class Store(Protocol):
    """What both databases can do."""

    dialect: str
    troubles: int
    """How often it was in trouble itself so far, and refused: a full disk, no connection."""

    async def fetch(self, sql: str, args: Sequence[Value] = ()) -> Sequence[Line]:
        """Rows of a query, from what is committed."""
        ...

    def recall(self, table: str, uuid: str) -> object:
        """The value of a row that was lately written, if it is sure to be what is committed; others
        get the same object.
        """
        ...

    def remember(self, table: str, value: object) -> None:
        """A whole small table was just read: `recall` it, by no uuid, until a row of it is written.
        Nothing is kept where another process may write.
        """
        ...

    async def scan(self, sql: str, args: Sequence[Value] = ()) -> Sequence[Line]:
        """The same for a query that looks at a whole table: requests are answered meanwhile."""
        ...

    async def commit(self, ops: Sequence[Op]) -> None:
        """All of it, durably, or `Lost`/`Duplicate` and none of it."""
        ...

    async def write(self, sql: str, args: Sequence[Value] = ()) -> Sequence[Line]:
        """One durable statement of its own with `RETURNING`: its rows."""
        ...

    def signal(self, name: str) -> None:
        """Tell other processes, soon and without waiting; many at once become one."""
        ...

    async def listen(self, heard: Mapping[str, Callable[[], None]]) -> None:
        """Call back on signals of any process, until cancelled; on all of them after a break."""
        ...

    async def close(self) -> None:
        """Finish what was handed in and let go of the database."""
        ...


def indexed(store: Store, index: str) -> str:
    """Stands behind a table's name where SQLite is to find the rows by this index: it does not know
    how many each would find, and takes the few that are deleted and all others for alike.
    """
    return f"INDEXED BY {index}" if store.dialect == "sqlite" else ""


async def open_store(url: str) -> Store:
    """The store behind a URL: `sqlite:///path/to/file`, `sqlite://` (in memory) or
    `postgresql://…`.
    """
    if url.startswith("sqlite://"):
        from siderite.core.store.sqlite import SqliteStore

        return SqliteStore(url.removeprefix("sqlite://").removeprefix("/") or ":memory:")
    if url.startswith(("postgresql://", "postgres://")):
        from siderite.core.store.postgres import PostgresStore

        return await PostgresStore.open(url)
    kind, is_url, _ = url.partition("://")  # what is no URL may hold a password anywhere
    said = f"no such kind of database: {kind}" if is_url else "db is no URL"
    raise RuntimeError(f"{said}; use sqlite:/// or postgresql://")
