"""A private PostgreSQL for tests and benchmarks, from the distribution's package.

Tests reach it through the fixtures `postgres` and `postgres_url` of tests/conftest.py. By hand,
`python -m tests.support.postgres` prints a URL and serves until Ctrl-C. Nothing is shared with a
PostgreSQL that the machine may already run: own data folder, own port, own password. Commits are
durable (fsync on), as in production, so that figures taken on it mean something; only that of the
fixtures does not wait for the disk.
"""

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.ports import free_port

REMEDY = "install it (as root: apt-get install postgresql), or run scripts/test, which does"
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0
ACCOUNT = "postgres"  # PostgreSQL refuses to run as root; Debian's package makes this account


class PostgresUnavailable(Exception):
    """PostgreSQL could not be found or started."""


@dataclass(frozen=True, slots=True)
class Postgres:
    """A running server."""

    bin: Path
    port: int
    password: str
    pid: int
    socket_dir: Path

    def url(self, database: str = "postgres") -> str:
        """The address of one database on this server."""
        return f"postgresql://siderite:{self.password}@127.0.0.1:{self.port}/{database}"

    def sql(self, *statements: str, url: str = "") -> str:
        """Run statements outside any transaction, as superuser; return what psql prints."""
        command = [str(self.bin / "psql"), url or self.url(), "--no-psqlrc", "-qAt"]
        command += [word for statement in statements for word in ("-c", statement)]
        done = subprocess.run(
            [*command, "-v", "ON_ERROR_STOP=1"], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise PostgresUnavailable(f"psql refused {statements!r}: {done.stderr.strip()}")
        return done.stdout.strip()

    def make_database(self) -> str:
        """The URL of a new, empty database."""
        name = f"t_{secrets.token_hex(6)}"
        self.sql(f"CREATE DATABASE {name} TEMPLATE template0")
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Drop it with its connections."""
        self.sql(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")

    @contextmanager
    def fresh_database(self) -> Iterator[str]:
        """Yield the URL of a new, empty database, and drop it afterwards."""
        url = self.make_database()
        try:
            yield url
        finally:
            self.drop_database(url)


@contextmanager
def running_postgres(*, durable: bool = True) -> Iterator[Postgres]:
    """Start a server in a scratch folder; stop it and remove the folder whatever happens.

    Unless `durable`, commits do not wait for the disk: what they say would not survive a power
    failure, and nothing else changes.
    """
    binaries = find_binaries()
    with scratch() as home:
        password = secrets.token_hex(12)
        init(binaries, home, password=password)
        process, port = _start(binaries, home, fsync="on" if durable else "off")
        try:
            yield Postgres(binaries, port, password, process.pid, home)
        finally:
            _stop(process)


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder that the server's account can reach, removed afterwards."""
    home = Path(tempfile.mkdtemp(prefix="siderite-pg-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(home, ACCOUNT, ACCOUNT)
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def find_binaries() -> Path:
    """The bin folder of the newest installed PostgreSQL."""
    found = [p.parent for p in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    if found:
        return max(found, key=lambda folder: [int(n) for n in re.findall(r"\d+", str(folder))])
    on_path = shutil.which("postgres")
    if on_path:
        return Path(on_path).resolve().parent
    raise PostgresUnavailable(f"PostgreSQL is not installed; {REMEDY}")


def unprivileged() -> list[str]:
    """Command prefix: not root, and stopped by the kernel should this process be killed."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise PostgresUnavailable("setpriv is missing; install util-linux")
    prefix = [setpriv, "--pdeathsig", "INT"]
    if os.geteuid() == 0:
        prefix += ["--reuid", ACCOUNT, "--regid", ACCOUNT, "--init-groups"]
    return prefix


def init(binaries: Path, home: Path, *, password: str) -> None:
    """Make a server's data folder."""
    password_file = home / "password"
    password_file.touch(mode=0o600)
    password_file.write_text(password)
    if os.geteuid() == 0:
        shutil.chown(password_file, ACCOUNT)
    done = subprocess.run(
        [
            *unprivileged(),
            binaries / "initdb",
            f"--pgdata={home / 'data'}",
            "--username=siderite",
            f"--pwfile={password_file}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ],
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise PostgresUnavailable(f"initdb failed: {done.stderr.strip()}")


def _start(binaries: Path, home: Path, *, fsync: str) -> tuple[subprocess.Popen[bytes], int]:
    """Start on a free port; another process may take it first, so try a few."""
    log = home / "log"
    for _ in range(3):
        port = free_port()
        with log.open("wb") as out:
            process = subprocess.Popen(
                [
                    *unprivileged(),
                    binaries / "postgres",
                    *("-D", home / "data", "-k", home, "-h", "127.0.0.1", "-p", str(port)),
                    *("-c", f"fsync={fsync}", "-c", "max_connections=200"),
                ],
                cwd=home,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C at the terminal is ours to pass on
            )
        if is_ready(process, home / "data" / "postmaster.pid"):
            return process, port
        _stop(process)
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
    raise PostgresUnavailable(f"PostgreSQL did not start; its last words:\n{tail}")


def is_ready(
    process: subprocess.Popen[bytes], pid_file: Path, words: Sequence[str] = ("ready",)
) -> bool:
    """Wait until the server says in its pid file (last line) that it takes connections."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            lines = pid_file.read_text().split("\n")
        except FileNotFoundError:
            lines = []
        if lines[:1] == [str(process.pid)] and lines[7:8] and lines[7].strip() in words:
            return True
        time.sleep(0.02)
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Fast shutdown, then the hard one; by the process id we started, and no other."""
    for sign in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        if process.poll() is not None:
            return
        process.send_signal(sign)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            continue


def main() -> int:
    """Serve until interrupted."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with running_postgres() as server:
            print(server.url(), flush=True)
            signal.pause()
    except KeyboardInterrupt:
        return 0
    except PostgresUnavailable as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
