"""A busy service with webhooks, killed again and again: its subscriber, a process of its own, that
also refuses some, has all of the log in the end.

Nodes go through their cycles. The service is killed with SIGKILL at random moments: before a
delivery, in it, after it. Every event must arrive, those of one resource in order, and one that
comes twice under the same id. Then one resource's events are refused until they are dead letters;
all is replayed from a number; the service is killed, and both are as they were: what was replayed
arrives, and the dead letters do when they are sent again.

    python -m tests.crash.hook_storm --kills 50 [--db postgresql]        (scripts/soak)
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import random
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.crash.storm import Node
from tests.crash.storm import Storm
from tests.crash.storm import lead
from tests.crash.verdict import place
from tests.crash.verdict import verdict
from tests.events.test_process import log_of
from tests.events.test_process import make_node
from tests.support.server import Server
from tests.support.server import running_server

PATIENCE_S = 300.0
FOR_EVER = 10**9
HOOKS = "/events/v1/webhooks"
OPTIONS = {"webhook_allow": "127.0.0.0/8", "webhook_give_up_s": "600"}
BRIEF = OPTIONS | {"webhook_give_up_s": "0.5"}
DEAD = 2
AFTERWARDS = 5
"""Changes that are made after the last kill, however slow the machine is."""


class Subscriber:
    """The receiver's process, and what it took."""

    def __init__(self, folder: Path) -> None:
        self._log, self._refusals = folder / "taken", folder / "refusals"
        self._log.touch()
        self.refuse()
        setpriv = str(shutil.which("setpriv"))
        words = [setpriv, "--pdeathsig", "KILL", sys.executable, "-m", "tests.crash.hook_receiver"]
        self.process = subprocess.Popen(
            [*words, str(self._log), str(self._refusals)], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.url = f"http://127.0.0.1:{self.process.stdout.readline().strip()}/"

    def refuse(self, chance: float = 0.0, *resources: str) -> None:
        new = self._refusals.with_suffix(".new")
        new.write_text(json.dumps({"chance": chance, "resources": resources}))
        new.replace(self._refusals)

    def taken(self) -> list[dict[str, Any]]:
        whole = self._log.read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]


@contextmanager
def subscriber(folder: Path) -> Iterator[Subscriber]:
    made = Subscriber(folder)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.communicate()


def problems(log: Sequence[dict[str, Any]], taken: Sequence[dict[str, Any]]) -> list[str]:
    """What was lost, made up, changed or mixed up on the way."""
    known = {event["message_id"]: event for event in log}
    found, seen, last = [], set(), dict[str, int]()
    for one in taken:
        event = known.get(one["id"])
        if event is None or one["event"] != event:
            found.append(f"{one['id']} is not as the log has it")
            continue
        resource, seq = event["resource"]["id"], event["seq"]
        if one["id"] not in seen and seq < last.get(resource, 0):
            found.append(f"{seq} of {resource} came after {last[resource]}")
        seen.add(one["id"])
        last[resource] = max(seq, last.get(resource, 0))
    lost = [event["seq"] for event in log if event["message_id"] not in seen]
    return found + ([f"lost: {lost[:20]}"] if lost else [])


