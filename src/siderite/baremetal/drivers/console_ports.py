"""Where a process listens for those who connect to consoles: a port each."""

import asyncio
import contextlib
from collections.abc import Awaitable
from collections.abc import Callable

import msgspec

from siderite.baremetal.domain.hardware import ConsoleInfo
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.drivers.contract import Endpoint

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

_LONGEST_LINE = 65536


class ConsolePorts(msgspec.Struct, frozen=True):
    """An address, and the ports that may be used; none stands for any that is free."""

    address: str = "127.0.0.1"
    ports: tuple[int, ...] = (0,)

    async def open(self, at: Endpoint, talk: Talk, port: int = 0) -> asyncio.Server:
        """A listener on this port, or on the first that is free."""
        for number in (port,) if port else self.ports:
            with contextlib.suppress(OSError):
                return await self._listen(talk, number)
        what = f"port {port} is taken" if port else "none of console_ports is free"
        remedy = "Choose another port in driver_info." if port else "Widen console_ports."
        raise Refused(at.bmc, "console start", f"{what} on {self.address}", remedy)

    async def _listen(self, talk: Talk, number: int) -> asyncio.Server:
        """A listener; none is left behind by a caller that does not wait for it."""
        server = await asyncio.start_server(
            talk, self.address, number, limit=_LONGEST_LINE, start_serving=False
        )
        try:
            await server.start_serving()
        except BaseException:
            server.close()
            raise
        return server


def where(server: asyncio.Server) -> ConsoleInfo:
    """How one connects to a listener."""
    host, port = server.sockets[0].getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return ConsoleInfo("socat", f"tcp://{shown}:{port}")
