"""The private PostgreSQL itself."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from tests.support.lending import Lending
from tests.support.postgres import Postgres
from tests.support.postgres import PostgresUnavailable
from tests.support.postgres import find_binaries
from tests.support.postgres import running_postgres

ROOT = Path(__file__).resolve().parents[2]


async def _ask(url: str, question: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(question)
    finally:
        await connection.close()


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"


def _wait_until_gone(pid: int) -> bool:
    deadline = time.monotonic() + 20
    while not _gone(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return _gone(pid)


def test_each_test_gets_an_empty_database(postgres: Postgres) -> None:
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    with postgres.fresh_database() as first, postgres.fresh_database() as second:
        asyncio.run(_ask(first, "CREATE TABLE node (id int)"))
        assert asyncio.run(_ask(first, tables)) == 1
        assert asyncio.run(_ask(second, tables)) == 0


def test_a_database_is_dropped_even_when_the_test_fails(postgres: Postgres) -> None:
    with pytest.raises(ZeroDivisionError), postgres.fresh_database() as url:
        raise ZeroDivisionError
    name = url.rsplit("/", 1)[1]
    assert postgres.sql(f"SELECT count(*) FROM pg_database WHERE datname = '{name}'") == "0"


@pytest.fixture
def lending(postgres: Postgres) -> Iterator[Lending]:
    """One of the test's own: a database that has grown too large elsewhere would not come back."""
    with Lending(postgres) as lending:
        yield lending


def test_a_lent_database_comes_back_with_its_schema_and_without_rows(lending: Lending) -> None:
    with lending.database() as url:
        schema = asyncio.run(_ask(url, "SELECT count(*) FROM migrations"))
        asyncio.run(_ask(url, "INSERT INTO leases VALUES ('sweep', 'me', 1)"))
        asyncio.run(_ask(url, "UPDATE event_head SET seq = 7"))
        asyncio.run(_ask(url, "SELECT nextval('events_id_seq')"))
    with lending.database() as again:
        assert again == url
        assert asyncio.run(_ask(url, "SELECT count(*) FROM migrations")) == schema
        assert asyncio.run(_ask(url, "SELECT count(*) FROM leases")) == 0
        assert asyncio.run(_ask(url, "SELECT seq FROM event_head")) == 0
        assert asyncio.run(_ask(url, "SELECT nextval('events_id_seq')")) == 1
        asyncio.run(_ask(url, "ALTER TABLE leases ADD COLUMN spoilt int"))
    with lending.database() as another:
        assert another != url


def test_a_lent_database_comes_back_whatever_became_of_its_connections(lending: Lending) -> None:
    end_all = (
        "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    with lending.database() as url:
        assert asyncio.run(_ask(url, end_all)) == 0
    for _ in range(2):
        with lending.database() as again:
            assert again == url
            assert asyncio.run(_ask(url, "SELECT count(*) FROM leases")) == 0
            asyncio.run(_ask(url, "INSERT INTO leases VALUES ('sweep', 'me', 1)"))
            assert asyncio.run(_ask(url, end_all)) == 1, "that which empties it"


def test_a_wrong_password_is_refused(postgres: Postgres) -> None:
    url = postgres.url().replace(postgres.password, "guess")
    with pytest.raises(asyncpg.InvalidPasswordError):
        asyncio.run(_ask(url, "SELECT 1"))


def test_a_missing_postgresql_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "glob", lambda *_: iter(()))
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(PostgresUnavailable, match="apt-get install postgresql"):
        find_binaries()


@pytest.mark.sampled
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_server_ends_with_the_program_that_started_it(sign: signal.Signals) -> None:
    program = [sys.executable, "-m", "tests.support.postgres"]
    with subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        url = parent.stdout.readline().strip()
        shown = asyncio.run(_ask(url, "SHOW data_directory"))
        pid_file = Path(str(shown)) / "postmaster.pid"
        server = int(pid_file.read_text().split("\n", 1)[0])
        parent.send_signal(sign)
        parent.wait(20)
    assert _wait_until_gone(server)
    if sign is signal.SIGKILL:  # nobody was left to sweep
        shutil.rmtree(pid_file.parents[1], ignore_errors=True)
    assert not pid_file.parents[1].exists()


@pytest.mark.serial
def test_a_server_is_ready_within_ten_seconds_durable_and_gone_afterwards() -> None:
    began = time.monotonic()
    with running_postgres() as server:
        assert time.monotonic() - began < 10
        assert not _gone(server.pid)
        assert asyncio.run(_ask(server.url(), "SHOW fsync")) == "on"
        assert asyncio.run(_ask(server.url(), "SHOW synchronous_commit")) == "on"
    assert _gone(server.pid)
    assert not server.socket_dir.exists()
