"""Closed loops: clients that send the next request once the last is answered, for a given time.

Called by the workloads. `run` is the one place where an event loop is made (uvloop, as the service
has it).
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from typing import NamedTuple
from typing import TypeVar

import uvloop

from bench.address import Address
from bench.client import Client

T = TypeVar("T")


class Request(NamedTuple):
    """What a client sends, and the status that means it was done."""

    method: str
    path: str
    body: bytes
    expect: int


@dataclass(frozen=True, slots=True)
class Tally:
    """What came back: expected answers, the others by status, and how long it took."""

    ok: int
    others: Counter[int]
    elapsed_s: float

    @property
    def rate(self) -> float:
        """Expected answers per second."""
        return self.ok / self.elapsed_s


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in a new event loop."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


async def for_seconds(
    address: Address, make: Callable[[int], Request], *, clients: int, seconds: float
) -> Tally:
    """Let so many clients send what `make(client)` gives until the time is up."""
    others: Counter[int] = Counter()
    ok = 0
    async with AsyncExitStack() as stack:
        crowd = [await stack.enter_async_context(Client(address)) for _ in range(clients)]
        begin = time.perf_counter()
        until = begin + seconds

        async def loop(number: int, client: Client) -> None:
            nonlocal ok
            while time.perf_counter() < until:
                request = make(number)
                reply = await client.send(request.method, request.path, request.body)
                if reply.status == request.expect:
                    ok += 1
                else:
                    others[reply.status] += 1

        async with asyncio.TaskGroup() as group:
            for number, client in enumerate(crowd):
                group.create_task(loop(number, client))
        return Tally(ok, others, time.perf_counter() - begin)


async def all_of(address: Address, requests: list[Request], *, clients: int) -> Tally:
    """Send each of the requests once, so many at a time."""
    others: Counter[int] = Counter()
    waiting = iter(requests)
    begin = time.perf_counter()

    async def worker() -> None:
        async with Client(address) as client:
            for request in waiting:
                reply = await client.send(request.method, request.path, request.body)
                if reply.status != request.expect:
                    others[reply.status] += 1

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(worker())
    return Tally(len(requests) - others.total(), others, time.perf_counter() - begin)
