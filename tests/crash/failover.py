"""The primary of a PostgreSQL dies and its replica takes its place, under processes that are busy.

Two processes answer and two work. Clients lead nodes through whole lives and take each 202 as a
promise; one follows the event stream. The primary is killed with SIGKILL; requests are told to wait
until the replica is promoted, and then everything goes on. The replica is synchronous: what was
acknowledged is there, so that promises, log and stream must agree afterwards.

    python -m tests.crash.failover --nodes 30        (scripts/soak)
"""

import argparse
import asyncio
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from tests.crash import storm
from tests.crash.cluster import follow
from tests.crash.cluster import settled
from tests.crash.lan import PASSWORD
from tests.crash.lan import Front
from tests.crash.verdict import verdict
from tests.events.test_process import log_of
from tests.support import postgres
from tests.support.ports import free_port
from tests.support.server import clean_environment

PATIENCE_S = 180.0
SCRIPT = {"latency_s": {"deploy.write_image": [0.0, 0.5], "*": [0.0, 0.1]}, "audit": True}


class Pair:
    """A primary and its synchronous replica."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._bin = postgres.find_binaries()
        self._password = secrets.token_hex(8)
        self._ports = (free_port(), free_port())
        postgres.init(self._bin, home, password=self._password)
        self.primary = self._start("data", self._ports[0], "synchronous_standby_names=*")
        self._copy()
        self.replica = self._start("copy", self._ports[1], "hot_standby=on")

    @property
    def url(self) -> str:
        """Both; whoever connects finds the one that takes writes."""
        places = ",".join(f"127.0.0.1:{port}" for port in self._ports)
        return f"postgresql://siderite:{self._password}@{places}/postgres"

    @property
    def promoted_url(self) -> str:
        return f"postgresql://siderite:{self._password}@127.0.0.1:{self._ports[1]}/postgres"

    def _copy(self) -> None:
        command = [
            *postgres.unprivileged(), self._bin / "pg_basebackup", "-D", self._home / "copy",
            "-h", "127.0.0.1", "-p", str(self._ports[0]), "-U", "siderite", "-R", "-X", "stream",
            "--checkpoint=fast", "--no-sync",
        ]  # fmt: skip
        environment = {**os.environ, "PGPASSWORD": self._password}
        done = subprocess.run(
            command, env=environment, cwd=self._home, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def _start(self, folder: str, port: int, setting: str) -> "subprocess.Popen[bytes]":
        words = ("-D", self._home / folder, "-k", self._home, "-p", str(port), "-c", setting)
        with (self._home / "log").open("ab") as out:
            process = subprocess.Popen(
                [*postgres.unprivileged(), self._bin / "postgres", *words, "-h", "127.0.0.1"],
                cwd=self._home, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip
        ready = (self._home / folder / "postmaster.pid", ("ready", "standby"))
        assert postgres.is_ready(process, *ready), (self._home / "log").read_text()[-2000:]
        return process

    def kill_primary(self) -> None:
        """Without a word to anyone."""
        os.killpg(self.primary.pid, signal.SIGKILL)
        self.primary.wait(30)

    def promote(self) -> None:
        """The replica becomes the primary."""
        command = [*postgres.unprivileged(), self._bin / "pg_ctl", "promote", "-w"]
        subprocess.run(
            [*command, "-D", self._home / "copy"], cwd=self._home, check=True, capture_output=True
        )

    def close(self) -> None:
        for process in (self.primary, self.replica):
            if process.poll() is None:
                process.send_signal(signal.SIGQUIT)
                process.wait(30)


@dataclass
class Members:
    """The processes of the service."""

    apis: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    """By their URLs."""
    workers: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    @property
    def all(self) -> list["subprocess.Popen[bytes]"]:
        return [*self.apis.values(), *self.workers]


@contextmanager
def service(place: Path, db: str, source: str = "") -> Iterator[Members]:
    """Two processes that answer and two that work; ended whatever happens.

    `source` is the folder of another version of the program.
    """
    members = Members()
    name = "other" if source else "ours"
    try:
        for n in (1, 2):
            port = free_port()
            words = ("api", "--listen", f"127.0.0.1:{port}")
            made = _spawn(place, db, f"{name}-api{n}", words, source)
            members.apis[f"http://127.0.0.1:{port}"] = made
        members.workers += [
            _spawn(place, db, f"{name}-worker{n}", ("worker",), source) for n in (1, 2)
        ]
        yield members
    finally:
        for process in members.all:
            process.kill()
            process.wait()


def _spawn(
    place: Path, db: str, name: str, words: tuple[str, ...], source: str
) -> "subprocess.Popen[bytes]":
    options = {
        "SIDERITE_ADMIN_PASSWORD": PASSWORD, "SIDERITE_HOST": name, "SIDERITE_DB": db,
        "SIDERITE_SIMULATED_DB": str(place / "simulated.db"), "SIDERITE_COMPUTE_ENDPOINT": "",
        "SIDERITE_POWER_WATCH_INTERVAL_S": "0", "SIDERITE_LOG_LEVEL": "warning",
    }  # fmt: skip
    if source:
        options["PYTHONPATH"] = source
    run = "import sys; from siderite.cli.main import main; sys.exit(main())"
    with (place / f"{name}.log").open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-c", run, *words, "--data", place / name],
            env=clean_environment() | options, stdout=out, stderr=out,
        )  # fmt: skip


@dataclass
class Seen:
    """What came of it."""

    run: storm.Storm
    waits: list[str] = field(default_factory=list)
    """What Retry-After said while there was no primary."""
    stream: list[dict[str, Any]] = field(default_factory=list)
    away_s: float = 0.0
    problems: list[str] = field(default_factory=list)


async def blow(pair: Pair, members: Members, nodes: int) -> Seen:
    """Lead nodes through lives while the replica takes over; what was seen."""
    urls = list(members.apis)
    await ready(urls)
    front = Front(urls[0])
    front.ask("PUT", "/simulator/v1/scripts/all", SCRIPT)
    seen = Seen(storm.Storm(server=None, cycles=10**9))  # type: ignore[arg-type]
    for _ in range(nodes):
        made = front.ask("POST", "/baremetal/v1/nodes", {"driver": "fake-hardware"})
        seen.run.nodes.append(storm.Node(made.json()["uuid"]))
    clients = [
        httpx.AsyncClient(base_url=url, headers=front.headers("1.109"), timeout=30, trust_env=False)
        for url in urls
    ]
    reader = asyncio.create_task(follow(urls, front.headers(), seen.stream))
    leaders = asyncio.gather(
        *(storm.lead(seen.run, node, clients[n % 2]) for n, node in enumerate(seen.run.nodes))
    )
    async with asyncio.timeout(PATIENCE_S):
        await cycled(seen.run)
        await _fail_over(pair, clients, seen)
        await cycled(seen.run)
        seen.run.cycles = 0  # each node rests at its next `available`
        await leaders
        await settled(pair.promoted_url)
        log = log_of(front)
        while len(seen.stream) < len(log):
            await asyncio.sleep(0.1)
    reader.cancel()
    front.api.close()
    for client in clients:
        await client.aclose()
    if seen.stream != log:
        seen.problems.append("the stream is not the log")
    return seen


async def _fail_over(pair: Pair, clients: list[httpx.AsyncClient], seen: Seen) -> None:
    """Kill the primary, be told to wait, promote; how long it took until all answer again."""
    pair.kill_primary()
    for client in clients:
        for _ in range(5):
            reply = await client.get("/baremetal/v1/nodes")
            if reply.status_code != 503:
                seen.problems.append(f"without a primary: {reply.status_code} {reply.text}")
            seen.waits.append(reply.headers.get("retry-after", ""))
            await asyncio.sleep(0.1)
    pair.promote()
    began = time.monotonic()
    for client in clients:
        while (await client.get("/baremetal/v1/nodes")).status_code == 503:
            await asyncio.sleep(0.05)
    seen.away_s = time.monotonic() - began


async def cycled(run: storm.Storm) -> None:
    """Every node has been through a cycle since."""
    for node in run.nodes:
        node.cycles = 0
    while not all(node.cycles for node in run.nodes):
        await asyncio.sleep(0.05)


async def ready(urls: list[str]) -> None:
    async with httpx.AsyncClient(trust_env=False) as client, asyncio.timeout(120):
        for url in urls:
            while True:
                try:
                    if (await client.get(url + "/healthz")).status_code == 200:
                        break
                except httpx.TransportError:
                    await asyncio.sleep(0.1)


async def reckon(pair: Pair, seen: Seen, place: Path) -> list[str]:
    """What does not add up."""
    connection = await asyncpg.connect(pair.promoted_url)
    rows = [tuple(row) for row in await connection.fetch(storm.LOG)]
    final = {row[0]: row[1] for row in await connection.fetch(storm.STATES)}
    await connection.close()
    problems = seen.problems + seen.run.problems + storm.check_log(rows, final, seen.run)
    if set(seen.waits) != {"2"}:
        problems.append(f"Retry-After was {sorted(set(seen.waits))}")
    for log in place.glob("*.log"):
        if "Traceback" in log.read_text():
            problems.append(f"{log.name} has a traceback: {log.read_text()[-1500:]}")
    return problems


def fail_over(nodes: int) -> tuple[Seen, list[str]]:
    """All of it; what was seen and what does not add up."""
    with ExitStack() as stack:
        # Whoever starts the databases must outlive them.
        stack.enter_context(ThreadPoolExecutor(1))
        home = stack.enter_context(postgres.scratch())
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        pair = Pair(home)
        stack.callback(pair.close)
        members = stack.enter_context(service(place, pair.url))
        seen = asyncio.run(blow(pair, members, nodes))
        problems = asyncio.run(reckon(pair, seen, place))
        for process in members.all:
            process.terminate()
        codes = [process.wait(90) for process in members.all]
        return seen, problems + [f"a process ended with {code}" for code in codes if code]


def main() -> int:
    parser = argparse.ArgumentParser(description="A replica takes the place of a dead primary.")
    parser.add_argument("--nodes", type=int, default=30)
    said = parser.parse_args()
    began = time.monotonic()
    seen, problems = fail_over(said.nodes)
    what = (
        f"{said.nodes} nodes, {len(seen.run.promised)} promises, {len(seen.stream)} events;"
        f" all answered {seen.away_s:.1f} s after the promotion, {time.monotonic() - began:.0f} s"
    )
    return verdict(what, problems)


if __name__ == "__main__":
    raise SystemExit(main())
