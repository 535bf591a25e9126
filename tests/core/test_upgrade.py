"""Rows of each earlier schema come along, and processes of that time go on writing.

Migrations run one at a time. After each, every table gets a row as a program of that time would
write it; at the end all rows are there, and the statements of each time still work.
"""

import asyncio
import itertools

from siderite.core.store import Op
from siderite.core.store import migrations
from siderite.core.store import open_store
from siderite.core.store.migrations import migrate
from siderite.core.store.migrations import pending

_COLUMNS = {
    "sqlite": """
SELECT m.name, c.name, c.type, c.pk AND c.type = 'INTEGER' AND
  (SELECT count(*) FROM pragma_table_info(m.name) WHERE pk) = 1
FROM sqlite_master m, pragma_table_info(m.name) c
WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' AND m.name NOT LIKE 'search_words%'
ORDER BY m.name, c.cid
""",
    "postgresql": """
SELECT table_name, column_name, data_type,
  CASE WHEN column_default LIKE 'nextval%' THEN 1 ELSE 0 END
FROM information_schema.columns WHERE table_schema = 'public' ORDER BY table_name, ordinal_position
""",
}
_TEXTS = {"doc", "body", "job", "payload", "events"}
_numbers = itertools.count(1)


def test_rows_and_statements_of_every_earlier_schema_work_after_an_upgrade(
    bare_database_url, monkeypatch
):
    asyncio.run(_one_at_a_time(bare_database_url, monkeypatch))


async def _one_at_a_time(url, monkeypatch):
    store = await open_store(url)
    written = set()
    for name, _ in pending(set()):
        with monkeypatch.context() as patch:
            patch.setattr(migrations, "pending", lambda done: pending(done)[:1])
            assert await migrate(store) == [name]
        for table, columns in (await tables(store)).items():
            written.add((table, tuple(columns)))
            await write(store, table, columns)
    rows = await store.fetch("SELECT count(*) FROM work")
    assert rows[0][0] == len(pending(set())), "a row of each time"
    for table, columns in sorted(written):
        await write(store, table, columns)
        assert await store.fetch(f"SELECT {', '.join(c[0] for c in columns)} FROM {table}")
    await store.close()


async def tables(store):
    """Columns to write and their types, by table; not those that fill themselves."""
    found = {}
    for table, column, kind, own in await store.fetch(_COLUMNS[store.dialect]):
        if table != "migrations" and not own:
            found.setdefault(table, []).append((column, kind.lower()))
    return found


async def write(store, table, columns):
    """A row as a program of that time would write it."""
    number = next(_numbers)
    names = ", ".join(column for column, _ in columns)
    marks = ", ".join("?" for _ in columns)
    values = tuple(_value(column, kind, number) for column, kind in columns)
    await store.commit([Op(f"INSERT INTO {table} ({names}) VALUES ({marks})", values, 1)])


def _value(column, kind, number):
    if column in _TEXTS:
        return '{"provision_state":null}'
    if kind == "text":
        return f"{column}-{number}"
    return str(number) if kind == "tsvector" else number
