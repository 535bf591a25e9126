"""A driver, a host and image files, for tests that act as the worker does."""

import asyncio
import shutil
import time
import uuid as uuids
from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any
from typing import TypeVar

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.power import Power
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Driver
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.libvirt import libvirt_driver
from tests.lab import LabHost
from tests.lab import Mode
from tests.lab import tiny_disk
from tests.lab.guest import PATIENCE_S

T = TypeVar("T")


@dataclass
class FolderOfImages:
    """Image files by their ids, in a folder."""

    folder: Path
    stored: dict[str, Path] = field(default_factory=dict)
    is_full: bool = False

    def add(self, source: Path) -> str:
        """Take a file; its id."""
        image = str(uuids.uuid4())
        source.rename(self.folder / image)
        return image

    def copy(self, source: Path) -> str:
        """Take a copy of a file; its id."""
        image = str(uuids.uuid4())
        shutil.copy(source, self.folder / image)
        return image

    async def local(self, image: str) -> Path | Wait | Failed:
        path = self.folder / image
        return path if path.exists() else Failed(f"there is no image {image}")

    async def store(self, image: str, source: Path, disk_format: str) -> Outcome:
        assert disk_format == "qcow2"
        if self.is_full:
            return Failed("there is no room for it")
        self.stored[image] = Path(shutil.copy(source, self.folder / image))
        return Done()


class World:
    """One driver on an event loop of its own."""

    def __init__(self, runner: asyncio.Runner, driver: Driver, images: FolderOfImages) -> None:
        self._runner = runner
        self.driver = driver
        self.images = images

    def run(self, work: Awaitable[T]) -> T:
        """Run it to its end."""

        async def outer() -> T:
            return await work

        return self._runner.run(outer())

    def outcome(self, call: Callable[..., Awaitable[Outcome]], *args: Any) -> Outcome:
        """Ask as the worker does, with one token, until the answer is not `Wait`."""
        token = str(uuids.uuid4())
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = self.run(call(*args, token))
            if not isinstance(answer, Wait):
                return answer
            assert time.monotonic() < deadline, answer.reason
            self.run(asyncio.sleep(min(answer.again_in, 0.1)))

    def done(self, call: Callable[..., Awaitable[Outcome]], *args: Any) -> Done:
        """The same, and it must succeed."""
        answer = self.outcome(call, *args)
        assert isinstance(answer, Done), answer
        return answer

    def state(self, at: At, guest: Guest) -> Power | None:
        return self.run(self.driver.life.state(at, guest))

    def log(self, at: At, guest: Guest) -> str:
        assert self.driver.console_log is not None
        return self.run(self.driver.console_log.log(at, guest, None))

    def until(self, holds: Callable[[], bool], complaint: Callable[[], str]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, complaint()
            self.run(asyncio.sleep(0.03))

    def wait_for_state(self, at: At, guest: Guest, power: Power) -> None:
        self.until(lambda: self.state(at, guest) is power, lambda: f"not {power!r}")

    def wait_for_words(self, at: At, guest: Guest, words: str, times: int = 1) -> None:
        self.until(
            lambda: self.log(at, guest).count(words) >= times,
            lambda: f"no {words!r} in {self.log(at, guest)!r}",
        )

    def tiny_image(self, mode: Mode = Mode.GRACEFUL, *, tag: str = "tiny", delay_s: int = 1) -> str:
        disk = tiny_disk(self.images.folder / "new.raw", mode, tag=tag, delay_s=delay_s)
        return self.images.add(disk)

    def spawn(self, at: At, mode: Mode = Mode.GRACEFUL, **fields: Any) -> Guest:
        """A guest of 512 bytes that runs, and has said so."""
        delay_s = 4 if mode is Mode.LATE else 1  # time enough to send it something too early
        guest = new_guest(self.tiny_image(mode, delay_s=delay_s), **fields)
        self.done(self.driver.life.spawn, at, guest)
        if guest.is_running:
            self.wait_for_words(at, guest, "ready")
        return guest


def new_guest(image: str, **fields: Any) -> Guest:
    uuid = str(uuids.uuid4())
    known: dict[str, Any] = {
        "uuid": uuid,
        "name": f"instance-{uuid[:8]}",
        "display_name": "a server",
        "hostname": "a-server",
        "project": "p",
        "node": "lab",
        "vcpus": 1,
        "ram_mib": 16,
        "disk_gib": 0,
        "image": image,
    }
    return Guest(**{**known, **fields})


@contextmanager
def new_world(folder: Path) -> Iterator[World]:
    images = FolderOfImages(folder / "images")
    images.folder.mkdir()
    driver = libvirt_driver(images, folder / "scratch")
    with asyncio.Runner() as runner:
        yield World(runner, driver, images)
        assert driver.close is not None

        async def close() -> None:
            driver.close()

        runner.run(close())


def at_lab(lab: LabHost, **options: str) -> At:
    return At(lab.name, lab.uri, {"migration_address": "127.0.0.1", **options})
