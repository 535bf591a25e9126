"""The simulated driver has every ability of the contract, and misbehaves as its script says."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing

import pytest
from msgspec.structs import fields

from siderite.baremetal.domain.hardware import BootDevice
from siderite.baremetal.domain.hardware import BootMode
from siderite.baremetal.domain.hardware import BootSetting
from siderite.baremetal.domain.hardware import Light
from siderite.baremetal.domain.hardware import MediaDevice
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.drivers.console_ports import ConsolePorts
from siderite.baremetal.drivers.contract import Driver
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.simulated import Machines
from siderite.baremetal.drivers.simulated import simulated_driver
from siderite.baremetal.drivers.simulated.console import SimulatedConsole
from siderite.baremetal.drivers.simulated.scripts import Script

AT = Endpoint("n1", {"sim_address": "https://root:secret@10.0.0.1"}, {}, {})


@pytest.fixture
def machines() -> Iterator[Machines]:
    """An empty room of machines."""
    with closing(Machines()) as made:
        yield made


@pytest.fixture
def driver(machines: Machines) -> Driver:
    """Their driver."""
    return simulated_driver(machines, SimulatedConsole(machines))


def test_it_has_every_ability(driver: Driver) -> None:
    lacks = [field.name for field in fields(Driver) if getattr(driver, field.name) is None]
    assert lacks == ["tasks"]  # it does at once what it is told


def test_what_is_set_is_read_back(driver: Driver) -> None:
    async def story() -> None:
        assert driver.boot_devices
        assert driver.boot_modes
        assert driver.secure_boot
        await driver.boot_devices.set_boot_device(AT, BootDevice.PXE, persistent=False)
        assert await driver.boot_devices.boot_device(AT) == BootSetting(BootDevice.PXE, False)
        await driver.boot_modes.set_boot_mode(AT, BootMode.BIOS)
        assert await driver.boot_modes.boot_mode(AT) is BootMode.BIOS
        with pytest.raises(Refused, match="Set boot mode uefi first"):
            await driver.secure_boot.set_secure_boot(AT, True)
        await driver.boot_modes.set_boot_mode(AT, BootMode.UEFI)
        await driver.secure_boot.set_secure_boot(AT, True)
        assert await driver.secure_boot.secure_boot(AT) is True

    asyncio.run(story())


def test_lights_and_media_are_set_and_read_back(driver: Driver) -> None:
    async def story() -> None:
        assert driver.indicators
        assert driver.virtual_media
        await driver.indicators.set_indicator(AT, "chassis", "led", Light.BLINKING)
        assert await driver.indicators.indicator(AT, "chassis", "led") is Light.BLINKING
        assert await driver.indicators.indicator(AT, "system", "led") is Light.OFF
        await driver.virtual_media.insert(AT, MediaDevice.CDROM, "http://images/x.iso")
        media = await driver.virtual_media.media(AT)
        assert [m.device_type for m in media if m.inserted] == [MediaDevice.CDROM]
        await driver.virtual_media.eject(AT, MediaDevice.CDROM)
        assert not any(m.inserted for m in await driver.virtual_media.media(AT))

    asyncio.run(story())


def test_an_unreachable_bmc_is_named_without_its_password(
    driver: Driver, machines: Machines
) -> None:
    async def story() -> None:
        assert driver.boot_devices
        machines.scripts.set("node:n1", Script(unreachable=True))
        with pytest.raises(Unreachable) as told:
            await driver.boot_devices.boot_device(AT)
        assert "The BMC 10.0.0.1 of node n1" in told.value.sentence
        assert "secret" not in told.value.sentence
        assert told.value.status == 504

    asyncio.run(story())


def test_a_scripted_failure_is_a_refusal(driver: Driver, machines: Machines) -> None:
    async def story() -> None:
        assert driver.bios
        machines.scripts.set("all", Script(fail={"bios.settings": "registry broken"}))
        with pytest.raises(Refused, match="registry broken"):
            await driver.bios.settings(AT)

    asyncio.run(story())


async def run(driver: Driver, name: str, **args: object) -> Done | Failed:
    """A step of manual cleaning, run to its end."""
    interface, _, step = name.partition(".")
    outcome = await driver.steps.run(AT, Family.CLEAN, Step(interface, step, args=args), name)
    assert isinstance(outcome, Done | Failed)
    return outcome


def test_steps_change_settings_and_firmware(driver: Driver) -> None:
    async def story() -> None:
        done = await run(
            driver, "bios.apply_configuration", settings=[{"name": "NumLock", "value": "Off"}]
        )
        assert isinstance(done, Done)
        assert done.found
        assert done.found.bios
        assert {s.name: s.value for s in done.found.bios}["NumLock"] == "Off"
        wrong = await run(
            driver, "bios.apply_configuration", settings=[{"name": "x", "value": "y"}]
        )
        assert isinstance(wrong, Failed)
        done = await run(
            driver,
            "firmware.update",
            settings=[{"component": "bmc", "url": "http://a/bmc-1.2.3.bin"}],
        )
        assert driver.firmware
        parts = await driver.firmware.components(AT)
        assert {p.component: p.current_version for p in parts} == {"bios": "1.0.0", "bmc": "1.2.3"}
        assert isinstance(await run(driver, "bios.factory_reset", settings="x"), Done)

    asyncio.run(story())


def test_a_power_change_goes_on_when_the_machine_lost_power_meanwhile() -> None:
    async def story() -> None:
        clock = [100.0]
        with closing(Machines(clock=lambda: clock[0])) as machines:
            driver = simulated_driver(machines, SimulatedConsole(machines))
            machines.scripts.set("all", Script(latency_s={"power": 30.0}))
            for cut in (False, True, True):
                if cut:
                    clock[0] += 20.0
                    machines.cut_power("")
                    clock[0] += 1.0
                waits = await driver.power.set(AT, PowerTarget.ON, "t")
                assert isinstance(waits, Wait)
                assert waits.again_in == 30.0
            clock[0] += 30.0
            assert isinstance(await driver.power.set(AT, PowerTarget.ON, "t"), Done)
            assert await driver.power.read(AT) is PowerState.ON

    asyncio.run(story())


def test_a_step_fails_in_a_machine_that_lost_power_unless_a_ramdisk_is_waited_for() -> None:
    async def story() -> None:
        clock = [100.0]
        step = Step("deploy", "erase_devices", in_band=True)
        with closing(Machines(clock=lambda: clock[0])) as machines:
            driver = simulated_driver(machines, SimulatedConsole(machines))
            for ramdisk in (False, True):
                machines.scripts.set("all", Script(latency_s={"*": 30.0}, ramdisk=ramdisk))
                token = f"t{ramdisk}"
                waits = await driver.steps.run(AT, Family.CLEAN, step, token)
                assert isinstance(waits, Wait)
                clock[0] += 20.0
                machines.cut_power("")
                clock[0] += 20.0
                for _ in range(2):
                    outcome = await driver.steps.run(AT, Family.CLEAN, step, token)
                    assert isinstance(outcome, Wait if ramdisk else Failed)
                    assert "the machine lost power" in outcome.reason

    asyncio.run(story())


def test_a_console_can_be_connected_to(machines: Machines) -> None:
    async def story() -> None:
        console = SimulatedConsole(machines)
        machines.run(AT, "power.power on", "t", 0.0, calls=False)
        info = await console.start(AT)
        assert info == await console.start(AT)
        host, _, port = info.url.removeprefix("tcp://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        greeting = await asyncio.wait_for(reader.readuntil(b"login: "), 10)
        assert b"node n1: power off" in greeting
        assert b"power.power on" in greeting
        writer.write(b"hello\n")
        assert await asyncio.wait_for(reader.readuntil(b"login: "), 10) == b"hello\r\nlogin: "
        await console.stop(AT)
        with pytest.raises(OSError):
            await asyncio.open_connection(host, int(port))
        writer.close()

    asyncio.run(story())


def test_who_is_connected_is_not_any_more_when_the_console_is_switched_off(
    machines: Machines,
) -> None:
    async def story() -> None:
        console = SimulatedConsole(machines)
        port = int((await console.start(AT)).url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.wait_for(reader.readuntil(b"login: "), 10)
        await console.stop(AT)
        await console.start(AT)
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()
        console.close()

    asyncio.run(story())


def test_nobody_listens_for_a_caller_that_did_not_wait() -> None:
    async def story() -> None:
        for patience in range(12):  # cancelled at each point in turn
            with socket.create_server(("127.0.0.1", 0)) as probe:
                port = probe.getsockname()[1]
            opening = asyncio.create_task(ConsolePorts(ports=(port,)).open(AT, never))
            for _ in range(patience):
                await asyncio.sleep(0)
            if opening.done():
                opening.result().close()
                return
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
            with pytest.raises(OSError):
                await asyncio.open_connection("127.0.0.1", port)
        raise AssertionError

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise AssertionError

    asyncio.run(story())


def test_consoles_keep_to_their_ports(machines: Machines) -> None:
    async def story() -> None:
        console = SimulatedConsole(machines)
        taken = int((await console.start(AT)).url.rpartition(":")[2])
        other = SimulatedConsole(machines, ConsolePorts(ports=(taken,)))
        with pytest.raises(Refused, match="Widen console_ports"):
            await other.start(AT)
        console.close()

    asyncio.run(story())
