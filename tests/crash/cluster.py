"""Several machines, one PostgreSQL, and accidents: processes killed, a cable pulled, a restart.

Network namespaces are the machines: a database, two that answer requests, four that work, joined by
a bridge, in a namespace of this run's own. Clients lead nodes through whole lives and servers
through mixed actions, and take each 202 as a promise; others follow the event stream and the
message bus. Afterwards the promises, the event log, what was heard of it and the BMCs' own notes
must agree: nothing lost, nothing doubled, and no machine was told what to do under a lease that had
been taken over.

    python -m tests.crash.cluster --nodes 60 --servers 20 --seconds 180    (scripts/soak; as root)
"""

import argparse
import asyncio
import itertools
import json
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import ExitStack
from contextlib import closing
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from tests.crash import bus_storm
from tests.crash import server_storm
from tests.crash import storm
from tests.crash.lan import HERE
from tests.crash.lan import Cluster
from tests.crash.lan import Front
from tests.crash.lan import lay_bridge
from tests.crash.verdict import verdict
from tests.events.listening import Heard
from tests.events.listening import listening
from tests.events.log import ADDRESS
from tests.events.log import Parser
from tests.events.test_process import log_of
from tests.support.rabbitmq import TOPICS
from tests.support.rabbitmq import Rabbit
from tests.support.rabbitmq import running_rabbitmq

SCRIPT = {
    "latency_s": {"deploy.write_image": [0.0, 1.0], "clean": [0.0, 0.5], "*": [0.0, 0.1]},
    "audit": True,
}
OPTIONS = {
    "power_watch_interval_s": "0", "compute_endpoint": "",
    "quota_instances": "-1", "quota_cores": "-1", "quota_ram_mib": "-1",
}  # fmt: skip
PATIENCE_S = 240.0
FOR_EVER = 10**9


@dataclass(frozen=True, slots=True)
class Weather:
    """How large the fleet is, and how bad it gets."""

    nodes: int
    servers: int
    seconds: float
    seed: int
    cable: bool
    apis: int
    workers: int


@dataclass
class Run:
    """What is led through the accidents, and who follows."""

    iron: storm.Storm
    stars: server_storm.Storm
    told: list[str] = field(default_factory=list)
    """The accidents."""
    stream: list[dict[str, Any]] = field(default_factory=list)
    """The event log as a reader of the stream got it."""

    @property
    def promises(self) -> int:
        return len(self.iron.promised) + len(self.stars.promised)


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
            await asyncio.sleep(14.0)  # longer than a lease; its machines it still reaches
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


async def follow(urls: list[str], headers: dict[str, str], events: list[dict[str, Any]]) -> None:
    """A reader of the stream that remembers one number, and asks the next when one is away."""
    async with httpx.AsyncClient(timeout=10, trust_env=False) as client:
        for url in itertools.cycle(urls):
            known = headers | {"Accept": "text/event-stream"}
            if events:
                known["Last-Event-ID"] = str(events[-1]["seq"])
            try:
                async with client.stream("GET", url + ADDRESS, headers=known) as answer:
                    parser = Parser()
                    async for line in answer.aiter_lines():
                        if answer.status_code != 200:
                            break
                        event = parser.line(line)
                        if event is not None and event.data:
                            events.append(json.loads(event.data))
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.1)


def prepare(cluster: Cluster, front: Front, run: Run, how: Weather) -> None:
    """The fleet, and servers on simulated hosts."""
    front.ask("PUT", "/simulator/v1/scripts/all", SCRIPT)
    run.stars.server = front  # type: ignore[assignment]  # it is asked in the same way
    if how.servers:
        server_storm.prepare(run.stars)
    time.sleep(1.5)  # the others look at scripts once a second
    for _ in range(how.nodes):
        made = front.ask("POST", "/baremetal/v1/nodes", {"driver": "fake-hardware"})
        run.iron.nodes.append(storm.Node(made.json()["uuid"]))


async def blow(cluster: Cluster, run: Run, how: Weather) -> Front:
    """Make the fleet, and let the storm loose on it."""
    await cluster.ready()
    front = cluster.front()
    prepare(cluster, front, run, how)
    limits, rng = httpx.Limits(max_connections=20), random.Random(how.seed)
    headers = front.headers("1.109") | server_storm.VERSION
    clients = [
        httpx.AsyncClient(base_url=url, headers=headers, timeout=30, limits=limits)
        for url in cluster.urls()
    ]
    turns = itertools.cycle(clients)
    await server_storm.boot(run.stars, clients[0], how.servers, FOR_EVER)
    reader = asyncio.create_task(follow(cluster.urls(), front.headers(), run.stream))
    leaders = asyncio.gather(
        *(storm.lead(run.iron, node, next(turns)) for node in run.iron.nodes),
        *(server_storm.lead(run.stars, life, next(turns), rng) for life in run.stars.lives),
    )
    await accidents(cluster, how, run.told)
    run.iron.cycles = 0  # each node rests at its next `available`
    for life in run.stars.lives:
        life.left = 0
    async with asyncio.timeout(PATIENCE_S):
        await leaders
        await settled(cluster.database.url)
        front = await calm(cluster)
        log = len(log_of(front))
        while len(run.stream) < log:
            await asyncio.sleep(0.1)
    reader.cancel()
    for client in clients:
        await client.aclose()
    return front


