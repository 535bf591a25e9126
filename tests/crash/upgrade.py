"""Processes of an earlier version and of this one, side by side on one PostgreSQL.

The earlier version is taken from the history: by default the commit before the newest migration. It
answers and works; then this version is started beside it and migrates. Clients lead nodes through
whole lives by all four that answer, and follow the event stream. Then the old ones are stopped, one
after the other, as in a rolling upgrade. Promises, log and stream must agree afterwards.

    python -m tests.crash.upgrade [--from COMMIT]        (scripts/soak; needs the history)
"""

import argparse
import asyncio
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from tests.crash import storm
from tests.crash.cluster import follow
from tests.crash.cluster import settled
from tests.crash.failover import Members
from tests.crash.failover import cycled
from tests.crash.failover import ready
from tests.crash.failover import service
from tests.crash.lan import Front
from tests.crash.verdict import verdict
from tests.events.test_process import log_of
from tests.support.postgres import running_postgres

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 240.0
SCRIPT = {"latency_s": {"deploy.write_image": [0.0, 0.5], "*": [0.0, 0.1]}}


def git(*words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True).stdout


def before_newest_migration() -> str:
    """The last commit with another schema than today's."""
    newest = git("log", "-1", "--format=%H", "--", "src/siderite/**/migrations/*.sql")
    return newest.decode().strip() + "^"


def unpack(commit: str, folder: Path) -> str:
    """The program as it was; where it can be imported from."""
    subprocess.run(["tar", "-x", "-C", folder], input=git("archive", commit, "src"), check=True)
    return str(folder / "src")


async def lead_all(old: Members, stack: ExitStack, start: Any, db: str, nodes: int) -> list[str]:
    """Lives by old and new; what does not add up."""
    run: Any = storm.Storm(server=None, cycles=10**9)  # type: ignore[arg-type]
    stream: list[dict[str, Any]] = []
    await ready(list(old.apis))
    front = Front(next(iter(old.apis)))
    front.ask("PUT", "/simulator/v1/scripts/all", SCRIPT)
    for _ in range(nodes):
        made = front.ask("POST", "/baremetal/v1/nodes", {"driver": "fake-hardware"})
        run.nodes.append(storm.Node(made.json()["uuid"]))
    leaders = [asyncio.create_task(_lead(run, n, old, front)) for n in range(0, nodes, 2)]
    async with asyncio.timeout(PATIENCE_S):
        new = stack.enter_context(start())
        await ready(list(new.apis))
        follower = asyncio.create_task(follow([*old.apis, *new.apis], front.headers(), stream))
        leaders += [asyncio.create_task(_lead(run, n, new, front)) for n in range(1, nodes, 2)]
        await cycled(run)  # side by side
        for leader in leaders[: (nodes + 1) // 2]:
            leader.cancel()
        await asyncio.gather(*leaders[: (nodes + 1) // 2], return_exceptions=True)
        codes = await asyncio.to_thread(_stop_one_by_one, old)
        leaders += [asyncio.create_task(_lead(run, n, new, front)) for n in range(0, nodes, 2)]
        await cycled(run)  # alone
        run.cycles = 0
        await asyncio.gather(*leaders, return_exceptions=True)
        await settled(db)
        now = Front(next(iter(new.apis)))
        log = log_of(now)
        while len(stream) < len(log):
            await asyncio.sleep(0.1)
    follower.cancel()
    problems = [f"an old process ended with {code}" for code in codes if code]
    problems += [] if stream == log else ["the stream is not the log"]
    return problems + run.problems + await _reckon(db, run)


async def _lead(run: Any, n: int, members: Members, front: Front) -> None:
    url = list(members.apis)[n // 2 % len(members.apis)]
    headers = front.headers("1.109")
    async with httpx.AsyncClient(
        base_url=url, headers=headers, timeout=30, trust_env=False
    ) as client:
        await storm.lead(run, run.nodes[n], client)


def _stop_one_by_one(members: Members) -> list[int]:
    codes = []
    for process in members.all:
        process.terminate()
        codes.append(process.wait(90))
    return codes


async def _reckon(db: str, run: Any) -> list[str]:
    connection = await asyncpg.connect(db)
    rows = [tuple(row) for row in await connection.fetch(storm.LOG)]
    final = {row[0]: row[1] for row in await connection.fetch(storm.STATES)}
    await connection.close()
    return storm.check_log(rows, final, run)


def upgrade(commit: str, nodes: int) -> list[str]:
    """All of it; what does not add up."""
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(running_postgres())
        source = unpack(commit, place)
        old = stack.enter_context(service(place, server.url(), source))
        problems = asyncio.run(
            lead_all(old, stack, lambda: service(place, server.url()), server.url(), nodes)
        )
        problems += [
            f"{log.name}: {log.read_text()[-1500:]}"
            for log in place.glob("*.log")
            if "Traceback" in log.read_text()
        ]
        return problems


def main() -> int:
    parser = argparse.ArgumentParser(description="An earlier version and this one, side by side.")
    parser.add_argument("--from", dest="commit", default="", help="the earlier version")
    parser.add_argument("--nodes", type=int, default=12)
    said = parser.parse_args()
    began, commit = time.monotonic(), said.commit or before_newest_migration()
    problems = upgrade(commit, said.nodes)
    took = time.monotonic() - began
    return verdict(f"from {commit[:12]}, {said.nodes} nodes, {took:.0f} s", problems)


if __name__ == "__main__":
    raise SystemExit(main())
