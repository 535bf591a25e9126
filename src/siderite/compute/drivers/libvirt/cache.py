"""Cached images on a host: sent ahead if that is wanted; removed when no guest has stood on them
for a while, never one in use.

A guest stands on an image by its disk, or by a note that it boots it. Who removes an image first
takes its seal away, then looks once more for guests on it; who makes a guest looks for the seal
once the guest stands. So one of the two sees the other, whatever happens in between: either the
image stays, or the guest is made anew on another copy. Nothing here needs a clock to be right.
"""

from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree as Xml

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.libvirt import names
from siderite.compute.drivers.libvirt.hosts import Host
from siderite.compute.drivers.libvirt.library import library
from siderite.compute.drivers.libvirt.names import Base
from siderite.compute.drivers.libvirt.runs import Run
from siderite.compute.drivers.libvirt.site import Site
from siderite.compute.drivers.libvirt.trouble import HostError
from siderite.compute.drivers.libvirt.trouble import Refused
from siderite.compute.drivers.libvirt.trouble import Unreachable
from siderite.compute.drivers.libvirt.volumes import Pool

# One without a seal may be on its way here.
_UNSEALED_S = 24 * 3600.0
_AGAIN_S = 0.5


class LibvirtCache:
    """The contract's `Cache`."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def fetch(self, at: At, image: str, token: str) -> Outcome:
        async def work(host: Host, run: Run) -> Outcome:
            base = await self._site.base(host, image, run)
            await host.call(_keep, host, base)
            return Done()

        return await self._site.outcome(at, token, f"caching image {image}", work)

    async def prune(self, at: At, keep_s: float, now: float) -> list[str]:
        host = self._site.host(at)
        try:
            return await host.transfer(_prune, host, keep_s, now)
        except (Unreachable, HostError, Refused):
            return []  # the next round comes


def disk_on(pool: Pool, name: str, size: int, base: Base) -> None:
    """A disk on top of a cached image, if that is there to stay; one that was there before is kept
    in any case.
    """
    try:
        pool.create_disk(name, size, (pool.path(base.name), base.format))
    except library().libvirtError:
        must_stand(pool, [base])
        raise
    try:
        must_stand(pool, [base])
    except HostError:
        if name in pool.made:
            pool.delete(name)
        raise


def must_stand(pool: Pool, bases: Iterable[Base]) -> None:
    """The images that a guest now stands on are there to stay."""
    for base in bases:
        if pool.find(base.seal) is None:
            why = f"cached image {base.name} was just being removed; it is sent again"
            raise HostError(Wait(why, _AGAIN_S))


def booted(pool: Pool, guest: Guest) -> list[Base]:
    """The cached images that a guest says it boots."""
    own = (name for name in pool.names() if name.startswith(f"{guest.uuid}."))
    found = (names.base_of(names.booted(name) or "") for name in own)
    return [base for base in found if base is not None]


def _keep(connection: Any, host: Host, base: Base) -> None:
    """Its time begins anew, if that had begun."""
    pool = Pool(connection, host.options)
    _forget(pool, names.unused_since(base, pool.names()))
    must_stand(pool, [base])


def _prune(connection: Any, host: Host, keep_s: float, now: float) -> list[str]:
    pool = Pool(connection, host.options)
    pool.refresh()  # on shared storage other hosts put files there
    volumes = set(pool.names())
    used = _used(connection, pool)
    removed = []
    for base in filter(None, map(names.base_of, sorted(volumes))):
        marks = names.unused_since(base, volumes)
        if base.name in used:
            _forget(pool, marks)
        elif not marks:
            pool.create(names.unused(base, now), 0)
        elif now - min(marks.values()) >= _patience(base, volumes, keep_s) and _remove(
            connection, pool, base, marks
        ):
            removed.append(base.name)
    return removed


def _patience(base: Base, volumes: set[str], keep_s: float) -> float:
    return keep_s if base.seal in volumes else max(keep_s, _UNSEALED_S)


def _remove(connection: Any, pool: Pool, base: Base, marks: Iterable[str]) -> bool:
    pool.delete(base.seal)  # from here on nobody new stands on it
    pool.refresh()
    is_used = base.name in _used(connection, pool)
    if not is_used:
        pool.delete(base.name)
    # One that somebody was faster to use stays without its seal: for its guests, and no others.
    _forget(pool, marks)
    return not is_used


def _forget(pool: Pool, marks: Iterable[str]) -> None:
    for mark in marks:
        pool.delete(mark)


def _used(connection: Any, pool: Pool) -> set[str]:
    """Cached images that a guest stands on."""
    found = set()
    for name in pool.names():
        if name.startswith("base-"):
            continue
        found.add(names.booted(name) or "")
        below = pool.backing_if_any(name)
        if below is not None:
            found.add(_last(below[0]))
    for domain in connection.listAllDomains():
        try:
            root = Xml.fromstring(domain.XMLDesc(0))  # noqa: S314
        except library().libvirtError:
            continue  # it went while we looked
        for tag in ("os/kernel", "os/initrd"):
            found.add(_last(root.findtext(tag) or ""))
    return found


def _last(path: str) -> str:
    return path.rpartition("/")[2]
