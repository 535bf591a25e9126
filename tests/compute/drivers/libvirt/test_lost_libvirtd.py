"""libvirtd is killed in the middle of what it was asked for, and comes again: guests run on, and
none ends up in two places, or in none.
"""

import fcntl
import os
import random
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import libvirt
import pytest
from msgspec.structs import replace

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.power import Power
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.libvirt import copying
from siderite.compute.drivers.libvirt import names
from siderite.compute.drivers.libvirt import snapshot as snapshots
from siderite.compute.drivers.libvirt.volumes import Progress
from siderite.compute.drivers.libvirt.volumes import told
from tests.compute.drivers.libvirt.world import World
from tests.compute.drivers.libvirt.world import at_lab
from tests.compute.drivers.libvirt.world import new_guest
from tests.lab import LabHost
from tests.lab import Mode
from tests.lab import tiny_disk
from tests.lab.guest import PATIENCE_S

_MIB = 1 << 20
_WRITTEN_MIB = 16


@pytest.fixture
def impatient(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """One that can be asked how far it is, every moment."""
    snapshot: Any = world.driver.snapshot
    monkeypatch.setattr(snapshot._site._runs, "_patience_s", 0.05)
    return world


_WRITES = 101
"""The byte of an image that QEMU locks to say that it writes there."""


def _pool(host: LabHost) -> Path:
    return host.folder / "lib" / "siderite"


def _files(host: LabHost, uuid: str) -> list[str]:
    return sorted(path.name for path in _pool(host).glob(f"{uuid}*"))


def _killed(
    world: World, victim: LabHost, when: Callable[[], bool], call: Callable[..., Awaitable[Outcome]]
) -> Outcome:
    """Ask as a worker does; kill libvirtd at this moment, and have it come again."""
    deadline = time.monotonic() + PATIENCE_S
    token, is_killed, is_missed = str(uuid.uuid4()), False, False
    while isinstance(answer := world.run(call(token)), Wait):
        assert time.monotonic() < deadline, answer.reason
        if not is_killed and when():
            is_killed = True
            victim.kill_libvirtd()
        elif is_killed and not is_missed and "cannot be reached" in answer.reason:
            is_missed = True
            victim.start_libvirtd()
    assert is_missed, answer
    return answer


def _slowly(chunks: Iterator[bytes], progress: Progress) -> Iterator[bytes]:
    for chunk in told(chunks, progress):
        time.sleep(0.02)
        yield chunk


def _large(world: World, at: At, lab: LabHost) -> Guest:
    """A guest whose ephemeral disk takes a moment to copy."""
    guest = world.spawn(at, ephemeral_gib=1, is_running=False)
    disk = _pool(lab) / f"{guest.uuid}.ephemeral.qcow2"
    write = ["qemu-io", "-c", f"write -P 7 1M {_WRITTEN_MIB}M", str(disk)]
    subprocess.run(write, check=True, capture_output=True)
    return guest


def _has_bytes(path: Path) -> bool:
    try:
        return path.stat().st_blocks * 512 > _MIB
    except FileNotFoundError:  # not there yet, or no longer
        return False


@pytest.mark.sampled
@pytest.mark.parametrize("who", ["source", "target"])
def test_a_cold_migration_waits_for_either_host(
    lab: LabHost, far: LabHost, impatient: World, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    monkeypatch.setattr(copying, "told", _slowly)
    resize: Any = impatient.driver.resize
    at, to = at_lab(lab), at_lab(far)
    guest = _large(impatient, at, lab)
    copy = _pool(far) / f"{guest.uuid}.ephemeral.qcow2"
    victim = lab if who == "source" else far
    moved = _killed(
        impatient, victim, lambda: _has_bytes(copy), lambda t: resize.prepare(at, guest, to, t)
    )
    assert isinstance(moved, Done), moved
    impatient.done(resize.finish, to, guest, at)
    impatient.done(resize.confirm, at, guest)
    assert impatient.state(to, guest) is Power.SHUTDOWN
    assert _files(lab, guest.uuid) == []
    read = ["qemu-io", "-c", f"read -P 7 1M {_WRITTEN_MIB}M", str(copy)]
    told = subprocess.run(read, check=False, capture_output=True, text=True)
    assert told.returncode == 0, told
    impatient.done(impatient.driver.life.destroy, to, guest)


@pytest.mark.sampled
@pytest.mark.parametrize("who", ["source", "target"])
def test_a_guest_whose_host_is_lost_in_a_live_migration_runs_on_in_one_place(
    lab: LabHost, far: LabHost, impatient: World, who: str
) -> None:
    live: Any = impatient.driver.live_migrate
    at, to = at_lab(lab), at_lab(far)
    guest = replace(_large(impatient, at, lab), is_running=True)
    impatient.done(impatient.driver.power.on, at, guest)
    impatient.wait_for_words(at, guest, "armed")
    lab.connection().lookupByUUIDString(guest.uuid).migrateSetMaxSpeed(4)  # MiB/s
    copy = _pool(far) / f"{guest.uuid}.ephemeral.qcow2"

    def migrate(token: str) -> Awaitable[Outcome]:
        outcome: Awaitable[Outcome] = live.live_migrate(at, guest, to, token)
        return outcome

    if who == "source":
        answer = _killed(impatient, lab, lambda: _has_bytes(copy), migrate)
        assert isinstance(answer, Done), answer
        has_arrived = True
    else:
        impatient.outcome(_with_restart(far, lambda: _has_bytes(copy), migrate))
        has_arrived = False
    if not has_arrived:
        ended = impatient.done(live.abort, at, guest, to).found
        has_arrived = ended["arrived"]
        if ended.get("left"):  # it did not answer yet
            impatient.done(impatient.driver.life.leave, to, guest, at)
    here, there = ((to, far), (at, lab)) if has_arrived else ((at, lab), (to, far))
    assert impatient.state(here[0], guest) is Power.RUNNING
    assert impatient.state(there[0], guest) is None
    assert _files(there[1], guest.uuid) == []
    assert impatient.log(here[0], guest).count("TINY GUEST ready") == 1, "it never stopped"
    impatient.done(impatient.driver.life.destroy, here[0], guest)


def test_a_live_migration_to_a_host_that_is_lost_is_aborted_without_it(
    lab: LabHost, far: LabHost, impatient: World
) -> None:
    """Whatever is there is seen to when it is back."""
    live: Any = impatient.driver.live_migrate
    at, to, token = at_lab(lab), at_lab(far), str(uuid.uuid4())
    guest = replace(_large(impatient, at, lab), is_running=True)
    impatient.done(impatient.driver.power.on, at, guest)
    lab.connection().lookupByUUIDString(guest.uuid).migrateSetMaxSpeed(4)  # MiB/s
    copy = _pool(far) / f"{guest.uuid}.ephemeral.qcow2"
    while not _has_bytes(copy):
        assert isinstance(impatient.run(live.live_migrate(at, guest, to, token)), Wait)
    far.kill_libvirtd()
    ended = impatient.done(lambda _: live.abort(at, guest, to, token))
    assert ended.found == {"arrived": False, "left": True}
    assert impatient.state(at, guest) is Power.RUNNING
    far.start_libvirtd()
    impatient.done(impatient.driver.life.leave, to, guest, at)
    assert _files(far, guest.uuid) == []
    impatient.done(impatient.driver.life.destroy, at, guest)


def test_a_copy_that_an_earlier_libvirtd_had_begun_is_waited_for(
    lab: LabHost, far: LabHost, impatient: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ended a moment after a libvirtd was started anew: too short to meet it by chance."""
    at, to = at_lab(lab), at_lab(far)
    guest = replace(_large(impatient, at, lab), is_running=True)
    impatient.done(impatient.driver.power.on, at, guest)
    real, refusals = libvirt.virDomain.migrate3, []

    def migrate3(domain: Any, *how: Any) -> Any:
        if not refusals:
            refusals.append("internal error: disk 'vdb' has a blockjob assigned")
            raise libvirt.libvirtError(refusals[0])
        return real(domain, *how)

    monkeypatch.setattr(libvirt.virDomain, "migrate3", migrate3)
    live: Any = impatient.driver.live_migrate
    impatient.done(live.live_migrate, at, guest, to)
    assert len(refusals) == 1
    assert impatient.state(to, guest) is Power.RUNNING
    impatient.done(impatient.driver.life.destroy, to, guest)


@pytest.mark.sampled
@pytest.mark.parametrize("who", ["source", "target"])
@pytest.mark.parametrize("then", ["live_migrate", "abort"])
def test_a_guest_whose_host_is_lost_at_the_end_of_a_live_migration_runs_once(
    lab: LabHost, far: LabHost, world: World, who: str, then: str
) -> None:
    """When it has just begun to run there: libvirt leaves one here too, or has that go on."""
    live: Any = world.driver.live_migrate
    at, to = at_lab(lab), at_lab(far)
    guest = _lost_as_it_arrives(world, lab, far, victim=lab if who == "source" else far)
    ended = world.done(getattr(live, then), at, guest, to)
    has_arrived = then == "live_migrate" or ended.found["arrived"]
    (here, there), left = ((to, at), lab) if has_arrived else ((at, to), far)
    if ended.found.get("left"):  # it did not answer yet
        world.done(world.driver.life.leave, there, guest, here)
    assert world.state(here, guest) is Power.RUNNING
    assert world.state(there, guest) is None
    assert _files(left, guest.uuid) == []
    assert world.log(here, guest).count("TINY GUEST ready") == 1, "it never stopped"
    world.done(world.driver.power.reset, here, guest)
    world.wait_for_words(here, guest, "TINY GUEST ready", times=2)  # its disk is whole
    world.done(world.driver.life.destroy, here, guest)


@pytest.mark.sampled
@pytest.mark.parametrize("then", ["live_migrate", "abort"])
def test_a_guest_that_shut_itself_down_where_it_arrived_does_not_go_on_where_it_was(
    lab: LabHost, far: LabHost, world: World, then: str
) -> None:
    """The one that libvirt left here, stopped, is of before: so is its disk."""
    live: Any = world.driver.live_migrate
    at, to = at_lab(lab), at_lab(far)
    guest = _off_as_it_arrived(world, lab, far)
    ended = world.done(getattr(live, then), at, guest, to)
    assert then == "live_migrate" or ended.found["arrived"]
    assert (world.state(at, guest), world.state(to, guest)) == (None, Power.SHUTDOWN)
    assert _files(lab, guest.uuid) == []
    world.done(world.driver.power.on, to, guest)
    world.wait_for_words(to, guest, "TINY GUEST ready", times=2)
    world.done(world.driver.life.destroy, to, guest)


def test_a_guest_that_is_off_at_both_ends_of_a_live_migration_is_where_it_was_seen_to_arrive(
    lab: LabHost, far: LabHost, world: World
) -> None:
    """As if its first host was switched off besides: what is left there looks like any guest."""
    at, to = at_lab(lab), at_lab(far)
    guest = _off_at_both_ends(world, lab, far)
    assert world.done(world.driver.live_migrate.abort, at, guest, to).found == {"arrived": True}
    assert (world.state(at, guest), world.state(to, guest)) == (None, Power.SHUTDOWN)
    assert _files(lab, guest.uuid) == []
    world.done(world.driver.life.destroy, to, guest)


def test_a_guest_that_is_off_at_both_ends_and_was_not_seen_to_arrive_loses_neither_disk(
    lab: LabHost, far: LabHost, world: World
) -> None:
    """As if the driver was killed too: which one it should be cannot be told."""
    live: Any = world.driver.live_migrate
    at, to = at_lab(lab), at_lab(far)
    guest = _off_at_both_ends(world, lab, far)
    kind, where = libvirt.VIR_DOMAIN_METADATA_ELEMENT, libvirt.VIR_DOMAIN_AFFECT_CONFIG
    arrived = far.connection().lookupByUUIDString(guest.uuid)
    arrived.setMetadata(kind, None, "siderite-arrived", names.ARRIVED, where)
    disk = f"{guest.uuid}.disk-1.qcow2"
    assert isinstance(world.outcome(live.live_migrate, at, guest, to), Failed)
    assert world.done(live.abort, at, guest, to).found == {"arrived": False}
    assert (world.state(at, guest), world.state(to, guest)) == (Power.SHUTDOWN, None)
    assert disk in _files(lab, guest.uuid)
    assert disk in _files(far, guest.uuid)
    for place in (at, to):
        world.done(world.driver.life.destroy, place, guest)


def _off_at_both_ends(world: World, lab: LabHost, far: LabHost) -> Guest:
    guest = _off_as_it_arrived(world, lab, far)
    domain = lab.connection().lookupByUUIDString(guest.uuid)
    if domain.isActive():
        domain.destroy()
    lab.kill_libvirtd()
    lab.start_libvirtd()
    return guest


def _off_as_it_arrived(world: World, lab: LabHost, far: LabHost) -> Guest:
    """It ran at the other end, and is off there; here one is left that is stopped."""
    guest, to = _left_behind(world, lab, far), at_lab(far)
    world.done(world.driver.power.signal, to, guest, 60.0)
    world.wait_for_state(to, guest, Power.SHUTDOWN)
    return guest


def _left_behind(world: World, lab: LabHost, far: LabHost) -> Guest:
    """One that arrived, and that its first host still has; others, where libvirt was faster than
    the kill, are removed.
    """
    for _ in range(20):
        guest = _lost_as_it_arrives(world, lab, far, victim=lab)
        world.until(lambda: _answers(lab), lambda: "libvirtd does not answer")
        if guest.uuid in {domain.UUIDString() for domain in lab.connection().listAllDomains()}:
            return guest
        world.done(world.driver.life.destroy, at_lab(far), guest)
    raise AssertionError("libvirt was faster each time")


def _answers(host: LabHost) -> bool:
    try:
        host.connection().getLibVersion()
    except libvirt.libvirtError:
        return False
    return True


def _lost_as_it_arrives(world: World, lab: LabHost, far: LabHost, *, victim: LabHost) -> Guest:
    """A guest, one of whose hosts is lost at the very end of its live migration, and is back."""
    live: Any = world.driver.live_migrate
    at, to = at_lab(lab), at_lab(far)
    guest = world.spawn(at, disk_gib=1)
    world.wait_for_words(at, guest, "armed")
    killing = threading.Thread(target=_kill_as_it_arrives, args=(victim, far, guest.uuid))
    killing.start()
    world.run(live.live_migrate(at, guest, to, "first"))
    killing.join()
    victim.start_libvirtd()
    return guest


def _kill_as_it_arrives(victim: LabHost, far: LabHost, uuid: str) -> None:
    pid, looking = victim.libvirtd(), libvirt.open(far.uri)
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with suppress(libvirt.libvirtError):
            if looking.lookupByUUIDString(uuid).state()[0] == libvirt.VIR_DOMAIN_RUNNING:
                break
        time.sleep(0.001)  # the guest itself needs the processor too
    victim.kill_libvirtd(pid)
    with suppress(libvirt.libvirtError):
        looking.close()


def _with_restart(
    victim: LabHost, when: Callable[[], bool], call: Callable[[str], Awaitable[Outcome]]
) -> Callable[[str], Awaitable[Outcome]]:
    """The same call; libvirtd there is killed at this moment, and comes again at once."""
    kills = iter([True])

    async def asked(token: str) -> Outcome:
        answer = await call(token)
        if when() and next(kills, False):
            victim.kill_libvirtd()
            victim.start_libvirtd()
        return answer

    return asked


def test_a_snapshot_waits_for_a_disk_that_is_at_rest(
    lab: LabHost, at: At, impatient: World, tmp_path: Path
) -> None:
    """libvirtd says that the guest is off, but somebody has its disk."""
    guest = new_guest(_random_image(impatient, tmp_path), is_running=False)
    impatient.done(impatient.driver.life.spawn, at, guest)
    disk = next(_pool(lab).glob(f"{guest.uuid}.disk-*.qcow2"))
    snapshot: Any = impatient.driver.snapshot
    made = str(uuid.uuid4())
    with disk.open("rb") as held:
        fcntl.lockf(held, fcntl.LOCK_SH, 1, _WRITES)
        said: Any = None
        while "writes to its disk" not in getattr(said, "reason", ""):
            said = impatient.run(snapshot.snapshot(at, guest, made, "token"))
            assert isinstance(said, Wait), said
    impatient.done(snapshot.snapshot, at, guest, made)


def test_a_snapshot_is_tried_again_where_a_job_on_the_disk_is_not_known_as_a_copy(
    lab: LabHost, at: At, impatient: World, tmp_path: Path
) -> None:
    """As it may be when libvirtd was just started anew; here by a job of another kind."""
    guest = new_guest(_random_image(impatient, tmp_path), is_running=True)
    impatient.done(impatient.driver.life.spawn, at, guest)
    domain = lab.connection().lookupByUUIDString(guest.uuid)
    domain.blockPull("vda", 1)  # MiB/s
    snapshot: Any = impatient.driver.snapshot
    made = str(uuid.uuid4())
    impatient.done(snapshot.snapshot, at, guest, made)
    assert made in impatient.images.stored
    assert not domain.blockJobInfo("vda")


class _Slow:
    """A domain whose disks are mirrored slowly. libvirt 9.0 loses a guest if it is killed just as a
    copy ends, and nothing that we do would bring it back: so that is not when it is killed.
    """

    def __init__(self, domain: Any) -> None:
        self._domain = domain

    def blockCopy(self, target: str, to: str, _: Any, flags: int) -> Any:  # noqa: N802
        return self._domain.blockCopy(target, to, {"bandwidth": 24 * _MIB}, flags)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._domain, name)


@pytest.mark.sampled
@pytest.mark.parametrize("is_on", [True, False])
def test_a_snapshot_goes_on_when_libvirtd_is_back(
    lab: LabHost, at: At, impatient: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    *, is_on: bool,
) -> None:  # fmt: skip
    begin = snapshots._begin
    monkeypatch.setattr(snapshots, "_begin", lambda domain, *how: begin(_Slow(domain), *how))
    snapshot: Any = impatient.driver.snapshot
    image = _random_image(impatient, tmp_path)
    guest = new_guest(image, is_running=is_on)
    impatient.done(impatient.driver.life.spawn, at, guest)
    copy, made = _pool(lab) / f"{guest.uuid}.snapshot.qcow2", str(uuid.uuid4())
    call = _with_restart(
        lab, lambda: _has_bytes(copy), lambda token: snapshot.snapshot(at, guest, made, token)
    )
    impatient.done(call)
    assert not copy.exists()
    assert impatient.state(at, guest) is (Power.RUNNING if is_on else Power.SHUTDOWN)
    stored, source = impatient.images.stored[made], impatient.images.folder / image
    same = ["qemu-img", "compare", "-f", "qcow2", "-F", "raw", str(stored), str(source)]
    told = subprocess.run(same, check=False, capture_output=True, text=True)
    assert told.returncode == 0, told.stdout
    impatient.done(impatient.driver.life.destroy, at, guest)


def _random_image(world: World, folder: Path) -> str:
    """The tiny guest, with bytes behind it that take a moment to copy."""
    disk = tiny_disk(folder / "large.raw", Mode.GRACEFUL, size_mib=65)
    with disk.open("r+b") as file:
        file.seek(_MIB)
        file.write(random.Random(1).randbytes(64 * _MIB))
    return world.images.add(disk)


def test_a_server_boots_though_libvirtd_was_lost_while_its_image_was_sent(
    lab: LabHost, at: At, impatient: World, tmp_path: Path
) -> None:
    guest = new_guest(_random_image(impatient, tmp_path))
    spawn = impatient.driver.life.spawn

    def is_being_sent() -> bool:
        return any(map(_has_bytes, _pool(lab).glob(f"base-{guest.image}*")))

    made = _killed(impatient, lab, is_being_sent, lambda token: spawn(at, guest, token))
    assert isinstance(made, Done), made
    impatient.wait_for_words(at, guest, "TINY GUEST ready")
    impatient.done(impatient.driver.life.destroy, at, guest)
    assert _files(lab, guest.uuid) == []


@pytest.mark.sampled
@pytest.mark.parametrize("how", ["live", "cold"])
def test_a_guest_whose_host_dies_in_a_move_is_made_anew_where_it_was_to_go(
    lab: LabHost, far: LabHost, impatient: World, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """As an evacuation does: what had come there so far is no disk to boot from."""
    monkeypatch.setattr(copying, "told", _slowly)
    moves, life = impatient.driver, impatient.driver.life
    at, to = at_lab(lab), at_lab(far)
    guest = replace(_large(impatient, at, lab), is_running=True)
    move: Any = moves.resize.prepare if moves.resize and how == "cold" else None
    if how == "live":
        impatient.done(moves.power.on, at, guest)
        lab.connection().lookupByUUIDString(guest.uuid).migrateSetMaxSpeed(4)  # MiB/s
        move = moves.live_migrate and moves.live_migrate.live_migrate
    copy, token = _pool(far) / f"{guest.uuid}.ephemeral.qcow2", str(uuid.uuid4())
    while not _has_bytes(copy):
        assert isinstance(impatient.run(move(at, guest, to, token)), Wait)
    lab.kill_libvirtd()
    if how == "live":
        os.kill(lab.qemu(guest.uuid), signal.SIGKILL)
    while "cannot be reached" not in (told := impatient.run(move(at, guest, to, token))).reason:
        assert isinstance(told, Wait), told
    impatient.done(life.spawn, to, guest)
    read = ["qemu-io", "-r", "-U", "-c", f"read -P 0 1M {_WRITTEN_MIB}M", str(copy)]
    blank = subprocess.run(read, check=False, capture_output=True, text=True)
    assert (blank.returncode, "failed" in blank.stdout) == (0, False), blank
    impatient.until(lambda: _obeys(impatient, to, guest), lambda: "it does not boot")
    lab.start_libvirtd()
    for place in (at, to):
        impatient.done(life.destroy, place, guest)


def _obeys(world: World, at: At, guest: Guest) -> bool:
    """Whether it shut itself down; it is asked to, for it may not have listened before."""
    world.done(world.driver.power.signal, at, guest, 60.0)
    return world.state(at, guest) is Power.SHUTDOWN
