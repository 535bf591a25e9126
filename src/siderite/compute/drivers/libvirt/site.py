"""What all parts of the driver stand on: hosts, runs, and where images come from."""

import asyncio
import secrets
from collections.abc import Awaitable
from collections.abc import Callable
from pathlib import Path

from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import ImageFiles
from siderite.compute.drivers.libvirt.hosts import Host
from siderite.compute.drivers.libvirt.hosts import Hosts
from siderite.compute.drivers.libvirt.image_file import ImageFile
from siderite.compute.drivers.libvirt.image_file import inspect
from siderite.compute.drivers.libvirt.names import Base
from siderite.compute.drivers.libvirt.names import new_base
from siderite.compute.drivers.libvirt.names import sealed
from siderite.compute.drivers.libvirt.runs import Run
from siderite.compute.drivers.libvirt.runs import Runs
from siderite.compute.drivers.libvirt.trouble import Refused
from siderite.compute.drivers.libvirt.volumes import Pool
from siderite.compute.drivers.libvirt.volumes import Progress


class Site:
    """The driver's surroundings."""

    def __init__(self, images: ImageFiles, scratch: Path) -> None:
        self.images = images
        self.scratch = scratch
        self._hosts = Hosts(scratch)
        self._runs = Runs()
        self._uploads: dict[tuple[str, str], asyncio.Lock] = {}

    def host(self, at: At) -> Host:
        """The host that a call is for."""
        return self._hosts.at(at)

    async def outcome(
        self, at: At, token: str, doing: str, work: Callable[[Host, Run], Awaitable[Outcome]]
    ) -> Outcome:
        """Begin the run with this token on the host, or tell how it is going."""
        host = self.host(at)
        return await self._runs.outcome(host, token, doing, lambda run: work(host, run))

    async def end(self, at: At, token: str, doing: str) -> None:
        """Call off the run with this token on the host, if this process has one."""
        run = self._runs.under_way(self.host(at), token, doing)
        while run is not None and not run.is_over:
            await self._runs.call_off(run)

    async def alone(self, run: Run, name: str) -> None:
        """Wait until nothing else is done to a domain, and have what can be called off end soon."""
        for other in self._runs.others(run, name):
            while not other.is_over:
                await self._runs.call_off(other)

    async def base(self, host: Host, image: str, run: Run) -> Base:
        """The image in the host's cache; it is sent there first if need be, for others too: that
        goes on though the run is called off.
        """
        run.is_apart = True
        try:
            return await self._sent(host, image, run)
        finally:
            run.is_apart = False
            run.check()

    async def _sent(self, host: Host, image: str, run: Run) -> Base:
        found = await host.call(_cached, host, image)
        if found is not None:
            return found
        lock = self._uploads.setdefault((host.name, image), asyncio.Lock())
        async with lock:
            found = await host.call(_cached, host, image)
            if found is not None:
                return found
            file = await self._local(image, run)
            base = new_base(image, secrets.token_hex(4), file.format, file.virtual_bytes)
            run.doing = f"sending image {image}"
            await host.transfer(_upload, host, base, file, told(run, run.doing, file.file_bytes))
            return base

    async def _local(self, image: str, run: Run) -> ImageFile:
        """The image as a file here, fetched from elsewhere if it must be."""
        while True:
            run.check()
            path = await self.images.local(image)
            match path:
                case Path():
                    return await asyncio.to_thread(inspect, path, image)
                case Wait():
                    run.doing = path.reason
                    await asyncio.sleep(path.again_in)
                case Failed():
                    raise Refused(path.reason, elsewhere=path.elsewhere)

    def close(self) -> None:
        """Let go of everything."""
        self._runs.close()
        self._hosts.close()


def told(run: Run, doing: str, total: int) -> Progress:
    """Keeps what the operator reads up to date."""

    def progress(done: int) -> None:
        run.doing = f"{doing}, {done >> 20} of {total >> 20} MiB"

    return progress


def _cached(connection: object, host: Host, image: str) -> Base | None:
    return sealed(image, Pool(connection, host.options).names())


def _upload(
    connection: object, host: Host, base: Base, file: ImageFile, progress: Progress
) -> None:
    pool = Pool(connection, host.options)
    try:
        pool.upload_file(base.name, file.path, progress)
    except BaseException:
        pool.delete(base.name)
        raise
    pool.create(base.seal, 0)
