"""The disk under a host's storage pool is full: a clear fault, nothing half-made, guests run on."""

import random
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.power import Power
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Guest
from tests.compute.drivers.libvirt.world import World
from tests.compute.drivers.libvirt.world import at_lab
from tests.compute.drivers.libvirt.world import new_guest
from tests.lab import LabHost
from tests.lab import Mode
from tests.lab import tiny_disk
from tests.lab.host import SMALL

_MIB = 1 << 20


def _small(lab: LabHost) -> At:
    return at_lab(lab, pool="small", pool_path=SMALL)


@pytest.fixture
def at(lab: LabHost) -> Iterator[At]:
    """A host whose pool is a small disk."""
    yield _small(lab)
    for path in lab.small.iterdir():
        path.unlink()


def _own(lab: LabHost, guest: Guest) -> list[str]:
    return [path.name for path in lab.small.glob(f"{guest.uuid}*")]


def _says_so(outcome: Outcome) -> None:
    assert isinstance(outcome, Failed), outcome
    assert "free space in the host's storage pool" in outcome.reason
    assert "\n" not in outcome.reason


def _large_image(world: World, *, is_sparse: bool = False) -> str:
    """The tiny guest with so many bytes behind it that a copy of it takes its room."""
    disk = tiny_disk(world.images.folder / "new.raw", Mode.GRACEFUL, size_mib=9)
    with disk.open("r+b") as file:
        file.seek(_MIB if is_sparse else 4096)
        file.write(random.Random(1).randbytes(9 * _MIB - file.tell()))
    return world.images.add(disk)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_guest_that_finds_no_room_leaves_nothing_and_is_made_when_there_is_some(
    lab: LabHost, at: At, world: World, *, is_sparse: bool
) -> None:
    """Nor does it wait for ever, as libvirt may not answer whoever fills its disk with a stream."""
    life, image = world.driver.life, _large_image(world, is_sparse=is_sparse)
    for is_cached in (False, True):
        filler, guest = lab.fill_small(), new_guest(image)
        _says_so(world.outcome(life.spawn, at, guest))
        world.done(life.destroy, at, guest)  # as before another host is tried
        assert _own(lab, guest) == []
        assert is_cached or list(lab.small.glob("base-*")) == []
        filler.unlink()
        world.done(life.spawn, at, guest)
        world.wait_for_words(at, guest, "armed")
        world.done(life.destroy, at, guest)


@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.parametrize("but_mib", [0, 4])
def test_a_snapshot_that_finds_no_room_leaves_the_guest_as_it_was(
    lab: LabHost, world: World, at: At, *, is_on: bool, but_mib: int
) -> None:
    snapshot: Any = world.driver.snapshot
    guest = new_guest(_large_image(world), is_running=is_on)
    world.done(world.driver.life.spawn, at, guest)
    before = _own(lab, guest)
    filler = lab.fill_small(but_mib=but_mib)
    _says_so(world.outcome(snapshot.snapshot, at, guest, str(uuid.uuid4())))
    assert sorted(_own(lab, guest)) == sorted(before)
    assert world.state(at, guest) is (Power.RUNNING if is_on else Power.SHUTDOWN)
    filler.unlink()
    world.done(snapshot.snapshot, at, guest, str(uuid.uuid4()))
    world.done(world.driver.life.destroy, at, guest)


def test_a_resize_that_finds_no_room_is_undone(lab: LabHost, at: At, world: World) -> None:
    resize: Any = world.driver.resize
    guest = world.spawn(at)
    world.done(world.driver.power.off, at, guest)
    before = sorted(_own(lab, guest))
    filler = lab.fill_small()
    _says_so(world.outcome(resize.prepare, at, guest, at))
    world.done(resize.revert, at, guest, at)
    assert sorted(_own(lab, guest)) == before
    world.wait_for_words(at, guest, "armed", times=2)
    filler.unlink()
    world.done(world.driver.life.destroy, at, guest)


def test_a_guest_does_not_move_to_a_host_without_room(
    lab: LabHost, far: LabHost, at: At, world: World
) -> None:
    to = _small(far)
    live, resize = world.driver.live_migrate, world.driver.resize
    assert live is not None
    assert resize is not None
    guest = world.spawn(at)
    world.wait_for_words(at, guest, "armed")
    filler = far.fill_small()
    _says_so(world.outcome(live.live_migrate, at, guest, to))
    assert _own(far, guest) == []
    assert world.state(at, guest) is Power.RUNNING
    world.done(world.driver.power.off, at, guest)
    _says_so(world.outcome(resize.prepare, at, guest, to))
    world.done(resize.revert, at, guest, to)
    assert _own(far, guest) == []
    assert world.state(at, guest) is Power.RUNNING
    filler.unlink()
    world.done(live.live_migrate, at, guest, to)
    world.done(world.driver.life.destroy, to, guest)
    for path in far.small.iterdir():
        path.unlink()
