"""A busy service, its message broker and those who listen, while both are killed again and again.

Nodes go through their cycles. A plain oslo.messaging consumer hears the bus, and removes doubles by
message id; two readers follow the stream, and come back with their last number. Service and broker
are killed with SIGKILL at random moments. Afterwards all three must have exactly the log.

    python -m tests.crash.bus_storm --kills 50 [--db postgresql]        (scripts/soak)
"""

import argparse
import asyncio
import random
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

import httpx

from tests.crash.storm import Node
from tests.crash.storm import Storm
from tests.crash.storm import lead
from tests.crash.verdict import place
from tests.crash.verdict import verdict
from tests.events.listening import Heard
from tests.events.listening import listening
from tests.events.test_process import follow
from tests.events.test_process import log_of
from tests.events.test_process import make_node
from tests.support.rabbitmq import Rabbit
from tests.support.rabbitmq import running_rabbitmq
from tests.support.server import Server
from tests.support.server import running_server

PATIENCE_S = 300.0
FOR_EVER = 10**9
SCRIPT = {"latency_s": {"*": [0.0, 0.2]}}


@dataclass
class Outcome:
    """What a storm came to."""

    events: int = 0
    published: int = 0
    kills: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    problems: list[str] = field(default_factory=list)


async def blow(
    server: Server, rabbit: Rabbit, heard: Heard, *, nodes: int, kills: int, rng: random.Random
) -> Outcome:
    """The storm, and what does not add up after it."""
    outcome = Outcome()
    storm = Storm(server, cycles=FOR_EVER)
    server.script("all", **SCRIPT)
    await _until(lambda: "bus" in _readers(server))
    storm.nodes += [Node(make_node(server)) for _ in range(nodes)]
    streams: list[list[dict[str, Any]]] = [[], []]
    readers = [asyncio.create_task(follow(server, stream)) for stream in streams]
    async with httpx.AsyncClient(
        base_url=server.url, headers=server.headers("1.109"), timeout=30, trust_env=False
    ) as client:
        leaders = asyncio.gather(*(lead(storm, node, client) for node in storm.nodes))
        await _kill(storm, rabbit, kills, rng, outcome)
        storm.cycles = max(node.cycles for node in storm.nodes) + 1
        async with asyncio.timeout(PATIENCE_S):
            await leaders
    log = log_of(server)
    await _until(lambda: _readers(server)["bus"]["behind"] == 0)
    await _until(lambda: all(len(stream) >= len(log) for stream in streams))
    told = await asyncio.to_thread(heard.until, lambda told: len(told) >= len(log), PATIENCE_S)
    for reader in readers:
        reader.cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    storm.hand.shutdown()
    outcome.events, outcome.published = len(log), len(heard.all) - 1
    outcome.problems += storm.problems
    outcome.problems += _compare(log, told, streams)
    return outcome


async def _kill(
    storm: Storm, rabbit: Rabbit, kills: int, rng: random.Random, outcome: Outcome
) -> None:
    """Each of the two so many times, in any order, at random moments."""
    loop = asyncio.get_running_loop()
    victims: list[Server | Rabbit] = [storm.server] * kills + [rabbit] * kills
    rng.shuffle(victims)
    for victim in victims:
        await asyncio.sleep(rng.uniform(0.1, 1.5))
        victim.kill()
        if rng.random() < 0.3:
            await asyncio.sleep(rng.uniform(0.0, 2.0))
        await loop.run_in_executor(storm.hand, victim.start)
        outcome.kills[type(victim).__name__] += 1


def _compare(
    log: Sequence[dict[str, Any]],
    told: Sequence[dict[str, Any]],
    streams: Sequence[Sequence[dict[str, Any]]],
) -> list[str]:
    problems = []
    if [event["seq"] for event in log] != list(range(1, len(log) + 1)):
        problems.append("the log has a gap")
    for n, stream in enumerate(streams):
        if list(stream) != list(log):
            problems.append(f"stream {n} has {len(stream)} events that are not those of the log")
    return problems + compare(log, told)


def compare(log: Sequence[dict[str, Any]], told: Sequence[dict[str, Any]]) -> list[str]:
    """What the bus left out, made up, changed or mixed up of the log."""
    problems = []
    known = {event["message_id"]: event for event in log}
    heard = {said["message_id"] for said in told}
    if heard != set(known):
        problems.append(
            f"the bus lost {len(set(known) - heard)}, made up {len(heard - set(known))}"
        )
        return problems
    for priority in ("INFO", "ERROR"):
        ours: dict[str, list[int]] = defaultdict(list)
        for said in told:
            event = known[said["message_id"]]
            if (said["event_type"], said["payload"]) != (event["event_type"], event["payload"]):
                problems.append(f"the bus says something else of event {event['seq']}")
            if said["priority"] == priority:
                ours[event["resource"]["id"]].append(event["seq"])
        problems += [
            f"the bus mixed up {resource}"
            for resource, seen in ours.items()
            if seen != sorted(seen)
        ]
    return problems


def _readers(server: Server) -> dict[str, Any]:
    try:
        answer = server.api.get("/events/v1/log", headers=server.headers())
    except httpx.TransportError:
        return {}
    return {reader["name"]: reader for reader in answer.json()["readers"]}


async def _until(claim: Any) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not claim():
            await asyncio.sleep(0.05)


def storm(
    data: Path, rabbit: Rabbit, *, db: str | None, nodes: int, kills: int, seed: int
) -> Outcome:
    """A whole storm."""
    options = {"notification_url": rabbit.url()}
    with (
        running_server(data, db=db, options=options) as server,
        listening(rabbit.url("rabbit")) as heard,
    ):
        rng = random.Random(seed)
        return asyncio.run(blow(server, rabbit, heard, nodes=nodes, kills=kills, rng=rng))


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill a service and its broker again and again.")
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--kills", type=int, default=50, help="of each")
    parser.add_argument("--db", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    said = parser.parse_args()
    began = time.monotonic()
    with place(said.db) as (data, url), running_rabbitmq() as rabbit:
        outcome = storm(data, rabbit, db=url, nodes=said.nodes, kills=said.kills, seed=said.seed)
    what = (
        f"{said.db}: {outcome.events} events, {outcome.published} heard on the bus, kills"
        f" {dict(outcome.kills)}, seed {said.seed}, {time.monotonic() - began:.0f} s"
    )
    return verdict(what, outcome.problems, "nothing lost, nothing mixed up")


if __name__ == "__main__":
    raise SystemExit(main())
