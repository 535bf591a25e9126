"""Guests that move between two real hosts, one of them reached over TLS: cold with a way back, and
live.
"""

import asyncio
import subprocess
import time
from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Iterator
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
from siderite.compute.domain.usage import Usage
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.libvirt import copying
from siderite.compute.drivers.libvirt import domains
from siderite.compute.drivers.libvirt.volumes import Progress
from siderite.compute.drivers.libvirt.volumes import told
from tests.compute.drivers.libvirt.world import World
from tests.compute.drivers.libvirt.world import at_lab
from tests.lab import LabHost
from tests.lab.guest import PATIENCE_S

_SLOW_MIB = 24


@pytest.fixture
def to(lab: LabHost, far: LabHost) -> At:
    """The other host, to which guests migrate over TLS too."""
    assert far.doors is not None
    for host in (lab, far):
        _certify(far.doors.folder, host.keys)
    secured = {"migration_tls": "yes", "migration_address": "localhost"}
    at = at_lab(far, **far.doors.tls_options, **secured)
    return replace(at, uri=far.doors.tls_uri)


def _certify(ours: Path, keys: Path) -> None:
    """The same certificates under the names that QEMU knows."""
    for who in ("ca", "server", "client"):
        for what in ("cert", "key"):
            (keys / f"{who}-{what}.pem").write_bytes((ours / f"{who}{what}.pem").read_bytes())


def _files(lab: LabHost, uuid: str) -> list[Path]:
    return sorted((lab.folder / "lib" / "siderite").glob(f"{uuid}*"))


