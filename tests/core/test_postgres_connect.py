"""Finding the server that takes writes, among those that refuse, are silent or replicas."""

import asyncio
import socket
import time
import traceback

import asyncpg
import pytest

from siderite.core.errors import Unavailable
from siderite.core.store import Op
from siderite.core.store import open_store
from siderite.core.store import postgres_connect
from siderite.core.store.postgres_connect import Connector
from siderite.core.store.postgres_connect import servers
from tests.support.ports import free_port


@pytest.mark.parametrize(
    ("url", "each"),
    [
        ("postgresql://u:p@a/db", ["postgresql://u:p@a/db"]),
        (
            "postgresql://u:p@a:1,[::1]:2/db?x=y",
            ["postgresql://u:p@a:1/db?x=y", "postgresql://u:p@[::1]:2/db?x=y"],
        ),
        ("postgresql://a,b/db", ["postgresql://a/db", "postgresql://b/db"]),
        ("postgresql:///db?host=/run", ["postgresql:///db?host=/run"]),
    ],
)
def test_a_url_may_name_several_servers(url, each):
    assert servers(url) == each


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3c#ret@127.0.0.1:1/x",
        "postgresql://me:s3c/ret@127.0.0.1:1/x",
        "postgresql://me:s3c?ret@127.0.0.1:1/x",
        "postgresql://me:s3c[ret@127.0.0.1:1/x",
        "postgresql://me:12#s3cret@127.0.0.1:1/x",
        "postgresql://me:s3cret@127.0.0.1:1,127.0.0.1:port/x",
        "postgresql://me:s3cret@127.0.0.1:1/x?sslmode=perhaps",
        "host=127.0.0.1 user=me password=s3cret",
        "s3cret@127.0.0.1/x",
    ],
)
def test_a_url_that_cannot_be_is_said_without_its_password(url):
    with pytest.raises(RuntimeError) as said:
        asyncio.run(open_store(url))
    assert "s3c" not in "".join(traceback.format_exception(said.value)).replace(url, "")
    assert "s3c" not in str(said.value)
    assert "db" in str(said.value)


def _among(url, port):
    """The same database behind a server that is asked first."""
    account, _, rest = url.partition("@")
    return f"{account}@127.0.0.1:{port},{rest}"


def test_a_server_that_refuses_is_passed_by(postgres_url):
    async def story():
        store = await open_store(_among(postgres_url, free_port()))
        assert (await store.fetch("SELECT 1"))[0][0] == 1
        await store.close()

    asyncio.run(story())


def test_a_server_that_is_silent_holds_up_nobody(postgres_url, monkeypatch):
    """As a machine without power is: it does not even refuse."""
    monkeypatch.setattr(postgres_connect, "TIMEOUT_S", 60.0)

    async def story(port):
        began = time.monotonic()
        store = await open_store(_among(postgres_url, port))
        rows = await asyncio.gather(*(store.fetch("SELECT 1") for _ in range(12)))
        assert [row[0][0] for row in rows] == [1] * 12
        assert time.monotonic() - began < 30.0
        await store.close()

    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and says nothing
        asyncio.run(story(silent.getsockname()[1]))


def test_a_server_that_takes_no_writes_is_not_the_one(postgres, postgres_url):
    async def story():
        store = await open_store(postgres_url)
        database = postgres_url.rpartition("/")[2]
        await store.fetch(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
        try:
            store.pool.expire()
            with pytest.raises(Unavailable):
                await store.fetch("SELECT 1")
        finally:
            postgres.sql(
                "SET default_transaction_read_only = off",
                f"ALTER DATABASE {database} RESET default_transaction_read_only",
                url=postgres.url(),
            )
        async with asyncio.timeout(20):
            while True:
                try:
                    assert (await store.fetch("SELECT 1"))[0][0] == 1
                    break
                except Unavailable:
                    await asyncio.sleep(0.1)
        await store.close()

    asyncio.run(story())


def test_connections_notice_when_the_other_end_falls_silent(postgres_url):
    async def story():
        store = await open_store(postgres_url)
        async with store.pool.acquire() as connection:
            used = connection._transport.get_extra_info("socket")
            assert used.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert used.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 8000
        await store.close()

    asyncio.run(story())


def test_whoever_asks_just_after_a_failure_gets_the_same_at_once(monkeypatch):
    asked = []

    async def connect(url, **_):
        asked.append(url)
        raise ConnectionRefusedError

    monkeypatch.setattr(asyncpg, "connect", connect)

    async def story():
        connector = Connector("postgresql://a,b/x")
        for _ in range(3):
            with pytest.raises(ConnectionRefusedError):
                await connector.connect()

    asyncio.run(story())
    assert asked == ["postgresql://a/x", "postgresql://b/x"]


def test_documents_are_compressed_in_the_quick_way(postgres_url):
    async def story():
        store = await open_store(postgres_url)
        async with store.pool.acquire() as connection:
            await connection.execute("CREATE TABLE documents (doc TEXT)")
        await store.commit([Op("INSERT INTO documents VALUES (?)", ("a" * 5000,), 1)])
        found = await store.fetch("SELECT pg_column_compression(doc) FROM documents")
        await store.close()
        return found[0][0]

    assert asyncio.run(story()) == "lz4"


def test_a_stricter_isolation_that_the_owner_has_set_refuses_us_nothing(postgres, postgres_url):
    name = postgres_url.rpartition("/")[2]
    postgres.sql(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
    sql = "UPDATE counts SET n = n + 1 RETURNING n"

    async def story():
        stores = [await open_store(postgres_url) for _ in range(2)]
        await stores[0].write("CREATE TABLE counts AS SELECT 0 AS n")
        for _ in range(5):
            await asyncio.gather(*(store.write(sql) for store in stores for _ in range(10)))
        assert [tuple(row) for row in await stores[0].fetch("SELECT n FROM counts")] == [(100,)]
        for store in stores:
            await store.close()

    asyncio.run(story())
