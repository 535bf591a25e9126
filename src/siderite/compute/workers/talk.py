"""Asks drivers on behalf of a client that waits for the answer."""

import asyncio

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.server import Server
from siderite.compute.usecases.acting import Unsupported
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.hands import Place
from siderite.compute.workers.hands import guest_of
from siderite.compute.workers.hands import place_of
from siderite.core.errors import Conflict
from siderite.core.errors import Unavailable
from siderite.core.ids import new_uuid

PATIENCE_S = 20.0


class DriverTalk:
    """The `Talk` of servers on our own drivers."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands

    async def _place(self, server: Server) -> Place:
        place = await place_of(self._hands, server.host)
        if isinstance(place, Failed):
            raise Conflict(f"Instance {server.uuid} is not ready")
        return place

    async def console_log(self, server: Server, lines: int | None) -> str:
        place = await self._place(server)
        part = place.driver.console_log
        if part is None:
            raise Unsupported("Unable to get console log, functionality not implemented.")
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await part.log(place.at, guest_of(self._hands, server), lines)
        except TimeoutError as why:
            raise Unavailable(f"Host {server.host} does not answer.") from why

    async def crash_dump(self, server: Server) -> None:
        place = await self._place(server)
        part = place.driver.crash_dump
        if part is None:
            raise Unsupported(f"Driver {place.driver.card.name} cannot make guests dump.")
        try:
            async with asyncio.timeout(PATIENCE_S):
                outcome = await part.crash_dump(place.at, guest_of(self._hands, server), new_uuid())
        except TimeoutError as why:
            raise Unavailable(f"Host {server.host} does not answer.") from why
        if not isinstance(outcome, Done):
            raise Conflict(outcome.reason, retry_after_s=2)
