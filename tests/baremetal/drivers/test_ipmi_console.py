"""Who is connected to a serial line over IPMI, and for how long; a script stands for ipmitool."""

import asyncio
import os
import socket
from types import SimpleNamespace

import pytest

from siderite.baremetal.drivers.ipmi import IpmiTool
from siderite.baremetal.drivers.ipmi import SerialOverLan
from siderite.baremetal.drivers.ipmi.console import _pass_on
from tests.baremetal.drivers.machine import Machine

SCRIPT = """\
#!/bin/sh
case "$*" in
*deactivate*) touch {0}/asked; while [ ! -e {0}/go ]; do sleep 0.02; done;;
*activate*) echo the line; exec cat;;
esac
"""


@pytest.fixture
def there(tmp_path, monkeypatch):
    """Where the script says that it was asked to free the line, and is told to go on."""
    (tmp_path / "bin").mkdir()
    tool = tmp_path / "bin" / "ipmitool"
    tool.write_text(SCRIPT.format(tmp_path))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    return tmp_path


async def opened(consoles, at):
    """The port of an open console."""
    return int((await consoles.start(at)).url.rpartition(":")[2])


async def is_asked(there):
    async with asyncio.timeout(30):
        while not (there / "asked").exists():
            await asyncio.sleep(0.01)


async def ended(reader):
    """What was heard until the line was closed."""
    async with asyncio.timeout(30):
        return await reader.read()


def console():
    return SerialOverLan(IpmiTool(at_once=4)), Machine({"ipmi_address": "bmc"}).at


def test_a_console_that_nobody_came_to_is_switched_off(there):
    async def story():
        consoles, at = console()
        port = await opened(consoles, at)
        await consoles.stop(at)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)

    asyncio.run(story())


def test_who_has_just_connected_has_no_line_when_the_console_is_switched_off(there):
    async def story():
        consoles, at = console()
        reader, writer = await asyncio.open_connection("127.0.0.1", await opened(consoles, at))
        await is_asked(there)
        await consoles.stop(at)
        (there / "go").touch()
        assert await ended(reader) == b""
        writer.close()

    asyncio.run(story())


def test_of_two_who_connect_at_once_the_last_has_the_line_and_no_longer_than_the_console_is_on(
    there,
):
    async def story():
        consoles, at = console()
        port = await opened(consoles, at)
        first, writer = await asyncio.open_connection("127.0.0.1", port)
        await is_asked(there)
        second, other = await asyncio.open_connection("127.0.0.1", port)
        (there / "go").touch()
        assert await ended(first) == b""
        async with asyncio.timeout(30):
            await second.readuntil(b"the line")
        await consoles.stop(at)
        await ended(second)
        for one in (writer, other):
            one.close()

    asyncio.run(story())


def test_who_connects_while_ipmitool_cannot_be_run_is_not_left_waiting(there, monkeypatch):
    async def story():
        consoles, at = console()
        port = await opened(consoles, at)
        monkeypatch.setenv("PATH", str(there))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await ended(reader) == b""
        writer.close()
        await consoles.stop(at)

    asyncio.run(story())


def test_who_does_not_read_is_not_connected_any_more_when_the_console_is_switched_off(
    there, monkeypatch
):
    (there / "go").touch()
    (there / "bin" / "ipmitool").write_text(SCRIPT.format(there).replace("exec cat", "exec yes"))
    real, writers = SerialOverLan._connected, []

    async def noted(self, at, reader, writer):
        writers.append(writer)
        await real(self, at, reader, writer)

    async def story():
        consoles, at = console()
        port = await opened(consoles, at)
        with socket.create_connection(("127.0.0.1", port)):
            async with asyncio.timeout(30):
                while not (writers and writers[0].transport.get_write_buffer_size()):
                    await asyncio.sleep(0.01)
                await consoles.stop(at)
                await writers[0].wait_closed()

    monkeypatch.setattr(SerialOverLan, "_connected", noted)
    asyncio.run(story())


def test_what_is_pasted_arrives_whole_however_slowly_the_line_takes_it(there):
    pasted = b"".join(b"%07d " % number for number in range(12_500))
    slowly = f"while [ ! -e {there}/reads ]; do sleep 0.02; done; exec cat"
    (there / "go").touch()
    (there / "bin" / "ipmitool").write_text(SCRIPT.format(there).replace("exec cat", slowly))

    async def story():
        consoles, at = console()
        reader, writer = await asyncio.open_connection("127.0.0.1", await opened(consoles, at))
        async with asyncio.timeout(30):
            await reader.readuntil(b"the line\n")
            writer.write(pasted)
            await writer.drain()
            (there / "reads").touch()
            assert await reader.readexactly(len(pasted)) == pasted
        await consoles.stop(at)
        writer.close()

    asyncio.run(story())


@pytest.mark.parametrize(("unread", "passed"), [(0, [b"said"]), (1 << 30, [])])
def test_what_is_said_to_somebody_who_does_not_read_does_not_fill_the_memory(unread, passed):
    heard = []
    transport = SimpleNamespace(get_write_buffer_size=lambda: unread)
    writer = SimpleNamespace(transport=transport, write=heard.append)
    ours, theirs = os.pipe()
    try:
        os.write(theirs, b"said")
        _pass_on(ours, writer, None)
    finally:
        os.close(ours)
        os.close(theirs)
    assert heard == passed