def test_a_guest_is_resized_to_another_host_and_back(
    far: LabHost, at: At, to: At, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the second attempt; the first one is called off while its disk is copied."""
    resize: Any = world.driver.resize
    guest = world.spawn(at)
    world.done(world.driver.power.off, at, guest)
    with monkeypatch.context() as patch:
        patch.setattr(resize._site._runs, "_patience_s", 0.2)
        patch.setattr(copying, "told", _slowly)
        while "copying" not in (asked := world.run(resize.prepare(at, guest, to, "first"))).reason:
            pass
        world.run(asked.call_off())
    assert world.state(at, guest) is Power.SHUTDOWN, "it has not left"
    off = replace(guest, is_running=False)
    world.done(resize.revert, at, off, to)
    assert _files(far, guest.uuid) == []
    world.done(resize.prepare, at, guest, to)
    large = replace(guest, ram_mib=32, disk_gib=1)
    world.done(resize.finish, to, large, at)
    world.wait_for_words(to, guest, "TINY GUEST ready tiny", times=2)  # the log came along
    assert world.state(at, guest) is None
    assert far.connection().lookupByUUIDString(guest.uuid).blockInfo("vda")[0] == 1 << 30
    world.done(world.driver.power.off, to, large)
    world.done(resize.revert, at, guest, to)
    world.wait_for_words(at, guest, "TINY GUEST ready tiny", times=2)
    assert world.state(to, guest) is None
    assert _files(far, guest.uuid) == []
    world.done(world.driver.life.destroy, at, guest)


def _slowly(chunks: Iterator[bytes], progress: Progress) -> Iterator[bytes]:
    for chunk in told(chunks, progress):
        time.sleep(0.1)
        yield chunk


def test_a_guest_that_came_paused_runs_before_it_is_sent_on(at: At, to: At, world: World) -> None:
    """QEMU would die of it, up to its version 9."""
    live: Any = world.driver.live_migrate
    pause: Any = world.driver.pause
    guest = replace(world.spawn(at), is_running=False)
    world.done(pause.pause, at, guest)
    world.done(live.live_migrate, at, guest, to)
    refused = world.outcome(live.live_migrate, to, guest, at)
    assert isinstance(refused, Failed)
    assert "unpause" in refused.reason
    assert world.state(to, guest) is Power.PAUSED, "it is still there"
    assert world.state(at, guest) is None
    world.done(pause.unpause, to, guest)
    world.done(pause.pause, to, guest)
    world.done(live.live_migrate, to, guest, at)
    assert world.state(at, guest) is Power.PAUSED
    world.done(pause.unpause, at, guest)
    world.done(world.driver.life.destroy, at, guest)


def test_a_cold_migration_is_confirmed_and_leaves_the_source_empty(
    lab: LabHost, at: At, to: At, world: World
) -> None:
    resize = world.driver.resize
    assert resize is not None
    guest = world.spawn(at)
    world.done(world.driver.power.off, at, guest)
    world.done(resize.prepare, at, guest, to)
    world.done(resize.finish, to, guest, at)
    for _ in range(2):
        world.done(resize.confirm, at, guest)
    assert _files(lab, guest.uuid) == []
    assert world.state(to, guest) is Power.RUNNING
    world.done(world.driver.life.destroy, to, guest)


def test_a_resize_to_another_host_leaves_no_disk_that_the_new_flavor_lacks(
    lab: LabHost, far: LabHost, at: At, to: At, world: World
) -> None:
    resize: Any = world.driver.resize
    old = world.spawn(at, swap_mib=16, ephemeral_gib=1)
    new = replace(old, swap_mib=0)
    world.done(world.driver.power.off, at, old)
    world.done(resize.prepare, at, old, to)
    world.done(resize.finish, to, new, at)
    assert _further(far.folder / "lib" / "siderite", old.uuid) == ["ephemeral"]
    assert _further(lab.folder / "lib" / "siderite", old.uuid) == ["ephemeral", "swap"]
    world.done(resize.confirm, at, new)
    assert _files(lab, old.uuid) == []
    world.done(world.driver.life.destroy, to, new)


def test_a_resize_on_storage_that_both_hosts_share_has_its_way_back(
    far: LabHost, at: At, to: At, world: World, tmp_path: Path
) -> None:
    """The guest writes to a disk of its own there, though that host did not see it being made."""
    resize: Any = world.driver.resize
    shared = {"pool": "shared", "pool_path": str(tmp_path / "pool")}
    here, there = (replace(one, options={**one.options, **shared}) for one in (at, to))
    old = world.spawn(here, swap_mib=16)
    new = replace(old, swap_mib=0, ephemeral_gib=1)
    assert world.state(there, old) is None
    for last, left in (("revert", ["swap"]), ("confirm", ["ephemeral"])):
        world.done(world.driver.power.off, here, old)
        world.done(resize.prepare, here, old, there)
        world.done(resize.finish, there, new, here)
        domain = far.connection().lookupByUUIDString(old.uuid)
        assert f"{old.uuid}.disk-2.qcow2" in domain.XMLDesc()
        assert _further(tmp_path / "pool", old.uuid) == ["ephemeral", "swap"]
        if last == "revert":
            world.done(resize.revert, here, old, there)
        else:
            world.done(resize.confirm, here, new)
        assert _further(tmp_path / "pool", old.uuid) == left
    world.done(world.driver.life.destroy, there, new)
    assert list((tmp_path / "pool").glob(f"{old.uuid}*")) == []


def _further(pool: Path, uuid: str) -> list[str]:
    """The disks beside the first."""
    found = (path.name.split(".")[1] for path in pool.glob(f"{uuid}*.qcow2"))
    return sorted(what for what in found if not what.startswith("disk"))


def test_a_guest_migrates_live_with_its_disk(
    lab: LabHost, far: LabHost, at: At, to: At, world: World
) -> None:
    live = world.driver.live_migrate
    assert live is not None
    guest = world.spawn(at, disk_gib=1)
    world.wait_for_words(at, guest, "armed")
    for _ in range(2):  # asked again, it finds that it is there
        world.done(live.live_migrate, at, guest, to)
        assert world.state(at, guest) is None
        assert world.state(to, guest) is Power.RUNNING
    assert _files(lab, guest.uuid) == []
    assert world.log(to, guest).count("TINY GUEST ready") == 1  # it never stopped
    world.done(world.driver.power.signal, to, guest, 60.0)
    world.wait_for_state(to, guest, Power.SHUTDOWN)
    world.done(world.driver.power.on, to, guest)  # its disk is whole
    world.wait_for_words(to, guest, "TINY GUEST ready", times=2)
    world.done(world.driver.life.destroy, to, guest)


@pytest.mark.sampled
@pytest.mark.parametrize("then", ["live_migrate", "abort"])
def test_a_guest_that_arrived_and_is_off_before_that_was_noted_keeps_its_disk(
    lab: LabHost, at: At, to: At, world: World, then: str
) -> None:
    """As after a crash before the commit. At its first host nothing is left: that disk is all."""
    live: Any = world.driver.live_migrate
    guest = world.spawn(at, disk_gib=1)
    world.wait_for_words(at, guest, "armed")
    world.done(live.live_migrate, at, guest, to)
    assert _files(lab, guest.uuid) == []
    _is_off_there_once(world, then, at, guest, to)


@pytest.mark.sampled
@pytest.mark.parametrize("then", ["live_migrate", "abort"])
def test_a_guest_that_arrived_on_shared_storage_and_is_off_before_that_was_noted_is_there(
    lab: LabHost, far: LabHost, world: World, tmp_path: Path, then: str
) -> None:
    here, there = (at_lab(h, pool="shared", pool_path=str(tmp_path / "pool")) for h in (lab, far))
    guest = world.spawn(here, disk_gib=1)
    world.wait_for_words(here, guest, "armed")
    assert world.state(there, guest) is None
    flags = (
        libvirt.VIR_MIGRATE_LIVE
        | libvirt.VIR_MIGRATE_PERSIST_DEST
        | libvirt.VIR_MIGRATE_UNDEFINE_SOURCE
        | libvirt.VIR_MIGRATE_UNSAFE  # libvirt does not take the folder for one that is shared
    )
    by = {libvirt.VIR_MIGRATE_PARAM_URI: "tcp://127.0.0.1"}
    lab.connection().lookupByUUIDString(guest.uuid).migrate3(far.connection(), by, flags)
    _is_off_there_once(world, then, here, guest, there)


def test_a_guest_that_somebody_sent_to_another_host_is_gone_though_it_is_still_defined(
    lab: LabHost, far: LabHost, world: World, tmp_path: Path
) -> None:
    """As `virsh migrate` leaves it on shared storage: were it off, it might be started twice."""
    here, there = (at_lab(h, pool="shared", pool_path=str(tmp_path / "pool")) for h in (lab, far))
    guest = world.spawn(here)
    assert world.state(there, guest) is None
    by = {libvirt.VIR_MIGRATE_PARAM_URI: "tcp://127.0.0.1"}
    domain = lab.connection().lookupByUUIDString(guest.uuid)
    domain.migrate3(far.connection(), by, libvirt.VIR_MIGRATE_LIVE | libvirt.VIR_MIGRATE_UNSAFE)
    seen = [world.run(world.driver.life.states(at)) for at in (here, there)]
    assert [(said or {}).get(guest.uuid) for said in seen] == [None, Power.RUNNING]
    for at in (there, here):
        world.done(world.driver.life.destroy, at, guest)


def _is_off_there_once(world: World, then: str, at: At, guest: Guest, to: At) -> None:
    """It shuts itself down where it arrived; asked again, the driver finds it there, whole."""
    world.done(world.driver.power.signal, to, guest, 60.0)
    world.wait_for_state(to, guest, Power.SHUTDOWN)
    ended = world.done(getattr(world.driver.live_migrate, then), at, guest, to)
    assert then == "live_migrate" or ended.found["arrived"]
    assert (world.state(at, guest), world.state(to, guest)) == (None, Power.SHUTDOWN)
    world.done(world.driver.power.on, to, guest)
    world.wait_for_words(to, guest, "TINY GUEST ready", times=2)
    world.done(world.driver.life.destroy, to, guest)


def test_a_guest_that_arrived_and_was_undefined_there_is_where_its_disk_is(
    far: LabHost, at: At, to: At, world: World
) -> None:
    live: Any = world.driver.live_migrate
    guest = world.spawn(at, disk_gib=1)
    world.wait_for_words(at, guest, "armed")
    world.done(live.live_migrate, at, guest, to)
    domain = far.connection().lookupByUUIDString(guest.uuid)
    domain.destroy()
    domain.undefine()
    assert isinstance(world.outcome(live.live_migrate, at, guest, to), Failed)
    assert world.done(live.abort, at, guest, to).found == {"arrived": True}
    world.done(world.driver.power.on, to, guest)
    world.wait_for_words(to, guest, "TINY GUEST ready", times=2)
    world.done(world.driver.life.destroy, to, guest)


@pytest.mark.parametrize("look", [1, 2])
def test_a_guest_that_goes_while_it_is_looked_at_is_looked_for_again(
    at: At, to: At, world: World, monkeypatch: pytest.MonkeyPatch, look: int
) -> None:
    """As libvirt removes it at the very end of a migration whose driver was lost."""
    guest = world.spawn(at)
    find, looks = domains.find, iter(range(1, 100))

    def found_for_the_last_time(connection: Any, uuid: str) -> Any:
        domain = find(connection, uuid)
        if domain is not None and next(looks) == look:
            domain.destroy()
            domain.undefine()
        return domain

    with monkeypatch.context() as patch:
        patch.setattr(domains, "find", found_for_the_last_time)
        ended = world.done(world.driver.live_migrate.abort, at, guest, to)
    assert next(looks) > look, "it was there when it was looked for"
    assert ended.found == {"arrived": False}, "its disk is here"
    world.done(world.driver.life.destroy, at, guest)


def test_a_guest_that_was_resized_before_migrates_live(at: At, to: At, world: World) -> None:
    live, resize = world.driver.live_migrate, world.driver.resize
    assert live is not None
    assert resize is not None
    guest = world.spawn(at)
    world.done(world.driver.power.off, at, guest)
    world.done(resize.prepare, at, guest, at)
    guest = replace(guest, disk_gib=1)
    world.done(resize.finish, at, guest, at)
    world.done(resize.confirm, at, guest)
    world.wait_for_words(at, guest, "armed", times=2)
    world.done(live.live_migrate, at, guest, to)
    world.done(world.driver.power.reset, to, guest)
    world.wait_for_words(to, guest, "TINY GUEST ready", times=3)
    world.done(world.driver.life.destroy, to, guest)


def test_a_guest_that_cannot_get_to_the_other_host_stays(
    at: At, to: At, far: LabHost, world: World
) -> None:
    live = world.driver.live_migrate
    assert live is not None
    guest = world.spawn(at)
    refused = world.outcome(live.live_migrate, at, guest, At("far", far.uri))
    assert isinstance(refused, Failed)
    assert "migration_address" in refused.reason
    assert world.state(at, guest) is Power.RUNNING
    unknown = {**to.options, "migration_address": "127.0.0.1"}  # which no certificate speaks of
    for options in ({"migration_address": "127.0.0.1:1"}, {"migration_tls": "perhaps"}, unknown):
        nowhere = At("far", far.uri, options)
        assert isinstance(world.outcome(live.live_migrate, at, guest, nowhere), Failed)
        assert world.state(at, guest) is Power.RUNNING
    assert _files(far, guest.uuid) == []
    world.done(world.driver.life.destroy, at, guest)


def test_a_guest_leaves_a_host_without_the_files_that_both_share(
    lab: LabHost, far: LabHost, at: At, to: At, world: World
) -> None:
    leave = world.driver.life.leave
    guest = world.spawn(at)
    world.done(leave, at, guest, replace(at, host="twin"))  # whose pool is the same folder
    assert world.state(at, guest) is None
    assert _files(lab, guest.uuid) != []
    world.done(leave, at, guest, to)
    assert _files(lab, guest.uuid) == []


def test_a_live_migration_is_watched_aborted_and_then_hurried(
    lab: LabHost, far: LabHost, at: At, to: At, world: World
) -> None:
    live = world.driver.live_migrate
    assert live is not None
    guest = world.spawn(at, disk_gib=1, ephemeral_gib=1, is_running=False)
    (disk,) = (lab.folder / "lib" / "siderite").glob(f"{guest.uuid}.ephemeral.qcow2")
    write = ["qemu-io", "-c", f"write -P 7 1M {_SLOW_MIB}M", str(disk)]
    subprocess.run(write, check=True, capture_output=True)
    guest = replace(guest, is_running=True)
    world.done(world.driver.power.on, at, guest)
    world.wait_for_words(at, guest, "armed")
    domain = lab.connection().lookupByUUIDString(guest.uuid)
    domain.migrateSetMaxSpeed(1)  # MiB/s
    first = _under_way(world, at, guest, to, "first")
    ended = world.run(_until_over(live.abort, at, guest, to, "first"))
    assert ended.found == {"arrived": False}
    assert world.state(at, guest) is Power.RUNNING
    assert world.state(to, guest) is None
    assert _files(far, guest.uuid) == []
    domain.migrateSetMaxSpeed(_SLOW_MIB // 3)
    second = _under_way(world, at, guest, to, "second")
    world.run(_until_over(live.force, at, guest, "second"))
    world.run(_until_over(live.live_migrate, at, guest, to, "second"))
    assert first.done()
    assert second.done()
    assert world.state(to, guest) is Power.RUNNING  # though it was paused on its way
    assert world.log(to, guest).count("TINY GUEST ready") == 1
    assert world.driver.diagnostics is not None
    used = world.run(world.driver.diagnostics.diagnostics(to, guest))
    assert isinstance(used, Usage)
    assert (used.state, used.memory_max_mib, len(used.disks)) == ("running", 16, 3)
    assert len(used.cpu_times_ns) == 1
    world.done(world.driver.life.destroy, to, guest)


def _under_way(world: World, at: At, guest: Guest, to: At, token: str) -> "asyncio.Task[Outcome]":
    """Begin a migration, and see that it has some way to go."""
    live = world.driver.live_migrate
    assert live is not None

    async def begun() -> asyncio.Task[Outcome]:
        asked = asyncio.create_task(live.live_migrate(at, guest, to, token))
        async with asyncio.timeout(PATIENCE_S):
            while (far := await live.progress(at, guest)) is None or not far.disk[0]:
                assert not asked.done() or isinstance(asked.result(), Wait), asked
                await asyncio.sleep(0.03)
        return asked

    return world.run(begun())


async def _until_over(call: Callable[..., Awaitable[Outcome]], *args: Any) -> Done:
    while isinstance(answer := await call(*args), Wait):
        await asyncio.sleep(0.05)
    assert isinstance(answer, Done), answer
    return answer
