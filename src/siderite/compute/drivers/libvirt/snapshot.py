"""A guest's disk as an image: copied flat on the host, brought here, handed to the image service.

A guest that runs goes on running: QEMU mirrors its disk until the copy is level, and that moment is
the snapshot. With an agent inside, its file systems are frozen for that moment.
"""

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.libvirt import domains
from siderite.compute.drivers.libvirt import names
from siderite.compute.drivers.libvirt.hosts import Host
from siderite.compute.drivers.libvirt.library import library
from siderite.compute.drivers.libvirt.power import current
from siderite.compute.drivers.libvirt.runs import Run
from siderite.compute.drivers.libvirt.site import Site
from siderite.compute.drivers.libvirt.site import told
from siderite.compute.drivers.libvirt.trouble import MAKE_ROOM
from siderite.compute.drivers.libvirt.trouble import HostError
from siderite.compute.drivers.libvirt.trouble import Refused
from siderite.compute.drivers.libvirt.trouble import Unreachable
from siderite.compute.drivers.libvirt.volumes import NO_ROOM
from siderite.compute.drivers.libvirt.volumes import Pool
from siderite.compute.drivers.libvirt.volumes import Progress
from siderite.core.disk import passing
from siderite.core.disk import remove_if_left

_FILE = "snapshot-{}.qcow2"
_PAUSE_S = 0.05
_LOCKED, _AT_IT, _AGAIN_S = "lock", "already in active block job", 1.0


class LibvirtSnapshot:
    """The contract's `Snapshot`."""

    def __init__(self, site: Site) -> None:
        self._site = site
        for left in site.scratch.glob(_FILE.format("*")):
            remove_if_left(left)  # its snapshot may have been made by another process since

    async def snapshot(self, at: At, guest: Guest, image: str, token: str) -> Outcome:
        async def work(host: Host, run: Run) -> Outcome:
            self._site.scratch.mkdir(parents=True, exist_ok=True)
            file = self._site.scratch / _FILE.format(image)
            try:
                size = await host.transfer(_copy, host, guest, run)
                run.doing = f"fetching the snapshot of domain {guest.name}"
                with passing(file):
                    await host.transfer(_fetch, host, guest, file, _watched(run, size))
                    outcome = await self._site.images.store(image, file, "qcow2")
                    while isinstance(outcome, Wait):
                        run.check()
                        run.doing = outcome.reason
                        await asyncio.sleep(outcome.again_in)
                        outcome = await self._site.images.store(image, file, "qcow2")
            except (Refused, HostError, OSError) as why:
                if run.is_called_off or not _goes_on(why):
                    with suppress(Unreachable, HostError, Refused):
                        await host.call(_give_up, host, guest)
                raise
            await host.call(_tidy, host, guest)  # also of one that nobody wants any more
            return outcome

        return await self._site.outcome(at, token, f"copying the disk of {guest.name}", work)


def _goes_on(why: Exception) -> bool:
    """Whether it is tried again, with the copy that is there."""
    return isinstance(why, HostError) and isinstance(why.outcome, Wait)


def _watched(run: Run, size: int) -> Progress:
    shown = told(run, run.doing, size)

    def progress(done: int) -> None:
        run.check()
        shown(done)

    return progress


def _copy(connection: Any, host: Host, guest: Guest, run: Run) -> int:
    """Make the copy on the host; how many bytes it has."""
    pool = Pool(connection, host.options)
    copy = names.further_disk(guest.uuid, "snapshot")
    disk = names.disk(guest.uuid, current(connection, host, guest).disk)
    domain = domains.find(connection, guest.uuid)
    if domain is not None and domain.isActive():
        _mirror(domain, pool, disk, copy, run)
    else:
        _clone(pool, copy, disk)
    return pool.file_size(copy)


def _clone(pool: Pool, copy: str, disk: str) -> None:
    """Copy a disk at rest. If something writes to it, it is none yet: libvirtd may not know for a
    moment that the guest runs, when it has just been started. It never will if it was killed just
    as a copy ended: libvirt 9.0 cannot read what it then has written down of the guest (`job=''`).
    """
    try:
        pool.clone(copy, disk)
    except library().libvirtError as why:
        if _LOCKED not in str(why):
            raise
        reason = f"libvirt says that it is off, but something writes to its disk ({why})"
        raise HostError(Wait(reason, _AGAIN_S)) from why


