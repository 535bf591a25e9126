"""The Redfish driver, against sushy-emulator in front of real virtual machines."""

import asyncio
import socket

import pytest

from siderite.baremetal.domain.hardware import BootDevice
from siderite.baremetal.domain.hardware import BootMode
from siderite.baremetal.domain.hardware import HardwareError
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
from siderite.baremetal.drivers.agent import Agent
from siderite.baremetal.drivers.agent import Ramdisks
from siderite.baremetal.drivers.agent import RamdiskSettings
from siderite.baremetal.drivers.ipmi import IpmiTool
from siderite.baremetal.drivers.ipmi import SerialOverLan
from siderite.baremetal.drivers.redfish import Lines
from siderite.baremetal.drivers.redfish import redfish_driver
from tests.baremetal.drivers.machine import Machine
from tests.baremetal.drivers.test_agent import TOKEN
from tests.baremetal.drivers.test_agent import listening
from tests.lab import Mode
from tests.lab import tiny_disk
from tests.lab import tiny_guest
from tests.lab.bmc import PASSWORD
from tests.lab.bmc import files_served
from tests.lab.bmc import redfish_bmcs
from tests.lab.bmc import with_pool
from tests.lab.cache import run


@pytest.fixture(scope="module")
def bmcs(lab, tmp_path_factory):
    with redfish_bmcs(tmp_path_factory.mktemp("redfish"), with_pool(lab)) as service:
        yield service


@pytest.fixture
def driver(tmp_path):
    lines = Lines(threads=4)
    ramdisks = Ramdisks(RamdiskSettings(tmp_path, "http://here", "http://here"))
    yield redfish_driver(lines, ramdisks, Agent(), SerialOverLan(IpmiTool()))
    lines.close()


@pytest.fixture
def guest(lab):
    found = tiny_guest(lab)
    yield found
    found.remove()


def test_a_machine_goes_on_reboots_and_goes_off_as_told(bmcs, driver, guest):
    async def story():
        machine = Machine(bmcs.driver_info(guest.uuid))
        assert await driver.power.read(machine.at) is PowerState.OFF
        for target, power, starts in (
            (PowerTarget.ON, PowerState.ON, 1),
            (PowerTarget.REBOOT, PowerState.ON, 2),
            (PowerTarget.OFF, PowerState.OFF, 2),
        ):
            assert isinstance(await machine.power(driver, target), Done)
            assert await driver.power.read(machine.at) is power
            guest.wait_for("TINY GUEST ready", times=starts)

    asyncio.run(story())


def test_a_soft_off_is_repeated_until_the_guest_hears_it(bmcs, driver, lab):
    async def story(guest):
        machine = Machine(bmcs.driver_info(guest.uuid))
        await machine.power(driver, PowerTarget.ON)
        assert isinstance(await machine.power(driver, PowerTarget.SOFT_OFF), Done)
        assert "armed" in guest.serial()

    guest = tiny_guest(lab, Mode.LATE, delay_s=3)
    asyncio.run(story(guest))
    guest.remove()


def test_a_reboot_interrupted_half_way_goes_on_where_it_was(bmcs, driver, guest, tmp_path):
    async def story():
        machine = Machine(bmcs.driver_info(guest.uuid))
        await machine.power(driver, PowerTarget.ON)
        guest.wait_for("TINY GUEST ready")
        token = "reboot"
        while "on again" not in "".join(machine.waits[-1:]):
            outcome = await driver.power.set(machine.at, PowerTarget.REBOOT, token)
            machine.memory |= outcome.remember
            machine.waits.append(outcome.reason)
            await asyncio.sleep(0.05)
        # The process dies here, after it had ordered `on`; another one goes on with the record.
        await driver.power.set(machine.at, PowerTarget.REBOOT, token)
        lines = Lines(threads=1)
        ramdisks = Ramdisks(RamdiskSettings(tmp_path, "http://here", "http://here"))
        other = redfish_driver(lines, ramdisks, Agent(), SerialOverLan(IpmiTool()))
        done = await machine.until_done(lambda at: other.power.set(at, PowerTarget.REBOOT, token))
        assert isinstance(done, Done)
        guest.wait_for("TINY GUEST ready", times=2)
        assert guest.serial().count("TINY GUEST ready") == 2, "it was not switched off once more"
        lines.close()

    asyncio.run(story())


