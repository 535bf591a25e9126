"""Guests come and go: spawn, destroy, rebuild, and what they do now."""

import asyncio
from collections.abc import Mapping
from typing import Any

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.power import Power
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.contract import Inventory
from siderite.compute.drivers.libvirt import domains
from siderite.compute.drivers.libvirt import names
from siderite.compute.drivers.libvirt.cache import booted
from siderite.compute.drivers.libvirt.cache import must_stand
from siderite.compute.drivers.libvirt.capacity import inventory
from siderite.compute.drivers.libvirt.copying import Pair
from siderite.compute.drivers.libvirt.copying import Road
from siderite.compute.drivers.libvirt.copying import along
from siderite.compute.drivers.libvirt.hosts import Host
from siderite.compute.drivers.libvirt.library import library
from siderite.compute.drivers.libvirt.names import Base
from siderite.compute.drivers.libvirt.names import Mark
from siderite.compute.drivers.libvirt.runs import Run
from siderite.compute.drivers.libvirt.site import Site
from siderite.compute.drivers.libvirt.trouble import HostError
from siderite.compute.drivers.libvirt.trouble import Refused
from siderite.compute.drivers.libvirt.trouble import Unreachable
from siderite.compute.drivers.libvirt.volumes import Pool

_READ_TIMEOUT_S = 20.0


