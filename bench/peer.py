"""Ironic as a subject: from PyPI, all-in-one, in an environment of its own (`bench/.peer`).

Settings favour it where there is a choice: no authentication, no notifications, no power sync in
the background, warnings only in its log. It is stocked by a bulk insert, since its API would take
minutes.
"""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from bench import child
from bench import load
from bench import port
from bench.address import Address
from bench.capture import Answer
from bench.fleet import Fleet
from bench.subject import Running

HOME = Path(__file__).with_name(".peer")
_PINS = Path(__file__).parent.with_name("requirements") / "peer.txt"
_INTERFACES = (
    *("bios", "boot", "console", "deploy", "firmware", "inspect"),
    *("management", "power", "raid", "rescue", "vendor"),
)


def install() -> None:
    """Make the environment, unless it already holds what the pins say."""
    stamp = HOME / "installed.txt"
    pins = _PINS.read_text()
    if stamp.is_file() and stamp.read_text() == pins:
        return
    print("installing Ironic into bench/.peer", file=sys.stderr)
    # Debian's Python may lack what puts pip into a new environment: ours works on it from outside.
    subprocess.run(
        [sys.executable, "-m", "venv", "--clear", "--without-pip", str(HOME)], check=True
    )
    pip = [sys.executable, "-m", "pip", "--python", str(HOME / "bin/python"), "--quiet"]
    options = ["--root-user-action=ignore", "--disable-pip-version-check", "--require-hashes"]
    subprocess.run([*pip, "install", *options, "-r", str(_PINS)], check=True)
    stamp.write_text(pins)


@dataclass(frozen=True, slots=True)
class Ironic:
    """The peer; every start goes on with the same database."""

    place: Path
    db_url: str | None = None

    @property
    def title(self) -> str:
        """What the table calls it, with its version."""
        found = next(HOME.glob("lib/python*/site-packages/ironic-*.dist-info"), None)
        return f"Ironic {found.name.split('-')[1].removesuffix('.dist')}" if found else "Ironic"

    def start(self) -> Running:
        """The `ironic` executable: API and conductor in one process."""
        address = Address("127.0.0.1", port.free())
        config = self.place / "ironic.conf"
        config.write_text(self._config(address.port))
        with_config = ["--config-file", str(config)]
        made = self.place / "schema-made"
        if not made.exists():
            log = (self.place / "schema.log").open("ab")
            with log:
                subprocess.run(
                    [str(HOME / "bin/ironic-dbsync"), *with_config, "create_schema"],
                    check=True,
                    stdout=log,
                    stderr=log,
                )
            made.touch()
        command = [str(HOME / "bin/ironic"), *with_config]
        return Running(address, child.start(command, address, "/v1", log=self.place / "out.log"))

    def stock(self, running: Running, fleet: Fleet) -> None:
        """Make one node through the API and the others as copies of its row."""
        Answer.taken(running.address, fleet.create(0))
        copies = [(fleet.uuid(n), fleet.node_name(n)) for n in range(1, fleet.size)]
        if self.db_url is None:
            with closing(sqlite3.connect(self.place / "ironic.sqlite", timeout=60)) as db, db:
                columns = [row[1] for row in db.execute("PRAGMA table_info(nodes)")]
                db.executemany(_copy(columns, fleet.uuid(0), "?", "?"), copies)
        else:
            load.run(self._stock_postgres(self.db_url, fleet, copies))

    async def _stock_postgres(self, url: str, fleet: Fleet, copies: list[tuple[str, str]]) -> None:
        db = await asyncpg.connect(url)
        try:
            rows = await db.fetch(
                "SELECT column_name FROM information_schema.columns WHERE table_name = 'nodes'"
            )
            columns = [row["column_name"] for row in rows]
            await db.executemany(_copy(columns, fleet.uuid(0), "$1", "$2"), copies)
        finally:
            await db.close()

    def _config(self, listen: int) -> str:
        db = self.db_url or f"sqlite:///{self.place / 'ironic.sqlite'}"
        return "\n".join(
            _lines(self.place, listen, db.replace("postgresql:", "postgresql+psycopg2:"))
        )


def _copy(columns: list[str], uuid: str, new_uuid: str, new_name: str) -> str:
    """SQL that copies a node's row under another id and name."""
    rest = ", ".join(name for name in columns if name not in {"id", "uuid", "name"})
    return (
        f"INSERT INTO nodes (uuid, name, {rest}) "
        f"SELECT {new_uuid}, {new_name}, {rest} FROM nodes WHERE uuid = '{uuid}'"
    )


def _lines(place: Path, listen: int, db: str) -> Iterator[str]:
    yield "[DEFAULT]"
    yield "auth_strategy = noauth"
    yield "rpc_transport = none"
    yield "host = bench"
    yield "my_ip = 127.0.0.1"
    yield f"state_path = {place}"
    yield f"log_file = {place}/ironic.log"
    yield "default_log_levels = ironic=WARNING"
    yield "enabled_hardware_types = fake-hardware"
    yield "enabled_network_interfaces = noop"
    yield "enabled_storage_interfaces = noop"
    for interface in _INTERFACES:
        yield f"enabled_{interface}_interfaces = fake"
    yield "[api]"
    yield "host_ip = 127.0.0.1"
    yield f"port = {listen}"
    yield "[conductor]"
    yield "automated_clean = true"
    yield "sync_power_state_interval = 0"
    yield "max_concurrent_clean = 1000"
    yield "heartbeat_timeout = 3600"  # it stands still while others are measured
    yield "[database]"
    yield f"connection = {db}"
    yield "[nova]"
    yield "send_power_notifications = false"
