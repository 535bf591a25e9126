"""A full cloud, its service and its reapers killed again and again, while preemptible servers are
asked for anew as soon as they go and paying ones come and leave.

Afterwards every server runs, or is an error that says why; nothing is kept for nobody; claims,
hosts and quotas count what there is; a reader of the stream has the log, and the log says nothing
twice; and who went for others went for a reason.

    python -m tests.crash.reaper_storm --seconds 600 [--db postgresql]        (scripts/soak)
"""

import argparse
import asyncio
import json
import random
import shutil
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextlib import closing
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from siderite.core.times import iso
from tests.crash import server_storm
from tests.crash.verdict import place
from tests.crash.verdict import verdict
from tests.events.test_process import follow
from tests.events.test_process import log_of
from tests.reaper.test_full_cloud import HEADERS
from tests.reaper.test_full_cloud import OPTIONS
from tests.reaper.test_full_cloud import Cloud
from tests.support.server import PASSWORD
from tests.support.server import Server
from tests.support.server import clean_environment
from tests.support.server import command
from tests.support.server import running_server

HOSTS, VCPUS = 5, 4
MOST_PAYING, FEW_PAYING = 2 * HOSTS + 1, HOSTS // 2
"""Paying servers: one more than there is room for, and so few that preemptible ones come back."""
WORKERS, REAPERS = 2, 2
SCRIPT = {"latency_s": {"spawn": [0.0, 0.4], "destroy": [0.0, 0.6], "*": [0.0, 0.1]}}
CALM_S = 240.0
LATE_S = 90.0
"""Rows of what was kept are forgotten sooner."""
NEEDED = 2
"""So many go for one, and as many again, at most, if a reaper that freed room is killed: others may
have it before the next one looks.
"""
CHEAP = {"preemptible": "true"}
QUESTIONS = server_storm.QUESTIONS | {
    "all": "SELECT uuid, doc FROM servers",
    "kept": "SELECT server, hypervisor, since, kept_until FROM kept_room",
}


class Process:
    """One that is killed and started again, ended by the kernel with the thread that started it."""

    def __init__(self, log: Path, *words: object, options: dict[str, str]) -> None:
        self._log = log
        setpriv = str(shutil.which("setpriv"))
        self._words = [setpriv, "--pdeathsig", "KILL", str(command("siderite")), *map(str, words)]
        self._environment = clean_environment() | {
            "SIDERITE_ADMIN_PASSWORD": PASSWORD,
            **{f"SIDERITE_{name.upper()}": value for name, value in options.items()},
        }
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as out:
            self._process = subprocess.Popen(
                self._words, env=self._environment, stdout=out, stderr=out
            )

    def keep_up(self) -> None:
        """As an init system does: one that begins while the service is away ends."""
        if self._process.poll() is not None:
            self.start()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@dataclass
class Storm:
    """One run."""

    server: Server
    cloud: Cloud
    rng: random.Random
    workers: list[Process]
    reapers: list[Process]
    hand: ThreadPoolExecutor
    problems: list[str] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)
    stream: list[dict[str, Any]] = field(default_factory=list)
    is_stormy: bool = True
    paid: set[str] = field(default_factory=set)
    """Paying servers that were promised."""
    left: set[str] = field(default_factory=set)
    """Those whose user deleted them."""


