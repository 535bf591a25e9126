"""A guest's files from one host to another, through this process. Blocking; in transfer threads."""

import secrets
from collections.abc import Callable
from typing import Any
from typing import TypeVar

import msgspec

from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.libvirt import domains
from siderite.compute.drivers.libvirt import names
from siderite.compute.drivers.libvirt.cache import must_stand
from siderite.compute.drivers.libvirt.hosts import Host
from siderite.compute.drivers.libvirt.library import library
from siderite.compute.drivers.libvirt.names import Base
from siderite.compute.drivers.libvirt.trouble import Refused
from siderite.compute.drivers.libvirt.trouble import Unreachable
from siderite.compute.drivers.libvirt.trouble import cannot_connect
from siderite.compute.drivers.libvirt.trouble import is_lost
from siderite.compute.drivers.libvirt.volumes import Changed
from siderite.compute.drivers.libvirt.volumes import Pool
from siderite.compute.drivers.libvirt.volumes import told

Told = Callable[[str], None]
"""Says what is being done; Refused if that is to end."""
T = TypeVar("T")
_LOST_AGAIN_S = 1.0


class Road(msgspec.Struct, frozen=True):
    """From one host to another, whose connection is `arrival`."""

    source: Host
    target: Host
    arrival: Any


def along(road: Road, work: Callable[..., T]) -> Callable[..., T]:
    """The same work of the source's threads on this road. Should the other end be lost, it is the
    one that must be waited for: the source has done nothing wrong.
    """

    def guarded(connection: Any, *args: object) -> T:
        try:
            return work(connection, road, *args)
        except library().libvirtError as why:
            if is_lost(why, connection) or not is_lost(why, road.arrival):
                raise
            end = road.target
            raise Unreachable(cannot_connect(end.name, end.uri, why), _LOST_AGAIN_S) from why

    return guarded


class Pair:
    """The pools of two hosts."""

    def __init__(self, connection: Any, road: Road) -> None:
        self.source = Pool(connection, road.source.options)
        self.target = Pool(road.arrival, road.target.options)
        self._names = (road.source.name, road.target.name)

    def is_shared(self, uuid: str) -> bool:
        """Whether both are the same folder, as on NFS: a volume made here then shows there. It is
        the guest's own, and goes with its other files if we are killed before it does.
        """
        probe = names.probe(uuid, secrets.token_hex(8))
        self.source.create(probe, 0)
        try:
            self.target.refresh()
            return self.target.find(probe) is not None
        finally:
            self.source.delete(probe)

    def must_have_one_path(self) -> None:
        """A disk names its base by its path, so that must be the same on both hosts."""
        here, there = self.source.path(""), self.target.path("")
        if here != there:
            raise Refused(
                f"hosts {self._names[0]} and {self._names[1]} keep disks in different folders"
                f" ({here}, {there}); give both the same pool_path"
            )

    def copy_base(self, disk: str, tell: Told) -> None:
        """The cached image below a disk; it keeps its name."""
        self._copy_cached(self.base_below(disk), tell)

    def copy_image(self, image: str | None, tell: Told) -> None:
        """A cached image that a guest boots directly."""
        self._copy_cached(names.sealed(image, self.source.names()) if image else None, tell)

    def _copy_cached(self, base: Base | None, tell: Told) -> None:
        """Into the file that is there: several guests may bring their image at once, and the first
        to seal it vouches for the file that all of them fill with the same bytes.
        """
        if base is None or self.target.find(base.seal) is not None:
            return
        self._fill(base.name, tell, mode="0644")
        self.target.create(base.seal, 0)

    def must_stand_there(self, guest: Guest) -> None:
        """The cached images below the copies were not just being removed there."""
        base = self.base_below(names.disk(guest.uuid, 1))
        bases = domains.booted_bases(self.source, guest)
        must_stand(self.target, [*bases, *([] if base is None else [base])])

    def base_below(self, disk: str) -> Base | None:
        """The cached image that a server's first disk stands on."""
        below = self.source.backing(disk) if self.source.find(disk) is not None else None
        return names.base_of(below[0].rpartition("/")[2]) if below else None

    def create_alike(self, name: str) -> None:
        """An empty disk of the same size on the same base; QEMU fills it while it migrates."""
        self.target.delete(name)
        self.target.create_disk(name, self.source.size(name) or 0, self.source.backing(name))

    def copy(self, name: str, tell: Told) -> None:
        """One volume, byte by byte, in place of an older one."""
        for is_last in (False, True):
            tell(f"copying {name}")
            self.target.delete(name)
            try:
                return self._fill(name, tell, mode="0600")
            except Changed:  # a log that was just set aside
                if is_last:
                    raise

    def _fill(self, name: str, tell: Told, *, mode: str) -> None:
        size = self.source.file_size(name)

        def progress(done: int) -> None:
            tell(f"copying {name}, {done >> 20} of {size >> 20} MiB")

        progress(0)
        self.target.reserve(name, size, mode=mode)
        # No more than that: a guest that runs may be printing to its log.
        chunks = self.source.chunks(name, size=size) if size else ()
        self.target.receive(name, size, told(chunks, progress))
