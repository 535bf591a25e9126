"""Guests that QEMU stopped because the disk of their host was full when they wrote. Nothing is lost
of that: they write it again when they go on.
"""

import asyncio
from typing import Any

from siderite.compute.drivers.contract import At
from siderite.compute.drivers.libvirt.hosts import Host
from siderite.compute.drivers.libvirt.library import library
from siderite.compute.drivers.libvirt.site import Site
from siderite.compute.drivers.libvirt.trouble import HostError
from siderite.compute.drivers.libvirt.trouble import Refused
from siderite.compute.drivers.libvirt.trouble import Unreachable
from siderite.compute.drivers.libvirt.volumes import NO_ROOM
from siderite.compute.drivers.libvirt.volumes import Pool

_TIMEOUT_S = 15.0


class LibvirtStalls:
    """The contract's `Stalls`."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def stalled(self, at: At) -> list[str]:
        host = self._site.host(at)
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                return await host.call(_stalled, host)
        except (Unreachable, HostError, Refused, TimeoutError):
            return []  # the next round comes


def _stalled(connection: Any, host: Host) -> list[str]:
    libvirt = library()
    full = (libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_IOERROR)
    found = [
        domain.UUIDString()
        for domain in connection.listAllDomains(libvirt.VIR_CONNECT_LIST_DOMAINS_PAUSED)
        if tuple(domain.state()) == full
    ]
    if not found:
        return []
    pool = Pool(connection, host.options)
    pool.refresh()
    return found if pool.info()[1] >= NO_ROOM else []
