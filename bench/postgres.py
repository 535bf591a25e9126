"""PostgreSQL: a throw-away cluster with default, durable settings, or one at a URL.

Every use gets a database of its own: the service, the commits of the limit, the peer.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.parse import urlunsplit

import asyncpg

from bench import load
from bench import port


class NoPostgres(Exception):
    """PostgreSQL is not installed; as root: apt-get install postgresql."""

    def __str__(self) -> str:
        return type(self).__doc__ or ""


@dataclass(frozen=True, slots=True)
class Postgres:
    """A PostgreSQL server, by the URL of a database where others may be made from."""

    url: str

    def fresh(self, name: str) -> str:
        """The URL of a new, empty database."""
        load.run(self._make(name))
        parts = urlsplit(self.url)
        return urlunsplit(parts._replace(path=f"/{name}"))

    async def _make(self, name: str) -> None:
        connection = await asyncpg.connect(self.url)
        try:
            await connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            await connection.execute(f"CREATE DATABASE {name}")
        finally:
            await connection.close()


@contextmanager
def throw_away() -> Iterator[Postgres]:
    """A cluster on a free port of the loopback, gone at the end."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs:
        raise NoPostgres
    # PostgreSQL refuses to run as root; its own user must be able to reach the place.
    place = Path(tempfile.mkdtemp(prefix="siderite-bench-pg-", dir="/var/tmp"))
    be: list[str] = []
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        os.chown(place, user.pw_uid, user.pw_gid)
        be = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]

    def call(program: str, *words: str) -> None:
        subprocess.run(
            [*be, str(programs[-1] / program), "-D", str(place / "data"), *words],
            check=True,
            cwd=place,
            stdout=subprocess.DEVNULL,
        )

    listen = port.free()
    options = f"-c listen_addresses=127.0.0.1 -c port={listen} -c unix_socket_directories={place}"
    try:
        call("initdb", "-A", "trust", "-U", "bench", "--no-instructions")
        call("pg_ctl", "start", "-w", "-l", str(place / "log"), "-o", options)
        try:
            yield Postgres(f"postgresql://bench@127.0.0.1:{listen}/postgres")
        finally:
            call("pg_ctl", "stop", "-m", "fast")
    finally:
        shutil.rmtree(place)
