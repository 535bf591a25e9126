"""To another host while it runs.

The other host gets the cached image, the config drive and an empty disk first; QEMU copies what
the guest wrote along with its memory. On shared storage only the memory moves.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.power import Power
from siderite.compute.domain.talk import MigrationProgress
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.libvirt import arrivals
from siderite.compute.drivers.libvirt import domains
from siderite.compute.drivers.libvirt import names
from siderite.compute.drivers.libvirt import remains
from siderite.compute.drivers.libvirt.copying import Pair
from siderite.compute.drivers.libvirt.copying import Road
from siderite.compute.drivers.libvirt.copying import Told
from siderite.compute.drivers.libvirt.copying import along
from siderite.compute.drivers.libvirt.hosts import Host
from siderite.compute.drivers.libvirt.library import library
from siderite.compute.drivers.libvirt.power import current
from siderite.compute.drivers.libvirt.runs import Run
from siderite.compute.drivers.libvirt.site import Site
from siderite.compute.drivers.libvirt.trouble import HostError
from siderite.compute.drivers.libvirt.trouble import Refused
from siderite.compute.drivers.libvirt.trouble import Unreachable
from siderite.compute.drivers.libvirt.trouble import code
from siderite.compute.drivers.libvirt.volumes import Pool

_BUSY_AGAIN_S = 2.0
_COPIES = "has a blockjob assigned"


class LibvirtLiveMigrate:
    """The contract's `LiveMigrate`."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def live_migrate(self, at: At, guest: Guest, to: At, token: str) -> Outcome:
        async def work(host: Host, run: Run) -> Outcome:
            target = self._site.host(to)
            road = Road(host, target, await target.connection())
            run.interrupt = partial(host.call, _abort, guest)
            await host.transfer(along(road, _migrate), guest, run)
            return Done()

        return await self._site.outcome(at, token, _doing(guest), work)

    async def abort(self, at: At, guest: Guest, to: At, token: str) -> Outcome:
        async def work(host: Host, run: Run) -> Outcome:
            await self._site.end(at, token, _doing(guest))
            await host.call(_abort, guest)  # of another process, if that is cut off
            target = self._site.host(to)
            try:
                road = Road(host, target, await target.connection())
                return Done({"arrived": await host.call(along(road, _settle), guest)})
            except Unreachable:
                if not await host.call(_runs_on, guest):
                    raise
                return Done({"arrived": False, "left": True})

        ending = f"ending the migration of {guest.name}"
        return await self._site.outcome(at, f"{token}/abort", ending, work)

    async def force(self, at: At, guest: Guest, token: str) -> Outcome:
        async def work(host: Host, run: Run) -> Outcome:
            await host.call(_pause, guest)
            return Done()

        hurrying = f"hurrying the migration of {guest.name}"
        return await self._site.outcome(at, f"{token}/force", hurrying, work)

    async def progress(self, at: At, guest: Guest) -> MigrationProgress | None:
        try:
            return await self._site.host(at).call(_progress, guest)
        except (Unreachable, HostError, Refused):
            return None


def _doing(guest: Guest) -> str:
    return f"migrating domain {guest.name}"


@domains.although_one_goes
def _migrate(connection: Any, road: Road, guest: Guest, run: Run) -> None:
    host, target = road.source, road.target
    pair = Pair(connection, road)
    is_shared = pair.is_shared(guest.uuid)
    domain = domains.find(connection, guest.uuid)
    is_here = domain is not None and domain.isActive()
    if domain is not None and is_here and domain.jobInfo()[0] != library().VIR_DOMAIN_JOB_NONE:
        why = f"host {host.name} is busy with domain {guest.name}"
        raise HostError(Wait(why, _BUSY_AGAIN_S))
    if not _has_taken_over(road, domain, guest):
        if not is_here:
            raise domains.not_running(host, guest)
        if not arrivals.can_be_sent_on(connection, domain):
            raise _cannot_be_sent_on(host, guest)
        to = _address(target)
        try:
            if domains.find(road.arrival, guest.uuid) is not None:
                _clear(road, guest, keep_disks=is_shared)
            if not is_shared:
                top = current(connection, host, guest).disk
                _prepare(pair, guest, top, lambda doing: _tell(run, doing, target))
            _tell(run, f"domain {guest.name} is moving", target)
            _send(domain, road, to, is_shared=is_shared)
        except BaseException:
            _stay(connection, road, guest, keep_disks=is_shared)
            raise
    _arrive(connection, road, guest, keep_disks=is_shared)


def _cannot_be_sent_on(host: Host, guest: Guest) -> Refused:
    return Refused(
        f"the guest of server {guest.uuid} came to host {host.name} paused and has not run since,"
        " and this version of QEMU cannot send on such a one; unpause the server first (it can be"
        " paused again), or reboot it hard",
        elsewhere=False,
    )