def test_boot_device_mode_and_media_are_set_and_read(bmcs, driver, guest, tmp_path):
    async def story():
        at = Machine(bmcs.driver_info(guest.uuid)).at
        assert BootDevice.CDROM in await driver.boot_devices.boot_devices(at)
        await driver.boot_devices.set_boot_device(at, BootDevice.CDROM, persistent=True)
        setting = await driver.boot_devices.boot_device(at)
        assert (setting.boot_device, setting.persistent) == (BootDevice.CDROM, True)
        assert await driver.boot_modes.boot_mode(at) in (None, BootMode.BIOS)
        assert await driver.secure_boot.secure_boot(at) in (None, False)
        with pytest.raises(Refused, match="no such device"):
            await driver.boot_devices.set_boot_device(at, BootDevice.ISCSI, persistent=False)

    asyncio.run(story())


def test_an_image_goes_into_the_drive_and_out_again(bmcs, driver, guest, tmp_path):
    async def story(url):
        at = Machine(bmcs.driver_info(guest.uuid)).at
        assert not any(m.inserted for m in await driver.virtual_media.media(at))
        for _ in range(2):  # repeating it is harmless
            await driver.virtual_media.insert(at, MediaDevice.CDROM, url)
        media = [m for m in await driver.virtual_media.media(at) if m.inserted]
        assert [m.device_type for m in media] == [MediaDevice.CDROM]
        assert "<source file=" in guest.domain().XMLDesc(2).split("device='cdrom'")[1]
        for _ in range(2):
            await driver.virtual_media.eject(at, MediaDevice.CDROM)
        assert not any(m.inserted for m in await driver.virtual_media.media(at))

    (tmp_path / "cd.iso").write_bytes(b"x" * 4096)
    with files_served(tmp_path) as url:
        asyncio.run(story(f"{url}/cd.iso"))


def test_light_and_crash_dump_and_readings(bmcs, driver, guest):
    async def story():
        machine = Machine(bmcs.driver_info(guest.uuid))
        at = machine.at
        for indicator in await driver.indicators.indicators(at):
            await driver.indicators.set_indicator(at, indicator.component, indicator.name, Light.ON)
            shown = await driver.indicators.indicator(at, indicator.component, indicator.name)
            assert shown in (Light.ON, Light.UNKNOWN)
        kinds = {sensor.kind for sensor in await driver.sensors.sensors(at)}
        assert "Temperature" in kinds
        await machine.power(driver, PowerTarget.ON)
        await driver.nmi.inject_nmi(at)
        await machine.power(driver, PowerTarget.OFF)

    asyncio.run(story())


def test_inspection_finds_memory_processors_and_network_cards(bmcs, driver, guest):
    async def story():
        at = Machine(bmcs.driver_info(guest.uuid)).at
        step = Step("inspect", "inspect", 100)
        assert [s.step for s in await driver.steps.steps(at, Family.INSPECT)] == ["inspect"]
        done = await driver.steps.run(at, Family.INSPECT, step, "t")
        assert isinstance(done, Done)
        assert done.changes["properties"]["cpus"] == "1"
        assert done.changes["properties"]["cpu_arch"] == "x86_64"
        assert done.found.ports == (guest.mac,)
        assert done.found.inventory["interfaces"][0]["mac_address"] == guest.mac
        assert any(part.component == "bmc" for part in done.found.firmware)

    asyncio.run(story())


