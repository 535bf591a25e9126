"""Power of real guests: those that obey, those that do not, and those that answer late."""

import asyncio
import os
import signal
import threading
import uuid

from msgspec.structs import replace

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.power import Power
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Nic
from tests.compute.drivers.libvirt.world import World
from tests.lab import LabHost
from tests.lab import Mode


def test_a_guest_that_listens_obeys_the_signal(at: At, world: World) -> None:
    guest = world.spawn(at)
    world.wait_for_words(at, guest, "armed")
    world.done(world.driver.power.signal, at, guest, 60.0)
    world.wait_for_state(at, guest, Power.SHUTDOWN)
    assert "power button, off" in world.log(at, guest)
    world.done(world.driver.power.on, at, guest)
    world.wait_for_words(at, guest, "armed", times=2)
    world.done(world.driver.life.destroy, at, guest)


def test_a_guest_that_still_boots_misses_the_signal_and_obeys_the_next(
    at: At, world: World
) -> None:
    guest = world.spawn(at, Mode.LATE)
    world.wait_for_words(at, guest, "ready")
    world.done(world.driver.power.signal, at, guest, 60.0)
    world.wait_for_words(at, guest, "armed")
    assert world.state(at, guest) is Power.RUNNING
    world.done(world.driver.power.signal, at, guest, 60.0)
    world.wait_for_state(at, guest, Power.SHUTDOWN)
    world.done(world.driver.life.destroy, at, guest)


def test_a_guest_that_ignores_the_signal_loses_its_power(at: At, world: World) -> None:
    guest = world.spawn(at, Mode.IGNORE)
    world.wait_for_words(at, guest, "ready")
    world.done(world.driver.power.signal, at, guest, 60.0)
    assert world.state(at, guest) is Power.RUNNING
    world.done(world.driver.power.off, at, guest)
    assert world.state(at, guest) is Power.SHUTDOWN
    world.done(world.driver.power.off, at, guest)
    world.done(world.driver.power.signal, at, guest, 60.0)
    world.done(world.driver.life.destroy, at, guest)


def test_a_reset_happens_once_for_its_token(lab: LabHost, at: At, world: World) -> None:
    guest = world.spawn(at)
    domain = lab.connection().lookupByUUIDString(guest.uuid)
    first, token = domain.ID(), str(uuid.uuid4())

    async def reset() -> None:
        while not isinstance(await world.driver.power.reset(at, guest, token), Done):
            await asyncio.sleep(0.05)

    world.run(reset())
    second = lab.connection().lookupByUUIDString(guest.uuid).ID()
    world.run(reset())
    assert first != second == lab.connection().lookupByUUIDString(guest.uuid).ID()
    world.done(world.driver.life.destroy, at, guest)


def test_a_reset_gives_the_guest_its_new_devices(lab: LabHost, at: At, world: World) -> None:
    guest = world.spawn(at)
    nic = Nic("port", "net", "user", "", "fa:16:3e:00:00:02", "10.0.2.15", 24)
    world.done(world.driver.power.reset, at, replace(guest, nics=(nic,)))
    assert nic.mac in lab.connection().lookupByUUIDString(guest.uuid).XMLDesc()
    world.done(world.driver.life.destroy, at, guest)


def test_a_guest_is_paused_and_goes_on(at: At, world: World) -> None:
    pause = world.driver.pause
    assert pause is not None
    guest = world.spawn(at)
    for _ in range(2):
        world.done(pause.pause, at, guest)
        assert world.state(at, guest) is Power.PAUSED
        assert world.run(world.driver.life.states(at))[guest.uuid] is Power.PAUSED
    for _ in range(2):
        world.done(pause.unpause, at, guest)
        assert world.state(at, guest) is Power.RUNNING
    world.done(world.driver.power.off, at, guest)
    refused = world.outcome(pause.pause, at, guest)
    assert isinstance(refused, Failed)
    assert "does not run" in refused.reason
    world.done(world.driver.life.destroy, at, guest)


def test_a_suspended_guest_goes_on_where_it_was(at: At, world: World) -> None:
    suspend = world.driver.suspend
    assert suspend is not None
    guest = world.spawn(at)
    world.wait_for_words(at, guest, "armed")
    for _ in range(2):
        world.done(suspend.suspend, at, guest)
        assert world.state(at, guest) is Power.SUSPENDED
        assert world.run(world.driver.life.states(at))[guest.uuid] is Power.SUSPENDED
    for _ in range(2):
        world.done(suspend.resume, at, guest)
        assert world.state(at, guest) is Power.RUNNING
    assert world.log(at, guest).count("TINY GUEST ready") == 1  # it never booted anew
    world.done(suspend.suspend, at, guest)
    world.done(world.driver.power.off, at, guest)
    assert world.state(at, guest) is Power.SHUTDOWN
    world.done(world.driver.power.on, at, guest)
    world.wait_for_words(at, guest, "TINY GUEST ready", times=2)  # of what was off nothing goes on
    world.done(world.driver.life.destroy, at, guest)


def test_a_guest_that_is_only_being_started_does_not_count_as_running(
    lab: LabHost, at: At, world: World
) -> None:
    """libvirt calls it active: for a moment, or for ever if it was killed meanwhile."""
    guest = world.spawn(at, is_running=False)
    domain = lab.connection().lookupByUUIDString(guest.uuid)
    starting = threading.Thread(target=domain.create)
    starting.start()
    pid = lab.qemu(guest.uuid)
    os.kill(pid, signal.SIGSTOP)
    try:
        told = world.run(world.driver.power.on(at, guest, "token"))
        assert isinstance(told, Wait), told
        assert "does not run yet" in told.reason
    finally:
        os.kill(pid, signal.SIGCONT)
    starting.join()
    world.done(world.driver.power.on, at, guest)
    world.wait_for_words(at, guest, "armed")
    world.done(world.driver.life.destroy, at, guest)
