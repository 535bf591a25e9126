"""Asks drivers on behalf of a client that waits for the answer."""

import asyncio
from collections.abc import Awaitable
from collections.abc import Callable
from typing import TypeVar

from siderite.compute.domain.host import Host
from siderite.compute.domain.network import Port
from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.server import Server
from siderite.compute.domain.talk import MigrationProgress
from siderite.compute.domain.usage import Usage
from siderite.compute.drivers.contract import CLIENT_PATIENCE_S
from siderite.compute.usecases.server.acting import Unsupported
from siderite.compute.usecases.server.acting import not_ready
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.hands import Place
from siderite.compute.workers.hands import guest_of
from siderite.compute.workers.hands import nic_of
from siderite.compute.workers.hands import place_of
from siderite.compute.workers.host_watch import HostWatch
from siderite.core.errors import Conflict
from siderite.core.errors import Unavailable
from siderite.core.ids import new_uuid

PATIENCE_S = CLIENT_PATIENCE_S
_AGAIN_S = 0.02
T = TypeVar("T")


class DriverTalk:
    """The `Talk` of servers on our own drivers."""

    def __init__(self, hands: Hands, watch: HostWatch) -> None:
        self._hands = hands
        self._watch = watch

    async def check_host(self, host: Host) -> str | None:
        return await self._watch.ask(host)

    async def _place(self, server: Server) -> Place:
        place = await place_of(self._hands, server.host)
        if isinstance(place, Failed):
            why = "It has no host" if server.host is None else "Its host is not known any more"
            raise not_ready(server, why)
        return place

    async def console_log(self, server: Server, lines: int | None) -> str:
        place = await self._place(server)
        part = place.driver.console_log
        if part is None:
            raise Unsupported("Unable to get console log, functionality not implemented.")
        return await _soon(server, part.log(place.at, guest_of(self._hands, server), lines))

    async def crash_dump(self, server: Server) -> None:
        place = await self._place(server)
        part = place.driver.crash_dump
        if part is None:
            raise Unsupported(f"Driver {place.driver.card.name} cannot make guests dump.")
        guest = guest_of(self._hands, server)
        token = new_uuid()
        await _done(server, lambda: part.crash_dump(place.at, guest, token))

    async def diagnostics(self, server: Server) -> Usage:
        place = await self._place(server)
        part = place.driver.diagnostics
        if part is None:
            raise Unsupported(f"Driver {place.driver.card.name} keeps no account of its guests.")
        found = await _soon(server, part.diagnostics(place.at, guest_of(self._hands, server)))
        if isinstance(found, Failed):
            raise Conflict(found.reason)
        return found

    async def migration(self, server: Server) -> MigrationProgress | None:
        place = await self._place(server)
        mover = place.driver.live_migrate
        if mover is None:
            return None
        return await _soon(server, mover.progress(place.at, guest_of(self._hands, server)))

    async def attach(self, server: Server, port: Port) -> None:
        place = await self._place(server)
        part = place.driver.interfaces
        if part is None:
            raise Unsupported(f"Driver {place.driver.card.name} cannot attach interfaces.")
        nic = nic_of(self._hands.ctx.network(port.network), port)
        guest = guest_of(self._hands, server)
        await _done(server, lambda: part.attach(place.at, guest, nic, port.id))

    async def detach(self, server: Server, port: Port) -> None:
        place = await self._place(server)
        part = place.driver.interfaces
        if part is None:
            raise Unsupported(f"Driver {place.driver.card.name} cannot detach interfaces.")
        nic = nic_of(self._hands.ctx.network(port.network), port)
        guest = guest_of(self._hands, server)
        token = f"{port.id}/detach"
        await _done(server, lambda: part.detach(place.at, guest, nic, token))


async def _soon(server: Server, answer: Awaitable[T]) -> T:
    """The driver's answer, if it comes while a client can wait."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await answer
    except TimeoutError as why:
        raise Unavailable(f"Host {server.host} does not answer.") from why


async def _done(server: Server, ask: Callable[[], Awaitable[Outcome]]) -> None:
    """Ask until it is done, as long as a client can wait; a token makes it one and the same."""

    async def asked() -> Outcome:
        while True:
            outcome = await ask()
            if not isinstance(outcome, Wait):
                return outcome
            await asyncio.sleep(min(max(outcome.again_in, _AGAIN_S), 1.0))

    outcome = await _soon(server, asked())
    if not isinstance(outcome, Done):
        raise Conflict(outcome.reason, retry_after_s=2)