@pytest.mark.parametrize(
    "wrong_info",
    [
        ({"redfish_password": "open sesame"}, Failed, "redfish_username and redfish_password"),
        ({"redfish_system_id": "/redfish/v1/Systems/none"}, Failed, "redfish_system_id"),
        ({"redfish_address": "http://127.0.0.1:1"}, Wait, "refuses the connection"),
        ({"redfish_address": "ftp://127.0.0.1"}, Failed, "no http or https address"),
        ({"redfish_auth_type": "kerberos"}, Failed, "auto, basic or session"),
    ],
)
def test_an_error_names_the_bmc_and_the_remedy_and_no_secret(bmcs, driver, guest, wrong_info):
    wrong, kind, words = wrong_info

    async def story():
        machine = Machine(bmcs.driver_info(guest.uuid, **wrong))
        outcome = await driver.power.set(machine.at, PowerTarget.ON, "t")
        assert isinstance(outcome, kind), outcome
        assert words in outcome.reason
        assert machine.driver_info["redfish_address"] in outcome.reason
        assert PASSWORD not in outcome.reason
        assert "open sesame" not in outcome.reason
        with pytest.raises(HardwareError, match="BMC"):
            await driver.power.read(machine.at)
        assert not guest.is_on()

    asyncio.run(story())


def test_a_bmc_that_went_away_is_unknown_and_comes_back_by_itself(lab, driver, guest, tmp_path):
    async def story(bmcs):
        machine = Machine(bmcs.driver_info(guest.uuid))
        assert await driver.power.read(machine.at) is PowerState.OFF
        bmcs.stop()
        for _ in range(3):
            with pytest.raises(Unreachable):
                await driver.power.read(machine.at)
        with pytest.raises(Unreachable):
            await driver.boot_devices.boot_device(machine.at)
        bmcs.start()
        assert await driver.power.read(machine.at) is PowerState.OFF

    with redfish_bmcs(tmp_path / "own", with_pool(lab)) as bmcs:
        asyncio.run(story(bmcs))


def test_bios_settings_are_read_changed_over_a_start_and_reset(bmcs, driver, guest):
    async def story():
        machine = Machine(bmcs.driver_info(guest.uuid))
        before = {s.name: s.value for s in await driver.bios.settings(machine.at)}
        name = "BootMode" if "BootMode" in before else next(iter(before))
        wish = {"settings": [{"name": name, "value": "Other"}]}
        step = Step("bios", "apply_configuration", args=wish)
        done = await machine.until_done(lambda at: driver.steps.run(at, Family.CLEAN, step, "t"))
        assert isinstance(done, Done), done
        assert {s.name: s.value for s in done.found.bios}[name] == "Other"
        assert guest.is_on()
        step = Step("bios", "factory_reset")
        done = await machine.until_done(lambda at: driver.steps.run(at, Family.CLEAN, step, "u"))
        assert {s.name: s.value for s in done.found.bios} == before
        steps = await driver.steps.frame(machine.at, Family.CLEAN, [step])
        assert [s.step for s in steps] == ["factory_reset", "tear_down_agent"]
        bad = Step("bios", "apply_configuration", args={"settings": ["fast"]})
        assert isinstance(await driver.steps.run(machine.at, Family.CLEAN, bad, "v"), Failed)

    asyncio.run(story())


