"""Rescue: another system from an image, with the guest's own disk second."""

from typing import Any

from msgspec.structs import replace

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Outcome
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.libvirt import domains
from siderite.compute.drivers.libvirt import names
from siderite.compute.drivers.libvirt.cache import disk_on
from siderite.compute.drivers.libvirt.hosts import Host
from siderite.compute.drivers.libvirt.names import Base
from siderite.compute.drivers.libvirt.power import back_to_own_system
from siderite.compute.drivers.libvirt.power import current
from siderite.compute.drivers.libvirt.runs import Run
from siderite.compute.drivers.libvirt.site import Site
from siderite.compute.drivers.libvirt.trouble import Refused
from siderite.compute.drivers.libvirt.volumes import Pool


class LibvirtRescue:
    """The contract's `Rescue`."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def rescue(self, at: At, guest: Guest, image: str | None, token: str) -> Outcome:
        async def work(host: Host, run: Run) -> Outcome:
            source = image or guest.image
            if source is None:
                raise Refused("there is no image to rescue with: name one", elsewhere=False)
            base = await self._site.base(host, source, run)
            run.check()
            rescued = guest if source == guest.image else _without_kernel(guest)
            await host.call(_rescue, host, rescued, base, token)
            return Done()

        return await self._site.outcome(at, token, f"rescuing domain {guest.name}", work)

    async def unrescue(self, at: At, guest: Guest, token: str) -> Outcome:
        async def work(host: Host, run: Run) -> Outcome:
            await host.call(_unrescue, host, guest, token)
            return Done()

        return await self._site.outcome(at, token, f"unrescuing domain {guest.name}", work)


def _without_kernel(guest: Guest) -> Guest:
    """The guest on a system that boots by itself: its own kernel goes with its own image only."""
    properties = {
        name: value
        for name, value in guest.image_properties.items()
        if name not in ("kernel_id", "ramdisk_id")
    }
    return replace(guest, image_properties=properties)


def _rescue(connection: Any, host: Host, guest: Guest, base: Base, token: str) -> None:
    known = current(connection, host, guest)
    domain = domains.find(connection, guest.uuid)
    if domain is None or known.token != token:
        if domain is not None:
            domains.stop(domain)
        pool = Pool(connection, host.options)
        disk = names.further_disk(guest.uuid, "rescue")
        pool.delete(disk)
        disk_on(pool, disk, base.virtual_bytes, base)
        domains.write_config_drive(pool, guest)
        marked = replace(known, token=token, is_rescued=True)
        domain = domains.define(connection, host, guest, marked)
    domains.start(domain)


def _unrescue(connection: Any, host: Host, guest: Guest, token: str) -> None:
    domain = back_to_own_system(connection, host, guest, token)
    Pool(connection, host.options).delete(names.further_disk(guest.uuid, "rescue"))
    if guest.is_running:
        domains.start(domain)
