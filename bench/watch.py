"""Waiting for nodes: one poller lists all nodes of a fleet, as Nova's driver does, for all waiters.

So that polling is neither the load nor the brake, it pauses three times as long as its last request
took (between 5 ms and 1 s): a quarter of one connection's time, whoever answers. Used by `cycle`
and `power`.
"""

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from bench.address import Address
from bench.client import Client
from bench.fleet import Fleet

_PAUSE_FACTOR = 3
_PAUSE_MIN_S, _PAUSE_MAX_S = 0.005, 1.0
# What real clients do on "locked" and "no free worker": ask again.
_BUSY = {409, 503}
_FIELDS = "provision_state,target_provision_state,power_state,target_power_state,last_error"


class NodeFailed(Exception):
    """A node went where the verb should not lead, or the verb was refused."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A node as the last poll saw it."""

    provision_state: str | None
    target_provision_state: str | None
    power_state: str | None
    target_power_state: str | None
    last_error: str | None

    @property
    def has_failed(self) -> bool:
        """Whether it is in a state that only an operator leads out of."""
        state = self.provision_state or ""
        if state == "enroll":
            # A failed verification is visible only so.
            return bool(self.last_error) and self.target_provision_state is None
        return state == "error" or state.endswith("failed")


Reached = Callable[[Seen], bool]


def rests_in(state: str) -> Reached:
    """Whether a node is in a provision state, and bound for no other."""
    return lambda seen: seen.provision_state == state and seen.target_provision_state is None


def has_power(state: str) -> Reached:
    """Whether a node has a power state, and is bound for no other."""
    return lambda seen: seen.power_state == state and seen.target_power_state is None


class Watch:
    """Polls a fleet while it is open."""

    def __init__(self, address: Address, fleet: Fleet) -> None:
        self._address = address
        self._fleet = fleet
        self._waiting: dict[str, tuple[Reached, asyncio.Future[None]]] = {}
        self._task: asyncio.Task[None] | None = None
        self.polls = 0

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._poll())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def until(self, uuid: str, reached: Reached) -> None:
        """Back when the node is there; raises NodeFailed when it is stuck elsewhere."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[uuid] = (reached, future)
        await future

    async def _poll(self) -> None:
        path = (
            f"/v1/nodes?fields=uuid,{_FIELDS}&limit=1000"
            f"&resource_class={self._fleet.resource_class}"
        )
        async with Client(self._address) as client:
            while True:
                begin = time.perf_counter()
                reply = await client.send("GET", path)
                took_s = time.perf_counter() - begin
                self.polls += 1
                if reply.status == 200:
                    for node in json.loads(reply.body)["nodes"]:
                        self._look(node)
                pause_s = min(max(took_s * _PAUSE_FACTOR, _PAUSE_MIN_S), _PAUSE_MAX_S)
                await asyncio.sleep(pause_s)

    def _look(self, node: dict[str, str | None]) -> None:
        uuid = node["uuid"] or ""
        if uuid not in self._waiting:
            return
        reached, future = self._waiting[uuid]
        seen = Seen(**{name: node[name] for name in _FIELDS.split(",")})
        if reached(seen):
            del self._waiting[uuid]
            future.set_result(None)
        elif seen.has_failed:
            del self._waiting[uuid]
            future.set_exception(NodeFailed(f"{uuid} is {seen.provision_state}: {seen.last_error}"))


async def ask(client: Client, uuid: str, what: str, target: str) -> None:
    """PUT a target state; again, with longer pauses, while the node is busy."""
    body = json.dumps({"target": target}).encode()
    pause_s = 0.1
    while True:
        reply = await client.send("PUT", f"/v1/nodes/{uuid}/states/{what}", body)
        if reply.status == 202:
            return
        if reply.status not in _BUSY:
            raise NodeFailed(f"{target} of {uuid}: {reply.status} {reply.body[:300].decode()}")
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, 2.0)
