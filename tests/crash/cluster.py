"""Several machines, one PostgreSQL, and accidents: processes killed, a cable pulled, a restart.

Network namespaces are the machines: a database, two that answer requests, four that work, joined by
a bridge, in a namespace of this run's own. Clients lead nodes through whole lives and take each 202
as a promise. Afterwards the promises, the event log and the BMCs' own notes must agree: nothing
lost, nothing doubled, and no machine was told what to do under a lease that had been taken over.

    python -m tests.crash.cluster --nodes 60 --seconds 180        (scripts/soak; needs root)
"""

import argparse
import asyncio
import os
import random
import secrets
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from tests.crash.storm import LOG
from tests.crash.storm import STATES
from tests.crash.storm import Node
from tests.crash.storm import Storm
from tests.crash.storm import check_log
from tests.crash.storm import lead
from tests.support import postgres

PASSWORD = "a cluster's pass phrase"
SCRIPT = {
    "latency_s": {"deploy.write_image": [0.0, 1.0], "clean": [0.0, 0.5], "*": [0.0, 0.1]},
    "audit": True,
}
PORT = 8770
PATIENCE_S = 180.0


@dataclass(frozen=True, slots=True)
class Weather:
    """How large the fleet is, and how bad it gets."""

    nodes: int
    seconds: float
    seed: int
    cable: bool


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


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
            "SIDERITE_POWER_WATCH_INTERVAL_S": "0",
            "SIDERITE_LOG_LEVEL": "warning",
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

    def __init__(self, place: Path) -> None:
        self.place = place
        # The kernel ends the database with the thread that started it: one that stays.
        self.hand = ThreadPoolExecutor(1)
        ip("link", "set", "lo", "up")
        ip("link", "add", "lan", "type", "bridge")
        ip("addr", "add", "10.99.0.1/24", "dev", "lan")
        ip("link", "set", "lan", "up")
        home = place / "postgres"
        home.mkdir()
        place.chmod(0o755)
        self.database = Database(Host("db", 2), home)
        self.apis = [Member(Host(f"api{n}", 10 + n), "api", self) for n in (1, 2)]
        self.workers = [Member(Host(f"worker{n}", 20 + n), "worker", self) for n in range(1, 5)]

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

    async def token(self) -> str:
        user = {"name": "admin", "password": PASSWORD, "domain": {"id": "default"}}
        where = {"project": {"name": "admin", "domain": {"id": "default"}}}
        auth = {
            "identity": {"methods": ["password"], "password": {"user": user}},
            "scope": where,
        }
        async with httpx.AsyncClient() as client:
            url = self.urls()[0] + "/identity/v3/auth/tokens"
            return (await client.post(url, json={"auth": auth})).headers["x-subject-token"]

    def stop(self) -> dict[str, int]:
        """Clean stop of all; exit codes."""
        members = [*self.apis, *self.workers]
        for member in members:
            member.process.terminate()
        return {member.host.name: member.process.wait(90) for member in members}


async def accidents(cluster: Cluster, how: Weather, told: list[str]) -> None:
    """A kill every few seconds; one restart of the database and one pulled cable on the way."""
    began, seconds, rng = time.monotonic(), how.seconds, random.Random(how.seed)
    special = {0.3: "database", 0.6: "cable"} if how.cable else {0.3: "database"}
    while (passed := time.monotonic() - began) < seconds:
        await asyncio.sleep(rng.uniform(1.5, 4.0))
        for member in (*cluster.apis, *cluster.workers):
            member.keep_up()
        due = [when for when in special if passed / seconds >= when]
        if due and special.pop(due[0]) == "cable":
            victim = rng.choice(cluster.workers)
            told.append(f"{passed:.0f} s: cable of {victim.host.name} pulled")
            victim.host.plugged(on=False)
            await asyncio.sleep(14.0)  # longer than a lease
            victim.host.plugged(on=True)
        elif due:
            told.append(f"{passed:.0f} s: database restarted")
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(cluster.hand, cluster.database.restart)
        else:
            victim = rng.choice([*cluster.apis, *cluster.workers])
            told.append(f"{passed:.0f} s: {victim.host.name} killed")
            victim.kill()
            await asyncio.sleep(rng.uniform(0.0, 1.0))
            victim.start()


