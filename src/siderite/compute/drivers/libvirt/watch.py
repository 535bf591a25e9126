"""Hears from libvirt of guests that start or stop by themselves or by another's hand."""

import asyncio
from contextlib import suppress
from typing import Any

from siderite.compute.domain.power import Power
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Tell
from siderite.compute.drivers.libvirt.hosts import Host
from siderite.compute.drivers.libvirt.library import library
from siderite.compute.drivers.libvirt.site import Site
from siderite.compute.drivers.libvirt.trouble import HostError
from siderite.compute.drivers.libvirt.trouble import Refused
from siderite.compute.drivers.libvirt.trouble import Unreachable

_AGAIN_IN_S = 30.0
_Heard = asyncio.Queue[tuple[str, Power] | None]


class LibvirtWatch:
    """The contract's `Watch`."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def watch(self, at: At, tell: Tell) -> None:
        host = self._site.host(at)
        while True:
            try:
                await self._listen(host, tell)
            except Unreachable as why:
                await asyncio.sleep(why.again_in)
            except (HostError, Refused):
                await asyncio.sleep(_AGAIN_IN_S)

    async def _listen(self, host: Host, tell: Tell) -> None:
        """Until the connection is lost."""
        heard: _Heard = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def on_event(_c: Any, domain: Any, event: int, detail: int, _o: Any) -> None:
            power = power_after(event, detail)
            if power is not None:
                _put(loop, heard, (domain.UUIDString(), power))

        def on_close(_c: Any, _reason: int, _o: Any) -> None:
            _put(loop, heard, None)

        number = await host.call(_register, on_event, on_close)
        try:
            while (item := await heard.get()) is not None:
                await tell(*item)
        finally:
            await host.forget(number)


def _put(loop: asyncio.AbstractEventLoop, heard: _Heard, item: tuple[str, Power] | None) -> None:
    """Called in libvirt's thread, perhaps when we are already gone."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(heard.put_nowait, item)


def _register(connection: Any, on_event: Any, on_close: Any) -> tuple[Any, int]:
    lifecycle = library().VIR_DOMAIN_EVENT_ID_LIFECYCLE
    connection.registerCloseCallback(on_close, None)
    return connection, connection.domainEventRegisterAny(None, lifecycle, on_event, None)


def power_after(event: int, detail: int) -> Power | None:
    """What a guest does after a lifecycle event; None if the event says nothing of that."""
    libvirt = library()
    if event in (libvirt.VIR_DOMAIN_EVENT_STARTED, libvirt.VIR_DOMAIN_EVENT_RESUMED):
        return Power.RUNNING
    if event == libvirt.VIR_DOMAIN_EVENT_SUSPENDED:
        # By hand, or as its host's disk is full; else it goes on by itself, as when it migrates.
        stays = (
            libvirt.VIR_DOMAIN_EVENT_SUSPENDED_PAUSED,
            libvirt.VIR_DOMAIN_EVENT_SUSPENDED_IOERROR,
        )
        return Power.PAUSED if detail in stays else None
    if event == libvirt.VIR_DOMAIN_EVENT_PMSUSPENDED:
        return Power.SUSPENDED
    if event == libvirt.VIR_DOMAIN_EVENT_CRASHED:
        return Power.CRASHED
    if event == libvirt.VIR_DOMAIN_EVENT_STOPPED:
        if detail == libvirt.VIR_DOMAIN_EVENT_STOPPED_MIGRATED:
            return None
        if detail == libvirt.VIR_DOMAIN_EVENT_STOPPED_SAVED:
            return Power.SUSPENDED
        crashed = (
            libvirt.VIR_DOMAIN_EVENT_STOPPED_CRASHED,
            libvirt.VIR_DOMAIN_EVENT_STOPPED_FAILED,
        )
        return Power.CRASHED if detail in crashed else Power.SHUTDOWN
    return None
