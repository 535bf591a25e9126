"""Deeds on one domain that may be repeated: find, define, start, stop, remove. Blocking; called in
a host's threads.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any
from typing import ParamSpec
from typing import TypeVar

from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.power import Power
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.libvirt import names
from siderite.compute.drivers.libvirt.cache import disk_on
from siderite.compute.drivers.libvirt.capacity import traits
from siderite.compute.drivers.libvirt.config_drive import config_drive
from siderite.compute.drivers.libvirt.domain_xml import Files
from siderite.compute.drivers.libvirt.domain_xml import Shape
from siderite.compute.drivers.libvirt.domain_xml import domain_xml
from siderite.compute.drivers.libvirt.hosts import Host
from siderite.compute.drivers.libvirt.library import library
from siderite.compute.drivers.libvirt.names import Mark
from siderite.compute.drivers.libvirt.names import mark_of
from siderite.compute.drivers.libvirt.trouble import HostError
from siderite.compute.drivers.libvirt.trouble import Refused
from siderite.compute.drivers.libvirt.trouble import code
from siderite.compute.drivers.libvirt.volumes import Pool

P = ParamSpec("P")
T = TypeVar("T")

_AGAIN_S = 1.0
_ENDS = 2  # of a migration
GIB = 1 << 30
MIB = 1 << 20


def find(connection: Any, uuid: str) -> Any | None:
    """The domain, if the host has it."""
    try:
        return connection.lookupByUUIDString(uuid)
    except library().libvirtError as why:
        if code(why, "VIR_ERR_NO_DOMAIN"):
            return None
        raise


def although_one_goes(deed: Callable[P, T]) -> Callable[P, T]:
    """A deed that begins anew when a domain goes away under its eyes, as it may at each end of a
    migration.
    """

    @wraps(deed)
    def done(*args: P.args, **options: P.kwargs) -> T:
        for _ in range(_ENDS):
            try:
                return deed(*args, **options)
            except library().libvirtError as why:
                if not code(why, "VIR_ERR_NO_DOMAIN"):
                    raise
        return deed(*args, **options)

    return done


def must_find(connection: Any, host: Host, guest: Guest) -> Any:
    """The domain; `Refused` if the host has none."""
    domain = find(connection, guest.uuid)
    if domain is None:
        raise Refused(
            f"host {host.name} ({host.uri}) has no domain for server {guest.uuid}:"
            " somebody undefined it; reboot the server hard to define it again"
        )
    return domain


def not_running(host: Host, guest: Guest) -> Refused:
    """The refusal of what only a guest that runs can do."""
    return Refused(f"the guest of server {guest.uuid} does not run on host {host.name}")


def mark(domain: Any) -> Mark | None:
    """Our note in the domain's lasting description."""
    return mark_of(domain.XMLDesc(library().VIR_DOMAIN_XML_INACTIVE))


def define(connection: Any, host: Host, guest: Guest, as_marked: Mark) -> Any:
    """Define the domain anew from what the server should be."""
    pool = Pool(connection, host.options)
    shape = Shape(guest, traits(connection, host), _files(pool, guest, as_marked), as_marked)
    domain = connection.defineXMLFlags(domain_xml(shape), 0)
    pool.delete(names.moved(guest.uuid))  # its files here are in use, no longer only kept
    return domain


def _files(pool: Pool, guest: Guest, as_marked: Mark) -> Files:
    root = names.disk(guest.uuid, as_marked.disk)
    volumes = set(pool.names(root))
    if root not in volumes:
        raise Refused(f"the disk of server {guest.uuid} is gone from its host; rebuild the server")
    disks = [root]
    if as_marked.is_rescued:
        disks.insert(0, names.further_disk(guest.uuid, "rescue"))
    disks += [name for name in further_disks(guest) if name in volumes]
    config = names.config(guest.uuid)
    kernel, ramdisk = (_boot_file(pool, volumes, guest, what) for what in ("kernel", "ramdisk"))
    return Files(
        tuple(pool.path(name) for name in disks),
        pool.path(names.console(guest.uuid)),
        pool.path(config) if config in volumes else None,
        kernel,
        ramdisk,
    )


def _boot_file(pool: Pool, volumes: set[str], guest: Guest, what: str) -> str | None:
    image = guest.image_properties.get(f"{what}_id")
    if not image:
        return None
    base = names.sealed(image, list(volumes))
    if base is None:
        raise Refused(
            f"the {what} of server {guest.uuid}, image {image}, is not on its host; rebuild it"
        )
    return pool.path(base.name)


def make_files(
    connection: Any, host: Host, guest: Guest, base: names.Base, generation: int
) -> bool:
    """The guest's disk on its base, further disks, config drive and console log; whether the disk
    was not there before.
    """
    pool = Pool(connection, host.options)
    size = guest.disk_gib * GIB or base.virtual_bytes
    if size < base.virtual_bytes:
        raise Refused(
            f"the image needs a disk of {-(-base.virtual_bytes // GIB)} GiB, and the flavor has"
            f" {guest.disk_gib}; take a larger flavor",
            elsewhere=False,
        )
    disk_on(pool, names.disk(guest.uuid, generation), size, base)
    for name, further in further_disks(guest).items():
        pool.create_disk(name, further)
    for booted in booted_bases(pool, guest):
        pool.create(names.boots(guest.uuid, booted), 0)
    write_config_drive(pool, guest)
    pool.create(names.console(guest.uuid), 0)
    return names.disk(guest.uuid, generation) in pool.made


