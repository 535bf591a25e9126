"""Ways to guests' screens: a token for the client, and the connection behind it."""

import asyncio
from asyncio import StreamReader
from asyncio import StreamWriter

from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.server import Server
from siderite.compute.drivers.contract import ConsoleAddress
from siderite.compute.usecases import console_tokens
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.hands import guest_of
from siderite.compute.workers.hands import place_of
from siderite.compute.workers.tunnel import through
from siderite.core.errors import Conflict
from siderite.core.errors import NotFound
from siderite.core.errors import Unavailable

PATIENCE_S = 20.0
PATH = "/consoles/vnc"


class DriverConsoles:
    """The `Consoles` and `Screens` of servers on our own drivers."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands

    async def open(self, server: Server, protocol: str, kind: str, base: str) -> str | None:
        if (protocol, kind) != ("vnc", "novnc"):
            return None
        if await self._address(server, protocol) is None:
            return None
        token = await console_tokens.issue(self._hands.ctx, server, protocol)
        return f"{base}{PATH}?token={token}"

    async def connect(self, token: str) -> tuple[StreamReader, StreamWriter]:
        opened = await console_tokens.redeem(self._hands.ctx, token)
        if opened is None:
            raise NotFound("This console's time is over, or its server is gone: ask for a new one.")
        address = await self._address(opened.server, opened.protocol)
        if address is None:
            raise NotFound("The server moved to a host without consoles.")
        try:
            async with asyncio.timeout(PATIENCE_S):
                if address.command:
                    return await through(address.command)
                if address.path:
                    return await asyncio.open_unix_connection(address.path)
                return await asyncio.open_connection(address.host, address.port)
        except (OSError, TimeoutError) as why:
            raise Unavailable(
                f"The screen at {address.host}:{address.port} on host {opened.server.host} cannot"
                f" be reached from here: {why}; check the network, or the host's vnc_listen."
            ) from why

    async def _address(self, server: Server, protocol: str) -> ConsoleAddress | None:
        place = await place_of(self._hands, server.host)
        if isinstance(place, Failed):
            raise Conflict(place.reason)
        part = place.driver.console
        if part is None:
            return None
        found = await part.console(place.at, guest_of(self._hands, server), protocol)
        if isinstance(found, Failed):
            raise Conflict(found.reason)
        return found
