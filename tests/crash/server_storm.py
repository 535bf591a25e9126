"""Servers in the middle of their lives, a process killed again and again, and the reckoning.

Clients lead every server through mixed actions and take each answer as a promise. Afterwards all
servers rest, claims add up to what runs, no guest is left behind, and every promise has its
instance action, ended.

    python -m tests.crash.server_storm --servers 100 --kills 20        (scripts/soak)
"""

import argparse
import asyncio
import json
import random
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

import httpx

from tests.crash.verdict import verdict
from tests.support.server import Server
from tests.support.server import running_server

HOSTS = 5
SCRIPT = {"latency_s": {"spawn": [0.0, 0.4], "*": [0.0, 0.15]}, "shutdown_s": 0.05}
_MOVING = ("resize_", "migrating")
VERSION = {"OpenStack-API-Version": "compute 2.901"}
# What to ask in a status; of several, any.
NEXT: dict[str, list[tuple[str, Any]]] = {
    "ACTIVE": [
        ("os-stop", None), ("pause", None), ("suspend", None), ("reboot", {"type": "SOFT"}),
        ("reboot", {"type": "HARD"}), ("rescue", {}), ("shelve", None), ("migrate", None),
        ("os-migrateLive", {"host": None, "block_migration": "auto"}),
        ("resize", {"flavorRef": "other"}), ("rebuild", {"imageRef": "image"}),
        ("createImage", {"name": "copy"}),
    ],
    "SHUTOFF": [("os-start", None), ("rebuild", {"imageRef": "image"}), ("migrate", None)],
    "PAUSED": [("unpause", None)],
    "SUSPENDED": [("resume", None)],
    "RESCUE": [("unrescue", None)],
    "SHELVED_OFFLOADED": [("unshelve", None)],
    "VERIFY_RESIZE": [("confirmResize", None), ("revertResize", None)],
}  # fmt: skip


@dataclass
class Life:
    """What its client knows of a server."""

    uuid: str
    left: int
    gone: bool = False


@dataclass
class Storm:
    """One run: what was promised."""

    server: Server
    lives: list[Life] = field(default_factory=list)
    promised: set[tuple[str, str]] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    kills: int = 0
    image: str = ""
    flavors: tuple[str, str] = ("", "")
    hand: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    """Starts the process, and outlives it: the kernel ends a process with its starter."""

    resets: float = 0.0
    """How often an administrator loses patience with a move that is looked at."""
    is_stormy: bool = False
    """More kills are to come: nobody rests."""


async def lead(storm: Storm, life: Life, client: httpx.AsyncClient, rng: random.Random) -> None:
    """Lead a server through its actions; while the service is away, ask again. Every third is
    deleted in the end.
    """
    path = f"/compute/v2.1/servers/{life.uuid}"
    while True:
        await asyncio.sleep(0.02 + rng.random() * 0.05)
        try:
            answer = await client.get(path)
            if answer.status_code == 404 and life.gone:
                return
            if answer.status_code == 503:
                continue
            if answer.status_code != 200:
                storm.problems.append(f"{life.uuid}: {answer.status_code} {answer.text}")
                return
            seen = answer.json()["server"]
            if seen["status"] == "ERROR":
                storm.problems.append(f"{life.uuid}: {seen.get('fault')}")
                return
            task = seen["OS-EXT-STS:task_state"]
            if task is not None:
                if task.startswith(_MOVING) and rng.random() < storm.resets:
                    await _act(storm, life, client, ("os-resetState", {"state": "active"}))
                continue
            if life.left <= 0 and not storm.is_stormy:
                if hash(life.uuid) % 3:
                    return
                await _delete(storm, life, client, path)
                continue
            await _act(storm, life, client, rng.choice(NEXT[seen["status"]]))
        except httpx.TransportError:
            # Whether it was taken is not known: the state tells.
            await asyncio.sleep(0.1)


async def _delete(storm: Storm, life: Life, client: httpx.AsyncClient, path: str) -> None:
    life.gone = True
    answer = await client.delete(path)
    if answer.status_code == 204:
        storm.promised.add((life.uuid, answer.headers["x-compute-request-id"]))