async def blow(cluster: Cluster, run: Storm, how: Weather, told: list[str]) -> None:
    """Make the fleet, and let the storm loose on it."""
    await cluster.ready()
    headers = {
        "X-Auth-Token": await cluster.token(),
        "X-OpenStack-Ironic-API-Version": "1.109",
    }
    limits = httpx.Limits(max_connections=20)
    clients = [
        httpx.AsyncClient(base_url=url, headers=headers, timeout=30, limits=limits)
        for url in cluster.urls()
    ]
    for client in clients:
        scripts = await client.put("/simulator/v1/scripts/all", json=SCRIPT)
        assert scripts.status_code == 200, scripts.text
    await asyncio.sleep(1.5)  # the others look at the script once a second
    for number in range(how.nodes):
        body = {"driver": "fake-hardware"}
        made = await clients[number % 2].post("/baremetal/v1/nodes", json=body)
        run.nodes.append(Node(made.json()["uuid"]))
    leaders = asyncio.gather(
        *(lead(run, node, clients[number % 2]) for number, node in enumerate(run.nodes))
    )
    await accidents(cluster, how, told)
    run.cycles = 0  # each node rests at its next `available`
    async with asyncio.timeout(PATIENCE_S):
        await leaders
    for client in clients:
        await client.aclose()


async def reckon(cluster: Cluster, run: Storm) -> list[str]:
    """What does not add up."""
    problems = list(run.problems)
    connection = await asyncpg.connect(cluster.database.url)
    try:
        rows = [tuple(row) for row in await connection.fetch(LOG)]
        final = {row[0]: row[1] for row in await connection.fetch(STATES)}
        left = await connection.fetch("SELECT lane, kind, reason FROM work")
    finally:
        await connection.close()
    problems += check_log(rows, final, run)
    problems += [f"work was left over: {tuple(row)}" for row in left if row[0] == "provision"]
    with sqlite3.connect(cluster.place / "simulated.db") as db:
        problems += two_at_once(db)
    return problems


def two_at_once(db: sqlite3.Connection) -> list[str]:
    """Calls to a machine under a lease, after one under a later lease: two were driving it."""
    problems = []
    seen: dict[str, list[int]] = {}
    for node, held, token in db.execute("SELECT node, held, token FROM calls ORDER BY at, rowid"):
        leases = seen.setdefault(node, [])
        if held in leases[:-1]:
            problems.append(f"{node} was told {token} under a lease that had been taken over")
        elif not leases or leases[-1] != held:
            leases.append(held)
    return problems


def cluster_storm(place: Path, how: Weather) -> tuple[Storm, list[str], list[str]]:
    """A whole storm: the run, what happened, and what does not add up."""
    cluster = Cluster(place)
    run: Any = Storm(server=None, cycles=10**9)  # type: ignore[arg-type]
    told: list[str] = []
    try:
        asyncio.run(blow(cluster, run, how, told))
        time.sleep(2.0)  # the last facts get their place
        problems = asyncio.run(reckon(cluster, run))
        codes = cluster.stop()
        # One that is just starting ends by the signal itself.
        fine = (0, -signal.SIGTERM)
        problems += [
            f"{name} ended with {code}" for name, code in codes.items() if code not in fine
        ]
    finally:
        for member in (*cluster.apis, *cluster.workers):
            member.process.kill()
        cluster.database.process.send_signal(signal.SIGQUIT)
        cluster.database.process.wait(30)
    return run, told, problems


def main() -> int:
    parser = argparse.ArgumentParser(description="Accidents on several machines.")
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--no-cable", action="store_true", help="pull no cable: it takes long")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    said = parser.parse_args()
    if not said.inside:
        # A network, a process tree and mounts of our own: all end with this process.
        command = [
            "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
            sys.executable, "-m", "tests.crash.cluster", *sys.argv[1:], "--inside",
        ]  # fmt: skip
        return subprocess.run(command, check=False).returncode
    Path("/run/netns").mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run/netns"], check=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        how = Weather(said.nodes, said.seconds, said.seed, cable=not said.no_cable)
        run, told, problems = cluster_storm(Path(place), how)
    for line in told:
        print(f"  {line}")
    print(
        f"{said.nodes} nodes, {len(told)} accidents, {len(run.promised)} promises,"
        f" seed {said.seed}, {time.monotonic() - began:.0f} s"
    )
    for problem in problems[:20]:
        print(f"  {problem}")
    print("nothing lost, nothing doubled" if not problems else f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