def further_disks(guest: Guest) -> dict[str, int]:
    """The disks that its flavor gives it beside the first, and their sizes in bytes."""
    sizes = zip(names.FURTHER, (guest.ephemeral_gib * GIB, guest.swap_mib * MIB), strict=True)
    return {names.further_disk(guest.uuid, what): size for what, size in sizes if size}


def booted_bases(pool: Pool, guest: Guest) -> list[names.Base]:
    """The cached images that it boots directly: its kernel and ramdisk."""
    volumes = pool.names()
    images = (guest.image_properties.get(f"{what}_id") for what in ("kernel", "ramdisk"))
    found = (names.sealed(image, volumes) for image in images if image)
    return [base for base in found if base is not None]


def write_config_drive(pool: Pool, guest: Guest) -> None:
    """The config drive as the server is now."""
    pool.upload(names.config(guest.uuid), config_drive(guest))


def start(domain: Any) -> None:
    """Start it, unless it runs."""
    if not domain.isActive():
        try:
            domain.create()
        except library().libvirtError as why:
            if not (code(why, "VIR_ERR_OPERATION_INVALID") and domain.isActive()):
                raise
    libvirt = library()
    if tuple(domain.state()) == (libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_STARTING_UP):
        why_not = f"domain {domain.name()} is being started by libvirt, but does not run yet;"
        raise HostError(Wait(f"{why_not} if that lasts, see libvirtd's log on its host", _AGAIN_S))


def stop(domain: Any) -> None:
    """Pull the plug, unless it is off; what it had in memory is gone too if that is on disk."""
    if domain.isActive():
        try:
            domain.destroy()
        except library().libvirtError as why:
            if not code(why, "VIR_ERR_OPERATION_INVALID", "VIR_ERR_NO_DOMAIN"):
                raise
    elif domain.hasManagedSaveImage(0):
        domain.managedSaveRemove(0)


def forget(domain: Any) -> None:
    """Undefine it, with all that libvirt keeps for it."""
    libvirt = library()
    every = (
        libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE
        | libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
        | libvirt.VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA
        | libvirt.VIR_DOMAIN_UNDEFINE_NVRAM
    )
    try:
        domain.undefineFlags(every)
    except libvirt.libvirtError as why:
        if not code(why, "VIR_ERR_NO_DOMAIN"):
            raise


def remove(connection: Any, host: Host, uuid: str, *, keep_disks: bool = False) -> None:
    """Stop and undefine a guest, and delete its files unless they are wanted still. One that
    somebody starts in between would run on, defined nowhere and on deleted files.
    """
    while (domain := find(connection, uuid)) is not None:
        stop(domain)
        forget(domain)
    if keep_disks:
        return
    pool = Pool(connection, host.options)
    for name in own_files(pool, uuid):
        pool.delete(name)


def own_files(pool: Pool, uuid: str) -> list[str]:
    """All of a guest's files, to be deleted. The pool does not know of older logs that libvirt put
    beside its own, until one cannot be made as it is there.
    """
    with suppress(library().libvirtError):  # as on a full disk: then those stay
        pool.create(names.older_console(uuid), 0)
    return [name for name in pool.names() if name.startswith(f"{uuid}.")]


def power_of(state: int, reason: int, *, is_saved: bool) -> Power:
    """libvirt's state as ours."""
    libvirt = library()
    if state in (libvirt.VIR_DOMAIN_RUNNING, libvirt.VIR_DOMAIN_BLOCKED):
        return Power.RUNNING
    if state == libvirt.VIR_DOMAIN_SHUTDOWN:
        return Power.RUNNING  # on its way down; libvirt says SHUTOFF when it is there
    if state == libvirt.VIR_DOMAIN_PAUSED:
        by_hand = (libvirt.VIR_DOMAIN_PAUSED_USER, libvirt.VIR_DOMAIN_PAUSED_UNKNOWN)
        passing = (
            libvirt.VIR_DOMAIN_PAUSED_MIGRATION,
            libvirt.VIR_DOMAIN_PAUSED_SAVE,
            libvirt.VIR_DOMAIN_PAUSED_DUMP,
            libvirt.VIR_DOMAIN_PAUSED_FROM_SNAPSHOT,
            libvirt.VIR_DOMAIN_PAUSED_SNAPSHOT,
            libvirt.VIR_DOMAIN_PAUSED_STARTING_UP,
        )
        return Power.NOSTATE if reason in passing and reason not in by_hand else Power.PAUSED
    if state == libvirt.VIR_DOMAIN_PMSUSPENDED:
        return Power.SUSPENDED
    if state == libvirt.VIR_DOMAIN_CRASHED:
        return Power.CRASHED
    if state == libvirt.VIR_DOMAIN_SHUTOFF:
        if is_saved:
            return Power.SUSPENDED
        crashed = reason == libvirt.VIR_DOMAIN_SHUTOFF_CRASHED
        return Power.CRASHED if crashed else Power.SHUTDOWN
    return Power.NOSTATE


def power(domain: Any) -> Power:
    """What the domain does now."""
    state, reason = domain.state()
    is_saved = state == library().VIR_DOMAIN_SHUTOFF and bool(domain.hasManagedSaveImage(0))
    return power_of(state, reason, is_saved=is_saved)