async def _act(storm: Storm, life: Life, client: httpx.AsyncClient, wish: tuple[str, Any]) -> None:
    action, value = wish
    if action == "resize":
        value = {"flavorRef": storm.flavors[1]}
    elif action == "rebuild":
        value = {"imageRef": storm.image}
    answer = await client.post(f"/compute/v2.1/servers/{life.uuid}/action", json={action: value})
    if answer.status_code in (200, 202, 204):
        life.left -= 1
        storm.promised.add((life.uuid, answer.headers["x-compute-request-id"]))
    elif action == "resize" and answer.status_code == 400:
        pass  # it has that size already
    elif answer.status_code not in (409, 503):
        storm.problems.append(f"{life.uuid}: {action}: {answer.status_code} {answer.text}")


async def kill(storm: Storm, times: int, rng: random.Random) -> None:
    """Kill and start again, so many times, at random moments."""
    for _ in range(times):
        await asyncio.sleep(rng.uniform(0.3, 1.2))
        storm.server.kill()
        storm.kills += 1
        await asyncio.get_running_loop().run_in_executor(storm.hand, storm.server.start)
    storm.is_stormy = False


def prepare(storm: Storm) -> None:
    """Hosts, flavors, an image, a quota."""
    server, headers = storm.server, {**storm.server.headers(), **VERSION}

    def ask(method: str, path: str, body: Any = None, **how: Any) -> httpx.Response:
        answer = server.api.request(method, path, json=body, headers=headers, **how)
        assert answer.status_code < 300, answer.text
        return answer

    ask("PUT", "/simulated-hosts/v1/scripts/all", SCRIPT)
    for number in range(HOSTS):
        ask("POST", "/compute/v2.1/hosts", {"host": {"name": f"h{number}", "uri": "simulated:"}})
    made = [
        ask("POST", "/compute/v2.1/flavors",
            {"flavor": {"name": name, "ram": 64, "vcpus": vcpus, "disk": 1}})
        for name, vcpus in (("a", 1), ("b", 2))
    ]  # fmt: skip
    storm.flavors = (made[0].json()["flavor"]["id"], made[1].json()["flavor"]["id"])
    image = {"name": "i", "disk_format": "raw", "container_format": "bare", "visibility": "public"}
    storm.image = ask("POST", "/image/v2/images", image).json()["id"]
    put = server.api.put(
        f"/image/v2/images/{storm.image}/file", content=b"x" * 512,
        headers={**headers, "Content-Type": "application/octet-stream"},
    )  # fmt: skip
    assert put.status_code == 204, put.text


async def boot(storm: Storm, client: httpx.AsyncClient, count: int, actions: int) -> None:
    """Ask for the servers; each is to be led through so many actions."""
    for number in range(count):
        body = {"server": {"name": f"s{number}", "flavorRef": storm.flavors[0],
                           "imageRef": storm.image, "networks": "auto"}}  # fmt: skip
        made = await client.post("/compute/v2.1/servers", json=body)
        assert made.status_code == 202, made.text
        uuid = made.json()["server"]["id"]
        storm.promised.add((uuid, made.headers["x-compute-request-id"]))
        storm.lives.append(Life(uuid, actions))


async def blow(storm: Storm, count: int, actions: int, kills: int, rng: random.Random) -> None:
    """Make the servers, and let the storm loose on them."""
    server = storm.server
    prepare(storm)
    limits = httpx.Limits(max_connections=20)
    async with httpx.AsyncClient(
        base_url=server.url, headers={**server.headers(), **VERSION}, timeout=30, limits=limits,
        trust_env=False,
    ) as client:  # fmt: skip
        await boot(storm, client, count, actions)
        storm.is_stormy = kills > 0
        leaders = asyncio.gather(*(lead(storm, life, client, rng) for life in storm.lives))
        await kill(storm, kills, rng)
        async with asyncio.timeout(300):
            await leaders
        await _settled(storm)


_LEFT = "SELECT 1 FROM work WHERE kind IN ('left', 'unwanted')"


async def _settled(storm: Storm) -> None:
    """Wait until what moves left behind is removed, and images that servers came back from."""
    file = f"file:{storm.server.data}/siderite.db?mode=ro"
    async with asyncio.timeout(60):
        while True:
            with closing(sqlite3.connect(file, uri=True)) as db:
                if not db.execute(_LEFT).fetchall():
                    return
            await asyncio.sleep(0.1)


