"""Hosts reached over ssh and TLS: the same guests, events, disks and screens, by a longer road."""

import asyncio
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.power import Power
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import ConsoleAddress
from siderite.compute.workers.tunnel import through
from tests.compute.drivers.libvirt.test_watch import listening
from tests.compute.drivers.libvirt.world import World
from tests.compute.drivers.libvirt.world import at_lab
from tests.lab import LabHost
from tests.lab.doors import ADDRESS
from tests.lab.doors import Doors
from tests.lab.doors import make_certificates
from tests.lab.doors import make_ssh_key


def _doors(far: LabHost) -> Doors:
    assert far.doors is not None
    return far.doors


def over_ssh(far: LabHost, **options: str) -> At:
    doors = _doors(far)
    return replace(at_lab(far, **doors.ssh_options, **options), uri=doors.ssh_uri)


def over_tls(far: LabHost, **options: str) -> At:
    doors = _doors(far)
    at = at_lab(far, **{"vnc_listen": ADDRESS, **doors.tls_options, **options})
    return replace(at, uri=doors.tls_uri)


@pytest.mark.sampled
@pytest.mark.parametrize("by", [over_ssh, over_tls])
def test_a_guest_far_away_is_seen_heard_stopped_and_made_an_image_of(
    far: LabHost, world: World, by: Callable[[LabHost], At]
) -> None:
    at = by(far)
    guest = world.spawn(at)
    world.wait_for_words(at, guest, "armed")
    assert _greeting(world, world.run(_console(world)(at, guest, "vnc"))) == b"RFB 003.008\n"
    assert world.driver.snapshot is not None
    world.done(world.driver.snapshot.snapshot, at, guest, "snap")
    assert world.images.stored["snap"].stat().st_size > 0
    with listening(world, at, far) as heard:
        world.done(world.driver.power.signal, at, guest, 60.0)
        world.until(lambda: (guest.uuid, Power.SHUTDOWN) in heard, lambda: f"heard {heard}")
    assert world.state(at, guest) is Power.SHUTDOWN
    world.done(world.driver.life.destroy, at, guest)


def _console(world: World) -> Callable[..., object]:
    assert world.driver.console is not None
    return world.driver.console.console


def _greeting(world: World, address: object) -> bytes:
    """What the screen says first to whoever gets to it."""
    assert isinstance(address, ConsoleAddress), address

    async def read() -> bytes:
        if address.command:
            reader, writer = await through(address.command)
        else:
            reader, writer = await asyncio.open_connection(address.host, address.port)
        try:
            return await reader.read(12)
        finally:
            writer.close()

    return world.run(read())


def test_a_screen_for_nobody_but_its_host_is_refused_over_tls(far: LabHost, world: World) -> None:
    at = over_tls(far, vnc_listen="127.0.0.1")
    guest = world.spawn(at)
    refused = world.run(_console(world)(at, guest, "vnc"))
    assert "give it the option vnc_listen" in getattr(refused, "reason", "")
    world.done(world.driver.life.destroy, at, guest)


def test_a_road_that_breaks_is_found_again_and_events_come_on(far: LabHost, world: World) -> None:
    at = over_ssh(far)
    with listening(world, at, far) as heard:
        assert _cut(far) > 0
        heard.clear()
        # Its nudges go on until one is heard.
        world.until(heard.nudged, lambda: "nothing was heard after the break")
    assert isinstance(world.run(world.driver.life.capacity(at)), list)


def _cut(far: LabHost) -> int:
    """Kill this test's ssh clients of the host; how many there were."""
    mine = Path(f"/proc/{os.getpid()}/task")
    children = {pid for one in mine.glob("*/children") for pid in (one.read_text() or "").split()}
    named = str(_doors(far).folder).encode()
    found = [pid for pid in children if named in Path(f"/proc/{pid}/cmdline").read_bytes()]
    for pid in found:
        os.kill(int(pid), signal.SIGKILL)
    return len(found)


def _other_key(doors: Doors, scratch: Path) -> dict[str, str]:
    make_ssh_key(scratch / "other")
    return {**doors.ssh_options, "keyfile": str(scratch / "other")}


def _unknown_host(doors: Doors, scratch: Path) -> dict[str, str]:
    (scratch / "known").touch()
    return {**doors.ssh_options, "known_hosts": str(scratch / "known")}


def _another_host(doors: Doors, scratch: Path) -> dict[str, str]:
    name, kind, *_ = (doors.folder / "known_hosts").read_text().split()
    key = (doors.folder / "user_key.pub").read_text().split()[1]
    scratch.mkdir(exist_ok=True)
    (scratch / "known").write_text(f"{name} {kind} {key}\n")
    return {**doors.ssh_options, "known_hosts": str(scratch / "known")}


def _other_authority(doors: Doors, scratch: Path) -> dict[str, str]:
    make_certificates(scratch)
    return {"pkipath": str(scratch)}


def _stranger(doors: Doors, scratch: Path) -> dict[str, str]:
    make_certificates(scratch)
    shutil.copy(doors.folder / "cacert.pem", scratch)
    return {"pkipath": str(scratch)}


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (_other_key, "add it to ~/.ssh/authorized_keys"),
        (_unknown_host, "put the host's key into known_hosts"),
        (_another_host, "was the host made anew?"),
        (lambda doors, scratch: _another_host(doors, scratch / ("long" * 40)), "made anew?"),
        (lambda *_: {"keyfile": "/gone"}, "/gone cannot be read here; put it there"),
        (_other_authority, "not of the authority in our cacert.pem"),
        (_stranger, "of the host's authority"),
        (lambda *_: {"pkipath": "/gone"}, "/gone/cacert.pem cannot be read here"),
    ],
)
def test_a_door_that_stays_shut_comes_with_the_way_to_open_it(
    far: LabHost,
    world: World,
    tmp_path: Path,
    options: Callable[[Doors, Path], dict[str, str]],
    remedy: str,
) -> None:
    doors = _doors(far)
    said = options(doors, tmp_path)
    uri = doors.tls_uri if "pkipath" in said else doors.ssh_uri
    answer = world.run(world.driver.life.capacity(At("far", uri, said)))
    assert isinstance(answer, Wait), answer
    assert remedy in answer.reason
    assert "@@@" not in answer.reason  # ssh's box of warnings