def _has_taken_over(road: Road, domain: Any | None, guest: Guest) -> bool:
    """Whether the guest is at the other end. If whoever was to end the migration was killed at its
    very end, one is left here too, stopped: it must never go on, nor the other lose its disks, also
    if that was shut down meanwhile.
    """
    libvirt = library()
    arrived = domains.find(road.arrival, guest.uuid)
    if arrived is None or domain is None:
        return arrived is not None
    if not arrived.isActive():
        return _was_sent(domain) or (
            not domain.isActive() and arrivals.came_from(arrived, road.source.name)
        )
    if not domain.isActive():
        return True
    coming = (libvirt.VIR_DOMAIN_PAUSED_MIGRATION, libvirt.VIR_DOMAIN_PAUSED_STARTING_UP)
    state, reason = arrived.state()
    is_coming = state == libvirt.VIR_DOMAIN_PAUSED and reason in coming
    return not is_coming and domain.state()[0] != libvirt.VIR_DOMAIN_RUNNING


def _was_sent(domain: Any) -> bool:
    """Whether libvirt stopped it because it goes on elsewhere. It defines a guest there only when
    all of it has come, and what was there before is cleared away before anything is sent.
    """
    libvirt = library()
    sent = (
        (libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_MIGRATION),
        (libvirt.VIR_DOMAIN_SHUTOFF, libvirt.VIR_DOMAIN_SHUTOFF_MIGRATED),
    )
    return tuple(domain.state()) in sent


def _arrive(connection: Any, road: Road, guest: Guest, *, keep_disks: bool) -> None:
    """It is there now, which is noted there first: what is left here is in nobody's use, also if
    it cannot be removed now and looks like any guest that is off then.
    """
    arrived = domains.find(road.arrival, guest.uuid)
    if arrived is not None:
        arrivals.note(arrived, road.source.name, runs=guest.is_running)
    _go_on(arrived, guest)
    pool = Pool(road.arrival, road.target.options)
    pool.delete(names.coming(guest.uuid))
    domains.remove(connection, road.source, guest.uuid, keep_disks=keep_disks)
    pool.refresh()


def _stay(connection: Any, road: Road, guest: Guest, *, keep_disks: bool) -> None:
    """It did not get there, unless it did all the same, or nobody can tell."""
    with suppress(library().libvirtError):
        domain = domains.find(connection, guest.uuid)
        if domain is None:
            return
        try:
            if _has_taken_over(road, domain, guest):
                return
            _clear(road, guest, keep_disks=keep_disks)
        except library().libvirtError:  # the other end is lost
            if domain.state()[1] == library().VIR_DOMAIN_PAUSED_MIGRATION:
                return
        _go_on(domain, guest)


def _prepare(pair: Pair, guest: Guest, top: int, tell: Told) -> None:
    pair.must_have_one_path()
    note = names.coming(guest.uuid)
    pair.target.create(note, 0)
    pair.copy_base(names.disk(guest.uuid, 1), tell)
    later = []  # a disk's base must be there first
    for name in pair.source.names():
        if not name.startswith(f"{guest.uuid}.") or name == note:
            continue
        if name.endswith(".qcow2") and names.generation_of(name) in (0, top):
            later.append(name)
        else:
            pair.copy(name, tell)
    for name in later:
        pair.create_alike(name)
    for image in ("kernel_id", "ramdisk_id"):
        pair.copy_image(guest.image_properties.get(image), tell)
    pair.must_stand_there(guest)


def _tell(run: Run, doing: str, target: Host) -> None:
    run.check()
    run.doing = f"{doing} to host {target.name}"


def _clear(road: Road, guest: Guest, *, keep_disks: bool) -> None:
    """Leave nothing on a host that the guest did not reach; also not one that runs there. libvirt
    has it go on here, should the other host be lost when it has just begun to run there.
    """
    domains.remove(road.arrival, road.target, guest.uuid, keep_disks=keep_disks)


def _send(domain: Any, road: Road, to: str, *, is_shared: bool) -> None:
    libvirt = library()
    flags = (
        libvirt.VIR_MIGRATE_LIVE
        | libvirt.VIR_MIGRATE_PERSIST_DEST
        | libvirt.VIR_MIGRATE_UNDEFINE_SOURCE
        | libvirt.VIR_MIGRATE_AUTO_CONVERGE
    )
    if not is_shared:
        flags |= libvirt.VIR_MIGRATE_NON_SHARED_INC
    if is_encrypted(road.target.options):
        flags |= libvirt.VIR_MIGRATE_TLS
    try:
        domain.migrate3(road.arrival, {libvirt.VIR_MIGRATE_PARAM_URI: f"tcp://{to}"}, flags)
    except libvirt.libvirtError as why:
        # A libvirtd that was started anew still ends what the one before had begun, or does not
        # know of it.
        if _COPIES not in str(why) and not _are_being_removed(domain, why):
            raise
        reason = f"an earlier copy of its disks is being ended ({why})"
        raise HostError(Wait(reason, _BUSY_AGAIN_S)) from why


