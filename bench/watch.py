"""Waiting for nodes: one poller lists the nodes of a fleet, as Nova's driver does, for all waiters;
or each asks for its own node, as `openstack baremetal node ... --wait` does. Used by `cycle` and
`power`.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from collections.abc import Awaitable
from collections.abc import Callable
from contextlib import asynccontextmanager

import msgspec

from bench.address import Address
from bench.client import Client
from bench.fleet import Fleet
from bench.polling import Polling
from bench.polling import rest

# What real clients do on "locked" and "no free worker": ask again.
_BUSY = {409, 503}


class NodeFailed(Exception):
    """A node went where the verb should not lead, or the verb was refused."""


class Seen(msgspec.Struct, frozen=True):
    """A node as the last poll saw it."""

    uuid: str
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


class _Page(msgspec.Struct, frozen=True):
    nodes: list[Seen]


_FIELDS = ",".join(Seen.__struct_fields__)
_one = msgspec.json.Decoder(Seen).decode
_many = msgspec.json.Decoder(_Page).decode
Reached = Callable[[Seen], bool]
Wait = Callable[[Client, str, Reached], Awaitable[None]]


def rests_in(state: str) -> Reached:
    """Whether a node is in a provision state, and bound for no other."""
    return lambda seen: seen.provision_state == state and seen.target_provision_state is None


def has_power(state: str) -> Reached:
    """Whether a node has a power state, and is bound for no other."""
    return lambda seen: seen.power_state == state and seen.target_power_state is None


class Watch(Polling[Seen]):
    """Polls fleets while it is open, in turn: those of whose nodes one is waited for."""

    def __init__(self, address: Address, *fleets: Fleet) -> None:
        super().__init__()
        self._address = address
        self._fleet_of = {fleet.uuid(n): fleet for fleet in fleets for n in range(fleet.size)}

    async def wait(self, _: Client, uuid: str, reached: Reached) -> None:
        """`until`, for those who could ask themselves."""
        await self.until(uuid, reached)

    async def _poll(self) -> None:
        async with Client(self._address) as client:
            while True:
                fleets = dict.fromkeys(self._fleet_of[uuid] for uuid in self._waiting)
                if not fleets:
                    await rest()
                for fleet in fleets:
                    begin = time.perf_counter()
                    await self._list(client, fleet)
                    await rest(time.perf_counter() - begin)

    async def _list(self, client: Client, fleet: Fleet) -> None:
        reply = await client.send(
            "GET",
            f"/v1/nodes?fields={_FIELDS}&limit=1000&resource_class={fleet.resource_class}",
        )
        if reply.status != 200:
            return
        for seen in _many(reply.body).nodes:
            if seen.uuid in self._waiting:
                self._look(seen.uuid, seen)

    def _failure(self, uuid: str, seen: Seen) -> Exception | None:
        return _failure(seen)


async def wait_alone(client: Client, uuid: str, reached: Reached) -> None:
    """Ask for one node until it is there, with a poller's pauses; raises when it has failed."""
    while True:
        begin = time.perf_counter()
        reply = await client.send("GET", f"/v1/nodes/{uuid}?fields={_FIELDS}")
        took_s = time.perf_counter() - begin
        if reply.status == 200:
            seen = _one(reply.body)
            if reached(seen):
                return
            if (failure := _failure(seen)) is not None:
                raise failure
        await rest(took_s)


@asynccontextmanager
async def waiting(address: Address, *fleets: Fleet, each_alone: bool) -> AsyncIterator[Wait]:
    """How nodes of fleets are waited for: by everyone for its own, or by one for all."""
    if each_alone:
        yield wait_alone
        return
    async with Watch(address, *fleets) as watch:
        yield watch.wait


def _failure(seen: Seen) -> NodeFailed | None:
    if not seen.has_failed:
        return None
    return NodeFailed(f"{seen.uuid} is {seen.provision_state}: {seen.last_error}")


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
