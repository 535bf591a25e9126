"""Databases that tests borrow from one PostgreSQL: the schema of today, and nothing in them.

Making a database, bringing it to the schema and dropping it takes longer than most tests that want
one. So they are lent out one after another, and emptied on return: rows, sequences, connections.
One that comes back with another schema, or large, is dropped.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from siderite.core.store import open_store
from siderite.core.store.migrations import migrate
from tests.support.postgres import Postgres

LARGE = 32 * 2**20

_SCHEMA = """
SELECT md5(string_agg(c.relname || ' ' || a.attname || a.atttypid, ',' ORDER BY 1, a.attnum))
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = 'public'::regnamespace
"""
_KEEP_FIRST_ROWS = """
DO $$ DECLARE name text; filled bool; BEGIN
  CREATE SCHEMA pristine;
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM public.%I)', name) INTO filled;
    CONTINUE WHEN NOT filled;
    EXECUTE format('CREATE TABLE pristine.%I AS TABLE public.%I', name, name);
  END LOOP;
END $$
"""
_DISCONNECT = """
SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_EMPTY = """
DO $$ DECLARE name text; BEGIN
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
    EXECUTE format('DELETE FROM public.%I', name);
  END LOOP;
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'pristine' LOOP
    EXECUTE format('INSERT INTO public.%I SELECT * FROM pristine.%I', name, name);
  END LOOP;
  FOR name IN SELECT sequencename FROM pg_sequences WHERE schemaname = 'public' LOOP
    PERFORM setval(format('public.%I', name), 1, false);
  END LOOP;
END $$
"""


class Lending:
    """The databases of one server that are lent out."""

    def __init__(self, server: Postgres) -> None:
        self._server = server
        self._free: list[str] = []
        self._schema = ""

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of a database that nobody else has."""
        url = self._free.pop() if self._free else self._make()
        try:
            yield url
        finally:
            self._take_back(url)

    def _make(self) -> str:
        url = self._server.make_database()
        asyncio.run(_bring_up_to_date(url))
        self._schema = self._server.sql(_SCHEMA, _KEEP_FIRST_ROWS, url=url)
        return url

    def _take_back(self, url: str) -> None:
        found = self._server.sql(
            _DISCONNECT, _SCHEMA, "SELECT pg_database_size(current_database())", _EMPTY, url=url
        )
        _, schema, size = found.splitlines()
        if schema == self._schema and int(size) < LARGE:
            self._free.append(url)
        else:
            self._server.drop_database(url)


async def _bring_up_to_date(url: str) -> None:
    store = await open_store(url)
    await migrate(store)
    await store.close()
