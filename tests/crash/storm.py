"""A fleet in the middle of its life, a process that is killed again and again, and the reckoning.

Clients lead every node through whole cycles and take each 202 as a promise. Meanwhile the
process is killed with SIGKILL at random points. Afterwards the promises, the event log and the
hardware's own memory must agree: nothing lost, nothing doubled, no finished step asked for again.

    python -m tests.crash.storm --nodes 100 --kills 20        (scripts/soak)
"""

import argparse
import asyncio
import random
import sqlite3
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

import httpx
import msgspec

from tests.crash.verdict import verdict
from tests.support.server import Server
from tests.support.server import running_server

# Each life: the verb to ask in a state. It ends after so many cycles, in `available`.
NEXT = {"enroll": "manage", "manageable": "provide", "available": "active", "active": "deleted"}
SCRIPT = {
    "latency_s": {"deploy.write_image": [0.0, 0.5], "clean": [0.0, 0.3], "*": [0.0, 0.1]},
    "ramdisk": True,
}
RESTING = ("enroll", "manageable", "available", "active")


@dataclass
class Node:
    """What its client knows of a node."""

    uuid: str
    cycles: int = 0
    done: bool = False


@dataclass
class Storm:
    """One run: what was promised, and what was committed at the moment of each kill."""

    server: Server
    cycles: int
    nodes: list[Node] = field(default_factory=list)
    promised: set[str] = field(default_factory=set)
    snapshots: list[tuple[float, dict[str, int]]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    hand: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    """Starts the process, and outlives it: the kernel ends a process with its starter."""

    is_stormy: bool = False
    """More kills are to come: nobody rests."""


async def lead(storm: Storm, node: Node, client: httpx.AsyncClient) -> None:
    """Lead a node through its cycles; while the service is away, ask again."""
    path = f"/baremetal/v1/nodes/{node.uuid}"
    while not node.done:
        try:
            shown = await client.get(path + "/states")
            if shown.status_code == 503:
                await asyncio.sleep(0.2)
                continue
            seen = shown.json()
            state = seen["provision_state"]
            if seen["last_error"]:
                storm.problems.append(f"{node.uuid}: {state}: {seen['last_error']}")
                return
            if state == "available" and node.cycles >= storm.cycles and not storm.is_stormy:
                node.done = True
                return
            if state in RESTING:
                verb = NEXT[state]
                reply = await client.put(path + "/states/provision", json={"target": verb})
                if reply.status_code == 202:
                    storm.promised.add(reply.headers["x-openstack-request-id"])
                    node.cycles += verb == "deleted"
                elif reply.status_code not in (409, 503):
                    storm.problems.append(f"{node.uuid}: {verb}: {reply.status_code} {reply.text}")
                    return
        except httpx.TransportError:
            # Whether the verb was taken is not known: the state tells.
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.05 + random.random() * 0.1)


def committed(data: Path) -> dict[str, int]:
    """Per piece of work, how many of its steps are recorded as finished, in the dead file."""
    with closing(sqlite3.connect(f"file:{data}/siderite.db?mode=ro", uri=True)) as db, db:
        jobs = [msgspec.json.decode(row[0]) for row in db.execute("SELECT job FROM work")]
    return {job["op"]: job.get("index", 0) for job in jobs if "op" in job}


async def kill(storm: Storm, times: int, rng: random.Random) -> None:
    """Kill and start again, so many times, at random moments."""
    for _ in range(times):
        await asyncio.sleep(rng.uniform(0.2, 1.2))
        storm.server.kill()
        storm.snapshots.append((time.time(), committed(storm.server.data)))
        await asyncio.get_running_loop().run_in_executor(storm.hand, storm.server.start)
    storm.is_stormy = False


async def blow(storm: Storm, count: int, kills: int, rng: random.Random) -> None:
    """Make the fleet, and let the storm loose on it."""
    server = storm.server
    headers = server.headers("1.109")
    script = server.api.put("/simulator/v1/scripts/all", json=SCRIPT, headers=headers)
    assert script.status_code == 200, script.text
    for _ in range(count):
        made = server.api.post(
            "/baremetal/v1/nodes", json={"driver": "fake-hardware"}, headers=headers
        )
        storm.nodes.append(Node(made.json()["uuid"]))
    limits = httpx.Limits(max_connections=20)
    async with httpx.AsyncClient(
        base_url=server.url, headers=headers, timeout=30, limits=limits, trust_env=False
    ) as client:
        storm.is_stormy = kills > 0
        leaders = asyncio.gather(*(lead(storm, node, client) for node in storm.nodes))
        await kill(storm, kills, rng)
        async with asyncio.timeout(300):
            await leaders