def test_deploy_interface_ramdisk_boots_an_image_and_leaves_it_running(
    bmcs, driver, guest, tmp_path
):
    """The image is the smallest that boots: 512 bytes on a CD, other than those on the disk."""
    root = tmp_path / "root"
    root.mkdir()
    tiny_disk(root / "boot.bin", Mode.GRACEFUL, tag="live from CD")
    run(
        ["genisoimage", "-quiet", "-b", "boot.bin", "-no-emul-boot", "-boot-load-size", "4",
         "-o", tmp_path / "live.iso", root]
    )  # fmt: skip

    async def story(url):
        machine = Machine(bmcs.driver_info(guest.uuid), deploy="ramdisk")
        machine.instance_info = {"boot_iso": f"{url}/live.iso"}
        steps = await driver.steps.steps(machine.at, Family.DEPLOY)
        wanted = [step for step in steps if step.priority]
        assert [step.step for step in wanted] == ["deploy"]
        done = await machine.until_done(
            lambda at: driver.steps.run(at, Family.DEPLOY, wanted[0], "work/0")
        )
        assert isinstance(done, Done), done
        guest.wait_for("TINY GUEST ready live from CD")
        await driver.steps.forget(machine.at, "another/1")
        assert guest.is_on(), "what another piece of work booted stays"
        await machine.until_done(lambda at: driver.steps.forget(at, "work/1"))  # as an abort does
        guest.wait_until_off()
        assert not any(m.inserted for m in await driver.virtual_media.media(machine.at))
        down = Step("deploy", "tear_down", 100)
        await machine.until_done(lambda at: driver.steps.run(at, Family.TEARDOWN, down, "u"))
        assert not guest.is_on()

    with files_served(tmp_path) as url:
        asyncio.run(story(url))


def test_bmcs_that_take_calls_and_never_answer_do_not_silence_others(bmcs, guest, tmp_path):
    async def story():
        lines = Lines(threads=2, timeout_s=1.0)
        ramdisks = Ramdisks(RamdiskSettings(tmp_path, "http://here", "http://here"))
        driver = redfish_driver(lines, ramdisks, Agent(), SerialOverLan(IpmiTool()))
        mute = socket.create_server(("127.0.0.1", 0), backlog=64)
        port = mute.getsockname()[1]
        dead = [
            Machine({"redfish_address": f"http://127.0.0.1:{port}", "redfish_system_id": f"/{n}"})
            for n in range(4)
        ]
        machine = Machine(bmcs.driver_info(guest.uuid))
        assert await driver.power.read(machine.at) is PowerState.OFF

        async def reading(one):
            with pytest.raises((HardwareError, TimeoutError)):
                await asyncio.wait_for(driver.power.read(one.at), 60)

        await asyncio.gather(*map(reading, dead))  # each has failed once
        busy = [asyncio.create_task(reading(one)) for one in dead]
        await asyncio.sleep(0)
        for _ in range(5):
            assert await driver.power.read(machine.at) is PowerState.OFF
        assert not all(task.done() for task in busy), "the healthy one did not wait for them"
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)
        mute.close()
        lines.close()

    asyncio.run(story())


def test_a_deploy_that_failed_says_so_again_until_it_is_forgotten(bmcs, driver, guest):
    """Whoever asked may be killed before that is recorded."""

    async def story(ramdisk, url):
        machine = Machine(bmcs.driver_info(guest.uuid))
        await machine.power(driver, PowerTarget.ON)
        machine.memory |= {"ramdisk": {"token": "work/0", "phase": "up"}, "agent_url": url}
        machine.memory["agent_secret_token"] = TOKEN
        machine.instance_info = {"image_source": "http://x/y", "image_checksum": "f"}
        step = Step("deploy", "write_image", 80, in_band=True)
        for _ in range(2):  # noted, then given
            running = await driver.steps.run(machine.at, Family.DEPLOY, step, "work/1")
            machine.memory |= running.remember
        assert running.callback
        ramdisk.becomes = {"command_status": "FAILED", "command_error": "the disk is broken"}
        for _ in range(2):
            failed = await driver.steps.run(machine.at, Family.DEPLOY, step, "work/1")
            assert isinstance(failed, Failed)
            assert "the disk is broken" in failed.reason
        assert guest.is_on()
        await machine.until_done(lambda at: driver.steps.forget(at, "work/1"))
        guest.wait_until_off()

    with listening() as (ramdisk, url):
        asyncio.run(story(ramdisk, url))
