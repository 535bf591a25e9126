"""Disks of real guests: rescue, resize and back, snapshots; screens and interfaces too."""

import asyncio
import socket
import subprocess
import uuid
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

from msgspec.structs import replace

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.power import Power
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import ConsoleAddress
from siderite.compute.drivers.contract import Nic
from siderite.compute.drivers.libvirt.interfaces import LibvirtInterfaces
from siderite.compute.drivers.libvirt.site import Site
from siderite.compute.drivers.libvirt.snapshot import LibvirtSnapshot
from tests.compute.drivers.libvirt.world import FolderOfImages
from tests.compute.drivers.libvirt.world import World
from tests.compute.drivers.libvirt.world import new_guest
from tests.lab import LabHost
from tests.lab import linux_boot
from tests.lab.linux import MIN_MEMORY_MIB


def _disks(lab: LabHost, uuid: str) -> list[str]:
    description = lab.connection().lookupByUUIDString(uuid).XMLDesc()
    sources = Xml.fromstring(description).findall("devices/disk[@device='disk']/source")
    return [Path(source.get("file", "")).name for source in sources]


def _pool(lab: LabHost) -> Path:
    return lab.folder / "lib" / "siderite"


def test_a_rescued_guest_runs_another_image_with_its_own_disk_second(
    lab: LabHost, at: At, world: World
) -> None:
    rescue = world.driver.rescue
    assert rescue is not None
    guest = world.spawn(at)
    world.done(world.driver.power.off, at, guest)
    image = world.tiny_image(tag="rescue system")
    world.done(rescue.rescue, at, guest, image)
    world.wait_for_words(at, guest, "TINY GUEST ready rescue system")
    assert _disks(lab, guest.uuid) == [
        f"{guest.uuid}.rescue.qcow2",
        f"{guest.uuid}.disk-1.qcow2",
    ]
    world.done(world.driver.power.off, at, guest)
    world.done(rescue.unrescue, at, guest)
    world.wait_for_words(at, guest, "TINY GUEST ready tiny", times=2)
    _has_its_own_system(lab, guest.uuid)
    # If its rescue failed, or an administrator said that it is active, it starts as any other.
    for start in (world.driver.power.on, world.driver.power.reset):
        world.done(rescue.rescue, at, guest, image)
        world.done(world.driver.power.off, at, guest)
        world.done(start, at, guest)
        _has_its_own_system(lab, guest.uuid)
    world.done(world.driver.life.destroy, at, guest)


def test_a_guest_with_a_kernel_apart_is_rescued_on_that_unless_with_another_image(
    lab: LabHost, at: At, world: World
) -> None:
    """Its own image does not boot without."""
    kernel = world.images.copy(linux_boot().kernel)
    guest = new_guest(
        world.tiny_image(), image_properties={"kernel_id": kernel}, ram_mib=MIN_MEMORY_MIB
    )
    world.done(world.driver.life.spawn, at, guest)
    rescue: Any = world.driver.rescue

    def booted() -> str:
        description = lab.connection().lookupByUUIDString(guest.uuid).XMLDesc()
        return Xml.fromstring(description).findtext("os/kernel") or ""

    own = booted()
    assert kernel in own
    world.done(rescue.rescue, at, guest, None)
    assert (booted(), _disks(lab, guest.uuid)[0]) == (own, f"{guest.uuid}.rescue.qcow2")
    world.done(rescue.unrescue, at, guest)
    world.done(rescue.rescue, at, guest, world.tiny_image(tag="rescue system"))
    assert booted() == ""
    world.wait_for_words(at, guest, "TINY GUEST ready rescue system")
    world.done(rescue.unrescue, at, guest)
    assert booted() == own
    world.done(world.driver.life.destroy, at, guest)