def reckon(storm: Storm) -> list[str]:
    """What does not add up, read from the files of the stopped service."""
    problems = list(storm.problems)
    data = storm.server.data
    with closing(sqlite3.connect(f"file:{data}/siderite.db?mode=ro", uri=True)) as db, db:
        problems += check_log(db.execute(LOG).fetchall(), dict(db.execute(STATES)), storm)
        left = db.execute("SELECT count(*) FROM work").fetchone()[0]
        states = dict(db.execute("SELECT uuid, provision_state FROM nodes"))
    if left:
        problems.append(f"{left} pieces of work were left over")
    problems += [
        f"{node.uuid} ended in {states[node.uuid]}"
        for node in storm.nodes
        if states[node.uuid] != "available"
    ]
    with closing(sqlite3.connect(f"file:{data}/simulated.db?mode=ro", uri=True)) as db, db:
        problems += _hardware(db, storm)
    return problems


LOG = "SELECT seq, message_id, event_type, resource, request_id, payload FROM events ORDER BY seq"
STATES = "SELECT uuid, provision_state FROM nodes"


def check_log(rows: list[Any], final: dict[str, str], storm: Storm) -> list[str]:
    """The log has no gap and no double, keeps every promise, and each node's moves form a chain."""
    problems = []
    if [row[0] for row in rows] != list(range(1, len(rows) + 1)):
        problems.append("the log has a gap")
    if len({row[1] for row in rows}) != len(rows):
        problems.append("a message id is there twice")
    missing = storm.promised - {row[4] for row in rows}
    if missing:
        problems.append(f"{len(missing)} accepted requests left no fact: {sorted(missing)[:3]}")
    state = {node.uuid: "enroll" for node in storm.nodes}
    for seq, _, event_type, uuid, _, payload in rows:
        if ".provision_set." not in event_type:
            continue
        told: dict[str, Any] = msgspec.json.decode(payload)["ironic_object.data"]
        if told["previous_provision_state"] != state[uuid]:
            problems.append(f"fact {seq} of {uuid} begins in {told['previous_provision_state']},"
                            f" but the node was in {state[uuid]}")  # fmt: skip
        state[uuid] = told["provision_state"]
    problems += [f"{uuid}: the log ends in {state[uuid]}, the node in {final[uuid]}"
                 for uuid in state if state[uuid] != final[uuid]]  # fmt: skip
    return problems


def _hardware(db: sqlite3.Connection, storm: Storm) -> list[str]:
    """No step that was recorded as finished at a kill was asked for after it."""
    problems = []
    asked = {row[0]: row[1] for row in db.execute("SELECT token, last_asked FROM runs")}
    for at, finished in storm.snapshots:
        for op, index in finished.items():
            for done in range(index):
                last = asked.get(f"{op}/{done}")
                if last is not None and last > at:
                    problems.append(f"step {op}/{done} was finished, and asked for again")
    return problems


def storm(data: Path, *, nodes: int, kills: int, cycles: int, seed: int) -> tuple[Storm, list[str]]:
    """A whole storm, and what does not add up after it."""
    rng = random.Random(seed)
    with running_server(data) as server:
        run = Storm(server, cycles)
        asyncio.run(blow(run, nodes, kills, rng))
        code = server.stop()
        problems = reckon(run)
        if code != 0:
            problems.append(f"the last, clean stop had exit code {code}")
        run.hand.shutdown()
    return run, problems


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill a busy service again and again.")
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--cycles", type=int, default=8)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    said = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as data:
        run, problems = storm(
            Path(data),
            nodes=said.nodes,
            kills=said.kills,
            cycles=said.cycles,
            seed=said.seed,
        )
    what = (
        f"{said.nodes} nodes, {said.cycles} cycles or more each, {len(run.snapshots)} kills,"
        f" {len(run.promised)} promises, seed {said.seed}, {time.monotonic() - began:.0f} s"
    )
    return verdict(what, problems)


if __name__ == "__main__":
    raise SystemExit(main())
