"""The serial line of a machine, over IPMI: a TCP port of this process for each open console.

A BMC has one serial-over-LAN session, so who connects last has the line. ipmitool wants a
terminal; it gets one of its own for as long as somebody is connected.
"""

import asyncio
import contextlib
import os
from dataclasses import dataclass
from functools import partial

from siderite.baremetal.domain.hardware import ConsoleInfo
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.ipmi.tool import IpmiTool
from siderite.baremetal.drivers.ipmi.tool import environment

_CHUNK = 4096


@dataclass(slots=True)
class _Open:
    server: asyncio.Server
    talk: asyncio.Task[None] | None = None


class SerialOverLan:
    """The open consoles of this process, by node."""

    def __init__(self, tool: IpmiTool, *, listen: str = "127.0.0.1") -> None:
        self._tool = tool
        self._listen = listen
        self._consoles: dict[str, _Open] = {}

    async def start(self, at: Endpoint) -> ConsoleInfo:
        """Have it reachable; the port is `ipmi_terminal_port`, or a free one."""
        await self._tool.run(at, "console start", "sol", "info")
        console = self._consoles.get(at.node)
        if console is None:
            port = int(at.driver_info.get("ipmi_terminal_port") or 0)
            try:
                server = await asyncio.start_server(
                    partial(self._connected, at), self._listen, port
                )
            except OSError as why:
                remedy = "Choose another ipmi_terminal_port in driver_info."
                raise Refused(
                    at.bmc, "console start", f"port {port} is taken here", remedy
                ) from why
            console = self._consoles[at.node] = _Open(server)
        host, port = console.server.sockets[0].getsockname()[:2]
        return ConsoleInfo("socat", f"tcp://{host}:{port}")

    async def stop(self, at: Endpoint) -> None:
        """Have it unreachable."""
        console = self._consoles.pop(at.node, None)
        if console is not None:
            await _end(console)

    def close(self) -> None:
        """Let go of all ports."""
        for console in self._consoles.values():
            console.server.close()
            if console.talk is not None:
                console.talk.cancel()
        self._consoles.clear()

    async def _connected(
        self, at: Endpoint, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        console = self._consoles.get(at.node)
        if console is None:
            writer.close()
            return
        if console.talk is not None:
            console.talk.cancel()
            await asyncio.gather(console.talk, return_exceptions=True)
        with contextlib.suppress(Refused):
            await self._tool.run(at, "console start", "sol", "deactivate")
        console.talk = asyncio.create_task(self._talk(at, reader, writer))

    async def _talk(
        self, at: Endpoint, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        account = self._tool.account(at, "its console")
        ours, theirs = os.openpty()
        os.set_blocking(ours, False)
        process = await asyncio.create_subprocess_exec(
            "ipmitool", *account.words, "-E", "sol", "activate",
            env={**environment(account), "TERM": "dumb"},
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        loop = asyncio.get_running_loop()
        over = loop.create_future()
        loop.add_reader(ours, _pass_on, ours, writer, over)
        typing = asyncio.create_task(_type(reader, ours))
        try:
            await asyncio.wait(
                (typing, over, asyncio.ensure_future(process.wait())),
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            loop.remove_reader(ours)
            typing.cancel()
            os.close(ours)
            if process.returncode is None:
                process.kill()
                await process.wait()
            writer.close()


def _pass_on(ours: int, writer: asyncio.StreamWriter, over: "asyncio.Future[None]") -> None:
    try:
        said = os.read(ours, _CHUNK)
    except BlockingIOError:
        return
    except OSError:
        said = b""
    if said:
        writer.write(said)
    elif not over.done():
        over.set_result(None)


async def _type(reader: asyncio.StreamReader, ours: int) -> None:
    while typed := await reader.read(_CHUNK):
        with contextlib.suppress(BlockingIOError):
            os.write(ours, typed)


async def _end(console: _Open) -> None:
    console.server.close()
    if console.talk is not None:
        console.talk.cancel()
        await asyncio.gather(console.talk, return_exceptions=True)
