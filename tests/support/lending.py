"""Databases that tests borrow from one PostgreSQL: the schema of today, and nothing in them.

Making a database, bringing it to the schema and dropping it takes longer than most tests that want
one. So they are lent out one after another, and emptied on return: rows, sequences, connections.
One that comes back with another schema, settings of its own, or large, is dropped. SQLite's files
are copies of one.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import asyncpg

from siderite.core.store import open_store
from siderite.core.store.migrations import migrate
from tests.support.postgres import Postgres

LARGE = 32 * 2**20
_file: list[bytes] = []
"""What SQLite makes of the schema, once that is known."""

_SCHEMA = """
SELECT md5(string_agg(c.relname || ' ' || a.attname || a.atttypid, ',' ORDER BY 1, a.attnum))
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = 'public'::regnamespace
"""
_AS_IT_WAS = f"""
SELECT ({_SCHEMA}) = $1 AND pg_database_size(current_database()) < $2 AND NOT EXISTS (
  SELECT FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase
  WHERE d.datname = current_database())
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
    """The databases of one server that are lent out.

    A connection to each is kept: one that is new learns of all tables again, which takes longer
    than to empty them.
    """

    def __init__(self, server: Postgres) -> None:
        self._server = server
        self._free: list[str] = []
        self._schema = ""
        self._runner = asyncio.Runner()
        self._connections: dict[str, asyncpg.Connection] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections.values():
            connection.terminate()
        self._runner.close()

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
        self._runner.run(_bring_up_to_date(url))
        self._schema = self._server.sql(_SCHEMA, _KEEP_FIRST_ROWS, url=url)
        return url

    def _take_back(self, url: str) -> None:
        if self._runner.run(self._emptied(url)):
            self._free.append(url)
            return
        self._connections.pop(url).terminate()
        self._server.drop_database(url)

    async def _emptied(self, url: str) -> bool:
        """Whether it can be lent again."""
        connection = await self._alone_in(url)
        if not await connection.fetchval(_AS_IT_WAS, self._schema, LARGE):
            return False
        await connection.execute(_EMPTY)
        return True

    async def _alone_in(self, url: str) -> asyncpg.Connection:
        """The only connection that there is, made anew if the test has ended it."""
        with suppress(KeyError, asyncpg.InterfaceError, asyncpg.PostgresConnectionError):
            await self._connections[url].execute(_DISCONNECT)
            return self._connections[url]
        connection = self._connections[url] = await asyncpg.connect(
            url, server_settings={"statement_timeout": "0"}
        )
        await connection.execute(_DISCONNECT)
        return connection


async def prepare_file(url: str) -> None:
    """Write a database of SQLite's that is not there yet, as it would be after a first start."""
    path = Path(url.removeprefix("sqlite:///"))
    if not url.startswith("sqlite:///") or path.exists():
        return
    if not _file:
        with TemporaryDirectory() as folder:
            made = Path(folder) / "empty.db"
            await _bring_up_to_date(f"sqlite:///{made}")
            _file.append(made.read_bytes())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_file[0])


async def _bring_up_to_date(url: str) -> None:
    store = await open_store(url)
    await migrate(store)
    await store.close()
