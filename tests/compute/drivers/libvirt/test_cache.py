"""Cached images go when no guest needs them, and never from below one."""

from pathlib import Path
from typing import Any

import pytest

from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.power import Power
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.libvirt import cache
from tests.compute.drivers.libvirt.world import World
from tests.compute.drivers.libvirt.world import new_guest
from tests.lab import LabHost


def _bases(lab: LabHost, image: str) -> list[Path]:
    return sorted((lab.folder / "lib" / "siderite").glob(f"base-{image}*"))


def _prune(world: World, at: At, now: float) -> list[str]:
    assert world.driver.cache is not None
    return world.run(world.driver.cache.prune(at, 100.0, now))


def test_an_image_goes_when_no_guest_has_needed_it_for_a_while(
    lab: LabHost, at: At, world: World
) -> None:
    image, kernel = world.tiny_image(), world.tiny_image(tag="kernel")
    guest = new_guest(image, is_running=False, image_properties={"kernel_id": kernel})
    world.done(world.driver.life.spawn, at, guest)
    for now in (1000.0, 2000.0):
        assert not any(image in name or kernel in name for name in _prune(world, at, now))
    world.done(world.driver.life.destroy, at, guest)
    _prune(world, at, 3000.0)  # seen without a guest for the first time
    again = new_guest(image, is_running=False)
    world.done(world.driver.life.spawn, at, again)
    removed = _prune(world, at, 3200.0)
    assert any(kernel in name for name in removed)
    assert not any(image in name for name in removed)  # somebody came to need it again
    assert _bases(lab, kernel) == []
    world.done(world.driver.life.destroy, at, again)
    _prune(world, at, 4000.0)
    assert not any(image in name for name in _prune(world, at, 4050.0))
    assert any(image in name for name in _prune(world, at, 4100.0))
    assert _bases(lab, image) == []


def test_an_image_that_is_removed_while_a_guest_is_made_is_sent_again(
    lab: LabHost, at: At, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the places where one can overtake the other."""
    look = cache._used
    image = world.tiny_image()
    made: list[Any] = []

    def spawned_meanwhile(connection: Any, pool: Any) -> set[str]:
        """A guest comes to stand on the image between its seal and the last look."""
        monkeypatch.setattr(cache, "_used", look)
        base = next(p.name for p in _bases(lab, image) if p.name[-1].isdigit())
        pool.create_disk(f"{made[-1].uuid}.disk-1.qcow2", 1 << 20, (pool.path(base), "raw"))
        return look(connection, pool)

    first = new_guest(image, is_running=False)
    world.done(world.driver.life.spawn, at, first)
    world.done(world.driver.life.destroy, at, first)
    _prune(world, at, 1000.0)
    made.append(new_guest(image))
    removes, used = cache._remove, []

    def remove(connection: Any, pool: Any, base: Any, marks: Any) -> bool:
        if image in base.name:
            monkeypatch.setattr(cache, "_used", spawned_meanwhile)
        used.append(removes(connection, pool, base, marks))
        return used[-1]

    monkeypatch.setattr(cache, "_remove", remove)
    assert not any(image in name for name in _prune(world, at, 2000.0))
    kept = [p.name for p in _bases(lab, image)]
    assert len(kept) == 1  # the file, for the guest on it; without its seal for nobody else
    world.done(world.driver.life.spawn, at, made[-1])  # on a copy of its own
    assert world.state(at, made[-1]) is Power.RUNNING
    world.wait_for_words(at, made[-1], "ready")
    world.done(world.driver.life.destroy, at, made[-1])


def test_an_image_is_sent_ahead_once_and_its_time_begins_anew(
    lab: LabHost, at: At, world: World
) -> None:
    image = world.tiny_image()
    assert world.driver.cache is not None
    world.done(world.driver.cache.fetch, at, image)
    there = _bases(lab, image)
    assert len(there) == 2  # with its seal
    _prune(world, at, 1000.0)
    world.done(world.driver.cache.fetch, at, image)
    assert _bases(lab, image) == there
    assert not any(image in name for name in _prune(world, at, 1200.0))
    guest = new_guest(image)
    world.done(world.driver.life.spawn, at, guest)
    assert _bases(lab, image)[:2] == there  # it stands on what was there
    world.done(world.driver.life.destroy, at, guest)


def test_an_image_that_cannot_be_had_is_not_sent_ahead(at: At, world: World) -> None:
    assert world.driver.cache is not None
    assert isinstance(world.outcome(world.driver.cache.fetch, at, "none"), Failed)