def test_a_rescue_that_failed_half_way_is_over_with_the_next_start(
    lab: LabHost, at: At, world: World
) -> None:
    guest = world.spawn(at)
    drive = _pool(lab) / f"{guest.uuid}.config.iso"
    before = drive.read_bytes()
    odd = replace(guest, hostname="rescued", image_properties={"hw_machine_type": "odd"})
    rescue: Any = world.driver.rescue
    assert isinstance(world.outcome(rescue.rescue, at, odd, guest.image), Failed)
    world.done(world.driver.power.reset, at, guest)
    _has_its_own_system(lab, guest.uuid)
    assert drive.read_bytes() == before
    world.done(world.driver.life.destroy, at, guest)


def test_a_guest_on_ide_is_rescued_with_all_disks_and_its_config_drive(
    lab: LabHost, at: At, world: World
) -> None:
    """Five drives, one more than the controller has room for."""
    rescue: Any = world.driver.rescue
    ide = {"hw_disk_bus": "ide"}
    every = {"ephemeral_gib": 1, "swap_mib": 16}
    guest = world.spawn(at, image_properties=ide, **every)
    world.done(rescue.rescue, at, guest, world.tiny_image(tag="rescue system"))
    world.wait_for_words(at, guest, "TINY GUEST ready rescue system")
    description = Xml.fromstring(lab.connection().lookupByUUIDString(guest.uuid).XMLDesc())
    targets = [str(found.get("dev")) for found in description.findall("devices/disk/target")]
    assert sorted(targets) == ["hda", "hdb", "hdc", "hdd", "sda"]
    assert len(_disks(lab, guest.uuid)) == 4
    world.done(rescue.unrescue, at, guest)
    world.done(world.driver.life.destroy, at, guest)
    newer = new_guest(guest.image or "", image_properties={**ide, "hw_machine_type": "q35"})
    refused = world.outcome(world.driver.life.spawn, at, newer)
    assert isinstance(refused, Failed)
    assert "change the image's hw_disk_bus" in refused.reason
    world.done(world.driver.life.destroy, at, newer)


def _has_its_own_system(lab: LabHost, uuid: str) -> None:
    assert _disks(lab, uuid) == [f"{uuid}.disk-1.qcow2"]
    assert not (_pool(lab) / f"{uuid}.rescue.qcow2").exists()


def test_a_resize_on_one_host_can_be_reverted_and_confirmed(
    lab: LabHost, at: At, world: World
) -> None:
    resize = world.driver.resize
    assert resize is not None
    small = world.spawn(at)
    large = replace(small, vcpus=2, ram_mib=32, disk_gib=1)
    for last in ("revert", "confirm"):
        world.done(world.driver.power.off, at, small)
        world.done(resize.prepare, at, small, at)
        world.done(resize.finish, at, large, at)
        world.wait_for_words(at, large, "ready", times=2 if last == "revert" else 4)
        domain = lab.connection().lookupByUUIDString(small.uuid)
        assert domain.info()[1:4:2] == [32 << 10, 2]
        assert domain.blockInfo("vda")[0] == 1 << 30
        assert _disks(lab, small.uuid) == [f"{small.uuid}.disk-2.qcow2"]
        if last == "confirm":
            break
        world.done(world.driver.power.off, at, large)
        for _ in range(2):  # the second time there is nothing to go back to
            world.done(resize.revert, at, small, at)
            domain = lab.connection().lookupByUUIDString(small.uuid)
            assert domain.info()[1:4:2] == [16 << 10, 1]
            assert domain.blockInfo("vda")[0] == 1 << 20
            assert _disks(lab, small.uuid) == [f"{small.uuid}.disk-1.qcow2"]
            world.wait_for_words(at, small, "ready", times=3)
    for _ in range(2):
        world.done(resize.confirm, at, large)
    assert world.state(at, large) is Power.RUNNING
    assert list(_pool(lab).glob(f"{small.uuid}.back-to*")) == []
    world.done(world.driver.life.destroy, at, large)
    assert list(_pool(lab).glob(f"{small.uuid}*")) == []