async def settled(url: str) -> None:
    """Wait until no work is left in a database, and all facts have their place."""
    connection = await asyncpg.connect(url)
    busy = "SELECT (SELECT count(*) FROM work) + (SELECT count(*) FROM events WHERE seq IS NULL)"
    try:
        while await connection.fetchval(busy):
            await asyncio.sleep(0.2)
    finally:
        await connection.close()


async def calm(cluster: Cluster) -> Front:
    """All that were killed last are back."""
    await cluster.ready()
    return cluster.front()


async def reckon(cluster: Cluster, run: Run, how: Weather) -> list[str]:
    """What does not add up."""
    problems = run.iron.problems + run.stars.problems
    connection = await asyncpg.connect(cluster.database.url)
    try:
        facts = [tuple(row) for row in await connection.fetch(storm.LOG)]
        final = {row[0]: row[1] for row in await connection.fetch(storm.STATES)}
        found = {name: await connection.fetch(sql) for name, sql in server_storm.QUESTIONS.items()}
    finally:
        await connection.close()
    problems += storm.check_log(facts, final, run.iron)
    problems += server_storm.records(found, run.stars)
    problems += server_storm.guests(found, cluster.place / "simulated-guests.db")
    with closing(sqlite3.connect(cluster.place / "simulated.db")) as db, db:
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


def compare(front: Front, run: Run, heard: Mapping[str, Heard]) -> list[str]:
    """Whether the stream and the bus told the whole log, once and in order."""
    log = log_of(front)
    problems = []
    if run.stream != log:
        problems.append(f"the stream told {len(run.stream)} events, the log has {len(log)}")
    for exchange, consumer in heard.items():
        want = [event for event in log if _exchange(event["event_type"]) == exchange]
        told = consumer.until(partial(_enough, len(want)), PATIENCE_S)
        problems += bus_storm.compare(want, told)
    return problems


def _enough(wanted: int, said: Sequence[object]) -> bool:
    return len(said) >= wanted


def _exchange(event_type: str) -> str | None:
    """Where on the bus a fact is told; images have no place there."""
    if event_type.startswith("image."):
        return None
    return "ironic" if event_type.startswith("baremetal.") else "nova"


def cluster_storm(place: Path, how: Weather, rabbit: Rabbit | None) -> tuple[Run, list[str]]:
    """A whole storm: the run, and what does not add up."""
    options = OPTIONS | ({"notification_url": rabbit.url()} if rabbit else {})
    run = Run(
        storm.Storm(server=None, cycles=FOR_EVER),  # type: ignore[arg-type]  # leads by clients
        server_storm.Storm(server=None),  # type: ignore[arg-type]
    )
    with ExitStack() as stack:
        heard = {
            exchange: stack.enter_context(
                listening(rabbit.url("rabbit"), exchange=exchange, topic=topic)
            )
            for exchange, topic in (TOPICS.items() if rabbit else ())
        }
        cluster = stack.enter_context(running_cluster(place, options, how))
        front = asyncio.run(blow(cluster, run, how))
        problems = asyncio.run(reckon(cluster, run, how)) + compare(front, run, heard)
        # One that is just starting ends by the signal itself.
        fine = (0, -signal.SIGTERM)
        problems += [
            f"{name} ended with {code}" for name, code in cluster.stop().items() if code not in fine
        ]
    return run, problems


@contextmanager
def running_cluster(place: Path, options: dict[str, str], how: Weather) -> Iterator[Cluster]:
    """All machines; ended whatever happens."""
    cluster = Cluster(place, options, apis=how.apis, workers=how.workers)
    try:
        yield cluster
    finally:
        for member in (*cluster.apis, *cluster.workers):
            member.process.kill()
        cluster.database.process.send_signal(signal.SIGQUIT)
        cluster.database.process.wait(30)


def inside(said: argparse.Namespace) -> tuple[Run, list[str]]:
    """The run, in namespaces that are ours."""
    Path("/run/netns").mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run/netns"], check=True)
    lay_bridge()
    how = Weather(
        said.nodes, said.servers, said.seconds, said.seed, cable=not said.no_cable,
        apis=said.apis, workers=said.workers,
    )  # fmt: skip
    with ExitStack() as stack:
        place = stack.enter_context(tempfile.TemporaryDirectory())
        rabbit = None if said.no_bus else stack.enter_context(running_rabbitmq(HERE))
        return cluster_storm(Path(place), how, rabbit)


def main() -> int:
    parser = argparse.ArgumentParser(description="Accidents on several machines.")
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--servers", type=int, default=20)
    parser.add_argument("--apis", type=int, default=2)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--no-cable", action="store_true", help="pull no cable: it takes long")
    parser.add_argument("--no-bus", action="store_true", help="without a message broker")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    said = parser.parse_args()
    if not said.inside:
        # A network, a process tree and mounts of our own: all end with this process.
        command = [
            "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
            sys.executable, "-m", "tests.crash.cluster", *sys.argv[1:], "--inside",
        ]  # fmt: skip
        return subprocess.run(command, check=False).returncode
    began = time.monotonic()
    run, problems = inside(said)
    for line in run.told:
        print(f"  {line}")
    what = (
        f"{said.nodes} nodes, {said.servers} servers, {len(run.told)} accidents,"
        f" {run.promises} promises, {len(run.stream)} events, seed {said.seed},"
        f" {time.monotonic() - began:.0f} s"
    )
    return verdict(what, problems)


if __name__ == "__main__":
    raise SystemExit(main())
