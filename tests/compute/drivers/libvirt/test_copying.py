"""What goes from host to host while others do the same, or while it grows."""

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.power import Power
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.libvirt import copying
from siderite.compute.drivers.libvirt.volumes import Pool
from siderite.compute.drivers.libvirt.volumes import Progress
from siderite.compute.drivers.libvirt.volumes import told
from tests.compute.drivers.libvirt.world import World
from tests.compute.drivers.libvirt.world import at_lab
from tests.compute.drivers.libvirt.world import new_guest
from tests.lab import LabHost
from tests.lab import Mode
from tests.lab.guest import PATIENCE_S


@pytest.fixture
def to(far: LabHost) -> At:
    return at_lab(far)


class _InStep:
    """The first to copy goes on once a second has begun; that one waits until the first is done."""

    def __init__(self) -> None:
        self.first: str | None = None
        self.second_began = threading.Event()
        self.first_ended = threading.Event()

    def told(self, chunks: Iterator[bytes], progress: Progress) -> Iterator[bytes]:
        me = threading.current_thread().name
        if self.first is None:
            self.first = me
        for chunk in told(chunks, progress):
            yield chunk
            if me == self.first:
                assert self.second_began.wait(PATIENCE_S)
            else:
                self.second_began.set()
                assert self.first_ended.wait(PATIENCE_S)


def test_an_image_that_two_guests_take_along_at_once_is_whole_for_the_first_of_them(
    far: LabHost, at: At, to: At, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    resize: Any = world.driver.resize
    content = os.urandom(1 << 20)
    file = world.images.folder / "image"
    file.write_bytes(content)
    image = world.images.add(file)
    guests = [new_guest(image, is_running=False) for _ in range(2)]
    for guest in guests:
        world.done(world.driver.life.spawn, at, guest)
    steps = _InStep()
    monkeypatch.setattr(copying, "told", steps.told)

    async def move(number: int) -> None:
        guest = guests[number]
        while isinstance(end := await resize.prepare(at, guest, to, guest.uuid), Wait):
            await asyncio.sleep(0.05)
        assert isinstance(end, Done), end
        if not steps.first_ended.is_set():
            assert _sealed(far, image).read_bytes() == content
            steps.first_ended.set()

    async def both() -> None:
        await asyncio.gather(move(0), move(1))

    world.run(both())
    for guest in guests:
        for place in (at, to):
            world.done(world.driver.life.destroy, place, guest)


def test_a_guest_that_prints_all_the_time_migrates_live(at: At, to: At, world: World) -> None:
    live: Any = world.driver.live_migrate
    guest = world.spawn(at, Mode.CHATTY)
    world.done(live.live_migrate, at, guest, to)
    assert world.state(to, guest) is Power.RUNNING
    assert "tiny" in world.log(to, guest)
    world.done(world.driver.life.destroy, to, guest)


def test_a_log_that_is_set_aside_while_it_is_copied_stops_no_migration(
    lab: LabHost, at: At, to: At, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    live: Any = world.driver.live_migrate
    guest = world.spawn(at)
    world.wait_for_words(at, guest, "armed")
    log = lab.folder / "lib" / "siderite" / f"{guest.uuid}.console.log"
    file_size = Pool.file_size

    def and_set_aside(pool: Pool, name: str) -> int:
        size = file_size(pool, name)
        if name == log.name:
            os.truncate(log, 0)
        return size

    monkeypatch.setattr(Pool, "file_size", and_set_aside)
    world.done(live.live_migrate, at, guest, to)
    assert world.state(to, guest) is Power.RUNNING
    world.done(world.driver.life.destroy, to, guest)


def test_a_move_that_was_killed_while_it_compared_the_pools_leaves_no_file_for_good(
    lab: LabHost, at: At, to: At, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    resize: Any = world.driver.resize
    guest = world.spawn(at, is_running=False)
    folder = lab.folder / "lib" / "siderite"
    before = {file.name for file in folder.glob("*probe*")}
    with monkeypatch.context() as patch:
        patch.setattr(Pool, "delete", _killed)
        assert isinstance(world.outcome(resize.prepare, at, guest, to), Failed)
    assert {file.name for file in folder.glob("*probe*")} > before
    world.done(resize.prepare, at, guest, to)
    world.done(resize.finish, to, guest, at)
    world.done(resize.confirm, at, guest)
    assert {file.name for file in folder.glob("*probe*")} == before
    world.done(world.driver.life.destroy, to, guest)


def _killed(pool: Pool, name: str) -> None:
    raise OSError(f"killed before {name} was deleted")


def _sealed(host: LabHost, image: str) -> Path:
    """The image's file on the host; there is but one."""
    (seal,) = (host.folder / "lib" / "siderite").glob(f"base-{image}.*.complete")
    return seal.with_suffix("")
