"""To another size or host, with a way back.

On one host the old disk stays as it is, and the resized guest writes to a new one on top of it, so
both directions take no time however large the disk is. Between hosts its files are copied, and the
source keeps them until all is confirmed. Empty volumes (names.py) say what stage it is in.
"""

from collections.abc import Awaitable
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Outcome
from siderite.compute.drivers.contract import GONE
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.libvirt import domains
from siderite.compute.drivers.libvirt import names
from siderite.compute.drivers.libvirt.copying import Pair
from siderite.compute.drivers.libvirt.copying import Road
from siderite.compute.drivers.libvirt.copying import along
from siderite.compute.drivers.libvirt.hosts import Host
from siderite.compute.drivers.libvirt.names import Mark
from siderite.compute.drivers.libvirt.power import current
from siderite.compute.drivers.libvirt.runs import Run
from siderite.compute.drivers.libvirt.site import Site
from siderite.compute.drivers.libvirt.volumes import Pool


class LibvirtResize:
    """The contract's `Resize`."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def prepare(self, at: At, guest: Guest, to: At, token: str) -> Outcome:
        async def work(host: Host, run: Run) -> Outcome:
            target = self._site.host(to)
            if target is host:
                await host.call(_branch, host, guest)
            else:
                road = Road(host, target, await target.connection())
                await host.transfer(along(road, _move), guest, run)
            return Done()

        return await self._run(at, guest, token, "preparing to resize", work)

    async def finish(self, at: At, guest: Guest, source: At, token: str) -> Outcome:
        async def work(host: Host, run: Run) -> Outcome:
            await host.call(_finish, host, guest, token)
            return Done()

        return await self._run(at, guest, token, "resizing", work)

    async def confirm(self, at: At, guest: Guest, token: str) -> Outcome:
        async def work(host: Host, run: Run) -> Outcome:
            await host.call(_confirm, host, guest)
            return Done()

        return await self._run(at, guest, token, "cleaning up after the resize of", work)

    async def revert(self, at: At, guest: Guest, leaving: At, token: str) -> Outcome:
        async def work(host: Host, run: Run) -> Outcome:
            await self._site.alone(run, guest.name)  # a resize that was given up may go on
            left = self._site.host(leaving)
            stage = await host.call(_stage, host, guest)
            if left is not host and stage is not None:
                leave = partial(domains.remove, keep_disks=stage == "branched")
                await left.call(leave, left, guest.uuid)
            return Done({GONE: await host.call(_revert, host, guest, token)})

        return await self._run(at, guest, token, "reverting the resize of", work)

    async def _run(
        self,
        at: At,
        guest: Guest,
        token: str,
        doing: str,
        work: Callable[[Host, Run], Awaitable[Outcome]],
    ) -> Outcome:
        return await self._site.outcome(at, token, f"{doing} domain {guest.name}", work)


def _own(pool: Pool, guest: Guest) -> list[str]:
    return [name for name in pool.names() if name.startswith(f"{guest.uuid}.")]


def _stage(connection: Any, host: Host, guest: Guest) -> str | None:
    volumes = _own(Pool(connection, host.options), guest)
    if names.way_back_of(guest.uuid, volumes) is not None:
        return "branched"
    return "moved" if names.moved(guest.uuid) in volumes else None


def _branch(connection: Any, host: Host, guest: Guest) -> None:
    """Keep the disk, and put a new one on top."""
    pool = Pool(connection, host.options)
    back = names.way_back_of(guest.uuid, _own(pool, guest))
    here = back or current(connection, host, guest).disk
    old, new = names.disk(guest.uuid, here), names.disk(guest.uuid, here + 1)
    if back is None:
        pool.delete(new)  # of a resize that was given up
    pool.create_disk(new, pool.size(old) or 0, (pool.path(old), "qcow2"))
    pool.create(names.way_back(guest.uuid, here), 0)


def _move(connection: Any, road: Road, guest: Guest, run: Run) -> None:
    """Let the other host have the files; here they are only kept."""
    pair = Pair(connection, road)
    pair.must_have_one_path()

    def tell(doing: str) -> None:
        run.check()
        run.doing = f"{doing} to host {road.target.name}"

    if pair.is_shared(guest.uuid):
        _branch(connection, road.source, guest)
    else:
        notes = (names.moved(guest.uuid), names.coming(guest.uuid))
        pair.source.create(notes[0], 0)
        pair.target.create(notes[1], 0)
        pair.copy_base(names.disk(guest.uuid, 1), tell)
        for name in _own(pair.source, guest):
            if name not in notes:
                pair.copy(name, tell)
        pair.target.refresh()  # it takes the copies for raw bytes until it looks at them
        for image in ("kernel_id", "ramdisk_id"):
            pair.copy_image(guest.image_properties.get(image), tell)
        pair.must_stand_there(guest)
        pair.target.delete(names.coming(guest.uuid))
    tell("the domain goes")
    domain = domains.find(connection, guest.uuid)
    if domain is not None:
        domains.stop(domain)
        domains.forget(domain)


def _finish(connection: Any, host: Host, guest: Guest, token: str) -> None:
    pool = Pool(connection, host.options)
    pool.refresh()  # on shared storage the other host has just put files there
    known = current(connection, host, guest)
    domain = domains.find(connection, guest.uuid)
    back = names.way_back_of(guest.uuid, _own(pool, guest))
    if domain is None or known.token != token:
        here = known.disk if back is None else back + 1
        pool.grow(names.disk(guest.uuid, here), guest.disk_gib * domains.GIB)
        for name, size in domains.further_disks(guest).items():
            pool.create_disk(name, size)
            pool.grow(name, size)
        domain = domains.define(connection, host, guest, replace(known, token=token, disk=here))
    if back is None:  # these are copies; else the way back needs them
        _drop(pool, guest)
    if guest.is_running:
        domains.start(domain)


def _drop(pool: Pool, guest: Guest) -> None:
    """Delete the further disks that the flavor does not have."""
    for what in names.FURTHER:
        name = names.further_disk(guest.uuid, what)
        if name not in domains.further_disks(guest):
            pool.delete(name)


def _confirm(connection: Any, host: Host, guest: Guest) -> None:
    pool = Pool(connection, host.options)
    volumes = _own(pool, guest)
    if names.moved(guest.uuid) in volumes:
        volumes = domains.own_files(pool, guest.uuid)
        for name in sorted(volumes, key=lambda name: name == names.moved(guest.uuid)):
            pool.delete(name)
        return
    back = names.way_back_of(guest.uuid, volumes)
    if back is not None:
        _drop(pool, guest)
        pool.delete(names.way_back(guest.uuid, back))


def _revert(connection: Any, host: Host, guest: Guest, token: str) -> bool:
    """Whether there was no disk to go back to: then the resize is over, and all else stays."""
    pool = Pool(connection, host.options)
    pool.refresh()  # on shared storage the other host may have put files there
    volumes = _own(pool, guest)
    back = names.way_back_of(guest.uuid, volumes)
    known = current(connection, host, guest)
    marked = replace(known, token=token, disk=back or known.disk)
    is_gone = pool.find(names.disk(guest.uuid, marked.disk)) is None
    if not is_gone:
        _go_back(connection, host, guest, marked)
    if back is not None:
        pool.delete(names.way_back(guest.uuid, back))
    pool.delete(names.moved(guest.uuid))
    if guest.is_running and not is_gone:
        domains.start(domains.must_find(connection, host, guest))
    return is_gone


def _go_back(connection: Any, host: Host, guest: Guest, marked: Mark) -> None:
    """The guest has its old disk and size, and none that came later."""
    pool = Pool(connection, host.options)
    volumes = _own(pool, guest)
    back = names.way_back_of(guest.uuid, volumes)
    domain = domains.find(connection, guest.uuid)
    if domain is None or back not in (None, current(connection, host, guest).disk):
        if domain is not None:
            domains.stop(domain)
        domains.define(connection, host, guest, marked)
    if back is not None:
        for name in volumes:
            if names.generation_of(name) > back:
                pool.delete(name)
        _drop(pool, guest)