class Ground:
    """Asks the service, and waits; it may be away meanwhile."""

    def __init__(self, server: Server, other: Subscriber) -> None:
        self.server = server
        self.other = other
        self.hand = ThreadPoolExecutor(1)
        """Starts the process, and outlives it: the kernel ends a process with its starter."""
        self.hook = self._ask("POST", HOOKS, {"url": other.url})["id"]

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        reply = self.server.api.request(method, path, json=body, headers=self.server.headers())
        assert reply.is_success, reply.text
        return reply.json() if reply.content else None

    def until(self, claim: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not claim():
            assert time.monotonic() < deadline, self._ask("GET", f"{HOOKS}/{self.hook}")
            time.sleep(0.05)

    def dead(self) -> list[dict[str, Any]]:
        path = f"{HOOKS}/{self.hook}/deliveries?state=dead&limit=1000"
        found: list[dict[str, Any]] = self._ask("GET", path)["deliveries"]
        return found

    def retry(self, delivery: int) -> None:
        self._ask("POST", f"{HOOKS}/{self.hook}/deliveries/{delivery}/retry", {})

    def replay(self, after: int) -> None:
        self._ask("POST", f"{HOOKS}/{self.hook}/replay", {"after": after})

    def has(self, log: Sequence[dict[str, Any]], times: int = 1) -> bool:
        """Whether every event arrived, so many times."""
        counts: dict[str, int] = defaultdict(int)
        for one in self.other.taken():
            counts[one["id"]] += 1
        return all(counts[event["message_id"]] >= times for event in log)


async def load(ground: Ground, *, nodes: int, kills: int, rng: random.Random) -> list[str]:
    """The storm itself."""
    storm = Storm(ground.server, cycles=FOR_EVER)
    ground.server.script("all", latency_s={"*": [0.0, 0.1]})
    storm.nodes += [Node(make_node(ground.server)) for _ in range(nodes)]
    loop = asyncio.get_running_loop()
    async with httpx.AsyncClient(
        base_url=ground.server.url, headers=ground.server.headers("1.109"), timeout=30,
        trust_env=False,
    ) as client:  # fmt: skip
        leaders = asyncio.gather(*(lead(storm, node, client) for node in storm.nodes[1:]))
        over, taken = asyncio.Event(), list[int]()
        writer = asyncio.create_task(_write(storm.nodes[0].uuid, client, over, taken))
        for left in reversed(range(kills)):
            await asyncio.sleep(rng.uniform(0.3, 0.8))
            ground.server.kill()
            if not left:  # from here on nothing is refused without being asked to
                ground.other.refuse()
                ground.server.change(BRIEF)
            await loop.run_in_executor(ground.hand, ground.server.start)
        storm.cycles = max(node.cycles for node in storm.nodes) + 1
        enough = len(taken) + AFTERWARDS
        async with asyncio.timeout(PATIENCE_S):
            await leaders
            while len(taken) < enough:
                await asyncio.sleep(0.05)
        over.set()
        await writer  # with its last answer: what it asked for is in the log by then
    storm.hand.shutdown()
    return storm.problems


async def _write(
    node: str, client: httpx.AsyncClient, over: asyncio.Event, taken: list[int]
) -> None:
    """Change something small again and again; which changes were taken."""
    for number in itertools.count():
        if over.is_set():
            return
        change = [{"op": "add", "path": "/extra/n", "value": number}]
        with contextlib.suppress(httpx.TransportError):
            reply = await client.patch(f"/baremetal/v1/nodes/{node}", json=change)
            if reply.is_success:
                taken.append(number)
        await asyncio.sleep(0.05)


def blow(data: Path, *, db: str | None, nodes: int, kills: int, seed: int) -> tuple[int, list[str]]:
    """All of it: how many events there were, and what does not add up."""
    rng = random.Random(seed)
    with subscriber(data) as other, running_server(data, db=db, options=OPTIONS) as server:
        ground = Ground(server, other)
        other.refuse(0.1)
        found = asyncio.run(load(ground, nodes=nodes, kills=kills, rng=rng))
        log = log_of(server)
        ground.until(lambda: ground.has(log))
        found += problems(log, other.taken())
        found += dead_letters_and_replay(ground)
    ground.hand.shutdown()
    return len(log), found


def dead_letters_and_replay(ground: Ground) -> list[str]:
    """Dead letters and the promise to send all again outlive a kill."""
    node = make_node(ground.server)
    ground.other.refuse(0.0, node)
    change = [{"op": "add", "path": "/extra/a", "value": 1}]
    headers = ground.server.headers("1.109")
    reply = ground.server.api.patch(f"/baremetal/v1/nodes/{node}", json=change, headers=headers)
    assert reply.is_success, reply.text
    ground.until(lambda: len(ground.dead()) >= DEAD)
    known = {one["message_id"] for one in ground.dead()}
    log = [event for event in log_of(ground.server) if event["resource"]["id"] != node]
    late = log[len(log) // 2 :]
    ground.replay(late[0]["seq"] - 1)
    ground.server.kill()
    ground.server.start()
    ground.other.refuse()
    letters = ground.dead()
    for one in letters:
        ground.retry(one["id"])
    ground.until(lambda: ground.has(late, 2) and ground.has(log_of(ground.server)))
    lost = known - {one["message_id"] for one in letters}
    return [f"{len(lost)} dead letters were lost by a kill"] if lost else []


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill a service with webhooks again and again.")
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--db", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    said = parser.parse_args()
    began = time.monotonic()
    with place(said.db) as (data, url):
        events, found = blow(data, db=url, nodes=said.nodes, kills=said.kills, seed=said.seed)
    took = time.monotonic() - began
    what = f"{said.db}: {events} events, {said.kills} kills, seed {said.seed}, {took:.0f} s"
    return verdict(what, found, "nothing lost, nothing mixed up")


if __name__ == "__main__":
    raise SystemExit(main())