QUESTIONS = {
    "work": "SELECT machine, lane, kind, reason FROM work",
    "claims": "SELECT server, host FROM claims",
    "claimed": "SELECT host, sum(vcpus), sum(ram_mib), sum(disk_gib), count(*) FROM claims"
    " GROUP BY host",
    "used": "SELECT host, vcpus_used, ram_used, disk_used, servers FROM hypervisors"
    " WHERE servers > 0",
    "living": "SELECT count(*), sum(vcpus), sum(ram_mib) FROM servers WHERE deleted = 0",
    "counted": "SELECT sum(instances), sum(cores), sum(ram_mib) FROM project_usage",
    "servers": "SELECT uuid, host, vm_state, task_state FROM servers WHERE deleted = 0",
    "actions": "SELECT server, request_id, events FROM instance_actions",
    "log": "SELECT seq FROM events ORDER BY seq",
}
Found = Mapping[str, Sequence[Sequence[Any]]]
"""The rows that each question had."""


def reckon(storm: Storm) -> list[str]:
    """What does not add up, read from the files of the stopped service."""
    data = storm.server.data
    with closing(sqlite3.connect(f"file:{data}/siderite.db?mode=ro", uri=True)) as db, db:
        found = {name: db.execute(sql).fetchall() for name, sql in QUESTIONS.items()}
    return storm.problems + records(found, storm) + guests(found, data / "simulated-guests.db")


def guests(found: Found, file: Path) -> list[str]:
    """Every claim has its guest, and every guest its claim."""
    expected = {(row[0], row[1]) for row in found["claims"]}
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db, db:
        there = {(row[0], row[1]) for row in db.execute("SELECT server, host FROM guests")}
    problems = [f"guest {one} is there, but nobody's" for one in sorted(there - expected)]
    return problems + [f"guest {one} is missing" for one in sorted(expected - there)]


def records(found: Found, storm: Storm) -> list[str]:
    """All servers rest, claims and quotas count them, and every promise has its action, ended."""
    problems = [f"work was left over: {tuple(row)}" for row in found["work"]]
    claimed, used = (sorted(tuple(row) for row in found[name]) for name in ("claimed", "used"))
    if claimed != used:
        problems.append(f"claims {claimed} are not what hosts count: {used}")
    living, counted = (tuple(found[name][0]) for name in ("living", "counted"))
    if living[0] and living != counted:
        problems.append(f"the quota does not count {living}")
    claims = Counter(row[0] for row in found["claims"])
    for uuid, host, vm_state, task in found["servers"]:
        wanted = 2 if vm_state == "resized" else 1 if host else 0
        if claims[uuid] != wanted or task is not None:
            problems.append(f"{uuid} is {vm_state} {task} with {claims[uuid]} claims")
    actions = {(row[0], row[1]): json.loads(row[2]) for row in found["actions"]}
    problems += [f"{one} left no action" for one in storm.promised - set(actions)]
    problems += [
        f"action {one} did not end: {events}"
        for one, events in actions.items()
        if events and events[-1]["result"] is None
    ]
    if [row[0] for row in found["log"]] != list(range(1, len(found["log"]) + 1)):
        problems.append("the log has a gap")
    return problems


def storm(
    data: Path, *, servers: int, actions: int, kills: int, seed: int, resets: float = 0.0
) -> tuple[Storm, list[str]]:
    """A whole storm, and what does not add up after it."""
    rng = random.Random(seed)
    quota = {"quota_instances": "-1", "quota_cores": "-1", "quota_ram_mib": "-1"}
    with running_server(data, options=quota) as server:
        run = Storm(server, resets=resets)
        asyncio.run(blow(run, servers, actions, kills, rng))
        code = server.stop()
        problems = reckon(run)
        if code != 0:
            problems.append(f"the last, clean stop had exit code {code}")
        run.hand.shutdown()
    return run, problems


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill a busy compute service again and again.")
    parser.add_argument("--servers", type=int, default=100)
    parser.add_argument("--actions", type=int, default=20)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--resets", type=float, default=0.1)
    said = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as data:
        run, problems = storm(
            Path(data), servers=said.servers, actions=said.actions, kills=said.kills,
            seed=said.seed, resets=said.resets,
        )  # fmt: skip
    what = (
        f"{said.servers} servers, {said.actions} actions or more each, {run.kills} kills,"
        f" {len(run.promised)} promises, seed {said.seed}, {time.monotonic() - began:.0f} s"
    )
    return verdict(what, problems, "all reached an end, all adds up")


if __name__ == "__main__":
    raise SystemExit(main())