def _are_being_removed(domain: Any, why: Exception) -> bool:
    """Whether it was what an earlier libvirtd left that was in the way, and it is going."""
    if not remains.are_in_the_way(why):
        return False
    with suppress(library().libvirtError):  # as where nobody may talk to QEMU
        return remains.clear(domain)
    return False


def is_encrypted(options: Mapping[str, str]) -> bool:
    """Whether memory and disks go to a host over TLS, which takes certificates of QEMU's own."""
    said = options.get("migration_tls", "no").lower()
    if said not in ("yes", "no"):
        raise Refused(f"the host's option migration_tls is {said[:40]!r}; say yes or no")
    return said == "yes"


def _address(target: Host) -> str:
    """Where the other host's QEMU can be reached by this one's."""
    known = target.options.get("migration_address") or urlsplit(target.uri).hostname
    if not known:
        raise Refused(
            f"host {target.name} ({target.uri}) has no address that other hosts can send guests to;"
            " add it with the option migration_address"
        )
    return f"[{known}]" if ":" in known else known


def _go_on(domain: Any | None, guest: Guest) -> None:
    """Have a guest run on that was paused so that its migration would end."""
    paused = library().VIR_DOMAIN_PAUSED
    if domain is None or not guest.is_running:
        return
    with suppress(library().libvirtError):
        if domain.isActive() and domain.state()[0] == paused:
            domain.resume()


@domains.although_one_goes
def _settle(connection: Any, road: Road, guest: Guest) -> bool:
    """Whether a guest whose migration ended is at the other end; else it is nowhere defined but
    here. No disk is deleted there that may be the only one, or the newer one.
    """
    pair = Pair(connection, road)
    is_shared = pair.is_shared(guest.uuid)
    domain = domains.find(connection, guest.uuid)
    if _has_taken_over(road, domain, guest):
        _arrive(connection, road, guest, keep_disks=is_shared)
        return True
    if domain is None:  # somebody undefined it: it is where its disk is
        return _has_disk(pair.target, guest) and not _has_disk(pair.source, guest)
    is_off_twice = not domain.isActive() and domains.find(road.arrival, guest.uuid) is not None
    if is_off_twice:  # all of it had come
        pair.target.delete(names.coming(guest.uuid))
    _clear(road, guest, keep_disks=is_shared or is_off_twice)
    _go_on(domain, guest)
    return False


def _runs_on(connection: Any, guest: Guest) -> bool:
    """Whether nothing is sent any more of a guest that runs, or that its user paused. Of one that
    is stopped for another reason nobody can tell without the other end.
    """
    libvirt, domain = library(), domains.find(connection, guest.uuid)
    if domain is None or not domain.isActive():
        return False
    does = domains.power(domain)
    is_as_it_should = does is (Power.RUNNING if guest.is_running else Power.PAUSED)
    return is_as_it_should and domain.jobInfo()[0] == libvirt.VIR_DOMAIN_JOB_NONE


def _has_disk(pool: Pool, guest: Guest) -> bool:
    pool.refresh()
    own = (name for name in pool.names() if name.startswith(f"{guest.uuid}."))
    return any(names.generation_of(name) for name in own)


@domains.although_one_goes
def _pause(connection: Any, guest: Guest) -> None:
    """A guest that changes no more memory has soon been copied; it goes on at the other end."""
    domain = domains.find(connection, guest.uuid)
    if domain is None or domain.state()[0] != library().VIR_DOMAIN_RUNNING:
        return
    if domain.jobInfo()[0] != library().VIR_DOMAIN_JOB_NONE:
        domain.suspend()


def _progress(connection: Any, guest: Guest) -> MigrationProgress | None:
    domain = domains.find(connection, guest.uuid)
    if domain is None or not domain.isActive():
        return None
    found = domain.jobStats()

    def of(what: str) -> tuple[int, int, int]:
        total, processed, remaining = (
            int(found.get(f"{what}_{how}", 0)) for how in ("total", "processed", "remaining")
        )
        return total, processed, remaining

    return MigrationProgress(of("memory"), of("disk")) if found.get("type") else None


@domains.although_one_goes
def _abort(connection: Any, guest: Guest) -> None:
    domain = domains.find(connection, guest.uuid)
    if domain is None:
        return
    try:
        domain.abortJob()
    except library().libvirtError as why:
        if not code(why, "VIR_ERR_OPERATION_INVALID"):  # there is nothing to end
            raise
