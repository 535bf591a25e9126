"""Ways to guests' screens: a token for the client, and the connection behind it."""

import asyncio
from asyncio import StreamReader
from asyncio import StreamWriter

import msgspec

from siderite.compute.domain.host import Host
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.server import Server
from siderite.compute.drivers.contract import ConsoleAddress
from siderite.compute.usecases.fleet import asking
from siderite.compute.usecases.fleet.asking import Question
from siderite.compute.usecases.server import console_tokens
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.hands import NotOurs
from siderite.compute.workers.hands import guest_of
from siderite.compute.workers.hands import place_of
from siderite.compute.workers.tunnel import through
from siderite.core.errors import Conflict
from siderite.core.errors import NotFound
from siderite.core.errors import Unavailable

PATIENCE_S = 20.0
PATH = "/consoles/vnc"


def screens_of(group: str) -> str:
    """What those workers of a conductor group serve, too, that listen; no group has such a name."""
    return f"{group}/screens"


class DriverConsoles:
    """The `Consoles` and `Screens` of servers on our own drivers."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands

    async def open(self, server: Server, protocol: str, kind: str, base: str) -> str | None:
        if (protocol, kind) != ("vnc", "novnc"):
            return None
        host = None if server.host is None else await self._hands.host(server.host)
        if host is not None and not self._hands.serves(host):
            return await self._elsewhere(server, host)
        return await self.open_here(server, protocol, base)

    async def _elsewhere(self, server: Server, host: Host) -> str | None:
        """The URL of a process of the host's group that listens."""
        question = Question("screen", host.name, server.uuid)
        pool = screens_of(host.conductor_group)
        try:
            found = await asking.ask(self._hands.ctx, host, question, PATIENCE_S, pool)
        except Unavailable as why:
            raise Unavailable(
                f"{why.sentence} Its screens take one that listens, or an API process with"
                f" worker_groups = {host.conductor_group}."
            ) from why
        return msgspec.json.decode(found, type=str | None)

    async def open_here(self, server: Server, protocol: str, base: str) -> str | None:
        """The URL of a way in by this process."""
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
                return await asyncio.open_connection(address.host, address.port)
        except (OSError, TimeoutError) as why:
            raise Unavailable(
                f"The screen at {address.host}:{address.port} on host {opened.server.host} cannot"
                f" be reached from here: {why}; check the network, or the host's vnc_listen."
            ) from why

    async def _address(self, server: Server, protocol: str) -> ConsoleAddress | None:
        try:
            place = await place_of(self._hands, server.host)
        except NotOurs as why:
            raise Conflict(f"{why}: ask for a new console.") from why
        if isinstance(place, Failed):
            raise Conflict(place.reason)
        part = place.driver.console
        if part is None:
            return None
        found = await part.console(place.at, guest_of(self._hands, server), protocol)
        if isinstance(found, Failed):
            raise Conflict(found.reason)
        return found
