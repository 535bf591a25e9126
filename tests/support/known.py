"""What an embedded store knows without a look, held against what is on the disk."""

import sqlite3
from contextlib import closing
from typing import Any

from siderite.baremetal.store import HOOKS
from siderite.baremetal.store import NODES
from siderite.compute.store import SERVERS
from siderite.core.store import Store
from siderite.core.store.sqlite import SqliteStore
from siderite.core.store.table import Table

_TABLES: dict[str, Table[Any]] = {"nodes": NODES, "servers": SERVERS, "hooks": HOOKS}


def check_known(store: Store) -> None:
    """Of a store that was closed: each value is what would be read, to its types. One that is not
    was changed in place, by someone who was not the only one to have it; or it was never what can
    be read back.
    """
    if not isinstance(store, SqliteStore) or not store._known:
        return
    with closing(sqlite3.connect(store._path)) as connection:
        for (table, uuid), value in store._known.items():
            sql = f"SELECT doc FROM {table} WHERE ? IN (uuid, '') ORDER BY id"
            there = [_TABLES[table].value(doc) for (doc,) in connection.execute(sql, (uuid,))]
            assert repr(value if uuid == "" else [value]) == repr(there)


def empty_mind(store: Store) -> None:
    """Rows were written by hand: nothing is known any more, as after a start."""
    if isinstance(store, SqliteStore):
        store._known.clear()
