"""Machines for a cluster, in network namespaces: a database, some that answer requests, some that
work, each with a cable to one bridge. Whoever makes them is in a network namespace of its own.
"""

import asyncio
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

import httpx

from tests.support import postgres

PASSWORD = "a cluster's pass phrase"
PORT = 8770
HERE = "10.99.0.1"
"""The bridge's own address: clients are here, and the message broker."""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def lay_bridge() -> None:
    """What all cables lead to."""
    ip("link", "set", "lo", "up")
    ip("link", "add", "lan", "type", "bridge")
    ip("addr", "add", f"{HERE}/24", "dev", "lan")
    ip("link", "set", "lan", "up")


class Host:
    """A machine: a namespace with a cable to the bridge."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.address = f"10.99.0.{number}"
        self.inside = ["ip", "netns", "exec", name]
        ip("netns", "add", name)
        ip("link", "add", f"to-{name}", "type", "veth", "peer", "name", "lan0", "netns", name)
        ip("link", "set", f"to-{name}", "master", "lan", "up")
        for words in (
            ("addr", "add", f"{self.address}/24", "dev", "lan0"),
            ("link", "set", "lan0", "up"),
            ("link", "set", "lo", "up"),
        ):
            ip("-n", name, *words)

    def plugged(self, *, on: bool) -> None:
        """Pull the cable, or put it back."""
        ip("link", "set", f"to-{self.name}", "up" if on else "down")


class Database:
    """PostgreSQL on a machine of its own."""

    def __init__(self, host: Host, home: Path) -> None:
        self.host = host
        self._home = home
        self._bin = postgres.find_binaries()
        self._password = secrets.token_hex(8)
        shutil.chown(home, postgres.ACCOUNT, postgres.ACCOUNT)
        postgres.init(self._bin, home, password=self._password)
        with (home / "data" / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 10.99.0.0/24 scram-sha-256\n")
        self.process = self.start()

    @property
    def url(self) -> str:
        return f"postgresql://siderite:{self._password}@{self.host.address}/postgres"

    def start(self) -> "subprocess.Popen[bytes]":
        command = [
            *self.host.inside, *postgres.unprivileged(), self._bin / "postgres",
            "-D", self._home / "data", "-k", self._home, "-h", "*",
            "-c", "max_connections=200",
        ]  # fmt: skip
        with (self._home / "log").open("ab") as out:
            process = subprocess.Popen(command, cwd=self._home, stdout=out, stderr=out)
        deadline = time.monotonic() + 60
        ready = [self._bin / "pg_isready", "-q", "-h", self.host.address]
        while subprocess.run(ready, check=False).returncode:
            assert time.monotonic() < deadline, (self._home / "log").read_text()[-2000:]
            time.sleep(0.05)
        return process

    def restart(self) -> None:
        """As after a power failure."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(30)
        time.sleep(1.0)
        self.process = self.start()


@dataclass
class Member:
    """A process of the service, on a machine."""

    host: Host
    word: str
    cluster: "Cluster"
    process: "subprocess.Popen[bytes]" = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        data = self.cluster.place / self.host.name
        listen = ["--listen", f"{self.host.address}:{PORT}"] if self.word == "api" else []
        program = Path(sys.executable).with_name("siderite")
        environment = {
            **os.environ,
            "SIDERITE_ADMIN_PASSWORD": PASSWORD,
            "SIDERITE_HOST": self.host.name,
            "SIDERITE_SIMULATED_DB": str(self.cluster.place / "simulated.db"),
            "SIDERITE_IMAGE_DIR": str(self.cluster.place / "images"),
            "SIDERITE_LOG_LEVEL": "warning",
            **{f"SIDERITE_{name.upper()}": text for name, text in self.cluster.options.items()},
        }
        with (self.cluster.place / f"{self.host.name}.log").open("ab") as out:
            self.process = subprocess.Popen(
                [*self.host.inside, program, self.word, "--data", data,
                 "--db", self.cluster.database.url, *listen],
                env=environment, stdout=out, stderr=out,
            )  # fmt: skip

    def keep_up(self) -> None:
        """Start it again if it has ended, as an init system does: at its start it needs the
        database.
        """
        if self.process.poll() is not None:
            self.start()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Cluster:
    """All of it."""

    def __init__(self, place: Path, options: Mapping[str, str], *, apis: int, workers: int) -> None:
        self.place = place
        self.options = options
        # The kernel ends the database with the thread that started it: one that stays.
        self.hand = ThreadPoolExecutor(1)
        home = place / "postgres"
        home.mkdir()
        place.chmod(0o755)
        self.database = Database(Host("db", 2), home)
        self.apis = [Member(Host(f"api{n}", 10 + n), "api", self) for n in range(1, apis + 1)]
        self.workers = [
            Member(Host(f"worker{n}", 20 + n), "worker", self) for n in range(1, workers + 1)
        ]

    def urls(self) -> list[str]:
        return [f"http://{member.host.address}:{PORT}" for member in self.apis]

    async def ready(self) -> None:
        async with httpx.AsyncClient() as client, asyncio.timeout(60):
            for url in self.urls():
                while True:
                    try:
                        if (await client.get(url + "/healthz")).status_code == 200:
                            break
                    except httpx.TransportError:
                        await asyncio.sleep(0.1)

    def front(self) -> "Front":
        """A client of the first that answers requests."""
        return Front(self.urls()[0])

    def stop(self) -> dict[str, int]:
        """Clean stop of all; exit codes."""
        members = [*self.apis, *self.workers]
        for member in members:
            member.process.terminate()
        return {member.host.name: member.process.wait(90) for member in members}


class Front:
    """A client as `tests.support.server.Server` is one: an address, and the administrator."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.api = httpx.Client(base_url=url, timeout=60.0, trust_env=False)
        user = {"name": "admin", "password": PASSWORD, "domain": {"id": "default"}}
        where = {"project": {"name": "admin", "domain": {"id": "default"}}}
        identity = {"methods": ["password"], "password": {"user": user}}
        asked = {"auth": {"identity": identity, "scope": where}}
        reply = self.api.post("/identity/v3/auth/tokens", json=asked)
        self._token = reply.raise_for_status().headers["x-subject-token"]

    def headers(self, version: str | None = None) -> dict[str, str]:
        """What its requests carry, with a bare metal API version if named."""
        known = {"X-Auth-Token": self._token}
        return known if version is None else known | {"X-OpenStack-Ironic-API-Version": version}

    def ask(self, method: str, path: str, body: Any) -> httpx.Response:
        """A request that must be granted."""
        reply = self.api.request(method, path, json=body, headers=self.headers("1.109"))
        return reply.raise_for_status()
