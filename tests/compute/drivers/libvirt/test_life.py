"""Guests on a real host: made, found again, rebuilt, removed; nothing is left and nothing twice."""

import asyncio
import base64
import os
import signal
import subprocess
import uuid
from pathlib import Path
from typing import Any

import libvirt
import pytest
from msgspec.structs import replace

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.power import Power
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Nic
from siderite.compute.drivers.libvirt import domains
from siderite.compute.drivers.libvirt import libvirt_driver
from tests.compute.drivers.libvirt.world import World
from tests.compute.drivers.libvirt.world import new_guest
from tests.lab import LabHost
from tests.lab import Mode
from tests.lab import tiny_disk


def _files(lab: LabHost, uuid: str) -> list[str]:
    return sorted(p.name for p in (lab.folder / "lib" / "siderite").glob(f"{uuid}*"))


def test_a_guest_is_spawned_from_its_image_and_removed_without_a_trace(
    lab: LabHost, at: At, world: World
) -> None:
    nic = Nic("port", "net", "user", "", "fa:16:3e:00:00:01", "10.0.2.15", 24)
    guest = world.spawn(at, nics=(nic,), user_data=base64.b64encode(b"#!/bin/sh\n").decode())
    world.wait_for_words(at, guest, "armed")
    assert world.state(at, guest) is Power.RUNNING
    assert world.run(world.driver.life.states(at))[guest.uuid] is Power.RUNNING
    assert "TINY GUEST ready tiny" in world.log(at, guest)
    assert len(_files(lab, guest.uuid)) == 3
    world.done(world.driver.life.destroy, at, guest)
    assert world.state(at, guest) is None
    assert _files(lab, guest.uuid) == []
    world.done(world.driver.life.destroy, at, guest)