def _mirror(domain: Any, pool: Pool, disk: str, copy: str, run: Run) -> None:
    libvirt = library()
    target, mirrored = _job(domain, pool.path(disk))
    if mirrored is not None and mirrored != pool.path(copy):
        domain.blockJobAbort(target, 0)
        mirrored = None
    is_anothers = mirrored is not None
    if mirrored is None:
        pool.delete(copy)
        pool.create_disk(copy, pool.size(disk) or 0)
        to = Xml.Element("disk", type="file")
        Xml.SubElement(to, "source", file=pool.path(copy))
        Xml.SubElement(to, "driver", type="qcow2")
        flags = (
            libvirt.VIR_DOMAIN_BLOCK_COPY_REUSE_EXT | libvirt.VIR_DOMAIN_BLOCK_COPY_TRANSIENT_JOB
        )
        _begin(domain, target, Xml.tostring(to, encoding="unicode"), flags)
    while (is_level := _is_level(domain, target)) is False:
        if run.is_called_off:
            domain.blockJobAbort(target, 0)
        run.check()
        time.sleep(_PAUSE_S)
    if is_level is None and is_anothers:
        # One that was under way before: it may have ended with the libvirtd that had begun it.
        raise HostError(Wait("an earlier copy of its disk ended; it is begun anew", _AGAIN_S))
    if is_level is None:
        raise Refused(f"copying the disk of domain {domain.name()} {_why_ended(pool)}")
    frozen = _freeze(domain)
    try:
        domain.blockJobAbort(target, 0)
    finally:
        if frozen:
            with suppress(libvirt.libvirtError):
                domain.fsThaw()


def _begin(domain: Any, target: str, to: str, flags: int) -> None:
    """Have the disk mirrored. Just after it was started anew, libvirtd may know of a job on the
    disk and not to where: that is ended, and then there is another try.
    """
    try:
        domain.blockCopy(target, to, {}, flags)
    except library().libvirtError as why:
        if _AT_IT not in str(why):
            raise
        with suppress(library().libvirtError):
            domain.blockJobAbort(target, 0)
        raise HostError(Wait(f"an earlier copy of its disk ends ({why})", _AGAIN_S)) from why


def _freeze(domain: Any) -> bool:
    """Only a guest with an agent can be asked."""
    with suppress(library().libvirtError):
        domain.fsFreeze()
        return True
    return False


def _job(domain: Any, path: str) -> tuple[str, str | None]:
    """The disk's name in the domain, and the file it is being mirrored to."""
    for disk in Xml.fromstring(domain.XMLDesc(0)).findall("devices/disk"):  # noqa: S314
        source, target = disk.find("source"), disk.find("target")
        if source is None or target is None or source.get("file") != path:
            continue
        mirror = disk.find("mirror/source")
        return str(target.get("dev")), None if mirror is None else mirror.get("file")
    raise Refused(f"domain {domain.name()} has no disk {path}; reboot the server hard")


def _is_level(domain: Any, target: str) -> bool | None:
    """Whether the copy is; None if there is none any more."""
    for disk in Xml.fromstring(domain.XMLDesc(0)).findall("devices/disk"):  # noqa: S314
        name, mirror = disk.find("target"), disk.find("mirror")
        if name is not None and name.get("dev") == target:
            return None if mirror is None else mirror.get("ready") == "yes"
    return None


def _why_ended(pool: Pool) -> str:
    """QEMU gives up a copy that it cannot write; libvirt tells nobody why."""
    pool.refresh()
    if pool.info()[1] < NO_ROOM:
        return f"ended, with no space left for it; {MAKE_ROOM}"
    return "was ended by somebody, or could not be written; libvirt's log on the host says more"


def _fetch(connection: Any, host: Host, guest: Guest, file: Path, progress: Progress) -> None:
    Pool(connection, host.options).download(
        names.further_disk(guest.uuid, "snapshot"), file, progress
    )


def _give_up(connection: Any, host: Host, guest: Guest) -> None:
    """End what still copies the disk, and leave nothing of the copy."""
    domain = domains.find(connection, guest.uuid)
    if domain is not None and domain.isActive():
        pool = Pool(connection, host.options)
        disk = names.disk(guest.uuid, current(connection, host, guest).disk)
        with suppress(Refused, library().libvirtError):
            target, mirrored = _job(domain, pool.path(disk))
            if mirrored is not None:
                domain.blockJobAbort(target, 0)
    _tidy(connection, host, guest)


def _tidy(connection: Any, host: Host, guest: Guest) -> None:
    Pool(connection, host.options).delete(names.further_disk(guest.uuid, "snapshot"))