class Users:
    """Those who ask for servers; while the service is away they ask again."""

    def __init__(self, storm: Storm, client: httpx.AsyncClient) -> None:
        self._storm = storm
        self._client = client
        self._number = 0
        self._is_rush = True
        """Whether paying servers come, or leave."""

    async def go_on(self) -> None:
        """As long as it is stormy."""
        storm, rng = self._storm, self._storm.rng
        while storm.is_stormy:
            await asyncio.sleep(rng.uniform(0.1, 0.4))
            try:
                await self._turn()
            except httpx.TransportError:
                await asyncio.sleep(0.1)

    async def _turn(self) -> None:
        seen = await self.ask("GET", "/servers/detail?all_tenants=1&limit=1000")
        if seen is None:
            return
        cheap = [one for one in seen["servers"] if one["metadata"].get("preemptible")]
        paying = [one for one in seen["servers"] if not one["metadata"].get("preemptible")]
        for one in seen["servers"]:
            if one["status"] == "ERROR" and one["OS-EXT-STS:task_state"] is None:
                self._check(one)
                await self._delete(one)
        if sum(one["status"] in ("ACTIVE", "BUILD") for one in cheap) < HOSTS * VCPUS:
            await self._boot("small", metadata=CHEAP)
        rng = self._storm.rng
        self._is_rush = len(paying) < (MOST_PAYING if self._is_rush else FEW_PAYING)
        if self._is_rush and rng.random() < 0.5:
            await self._boot("large")
        running = [one for one in paying if one["status"] == "ACTIVE"]
        if running and not self._is_rush and rng.random() < 0.2:
            await self._delete(rng.choice(running))
        if paying and rng.random() < 0.02:
            await self._delete(rng.choice(paying))

    def _check(self, one: dict[str, Any]) -> None:
        if not one.get("fault", {}).get("message"):
            self._storm.problems.append(f"{one['id']} is an error without a reason")

    async def _boot(self, flavor: str, **more: Any) -> None:
        cloud = self._storm.cloud
        self._number += 1
        body = {
            "name": f"{flavor}{self._number}", "flavorRef": cloud.flavors[flavor],
            "imageRef": cloud.image, "networks": "none", **more,
        }  # fmt: skip
        made = await self.ask("POST", "/servers", {"server": body})
        if made is not None and not more:
            self._storm.paid.add(made["server"]["id"])

    async def _delete(self, one: dict[str, Any]) -> None:
        self._storm.left.add(one["id"])
        await self.ask("DELETE", f"/servers/{one['id']}")

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The answer's document; None for one that was refused as things may be."""
        answer = await self._client.request(method, f"/compute/v2.1{path}", json=body)
        if answer.is_success:
            return answer.json() if answer.content else {}
        if answer.status_code not in (404, 409, 503):
            said = f"{method} {path}: {answer.status_code} {answer.text[:200]}"
            self._storm.problems.append(said)
        return None


async def kill(storm: Storm, seconds: float) -> None:
    """Somebody is killed every moment, and comes back soon."""
    rng, loop = storm.rng, asyncio.get_running_loop()
    end = time.monotonic() + seconds
    kinds = ["service"] * 2 + ["reaper"] * 3 + (["worker"] * 2 if storm.workers else [])
    while time.monotonic() < end:
        await asyncio.sleep(rng.uniform(0.2, 8.0))
        for one in (*storm.workers, *storm.reapers):
            await loop.run_in_executor(storm.hand, one.keep_up)
        kind = rng.choice(kinds)
        victim: Process | Server = storm.server
        if kind != "service":
            victim = rng.choice(storm.reapers if kind == "reaper" else storm.workers)
        storm.kills[kind] += 1
        await loop.run_in_executor(storm.hand, victim.kill)
        await asyncio.sleep(rng.choice((0.0, 0.0, rng.uniform(0.0, 3.0))))
        await loop.run_in_executor(storm.hand, victim.start)


async def settled(storm: Storm, users: Users) -> None:
    """Wait until all is done that can be done."""
    loop = asyncio.get_running_loop()
    end = time.monotonic() + CALM_S
    while True:
        for one in (*storm.workers, *storm.reapers):
            await loop.run_in_executor(storm.hand, one.keep_up)
        seen = await users.ask("GET", "/servers/detail?all_tenants=1&limit=1000")
        busy = {
            one["id"]: (one["name"], one["status"], one["OS-EXT-STS:task_state"])
            for one in (seen or {"servers": []})["servers"]
            if one["OS-EXT-STS:task_state"] or one["status"] not in ("ACTIVE", "ERROR")
        }
        kept = await loop.run_in_executor(None, _kept, storm)
        if not busy and not kept and seen is not None:
            return
        if time.monotonic() > end:
            storm.problems.append(f"does not settle: {busy}, kept: {kept}")
            return
        await asyncio.sleep(0.5)


def _kept(storm: Storm) -> dict[str, Any]:
    """By hypervisor: what is kept there, as operators see it."""
    found = storm.cloud.ask("GET", "/os-hypervisors/detail")["hypervisors"]
    return {one["hypervisor_hostname"]: one["kept"] for one in found if one["kept"]}


async def blow(storm: Storm, seconds: float) -> None:
    """The storm, until all is calm again."""
    server = storm.server
    reader = asyncio.create_task(follow(server, storm.stream))
    async with httpx.AsyncClient(
        base_url=server.url, headers={**server.headers(), **HEADERS}, timeout=30, trust_env=False
    ) as client:
        users = Users(storm, client)
        traffic = asyncio.gather(*(users.go_on() for _ in range(3)))
        await kill(storm, seconds)
        storm.is_stormy = False
        await traffic
        await settled(storm, users)
        async with asyncio.timeout(60):
            while len(storm.stream) < len(log_of(server)):
                await asyncio.sleep(0.2)
    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)


