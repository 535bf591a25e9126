"""Guests on storage that hosts share, of which one is down."""

from pathlib import Path
from typing import Any

from tests.compute.drivers.libvirt.world import World
from tests.compute.drivers.libvirt.world import at_lab
from tests.compute.drivers.libvirt.world import new_guest
from tests.lab import LabHost


def test_a_guest_that_was_resized_is_made_elsewhere_on_the_disk_that_it_had_last(
    lab: LabHost, far: LabHost, world: World, tmp_path: Path
) -> None:
    """Also if the resize waits to be confirmed, or was cut off; it can be resized again."""
    resize: Any = world.driver.resize
    pool = tmp_path / "pool"
    here, there = (at_lab(h, pool="flight", pool_path=str(pool)) for h in (lab, far))
    guest = new_guest(world.tiny_image(), disk_gib=1, is_running=False)
    world.done(world.driver.life.spawn, here, guest)
    assert world.state(there, guest) is None
    for disk in (2, 3):
        world.done(resize.prepare, here, guest, here)
        if disk == 2:
            world.done(resize.finish, here, guest, here)
        world.done(world.driver.life.spawn, there, guest)
        domain = far.connection().lookupByUUIDString(guest.uuid)
        assert f"{guest.uuid}.disk-{disk}.qcow2" in domain.XMLDesc()
        assert [path.name for path in pool.glob(f"{guest.uuid}.back*")] == []
        world.done(world.driver.life.leave, here, guest, there)
        here, there, lab, far = there, here, far, lab
    world.done(resize.prepare, here, guest, there)
    world.done(resize.finish, there, guest, here)
    world.done(resize.confirm, there, guest)  # as the host that it came from is down
    assert [path.name for path in pool.glob(f"{guest.uuid}.back*")] == []
    here = there
    world.done(world.driver.life.destroy, here, guest)
    assert list(pool.glob(f"{guest.uuid}*")) == []


def test_a_guest_that_is_made_elsewhere_keeps_its_disk_though_its_kernel_was_removed(
    lab: LabHost, far: LabHost, world: World, tmp_path: Path
) -> None:
    """It boots another copy of that."""
    pool = tmp_path / "pool"
    here, there = (at_lab(h, pool="kernels", pool_path=str(pool)) for h in (lab, far))
    kernel = world.tiny_image()
    guest = new_guest(
        world.tiny_image(), is_running=False, image_properties={"kernel_id": kernel}
    )  # fmt: skip
    world.done(world.driver.life.spawn, here, guest)
    (disk,) = pool.glob(f"{guest.uuid}.disk-1.qcow2")
    before = disk.stat().st_ino
    (seal,) = pool.glob(f"base-{kernel}.*.complete")
    seal.unlink()
    for host in (lab, far):
        for one in host.connection().listAllStoragePools():
            one.refresh()
    world.done(world.driver.life.spawn, there, guest)
    assert disk.stat().st_ino == before
    (note,) = pool.glob(f"{guest.uuid}.boots.*")
    assert (pool / f"{note.name.partition('.boots.')[2]}.complete").exists()
    world.done(world.driver.life.destroy, there, guest)
    world.done(world.driver.life.leave, here, guest, there)
