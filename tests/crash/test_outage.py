"""The database goes away under a busy service and comes back: requests are told to wait, work goes
on by itself, nothing is lost or doubled, and the log stays short.
"""

import asyncio
import secrets
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import httpx

from tests.crash.storm import LOG
from tests.crash.storm import SCRIPT
from tests.crash.storm import STATES
from tests.crash.storm import Node
from tests.crash.storm import Storm
from tests.crash.storm import check_log
from tests.crash.storm import lead
from tests.support import postgres
from tests.support.ports import free_port
from tests.support.server import running_server

AWAY_S = 1.5


class Database:
    """A PostgreSQL that can be away for a while, at an address that stays."""

    def __init__(self, home: Path) -> None:
        self._bin, self._home, self._port = postgres.find_binaries(), home, free_port()
        self._password = secrets.token_hex(8)
        postgres.init(self._bin, home, password=self._password)
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://siderite:{self._password}@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        words = ("-D", self._home / "data", "-k", self._home, "-p", str(self._port))
        with (self._home / "log").open("ab") as out:
            self.process = subprocess.Popen(
                [*postgres.unprivileged(), self._bin / "postgres", *words, "-h", "127.0.0.1"],
                cwd=self._home, stdout=out, stderr=out,
            )  # fmt: skip
        assert postgres.is_ready(self.process, self._home / "data" / "postmaster.pid")

    def stop(self, sign: signal.Signals) -> None:
        self.process.send_signal(sign)
        self.process.wait(60)


@contextmanager
def database():
    # Not in the tests' own folder: the account that it runs as could not reach it there.
    with postgres.scratch() as home:
        base = Database(home)
        try:
            yield base
        finally:
            if base.process.poll() is None:
                base.stop(signal.SIGQUIT)


def test_an_outage_of_the_database_is_waited_for(tmp_path):
    with (
        ThreadPoolExecutor(1) as hand,  # whoever starts the database must outlive it
        database() as base,
        running_server(tmp_path, db=base.url) as server,
    ):
        run = Storm(server, cycles=10**9)
        waits, (rows, final) = asyncio.run(_through_an_outage(base, run, hand))
        assert check_log(rows, final, run) + run.problems == []
        assert {final[node.uuid] for node in run.nodes} == {"available"}
        assert waits
        assert set(waits) == {"2"}
        lines = server.log.read_text().splitlines()
        assert not [line for line in lines if "Traceback" in line or len(line) > 1000]
        assert server.stop() == 0


async def _through_an_outage(base, run, hand):
    """Lead nodes through lives while the database is away; what `Retry-After` said, and what is in
    the database when all is over: no work is left, and each fact has its place in the log.
    """
    server, waits = run.server, []
    server.script("all", **SCRIPT)
    loop = asyncio.get_running_loop()
    async with httpx.AsyncClient(
        base_url=server.url, headers=server.headers("1.109"), timeout=60, trust_env=False
    ) as client:
        for _ in range(5):
            made = await client.post("/baremetal/v1/nodes", json={"driver": "fake-hardware"})
            run.nodes.append(Node(made.json()["uuid"]))
        leaders = asyncio.gather(*(lead(run, node, client) for node in run.nodes))
        while not all(node.cycles for node in run.nodes):
            await asyncio.sleep(0.05)
        base.stop(signal.SIGINT)  # cleanly; tests/crash/failover.py has a crash
        until = loop.time() + AWAY_S
        while loop.time() < until:
            reply = await client.get("/baremetal/v1/nodes")
            assert reply.status_code == 503, reply.text
            waits.append(reply.headers["retry-after"])
            await asyncio.sleep(0.2)
        await loop.run_in_executor(hand, base.start)
        for node in run.nodes:
            node.cycles = 0
        run.cycles = 0
        async with asyncio.timeout(120):
            await leaders
            while True:
                rows, final, left = await _read(base.url)
                if not left and None not in {row[0] for row in rows}:
                    return waits, (rows, final)
                await asyncio.sleep(0.2)


async def _read(url):
    """The log, the nodes' states, and work that is left over."""
    connection = await asyncpg.connect(url)
    try:
        rows = [tuple(row) for row in await connection.fetch(LOG)]
        final = {row[0]: row[1] for row in await connection.fetch(STATES)}
        left = [tuple(row) for row in await connection.fetch("SELECT lane, kind, reason FROM work")]
    finally:
        await connection.close()
    return rows, final, left
