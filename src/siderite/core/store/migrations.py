"""Numbered migrations: `NNNN_name.sql` files of each room, run once each, in order, at start.

A file may hold `{serial}` (an own integer key) and `{bigint}`, `{real}` where the two databases
differ, and lines that start with `--sqlite` or `--postgresql` for statements of one database only.
"""

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

from siderite.core.store import Store
from siderite.core.store.in_turn import in_turn

_TYPES = {
    "sqlite": {
        "serial": "INTEGER PRIMARY KEY AUTOINCREMENT",
        "bigint": "INTEGER",
        "real": "REAL",
    },
    "postgresql": {
        "serial": "BIGSERIAL PRIMARY KEY",
        "bigint": "BIGINT",
        "real": "DOUBLE PRECISION",
    },
}
_ORDER = (
    "siderite.core.store",
    "siderite.identity",
    "siderite.events",
    "siderite.baremetal",
    "siderite.image",
    "siderite.compute",
)
_LOCK = 734001
_MARK = "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY)"
_DONE = "INSERT INTO migrations VALUES ('%s');"


def pending(done: set[str]) -> list[tuple[str, str]]:
    """Name and text of each migration that has not run, in order."""
    return [(name, text) for name, text in _every() if name not in done]


@cache
def _every() -> tuple[tuple[str, str], ...]:
    """All of them. They come with the program, which asks for them several times as it starts."""
    found: list[tuple[str, str]] = []
    for room in _ORDER:
        folder = files(room).joinpath("migrations")
        if not folder.is_dir():
            continue
        names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
        short = room.removeprefix("siderite.")
        found += [(f"{short}/{name}", folder.joinpath(name).read_text()) for name in names]
    return tuple(found)


def for_dialect(text: str, dialect: str) -> str:
    """A migration's SQL as this database speaks it."""
    lines = []
    for line in text.splitlines():
        only = re.match(r"--(sqlite|postgresql) (.*)", line)
        if only is None:
            lines.append(line)
        elif only[1] == dialect:
            lines.append(only[2])
    sql = "\n".join(lines)
    for word, spelt in _TYPES[dialect].items():
        sql = sql.replace("{" + word + "}", spelt)
    return sql


async def migrate(store: Store) -> list[str]:
    """Bring the database to this program's schema; the names of what was run."""
    run = _migrate_sqlite if store.dialect == "sqlite" else _migrate_postgres
    return await run(store)


async def of_the_future(store: Store) -> list[str]:
    """Migrations that have run here and that this program does not know."""
    return unknown(str(row[0]) for row in await store.fetch("SELECT name FROM migrations"))


def unknown(done: Iterable[str]) -> list[str]:
    """Those of a newer version, among what has been done to a database."""
    return sorted(set(done) - {name for name, _ in _every()})


async def _migrate_sqlite(store: Any) -> list[str]:
    store.script(_MARK)
    done = {str(row[0]) for row in await store.fetch("SELECT name FROM migrations")}
    ran = []
    for name, text in pending(done):
        sql = for_dialect(text, "sqlite")
        store.script(f"BEGIN IMMEDIATE;\n{sql}\n{_DONE % name}\nCOMMIT;")
        ran.append(name)
    return ran


async def _migrate_postgres(store: Any) -> list[str]:
    ran = []
    # Several processes may start at once: one migrates, the others wait here and find it done.
    async with in_turn(store, _LOCK) as connection:
        await connection.execute(_MARK)
        rows = await connection.fetch("SELECT name FROM migrations")
        for name, text in pending({row[0] for row in rows}):
            await connection.execute(f"{for_dialect(text, 'postgresql')}\n;{_DONE % name}")
            ran.append(name)
    return ran
