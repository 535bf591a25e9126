"""The serial line of a machine, over IPMI: a TCP port of this process for each open console.

A BMC has one serial-over-LAN session, so who connects last has the line. ipmitool wants a
terminal; it gets one of its own for as long as somebody is connected.
"""

import asyncio
import contextlib
import os
import tty
from dataclasses import dataclass
from functools import partial

from siderite.baremetal.domain.hardware import ConsoleInfo
from siderite.baremetal.domain.hardware import HardwareError
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.drivers.console_ports import ConsolePorts
from siderite.baremetal.drivers.console_ports import where
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.ipmi.tool import IpmiTool
from siderite.baremetal.drivers.ipmi.tool import environment
from siderite.core.log import get_logger

log = get_logger("console")

_CHUNK = 4096
_MOST_UNREAD = 1 << 20
_LAST_PORT = 65535


@dataclass(slots=True)
class _Open:
    server: asyncio.Server
    talk: asyncio.Task[None] | None = None


class SerialOverLan:
    """The open consoles of this process, by node."""

    def __init__(self, tool: IpmiTool, ports: ConsolePorts | None = None) -> None:
        self._tool = tool
        self._ports = ports or ConsolePorts()
        self._consoles: dict[str, _Open] = {}

    async def start(self, at: Endpoint) -> ConsoleInfo:
        """Have it reachable; the port is `ipmi_terminal_port`, or a free one."""
        await self._tool.run(at, "console start", "sol", "info")
        console = self._consoles.get(at.node)
        if console is None:
            server = await self._ports.open(at, partial(self._connected, at), _port(at))
            console = self._consoles[at.node] = _Open(server)
        return where(console.server)

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
        before = console.talk
        if before is not None:
            before.cancel()
        # The console's from now on, lest it goes on when that is stopped or another comes.
        console.talk = asyncio.create_task(self._take_over(at, before, reader, writer))
        console.talk.add_done_callback(partial(_over, at.node, writer))

    async def _take_over(
        self,
        at: Endpoint,
        before: asyncio.Task[None] | None,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        if before is not None:
            await asyncio.wait((before,))
        with contextlib.suppress(HardwareError):
            await self._tool.run(at, "console start", "sol", "deactivate")
        await self._talk(at, reader, writer)

    async def _activate(self, at: Endpoint) -> tuple[asyncio.subprocess.Process, int]:
        """An ipmitool that has the line, and our end of its terminal."""
        account = self._tool.account(at, "its console")
        ours, theirs = os.openpty()
        try:
            os.set_blocking(ours, False)
            tty.setraw(theirs)  # what is typed before ipmitool does so is for the machine, too
            process = await asyncio.create_subprocess_exec(
                "ipmitool", *account.words, "-E", "sol", "activate",
                env={**environment(account), "TERM": "dumb"},
                stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            )  # fmt: skip
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        return process, ours

    async def _talk(
        self, at: Endpoint, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        process, ours = await self._activate(at)
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
            loop.remove_writer(ours)
            typing.cancel()
            os.close(ours)
            writer.close()  # before the wait, during which the console may be stopped
            if process.returncode is None:
                process.kill()
                await process.wait()


def _over(node: str, writer: asyncio.StreamWriter, talk: asyncio.Task[None]) -> None:
    """Whoever was connected is not any more, however that came. Who has lost the line and does not
    read what is left would stay for ever.
    """
    if talk.cancelled():
        writer.transport.abort()
    writer.close()
    why = None if talk.cancelled() else talk.exception()
    if why is not None:
        log.warning("a console broke off", node=node, error=repr(why))


def _port(at: Endpoint) -> int:
    wanted = str(at.driver_info.get("ipmi_terminal_port") or 0)
    if not wanted.isdigit() or int(wanted) > _LAST_PORT:
        why = f"ipmi_terminal_port is {wanted[:40]!r}; it must be a port's number"
        raise Refused(at.bmc, "console start", why, "Mend driver_info, then try again.")
    return int(wanted)


def _pass_on(ours: int, writer: asyncio.StreamWriter, over: "asyncio.Future[None]") -> None:
    try:
        said = os.read(ours, _CHUNK)
    except BlockingIOError:
        return
    except OSError:
        said = b""
    if said and writer.transport.get_write_buffer_size() < _MOST_UNREAD:
        writer.write(said)
    elif said:
        pass  # who is connected and does not read misses it
    elif not over.done():
        over.set_result(None)


async def _type(reader: asyncio.StreamReader, ours: int) -> None:
    """As fast as the line takes it: what is pasted comes faster."""
    while typed := await reader.read(_CHUNK):
        while typed:
            try:
                typed = typed[os.write(ours, typed) :]
            except BlockingIOError:
                await _takes_more(ours)


async def _takes_more(ours: int) -> None:
    loop = asyncio.get_running_loop()
    can = loop.create_future()

    def go_on() -> None:
        loop.remove_writer(ours)
        if not can.done():
            can.set_result(None)

    loop.add_writer(ours, go_on)
    await can


async def _end(console: _Open) -> None:
    console.server.close()
    if console.talk is not None:
        console.talk.cancel()
        await asyncio.gather(console.talk, return_exceptions=True)
