"""PostgreSQL behind PgBouncer."""

import asyncio
import os
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from siderite.core.store import Op
from siderite.core.store import open_store
from siderite.core.store.migrations import migrate
from tests.support.ports import free_port

PROGRAM = "/usr/sbin/pgbouncer"
START_S = 30.0


@contextmanager
def pooled(url, mode):
    """The same database through a pool."""
    real, port = urlsplit(url), free_port()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "users").write_text(f'"{real.username}" "{real.password}"\n')
        (place / "ini").write_text(
            f"[databases]\n* = host={real.hostname} port={real.port}\n[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {port}\npool_mode = {mode}\n"
            f"auth_type = plain\nauth_file = {place}/users\nunix_socket_dir =\n"
        )
        place.chmod(0o755)
        who = ["--user", "postgres"] if os.geteuid() == 0 else []
        with (place / "log").open("ab") as log:
            process = subprocess.Popen([PROGRAM, *who, str(place / "ini")], stdout=log, stderr=log)
        try:
            _until_it_listens(port)
            yield real._replace(netloc=f"{real.username}:{real.password}@127.0.0.1:{port}").geturl()
        finally:
            process.terminate()
            process.wait()


def _until_it_listens(port):
    until = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
        except OSError:
            assert time.monotonic() < until
            time.sleep(0.02)
        else:
            return


def test_a_pool_that_gives_out_sessions_is_as_good_as_the_server(postgres_url):
    async def story(url):
        store = await open_store(url)
        await migrate(store)
        heard = asyncio.Event()
        listening = asyncio.create_task(store.listen({"word": heard.set}))
        async with asyncio.timeout(30.0):
            await heard.wait()
            heard.clear()
            store.signal("word")
            await heard.wait()
        taken = Op("INSERT INTO leases (name, owner, until) VALUES (?, ?, ?)", ("a", "b", 1.0), 1)
        await store.commit([taken])
        assert await store.fetch("SELECT owner FROM leases WHERE name = ?", ("a",)) == [("b",)]
        listening.cancel()
        await store.close()

    with pooled(postgres_url, "session") as url:
        asyncio.run(story(url))


def test_a_pool_that_mixes_sessions_up_is_refused_with_the_remedy(postgres_url):
    with (
        pooled(postgres_url, "transaction") as url,
        pytest.raises(RuntimeError, match="pool_mode = session"),
    ):
        asyncio.run(open_store(url))
