"""To another host while it runs.

The other host gets the cached image, the config drive and an empty disk first; QEMU copies what
the guest wrote along with its memory. On shared storage only the memory moves.
"""

from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Outcome
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.libvirt import domains
from siderite.compute.drivers.libvirt import names
from siderite.compute.drivers.libvirt.copying import Pair
from siderite.compute.drivers.libvirt.copying import Road
from siderite.compute.drivers.libvirt.copying import Told
from siderite.compute.drivers.libvirt.hosts import Host
from siderite.compute.drivers.libvirt.library import library
from siderite.compute.drivers.libvirt.power import current
from siderite.compute.drivers.libvirt.runs import Run
from siderite.compute.drivers.libvirt.site import Site
from siderite.compute.drivers.libvirt.trouble import Refused
from siderite.compute.drivers.libvirt.trouble import code


class LibvirtLiveMigrate:
    """The contract's `LiveMigrate`."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def live_migrate(self, at: At, guest: Guest, to: At, token: str) -> Outcome:
        async def work(host: Host, run: Run) -> Outcome:
            target = self._site.host(to)
            road = Road(host, target, await target.connection())
            await host.transfer(_migrate, road, guest, run)
            return Done()

        return await self._site.outcome(at, token, f"migrating domain {guest.name}", work)

    async def abort(self, at: At, guest: Guest, token: str) -> Outcome:
        async def work(host: Host, run: Run) -> Outcome:
            await host.call(_abort, guest)
            return Done()

        return await self._site.outcome(at, token, f"ending the migration of {guest.name}", work)


def _migrate(connection: Any, road: Road, guest: Guest, run: Run) -> None:
    host, target = road.source, road.target
    pair = Pair(connection, road)
    is_shared = pair.is_shared()
    domain = domains.find(connection, guest.uuid)
    arrived = domains.find(road.arrival, guest.uuid)
    if domain is None or not domain.isActive():
        if arrived is None or not arrived.isActive():
            raise Refused(f"the guest of server {guest.uuid} does not run on host {host.name}")
    else:
        to = _address(target)
        try:
            if not is_shared:
                top = current(connection, host, guest).disk
                _prepare(pair, guest, top, lambda doing: _tell(run, doing, target))
            run.doing = f"domain {guest.name} is moving to host {target.name}"
            _send(domain, road.arrival, to, is_shared=is_shared)
        except BaseException:
            _clear(road, guest, keep_disks=is_shared)
            raise
    # It runs there now; what is left here is in nobody's use.
    domains.remove(connection, host, guest.uuid, keep_disks=is_shared)
    pair.target.refresh()


def _prepare(pair: Pair, guest: Guest, top: int, tell: Told) -> None:
    pair.must_have_one_path()
    pair.copy_base(names.disk(guest.uuid, 1), tell)
    later = []  # a disk's base must be there first
    for name in pair.source.names():
        if not name.startswith(f"{guest.uuid}."):
            continue
        if name.endswith(".qcow2") and names.generation_of(name) in (0, top):
            later.append(name)
        else:
            pair.copy(name, tell)
    for name in later:
        pair.create_alike(name)


def _tell(run: Run, doing: str, target: Host) -> None:
    run.doing = f"{doing} to host {target.name}"


def _clear(road: Road, guest: Guest, *, keep_disks: bool) -> None:
    """Leave nothing on a host that the guest did not reach."""
    with suppress(library().libvirtError):
        arrived = domains.find(road.arrival, guest.uuid)
        if arrived is None or not arrived.isActive():
            domains.remove(road.arrival, road.target, guest.uuid, keep_disks=keep_disks)


def _send(domain: Any, arrival: Any, to: str, *, is_shared: bool) -> None:
    libvirt = library()
    flags = (
        libvirt.VIR_MIGRATE_LIVE
        | libvirt.VIR_MIGRATE_PERSIST_DEST
        | libvirt.VIR_MIGRATE_UNDEFINE_SOURCE
        | libvirt.VIR_MIGRATE_AUTO_CONVERGE
    )
    if not is_shared:
        flags |= libvirt.VIR_MIGRATE_NON_SHARED_INC
    domain.migrate3(arrival, {libvirt.VIR_MIGRATE_PARAM_URI: f"tcp://{to}"}, flags)


def _address(target: Host) -> str:
    """Where the other host's QEMU can be reached by this one's."""
    known = target.options.get("migration_address") or urlsplit(target.uri).hostname
    if not known:
        raise Refused(
            f"host {target.name} ({target.uri}) has no address that other hosts can send guests to;"
            " add it with the option migration_address"
        )
    return f"[{known}]" if ":" in known else known


def _abort(connection: Any, guest: Guest) -> None:
    domain = domains.find(connection, guest.uuid)
    if domain is None:
        return
    try:
        domain.abortJob()
    except library().libvirtError as why:
        if not code(why, "VIR_ERR_OPERATION_INVALID"):  # there is nothing to end
            raise