def reckon(storm: Storm, found: server_storm.Found, log: Sequence[dict[str, Any]]) -> list[str]:
    """What does not add up."""
    promised = server_storm.Storm(storm.server)
    problems = [*storm.problems, *server_storm.records(found, promised)]
    problems += server_storm.guests(found, storm.server.data / "simulated-guests.db")
    for uuid, text in found["all"]:
        server = json.loads(text)
        state = server["vm_state"] if isinstance(server["vm_state"], str) else "?"
        if not server.get("deleted") and state == "error" and not server.get("fault"):
            problems.append(f"{uuid} is an error without a reason")
    problems += [f"promise {one} is lost" for one in storm.paid - {row[0] for row in found["all"]}]
    late = iso(time.time() - LATE_S)
    problems += [f"room is kept for nobody: {tuple(row)}" for row in found["kept"] if row[3] < late]
    in_vain = sum(max(0, count - NEEDED) for count in went(found).values())
    if in_vain > NEEDED * storm.kills["reaper"]:
        problems.append(f"{in_vain} went in vain")
    if list(storm.stream) != list(log):
        problems.append(f"the stream has {len(storm.stream)} events, the log {len(log)}")
    return problems + _doubles(log)


def _doubles(log: Sequence[dict[str, Any]]) -> list[str]:
    """Facts that can be true once."""
    problems = []
    if len({event["message_id"] for event in log}) != len(log):
        problems.append("the log has a message twice")
    once = ("instance.delete.start", "instance.delete.end")
    told = Counter(
        (event["event_type"], event["resource"]["id"])
        for event in log
        if event["event_type"] in once
    )
    return problems + [f"{one} was told {n} times" for one, n in told.items() if n > 1]


def went(found: server_storm.Found) -> Counter[str]:
    """By paying server, how many went for it."""
    known = (json.loads(row[1]).get("metadata", {}) for row in found["all"])
    marks = (metadata.get("preempted_for_server") for metadata in known)
    return Counter(str(mark) for mark in marks if mark)


async def _read_postgres(url: str) -> dict[str, Any]:
    connection = await asyncpg.connect(url)
    try:
        return {name: await connection.fetch(sql) for name, sql in QUESTIONS.items()}
    finally:
        await connection.close()


def _read(server: Server, url: str | None) -> server_storm.Found:
    if url is not None:
        return asyncio.run(_read_postgres(url))
    with closing(sqlite3.connect(f"file:{server.data}/siderite.db?mode=ro", uri=True)) as db:
        return {name: db.execute(sql).fetchall() for name, sql in QUESTIONS.items()}


def storm(data: Path, url: str | None, *, seconds: float, seed: int) -> tuple[str, list[str]]:
    """A whole storm: what happened, and what does not add up after it."""
    with ExitStack() as stack:
        server = stack.enter_context(running_server(data, db=url, options=OPTIONS))
        hand = ThreadPoolExecutor(1)
        cloud = Cloud(server, HOSTS)
        script = server.api.put(
            "/simulated-hosts/v1/scripts/all", json=SCRIPT, headers=server.headers()
        )
        script.raise_for_status()
        many = range(WORKERS if url else 0)
        words = ["--data", server.data]

        def begun(name: str, *more: object) -> Process:
            file = data / f"{name}.log"
            one = hand.submit(lambda: Process(file, *more, *words, options=OPTIONS)).result()
            stack.callback(one.kill)
            return one

        workers = [begun(f"worker{n}", "worker", "--db", url) for n in many]
        reapers = [begun(f"reaper{n}", "reaper", "--name", f"reaper{n}") for n in range(REAPERS)]
        run = Storm(server, cloud, random.Random(seed), workers, reapers, hand)
        asyncio.run(blow(run, seconds))
        log = log_of(server)
        for one in reapers:
            one.kill()
        code = server.stop()
        found = _read(server, url)
        problems = reckon(run, found, log)
        if code != 0:
            problems.append(f"the last, clean stop had exit code {code}")
        gone = went(found)
        what = (
            f"{len(run.paid)} paying servers, {sum(gone.values())} went for {len(gone)} of them"
            f" (at most {max(gone.values(), default=0)} for one), {len(log)} events,"
            f" kills {dict(run.kills)}"
        )
    hand.shutdown()
    return what, problems


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill a full cloud and its reapers.")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--db", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    said = parser.parse_args()
    with place(said.db) as (data, url):
        what, problems = storm(data, url, seconds=said.seconds, seed=said.seed)
    return verdict(f"{said.db}: {what}, seed {said.seed}", problems, "nobody waits, all adds up")


if __name__ == "__main__":
    raise SystemExit(main())