def test_a_resize_gives_the_disks_of_the_new_flavor_and_a_revert_takes_them(
    lab: LabHost, at: At, world: World
) -> None:
    resize: Any = world.driver.resize
    old = world.spawn(at, swap_mib=16)
    new = replace(old, swap_mib=0, ephemeral_gib=1)
    first, uuid = f"{old.uuid}.disk", old.uuid
    world.done(world.driver.power.off, at, old)
    world.done(resize.prepare, at, old, at)
    world.done(resize.finish, at, new, at)
    assert _disks(lab, uuid) == [f"{first}-2.qcow2", f"{uuid}.ephemeral.qcow2"]
    world.done(world.driver.power.off, at, new)
    world.done(resize.revert, at, old, at)
    assert _disks(lab, uuid) == [f"{first}-1.qcow2", f"{uuid}.swap.qcow2"]
    assert not (_pool(lab) / f"{uuid}.ephemeral.qcow2").exists()
    for larger in (new, replace(new, ephemeral_gib=2)):
        world.done(world.driver.power.off, at, old)
        world.done(resize.prepare, at, old, at)
        world.done(resize.finish, at, larger, at)
        assert (_pool(lab) / f"{uuid}.swap.qcow2").exists() == (larger is new), "for the way back"
        world.done(resize.confirm, at, larger)
        assert not (_pool(lab) / f"{uuid}.swap.qcow2").exists()
    domain = lab.connection().lookupByUUIDString(uuid)
    assert domain.blockInfo("vdb")[0] == 2 << 30
    world.done(world.driver.life.destroy, at, old)
    assert list(_pool(lab).glob(f"{uuid}*")) == []


def test_a_snapshot_is_a_bootable_image_of_a_guest_on_or_off(
    lab: LabHost, at: At, world: World
) -> None:
    snapshot = world.driver.snapshot
    assert snapshot is not None
    guest = world.spawn(at)
    for is_on in (True, False):
        image = str(uuid.uuid4())
        world.done(snapshot.snapshot, at, guest, image)
        info = ["qemu-img", "info", world.images.stored[image]]
        told = subprocess.run(info, check=True, capture_output=True, text=True).stdout
        assert "file format: qcow2" in told
        assert "backing file" not in told
        assert world.state(at, guest) is (Power.RUNNING if is_on else Power.SHUTDOWN)
        again = new_guest(image)
        world.done(world.driver.life.spawn, at, again)
        world.wait_for_words(at, again, "TINY GUEST ready tiny")
        world.done(world.driver.life.destroy, at, again)
        world.done(world.driver.power.off, at, guest)
    world.images.is_full = True
    assert isinstance(world.outcome(snapshot.snapshot, at, guest, image), Failed)
    assert list(_pool(lab).glob(f"{guest.uuid}*snapshot*")) == [], "a copy that nobody has"
    world.done(world.driver.life.destroy, at, guest)


def test_what_was_left_of_a_snapshot_goes_when_the_driver_starts_and_none_under_way(
    at: At, world: World
) -> None:
    """Another process may have made that snapshot since the one that left it died."""
    snapshot: Any = world.driver.snapshot
    site = _site(snapshot)
    seen: list[list[str]] = []

    class Storing(FolderOfImages):
        async def store(self, image: str, source: Path, disk_format: str) -> Outcome:
            left = source.with_name("snapshot-left.qcow2")
            left.write_bytes(b"half")
            LibvirtSnapshot(site)
            seen.append([file.name for file in site.scratch.iterdir()])
            return await super().store(image, source, disk_format)

    guest, images = world.spawn(at), site.images
    site.images = Storing(world.images.folder)
    try:
        world.done(snapshot.snapshot, at, guest, "mine")
    finally:
        site.images = images
    assert seen == [["snapshot-mine.qcow2"]]
    assert list(site.scratch.iterdir()) == []
    world.done(world.driver.life.destroy, at, guest)


