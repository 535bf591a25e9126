"""What the API asks of a running guest while the client waits: Protocols, so that the web needs to
know no driver.
"""

from asyncio import StreamReader
from asyncio import StreamWriter
from typing import Protocol

import msgspec

from siderite.compute.domain.host import Host
from siderite.compute.domain.network import Port
from siderite.compute.domain.server import Server
from siderite.compute.domain.usage import Usage


class MigrationProgress(msgspec.Struct, frozen=True):
    """How far a live migration is, in bytes: total, processed, remaining."""

    memory: tuple[int, int, int]
    disk: tuple[int, int, int] = (0, 0, 0)


class Talk(Protocol):
    """Asks a server's driver, and waits for no longer than a request may take."""

    async def console_log(self, server: Server, lines: int | None) -> str:
        """What the guest printed; the last lines, or all."""
        ...

    async def crash_dump(self, server: Server) -> None:
        """Have the guest dump itself."""
        ...

    async def attach(self, server: Server, port: Port) -> None:
        """Give the guest an interface, if it has a host."""
        ...

    async def detach(self, server: Server, port: Port) -> None:
        """Take an interface from the guest, if it has a host."""
        ...

    async def diagnostics(self, server: Server) -> Usage:
        """What the guest has used so far."""
        ...

    async def migration(self, server: Server) -> MigrationProgress | None:
        """How far the live migration of a server is; None if its host cannot tell now."""
        ...

    async def check_host(self, host: Host) -> str | None:
        """Ask a host now; why it cannot be used, if it cannot."""
        ...


class Consoles(Protocol):
    """Ways to a server's screen or serial line."""

    async def open(self, server: Server, protocol: str, kind: str, base: str) -> str | None:
        """The URL of a new way in, good for a while; None if there is no console of this kind."""
        ...


class Screens(Protocol):
    """What is behind the ways that were given out."""

    async def connect(self, token: str) -> tuple[StreamReader, StreamWriter]:
        """The screen that a token opens."""
        ...
