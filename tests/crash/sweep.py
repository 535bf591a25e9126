"""A sweep of the power watch over many nodes, measured from outside: how long it takes, what memory
the service needs, and what a client who asks meanwhile notices.

    python -m tests.crash.sweep --nodes 10000      (also by scripts/soak)
"""

import argparse
import asyncio
import http.client
import shutil
import sqlite3
import tempfile
import time
from contextlib import ExitStack
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.support.server import Server
from tests.support.server import running_server

OLD = "1.10"
"""Nodes made at this version are available at once, and so are watched."""


@dataclass(frozen=True)
class Figures:
    """What was measured."""

    nodes: int
    seconds: float
    resident_mb: float
    idle_p99_ms: float
    sweep_p99_ms: float
    asked: int

    def __str__(self) -> str:
        times = self.sweep_p99_ms / self.idle_p99_ms
        return (
            f"{self.nodes} nodes swept in {self.seconds:.1f} s, {self.resident_mb:.0f} MB resident;"
            f" GET p99 {self.idle_p99_ms:.2f} ms idle, {self.sweep_p99_ms:.2f} ms meanwhile"
            f" ({times:.1f} x, {self.asked} requests)"
        )


async def enrol(server: Server, count: int) -> list[str]:
    """Nodes that are watched; their power was never read, so that the first sweep records it."""
    headers = server.headers(OLD)
    async with httpx.AsyncClient(
        base_url=server.url, headers=headers, timeout=60, trust_env=False
    ) as client:

        async def make(numbers: range) -> list[str]:
            made = []
            for _ in numbers:
                body = {"driver": "fake-hardware", "driver_info": {"rack": "r1"}}
                reply = await client.post("/baremetal/v1/nodes", json=body)
                assert reply.status_code == 201, reply.text
                made.append(reply.json()["uuid"])
            return made

        parts = await asyncio.gather(*(make(range(n, count, 16)) for n in range(16)))
    return [uuid for part in parts for uuid in part]


def swept(data: Path) -> int:
    """How many nodes were read since they were made."""
    with closing(sqlite3.connect(f"file:{data}/siderite.db?mode=ro", uri=True)) as db, db:
        return int(db.execute("SELECT count(*) FROM power_watch WHERE pause > 0").fetchone()[0])


def resident_mb(pid: int) -> float:
    """The most memory that the process ever had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


class Client:
    """Asks for nodes, one after the other, and notes how long each answer took."""

    def __init__(self, server: Server, uuids: list[str]) -> None:
        self._line = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
        self._headers = server.headers("1.115")
        self._uuids = uuids
        self.times: list[float] = []

    def ask(self) -> None:
        """One more."""
        uuid = self._uuids[len(self.times) % len(self._uuids)]
        began = time.perf_counter()
        self._line.request("GET", f"/baremetal/v1/nodes/{uuid}", headers=self._headers)
        reply = self._line.getresponse()
        reply.read()
        self.times.append(time.perf_counter() - began)
        assert reply.status == 200, reply.status
        time.sleep(0.001)  # a client, not a flood

    def p99_ms(self) -> float:
        """99 of 100 answers came within this time."""
        return sorted(self.times)[int(len(self.times) * 0.99)] * 1000

    def close(self) -> None:
        """Hang up."""
        self._line.close()


def sweep(data: Path, *, nodes: int) -> Figures:
    """Make the nodes; then ask a service that sweeps them all and one that does not, in turns:
    whatever else the machine does meanwhile, both have it.
    """
    still, busy = data / "still", data / "busy"
    still.mkdir()
    with running_server(still, options={"power_watch_interval_s": "0"}) as server:
        uuids = asyncio.run(enrol(server, nodes))
    shutil.copytree(still, busy)
    with ExitStack() as stack:
        idle = stack.enter_context(running_server(still, options={"power_watch_interval_s": "0"}))
        server = stack.enter_context(
            running_server(busy, options={"power_watch_interval_s": "3600"})
        )
        clients = [Client(idle, uuids), Client(server, uuids)]
        began = time.monotonic()
        read = 0
        while read < nodes:
            assert time.monotonic() - began < 300, f"{read} of {nodes} were read"
            for _ in range(50):
                for client in clients:
                    client.ask()
            read = swept(server.data)
        seconds = time.monotonic() - began
        calm, pressed = (client.p99_ms() for client in clients)
        for client in clients:
            client.close()
        return Figures(
            nodes, seconds, resident_mb(server.pid), calm, pressed, len(clients[1].times)
        )


def main() -> int:
    """Measure, print, and say whether it is good enough."""
    parser = argparse.ArgumentParser(description="Sweep the power of many nodes.")
    parser.add_argument("--nodes", type=int, default=10_000)
    said = parser.parse_args()
    with tempfile.TemporaryDirectory() as data:
        found = sweep(Path(data), nodes=said.nodes)
    print(found)
    good = found.seconds < 60 and found.resident_mb < 400
    return 0 if good and found.sweep_p99_ms < 3 * found.idle_p99_ms else 1


if __name__ == "__main__":
    raise SystemExit(main())
