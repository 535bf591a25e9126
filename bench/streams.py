"""The workload of streams: 50 readers of a log that grows by 200 events a second, and how late they
hear of each.
"""

import asyncio
import json
import time
from datetime import datetime

from bench import load
from bench.client import Client
from bench.figure import Figure
from bench.figure import Measured
from bench.figure import Unit
from bench.stage import Stage

READERS = 50
EVENTS_PER_S = 200
_PER_REQUEST = 2  # a change of maintenance is announced as start and end


def streams(stage: Stage) -> Measured:
    """The lag that 99 of 100 events stay below, over all readers."""
    return load.run(_streams(stage))


async def _streams(stage: Stage) -> Measured:
    fleet = stage.new_fleet(20)
    await load.all_of(stage.address, fleet.creates(), clients=4)
    lags: list[float] = []
    ready = asyncio.Semaphore(0)
    newest = await _newest(stage)
    readers = [asyncio.create_task(_read(stage, newest, lags, ready)) for _ in range(READERS)]
    try:
        for _ in readers:
            await ready.acquire()
        samples, counts = [], []
        for _ in range(stage.plan.rounds):
            lags.clear()
            sent = await _write(stage, [fleet.uuid(n) for n in range(fleet.size)])
            await _all_heard(lags, sent * _PER_REQUEST * READERS)
            counts.append(len(lags) / READERS)
            samples.append(sorted(lags)[int(len(lags) * 0.99)])
        rate = max(counts) / max(1.0, stage.plan.seconds)
        note = f"{READERS} readers, {rate:.0f} events/s, each heard by all"
        return Measured(Figure(Unit.TIME, tuple(samples), notes=(note,)))
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)


async def _all_heard(lags: list[float], count: int) -> None:
    async with asyncio.timeout(60):
        while len(lags) < count:  # noqa: ASYNC110 - too many to ring a bell for each
            await asyncio.sleep(0.05)


async def _write(stage: Stage, uuids: list[str]) -> int:
    """Change nodes at a steady pace; how many requests it took."""
    seconds = max(1.0, stage.plan.seconds)
    count = int(EVENTS_PER_S / _PER_REQUEST * seconds)
    async with Client(stage.address) as client:
        begin = time.perf_counter()
        for n in range(count):
            pause = begin + n * _PER_REQUEST / EVENTS_PER_S - time.perf_counter()
            if pause > 0:
                await asyncio.sleep(pause)
            path = f"/v1/nodes/{uuids[n % len(uuids)]}/maintenance"
            reply = await client.send("PUT", path, b'{"reason":"bench"}')
            assert reply.status == 202, reply
    return count


async def _read(stage: Stage, newest: int, lags: list[float], ready: asyncio.Semaphore) -> None:
    """Follow the stream from what was its end, and note how late each event comes."""
    address = stage.address
    reader, writer = await asyncio.open_connection(address.host, address.port, limit=2**20)
    head = [
        f"GET /events/v1/events?after={newest} HTTP/1.1",
        f"Host: {address.host}",
        "Accept: text/event-stream",
        f"X-Auth-Token: {address.token}",
    ]
    writer.write("\r\n".join([*head, "", ""]).encode())
    try:
        while line := await reader.readline():
            if line.startswith(b": alive"):
                ready.release()
            elif line.startswith(b"data: "):
                at = datetime.fromisoformat(json.loads(line[6:])["time"]).timestamp()
                lags.append(time.time() - at)
    finally:
        writer.close()


async def _newest(stage: Stage) -> int:
    async with Client(stage.address.root_of("/events")) as client:
        after = 0
        while True:
            reply = await client.send("GET", f"/v1/events?after={after}&limit=1000", b"")
            reached = int(json.loads(reply.body)["next"])
            if reached == after:
                return after
            after = reached