def test_a_snapshot_that_finds_no_room_here_leaves_no_copy_on_the_host(
    lab: LabHost, at: At, world: World
) -> None:
    snapshot: Any = world.driver.snapshot
    scratch = _site(snapshot).scratch
    scratch.mkdir()
    guest = world.spawn(at)
    for image in ("of-one-that-runs", "of-one-that-is-off"):
        (scratch / f"snapshot-{image}.qcow2").symlink_to("/dev/full")
        refused = world.outcome(snapshot.snapshot, at, guest, image)
        assert isinstance(refused, Failed)
        assert "No space left" in refused.reason
        assert not (_pool(lab) / f"{guest.uuid}.snapshot.qcow2").exists()
        world.done(world.driver.power.off, at, guest)
    world.done(world.driver.life.destroy, at, guest)


def test_a_screen_speaks_vnc(at: At, world: World) -> None:
    console = world.driver.console
    assert console is not None
    guest = world.spawn(at)
    address = world.run(console.console(at, guest, "vnc"))
    assert isinstance(address, ConsoleAddress)
    with socket.create_connection((address.host, address.port), timeout=30) as screen:
        assert screen.recv(12) == b"RFB 003.008\n"
    world.done(world.driver.power.off, at, guest)
    refused = world.run(console.console(at, guest, "vnc"))
    assert isinstance(refused, Failed)
    assert "does not run" in refused.reason
    world.done(world.driver.life.destroy, at, guest)


def test_the_end_of_the_console_log_can_be_asked_for(at: At, world: World) -> None:
    log = world.driver.console_log
    assert log is not None
    guest = world.spawn(at)
    world.wait_for_words(at, guest, "armed")
    assert world.run(log.log(at, guest, 1)) == "armed\n"
    assert world.run(log.log(at, guest, 0)) == ""
    world.done(world.driver.life.destroy, at, guest)


def test_an_interface_is_attached_and_detached(lab: LabHost, at: At, world: World) -> None:
    interfaces = world.driver.interfaces
    assert interfaces is not None
    guest = world.spawn(at)
    nic = Nic("port", "net", "user", "", "fa:16:3e:00:00:04", "10.0.2.15", 24)
    for _ in range(2):
        world.done(interfaces.attach, at, guest, nic)
    assert _macs(lab, guest.uuid) == [nic.mac]
    impatient = LibvirtInterfaces(_site(interfaces), release_s=0.5)
    refused = world.outcome(impatient.detach, at, guest, nic)
    assert isinstance(refused, Failed)  # 512 bytes know nothing of hot-plug
    assert "does not let go" in refused.reason
    world.done(world.driver.power.off, at, guest)
    assert _macs(lab, guest.uuid) == [nic.mac], "as the record says"
    for _ in range(2):
        world.done(interfaces.detach, at, guest, nic)
    assert _macs(lab, guest.uuid) == []
    world.done(world.driver.life.destroy, at, guest)


def _macs(lab: LabHost, uuid: str) -> list[str | None]:
    description = lab.connection().lookupByUUIDString(uuid).XMLDesc()
    found = Xml.fromstring(description).findall("devices/interface/mac")
    return [mac.get("address") for mac in found]


def _site(part: Any) -> Site:
    site: Site = part._site
    return site


def test_many_guests_at_once_hold_up_nobody(at: At, world: World) -> None:
    image = world.tiny_image()
    guests = [new_guest(image, is_running=False) for _ in range(20)]

    async def each(guest: Any) -> None:
        while isinstance(end := await world.driver.life.spawn(at, guest, guest.uuid), Wait):
            await asyncio.sleep(0.05)
        assert isinstance(end, Done), end

    async def together() -> None:
        await asyncio.gather(*map(each, guests))

    world.run(together())
    states = world.run(world.driver.life.states(at))
    assert states is not None
    assert {guest.uuid for guest in guests} <= set(states)
    for guest in guests:
        world.done(world.driver.life.destroy, at, guest)
