"""Consoles of simulated machines: a TCP port each, on which the machine tells what it does.

As with a serial line over a terminal server, the listener belongs to the process that opened it
and goes with it; the machine does not mind.
"""

import asyncio
from functools import partial

from siderite.baremetal.domain.hardware import ConsoleInfo
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.drivers.console_ports import ConsolePorts
from siderite.baremetal.drivers.console_ports import where
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.simulated.machines import Machines
from siderite.core.times import iso


class SimulatedConsole:
    """The listeners of this process, by node."""

    def __init__(self, machines: Machines, ports: ConsolePorts | None = None) -> None:
        self._machines = machines
        self._ports = ports or ConsolePorts()
        self._open: dict[str, asyncio.Server] = {}
        self._connected: dict[str, set[asyncio.StreamWriter]] = {}

    async def start(self, at: Endpoint) -> ConsoleInfo:
        self._reach(at, "start")
        server = self._open.get(at.node)
        if server is None:
            server = await self._ports.open(at, partial(self._talk, at))
            self._open[at.node] = server
        return where(server)

    async def stop(self, at: Endpoint) -> None:
        server = self._open.pop(at.node, None)
        if server is not None:
            server.close()
        for writer in self._connected.pop(at.node, ()):
            writer.close()  # the console may be on again, for somebody else, before they type
        self._reach(at, "stop")

    def close(self) -> None:
        """Let go of all ports, and of who is connected."""
        for server in self._open.values():
            server.close()
        self._open.clear()
        for writers in self._connected.values():
            for writer in writers:
                writer.close()
        self._connected.clear()

    def _reach(self, at: Endpoint, call: str) -> None:
        script = self._machines.script(at)
        if script.unreachable:
            raise Unreachable(at.bmc, f"console {call}")
        why = script.failure(f"console.{call}", "console")
        if why is not None:
            raise Refused(at.bmc, f"console {call}", why)

    async def _talk(
        self, at: Endpoint, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """What the machine did so far; then each line that is typed comes back."""
        connected = self._connected.setdefault(at.node, set())
        connected.add(writer)
        try:
            writer.write(f"node {at.node}: {self._machines.power(at)}\r\n".encode())
            for began, what in self._machines.diary(at.node):
                writer.write(f"[{iso(began)}] {what}\r\n".encode())
            writer.write(b"login: ")
            await writer.drain()
            while at.node in self._open and (line := await reader.readline()):
                writer.write(line.rstrip() + b"\r\nlogin: ")
                await writer.drain()
        except (ValueError, OSError):
            pass  # an endless line, or the caller is gone
        finally:
            connected.discard(writer)
            writer.close()