class LibvirtLife:
    """The contract's `Life`."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def capacity(self, at: At) -> list[Inventory] | Wait | Failed:
        host = self._site.host(at)
        try:
            async with asyncio.timeout(_READ_TIMEOUT_S):
                return [await host.call(inventory, host)]
        except Unreachable as why:
            return Wait(why.reason, why.again_in)
        except TimeoutError:
            return Wait(f"host {host.name} ({host.uri}) does not answer", _READ_TIMEOUT_S)
        except Refused as why:
            return Failed(why.reason)
        except HostError as why:
            return why.outcome

    async def spawn(self, at: At, guest: Guest, token: str) -> Outcome:
        async def work(host: Host, run: Run) -> Outcome:
            bases = await self._bases(host, guest, run)
            run.check()
            run.doing = f"making domain {guest.name}"
            await host.call(_build, host, guest, bases, token)
            return Done({"root_device_name": "/dev/vda"})

        return await self._site.outcome(at, token, f"making domain {guest.name}", work)

    async def rebuild(self, at: At, guest: Guest, token: str) -> Outcome:
        async def work(host: Host, run: Run) -> Outcome:
            bases = await self._bases(host, guest, run)
            run.check()
            run.doing = f"making domain {guest.name} anew"
            await host.call(_rebuild, host, guest, bases, token)
            return Done({"root_device_name": "/dev/vda"})

        return await self._site.outcome(at, token, f"rebuilding domain {guest.name}", work)

    async def destroy(self, at: At, guest: Guest, token: str) -> Outcome:
        async def work(host: Host, run: Run) -> Outcome:
            await host.call(domains.remove, host, guest.uuid)
            return Done()

        return await self._site.outcome(at, token, f"removing domain {guest.name}", work)

    async def leave(self, at: At, guest: Guest, to: At, token: str) -> Outcome:
        async def work(host: Host, run: Run) -> Outcome:
            other = self._site.host(to)
            road = Road(host, other, await other.connection())
            await host.call(along(road, _leave), guest)
            return Done()

        return await self._site.outcome(at, token, f"removing domain {guest.name}", work)

    async def state(self, at: At, guest: Guest) -> Power | None:
        host = self._site.host(at)
        try:
            async with asyncio.timeout(_READ_TIMEOUT_S):
                return await host.call(_state, guest.uuid)
        except (Unreachable, Refused, HostError, TimeoutError):
            return Power.NOSTATE

    async def states(self, at: At) -> Mapping[str, Power] | None:
        host = self._site.host(at)
        try:
            async with asyncio.timeout(_READ_TIMEOUT_S):
                return await host.call(_states)
        except (Unreachable, Refused, HostError, TimeoutError):
            return None

    async def _bases(self, host: Host, guest: Guest, run: Run) -> Base:
        """The cached image of its disk, with its kernel and ramdisk if it has them apart."""
        if guest.image is None:
            raise Refused(
                f"server {guest.uuid} has no image, and there is no volume service to boot from",
                elsewhere=False,
            )
        for what in ("kernel_id", "ramdisk_id"):
            image = guest.image_properties.get(what)
            if image:
                await self._site.base(host, image, run)
        return await self._site.base(host, guest.image, run)


def _build(connection: Any, host: Host, guest: Guest, base: Base, token: str) -> None:
    domain = domains.find(connection, guest.uuid)
    known = None if domain is None else domains.mark(domain)
    if domain is None or known is None or known.token != token:
        domain = _make(connection, host, guest, base, token)
    if guest.is_running:
        domains.start(domain)


def _make(connection: Any, host: Host, guest: Guest, base: Base, token: str) -> Any:
    """Its files and its domain; nothing of them if its image was just being removed, but for disks
    that were there before: on shared storage one that comes from a host that is down has its own.
    """
    pool = Pool(connection, host.options)
    _clear_halves(connection, host, guest)
    if pool.find(names.disk(guest.uuid, 1)) is not None:
        pool.refresh()  # on shared storage its old host may have put more there since
    is_new = domains.make_files(connection, host, guest, base, 1)
    try:
        must_stand(pool, booted(pool, guest))
    except HostError:
        if is_new:
            domains.remove(connection, host, guest.uuid)
        else:
            _boot_nothing(pool, guest)
        raise
    return domains.define(connection, host, guest, Mark(token, _newest(pool, guest)))


def _boot_nothing(pool: Pool, guest: Guest) -> None:
    """What it said to boot is gone: it says so of another copy when it is made anew."""
    for name in pool.names():
        if name.startswith(f"{guest.uuid}.") and names.booted(name):
            pool.delete(name)


def _newest(pool: Pool, guest: Guest) -> int:
    """Which of its disks a guest is made on: one that comes from a host that is down finds those on
    shared storage, of which a resize has put one on top of the other. It stays on that.
    """
    volumes = [name for name in pool.names() if name.startswith(f"{guest.uuid}.")]
    back = names.way_back_of(guest.uuid, volumes)
    if back is not None:
        pool.delete(names.way_back(guest.uuid, back))
    return max([1, *map(names.generation_of, volumes)])


def _clear_halves(connection: Any, host: Host, guest: Guest) -> None:
    """Its files here may be halves, or empty, of a move that its old host did not live to end: they
    are of no use. libvirt defines a guest that migrates only when all of it has come.
    """
    if Pool(connection, host.options).find(names.coming(guest.uuid)) is None:
        return
    domain = domains.find(connection, guest.uuid)
    if domain is None or not domain.isPersistent():
        domains.remove(connection, host, guest.uuid)


def _leave(connection: Any, road: Road, guest: Guest) -> None:
    is_shared = Pair(connection, road).is_shared(guest.uuid)
    domains.remove(connection, road.source, guest.uuid, keep_disks=is_shared)


def _rebuild(connection: Any, host: Host, guest: Guest, base: Base, token: str) -> None:
    domain = domains.find(connection, guest.uuid)
    known = None if domain is None else domains.mark(domain)
    if known is None or known.token != token:
        domains.remove(connection, host, guest.uuid, keep_disks=True)
        pool = Pool(connection, host.options)
        kept = {names.console(guest.uuid)}
        if guest.keeps_ephemeral:
            kept.add(names.further_disk(guest.uuid, "ephemeral"))
        for name in pool.names():
            if name.startswith(f"{guest.uuid}.") and name not in kept:
                pool.delete(name)
        domain = _make(connection, host, guest, base, token)
    if guest.is_running:
        domains.start(domain)


def _state(connection: Any, uuid: str) -> Power | None:
    domain = domains.find(connection, uuid)
    return None if domain is None else domains.power(domain)


def _states(connection: Any) -> dict[str, Power]:
    """Two calls for all domains, not two for each. One that somebody sent to another host is not
    here, though it is still defined.
    """
    libvirt = library()
    sent = (libvirt.VIR_DOMAIN_SHUTOFF, libvirt.VIR_DOMAIN_SHUTOFF_MIGRATED)
    saved = {
        domain.UUIDString()
        for domain in connection.listAllDomains(libvirt.VIR_CONNECT_LIST_DOMAINS_MANAGEDSAVE)
    }
    found = {}
    for domain, said in connection.getAllDomainStats(libvirt.VIR_DOMAIN_STATS_STATE, 0):
        uuid, state = domain.UUIDString(), (said["state.state"], said["state.reason"])
        if state != sent:
            found[uuid] = domains.power_of(*state, is_saved=uuid in saved)
    return found
