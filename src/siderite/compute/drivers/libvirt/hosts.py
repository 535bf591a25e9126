"""Connections to hosts: one per host, made when needed, made again with back-off when lost.

libvirt's calls block, so each host has a few threads of its own; a host that hangs holds up
nobody else. Transfers of whole disks have threads apart, so that they hold up no power switch.
"""

import asyncio
import time
from collections.abc import Callable
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from typing import TypeVar

from siderite.compute.drivers.contract import At
from siderite.compute.drivers.libvirt.dialling import CannotDial
from siderite.compute.drivers.libvirt.dialling import dial
from siderite.compute.drivers.libvirt.library import LibraryMissing
from siderite.compute.drivers.libvirt.library import library
from siderite.compute.drivers.libvirt.trouble import HostError
from siderite.compute.drivers.libvirt.trouble import Refused
from siderite.compute.drivers.libvirt.trouble import Unreachable
from siderite.compute.drivers.libvirt.trouble import cannot_connect
from siderite.compute.drivers.libvirt.trouble import explain
from siderite.compute.drivers.libvirt.trouble import is_lost

CALLS_PER_HOST = 4
TRANSFERS = 8
OPEN_PATIENCE_S = 10.0
# A host silent for 15 s is gone: its calls fail then, and do not wait for TCP's hours.
KEEPALIVE_S = 5
KEEPALIVE_COUNT = 3
_BACK_OFF_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)

T = TypeVar("T")


class Host:
    """One host's connection and threads."""

    def __init__(self, at: At, transfers: ThreadPoolExecutor, folder: Path) -> None:
        self.name = at.host
        self._folder = folder
        self.uri = at.uri
        self.options = at.options
        self._calls = ThreadPoolExecutor(CALLS_PER_HOST, f"libvirt-{at.host}")
        self._transfers = transfers
        self._connection: Any = None
        self._opening: asyncio.Future[Any] | None = None
        self._failures = 0
        self._not_before = 0.0
        self._trouble = ""

    async def call(self, work: Callable[..., T], *args: object) -> T:
        """Run `work(connection, *args)` in a thread of this host."""
        return await self._run(self._calls, work, *args)

    async def transfer(self, work: Callable[..., T], *args: object) -> T:
        """The same for what may take minutes."""
        return await self._run(self._transfers, work, *args)

    async def _run(self, pool: ThreadPoolExecutor, work: Callable[..., T], *args: object) -> T:
        connection = await self.connection()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(pool, work, connection, *args)
        except library().libvirtError as why:
            if not is_lost(why, connection):
                raise HostError(explain(self.name, self.uri, why)) from why
            self._lost(connection)
            raise Unreachable(cannot_connect(self.name, self.uri, why), 1.0) from why

    async def connection(self) -> Any:
        """The connection; opened if there is none, unless that failed a moment ago."""
        if self._connection is not None:
            if self._connection.isAlive():
                return self._connection
            self._lost(self._connection)
        if self._opening is None:
            left = self._not_before - time.monotonic()
            if left > 0:
                raise Unreachable(self._trouble, left)
            self._opening = asyncio.ensure_future(self._open())
        try:
            async with asyncio.timeout(OPEN_PATIENCE_S):
                return await asyncio.shield(self._opening)
        except TimeoutError:
            text = f"host {self.name} ({self.uri}): still connecting"
            raise Unreachable(text, OPEN_PATIENCE_S) from None

    async def _open(self) -> Any:
        loop = asyncio.get_running_loop()
        try:
            connection = await loop.run_in_executor(
                self._calls, _open, self.uri, self.options, self._folder
            )
        except LibraryMissing as why:
            raise Refused(str(why)) from why
        except (library().libvirtError, CannotDial, OSError) as why:
            pause = _BACK_OFF_S[min(self._failures, len(_BACK_OFF_S) - 1)]
            self._failures += 1
            self._not_before = time.monotonic() + pause
            self._trouble = cannot_connect(self.name, self.uri, why)
            raise Unreachable(self._trouble, pause) from why
        finally:
            self._opening = None
        self._failures = 0
        self._connection = connection
        return connection

    async def forget(self, registered: tuple[Any, int]) -> None:
        """Hear no more events of a callback that was registered."""
        loop = asyncio.get_running_loop()
        await asyncio.shield(loop.run_in_executor(self._calls, _deregister, *registered))

    def _lost(self, connection: Any) -> None:
        if self._connection is connection:
            self._connection = None
            self._calls.submit(_close, connection)

    def close(self) -> None:
        """Let go of the connection; calls under way end by themselves."""
        if self._connection is not None:
            self._lost(self._connection)
        self._calls.shutdown(wait=False)


class Hosts:
    """The hosts in use, by name; one whose URI or options changed is connected to anew."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._hosts: dict[str, tuple[At, Host]] = {}
        self._transfers = ThreadPoolExecutor(TRANSFERS, "libvirt-transfer")

    def at(self, at: At) -> Host:
        """The host that a call is for."""
        known = self._hosts.get(at.host)
        if known is not None:
            if known[0] == at:
                return known[1]
            known[1].close()
        host = Host(at, self._transfers, self._folder)
        self._hosts[at.host] = (at, host)
        return host

    def close(self) -> None:
        """End all connections."""
        for _, host in self._hosts.values():
            host.close()
        self._hosts.clear()
        self._transfers.shutdown(wait=False)


def _open(uri: str, options: Mapping[str, str], folder: Path) -> Any:
    connection = library().open(dial(uri, options, folder))
    with suppress(library().libvirtError):  # libvirt's test driver lives in this process
        connection.setKeepAlive(KEEPALIVE_S, KEEPALIVE_COUNT)
    return connection


def _close(connection: Any) -> None:
    with suppress(library().libvirtError):
        connection.close()


def _deregister(connection: Any, number: int) -> None:
    with suppress(library().libvirtError):  # the connection may be gone
        connection.unregisterCloseCallback()
        connection.domainEventDeregisterAny(number)