def test_a_guest_that_somebody_starts_while_it_is_removed_is_gone_too(
    lab: LabHost, at: At, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """libvirt undefines one that runs, and leaves it running."""
    guest, forget, hands = world.spawn(at), domains.forget, iter([True])

    def started_before(domain: Any) -> None:
        if next(hands, False):
            domain.create()
        forget(domain)

    monkeypatch.setattr(domains, "forget", started_before)
    world.done(world.driver.life.destroy, at, guest)
    assert world.state(at, guest) is None


def test_the_older_logs_of_a_guest_that_printed_a_lot_go_with_it(
    lab: LabHost, at: At, world: World
) -> None:
    guest = world.spawn(at, Mode.CHATTY)
    older = f"{guest.uuid}.console.log.1"
    world.until(lambda: older in _files(lab, guest.uuid), lambda: f"no {older}")
    world.done(world.driver.life.destroy, at, guest)
    assert _files(lab, guest.uuid) == []


def test_spawning_again_with_the_token_finds_what_is_there(
    lab: LabHost, at: At, world: World, tmp_path: Path
) -> None:
    """As after kill -9: another process, which remembers nothing, asks again."""
    guest = new_guest(world.tiny_image())
    token = str(uuid.uuid4())
    first = world.run(world.driver.life.spawn(at, guest, token))
    while isinstance(first, Wait):
        first = world.run(world.driver.life.spawn(at, guest, token))
    before = lab.connection().lookupByUUIDString(guest.uuid).ID()
    other = libvirt_driver(world.images, tmp_path / "other")
    assert isinstance(world.run(other.life.spawn(at, guest, token)), Done)
    assert lab.connection().lookupByUUIDString(guest.uuid).ID() == before
    world.done(world.driver.life.destroy, at, guest)


def test_an_image_is_sent_to_a_host_once(lab: LabHost, at: At, world: World) -> None:
    image = world.tiny_image()
    guests = [new_guest(image, is_running=False) for _ in range(3)]

    async def together() -> None:
        spawned = [world.driver.life.spawn(at, g, g.uuid) for g in guests]
        for outcome in await asyncio.gather(*spawned):
            assert isinstance(outcome, Done), outcome

    world.run(together())
    bases = [p.name for p in (lab.folder / "lib" / "siderite").glob(f"base-{image}*")]
    assert len(bases) == 2  # the file and its seal
    for guest in guests:
        assert world.state(at, guest) is Power.SHUTDOWN
        world.done(world.driver.life.destroy, at, guest)


def test_a_rebuilt_guest_has_the_new_image_and_a_new_disk(
    lab: LabHost, at: At, world: World
) -> None:
    guest = world.spawn(at, ephemeral_gib=1)
    world.done(world.driver.power.off, at, guest)
    (further,) = (lab.folder / "lib" / "siderite").glob(f"{guest.uuid}*ephemeral*")
    further.write_bytes(b"its own")
    after = replace(guest, image=world.tiny_image(tag="second"), is_running=False)
    world.done(world.driver.life.rebuild, at, replace(after, keeps_ephemeral=True))
    assert further.read_bytes() == b"its own"
    after = replace(after, is_running=True)
    world.done(world.driver.life.rebuild, at, after)
    assert further.read_bytes() != b"its own"
    world.wait_for_words(at, guest, "TINY GUEST ready second")
    world.done(world.driver.life.destroy, at, after)


def test_a_flavor_gives_the_disk_its_size(lab: LabHost, at: At, world: World) -> None:
    guest = world.spawn(at, disk_gib=2, ephemeral_gib=1, swap_mib=64)
    domain = lab.connection().lookupByUUIDString(guest.uuid)
    assert domain.blockInfo("vda")[0] == 2 << 30
    assert domain.blockInfo("vdb")[0] == 1 << 30
    assert domain.blockInfo("vdc")[0] == 64 << 20
    world.done(world.driver.life.destroy, at, guest)


def test_an_image_larger_than_the_disk_is_refused_everywhere(at: At, world: World) -> None:
    disk = tiny_disk(world.images.folder / "big", Mode.GRACEFUL, size_mib=1025)
    refused = world.outcome(
        world.driver.life.spawn, at, new_guest(world.images.add(disk), disk_gib=1)
    )
    assert isinstance(refused, Failed)
    assert not refused.elsewhere
    assert "take a larger flavor" in refused.reason


def test_a_qcow2_image_is_taken_unless_it_names_another_file(at: At, world: World) -> None:
    raw = tiny_disk(world.images.folder / "raw", Mode.GRACEFUL, tag="qcow")
    flat, bad = raw.with_suffix(".flat"), raw.with_suffix(".bad")
    convert = ["qemu-img", "convert", "-O", "qcow2", raw, flat]
    subprocess.run(convert, check=True, capture_output=True)
    create = ["qemu-img", "create", "-f", "qcow2", "-b", raw, "-F", "raw", bad]
    subprocess.run(create, check=True, capture_output=True)
    guest = new_guest(world.images.add(flat))
    world.done(world.driver.life.spawn, at, guest)
    world.wait_for_words(at, guest, "TINY GUEST ready qcow")
    world.done(world.driver.life.destroy, at, guest)
    refused = world.outcome(world.driver.life.spawn, at, new_guest(world.images.add(bad)))
    assert isinstance(refused, Failed)
    assert "refers to another file" in refused.reason


def test_a_host_offers_what_it_has(at: At, world: World) -> None:
    offered = world.run(world.driver.life.capacity(at))
    assert isinstance(offered, list)
    assert offered[0].node == "lab"
    assert offered[0].hypervisor_type == "QEMU"
    assert offered[0].vcpus == os.cpu_count()
    assert offered[0].ram_mib > 1000
    assert offered[0].disk_gib > 0


def test_a_host_that_is_away_makes_everything_wait(world: World) -> None:
    away = At("away", "qemu+unix:///system?socket=/nowhere/libvirt-sock")
    guest = new_guest("none")
    waits = world.run(world.driver.power.on(away, guest, "t"))
    assert isinstance(waits, Wait)
    assert "host away (qemu+unix:///system?socket=/nowhere/libvirt-sock)" in waits.reason
    assert "is libvirtd running there?" in waits.reason
    assert world.state(away, guest) is Power.NOSTATE
    assert world.run(world.driver.life.states(away)) is None
    assert isinstance(world.run(world.driver.life.capacity(away)), Wait)


def test_a_killed_qemu_is_a_crash(lab: LabHost, at: At, world: World) -> None:
    guest = world.spawn(at)
    os.kill(_qemu(guest.uuid), signal.SIGKILL)
    world.wait_for_state(at, guest, Power.CRASHED)
    world.done(world.driver.power.on, at, guest)
    assert world.state(at, guest) is Power.RUNNING
    world.done(world.driver.life.destroy, at, guest)


def _qemu(uuid: str) -> int:
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if b"qemu-system" in words and uuid.encode() in words:
            return int(entry.name)
    raise AssertionError(f"no QEMU runs for {uuid}")


def test_what_somebody_undefined_is_defined_again_on_start(
    lab: LabHost, at: At, world: World
) -> None:
    guest = world.spawn(at, is_running=False)
    lab.connection().lookupByUUIDString(guest.uuid).undefineFlags(
        libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE
    )
    assert world.state(at, guest) is None
    world.done(world.driver.power.on, at, guest)
    assert world.state(at, guest) is Power.RUNNING
    world.done(world.driver.life.destroy, at, guest)
