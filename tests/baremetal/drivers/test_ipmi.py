"""The IPMI driver, with the real ipmitool against virtualbmc in front of a virtual machine; its
serial line, which that has not, against OpenIPMI's simulator.
"""

import asyncio

import pytest

from siderite.baremetal.domain.hardware import BootDevice
from siderite.baremetal.domain.hardware import HardwareError
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.drivers.agent import Agent
from siderite.baremetal.drivers.agent import Ramdisks
from siderite.baremetal.drivers.agent import RamdiskSettings
from siderite.baremetal.drivers.ipmi import IpmiTool
from siderite.baremetal.drivers.ipmi import SerialOverLan
from siderite.baremetal.drivers.ipmi import ipmi_driver
from siderite.baremetal.drivers.ipmi import tool as tool_module
from siderite.baremetal.drivers.ipmi.board import IpmiBoard
from siderite.baremetal.drivers.ipmi.tool import Account
from tests.baremetal.drivers.machine import Machine
from tests.lab import tiny_guest
from tests.lab.bmc import PASSWORD
from tests.lab.bmc import ipmi_bmc
from tests.lab.ipmi_sim import greeted
from tests.lab.udp_front import OPEN_ANSWER
from tests.lab.udp_front import RAKP_2
from tests.lab.udp_front import RAKP_4
from tests.lab.udp_front import kind
from tests.lab.udp_front import udp_front
from tests.lab.udp_front import with_status


@pytest.fixture(scope="module")
def guest(lab):
    found = tiny_guest(lab)
    yield found
    found.remove()


@pytest.fixture(scope="module")
def info(guest, tmp_path_factory):
    with ipmi_bmc(tmp_path_factory.mktemp("ipmi"), guest) as driver_info:
        yield driver_info


@pytest.fixture
def driver(tmp_path):
    tool = IpmiTool(at_once=4)
    ramdisks = Ramdisks(RamdiskSettings(tmp_path, "http://here", "http://here"))
    return ipmi_driver(tool, SerialOverLan(tool), ramdisks, Agent())


def test_a_machine_goes_on_reboots_softly_and_goes_off_as_told(info, driver, guest):
    async def story():
        machine = Machine(info)
        assert await driver.power.read(machine.at) is PowerState.OFF
        for target, power in (
            (PowerTarget.ON, PowerState.ON),
            (PowerTarget.SOFT_REBOOT, PowerState.ON),
            (PowerTarget.SOFT_OFF, PowerState.OFF),
        ):
            assert isinstance(await machine.power(driver, target), Done)
            assert await driver.power.read(machine.at) is power
            if target is PowerTarget.ON:
                await driver.nmi.inject_nmi(machine.at)  # libvirt refuses that of one that is off
        assert guest.serial().count("power button, off") == 2

    asyncio.run(story())


def test_a_machine_that_must_stay_on_is_reset_and_only_the_hard_way(driver, monkeypatch):
    told = []

    async def run(self, at, doing, *words):
        told.append(words)
        return "Chassis Power is on\n"

    async def story():
        machine = Machine({"ipmi_address": "10.0.0.9"})
        machine.stays_on = True
        assert isinstance(await machine.power(driver, PowerTarget.REBOOT), Done)
        assert [words for words in told if words[1] != "status"] == [("power", "reset")]
        soft = await machine.power(driver, PowerTarget.SOFT_REBOOT)
        assert "10.0.0.9" in soft.reason
        assert "Reboot it the hard way" in soft.reason
        assert len([words for words in told if words[1] != "status"]) == 1

    monkeypatch.setattr(IpmiTool, "run", run)
    asyncio.run(story())


def test_the_boot_device_is_set_and_read(info, driver):
    async def story():
        at = Machine(info).at
        for device in (BootDevice.PXE, BootDevice.DISK):
            await driver.boot_devices.set_boot_device(at, device, persistent=True)
            assert (await driver.boot_devices.boot_device(at)).boot_device is device
        with pytest.raises(Refused, match="IPMI has no such device"):
            await driver.boot_devices.set_boot_device(at, BootDevice.UEFI_HTTP, persistent=True)

    asyncio.run(story())


def test_a_boot_device_that_a_bmc_passes_over_is_not_said_to_be_set(ipmi_board, driver):
    """This one knows no floppy, and says nothing about it."""

    async def story():
        at, choose = Machine(ipmi_board.driver_info).at, driver.boot_devices.set_boot_device
        await choose(at, BootDevice.PXE, persistent=False)
        with pytest.raises(Refused, match=r"starts from pxe all the same.*choose another"):
            await choose(at, BootDevice.FLOPPY, persistent=False)
        await choose(at, BootDevice.DISK, persistent=False)
        assert (await driver.boot_devices.boot_device(at)).boot_device is BootDevice.DISK

    asyncio.run(story())


def test_what_the_bmc_cannot_do_is_a_refusal_in_its_own_words(info, driver):
    async def story():
        with pytest.raises(Refused, match=r"127\.0\.0\.1"):
            await driver.console.start(Machine(info).at)

    asyncio.run(story())


def test_wrong_credentials_and_silence_are_told_without_the_password(info, driver):
    async def story():
        wrong = Machine({**info, "ipmi_password": "open sesame"})
        outcome = await driver.power.set(wrong.at, PowerTarget.ON, "t")
        assert "127.0.0.1" in outcome.reason
        assert "open sesame" not in outcome.reason
        with pytest.raises(HardwareError, match="BMC"):
            await driver.power.read(wrong.at)
        silent = Machine({**info, "ipmi_port": 9})
        outcome = await driver.power.set(silent.at, PowerTarget.ON, "t")
        assert isinstance(outcome, Wait)
        assert PASSWORD not in outcome.reason

    asyncio.run(story())


def test_a_secret_where_ipmitools_words_are_cut_is_not_shown_in_part(driver):
    told = []
    for more in range(190, 260, 3):
        machine = Machine({"ipmi_address": f"http://me:hunter2@{'x' * more}"})
        with pytest.raises(HardwareError) as why:
            asyncio.run(driver.power.read(machine.at))
        told.append(str(why.value))
    assert any("@x" in one for one in told)
    assert not any("ter2@" in one for one in told)


def test_an_address_that_no_process_can_be_given_is_told(driver):
    machine = Machine({"ipmi_address": "x" * 200_000})
    with pytest.raises(HardwareError, match="ipmitool cannot be run here"):
        asyncio.run(driver.power.read(machine.at))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"ipmi_password": "open-sesame"}, "credentials .* ipmi_password"),
        ({"ipmi_username": "nobody"}, "unauthorized name"),
        ({"ipmi_cipher_suite": 17}, "ipmi_cipher_suite"),
    ],
)
def test_a_bmc_that_opens_no_session_is_asked_why(driver, ipmi_board, wrong, words):
    machine = Machine({**ipmi_board.driver_info, **wrong})
    with pytest.raises(Refused, match=words):
        asyncio.run(driver.power.read(machine.at))


def test_an_account_that_is_not_let_in_is_tried_once_for_each_reading(driver, ipmi_board):
    info = ipmi_board.driver_info
    tries = []

    def noted(packet):
        tries.append(kind(packet) == RAKP_2)
        return packet

    with udp_front(info["ipmi_port"]) as front:
        front.passes = noted
        wrong = Machine({**info, "ipmi_port": front.port, "ipmi_password": "open-sesame"})
        seen = []
        for _ in range(4):
            tries.clear()
            with pytest.raises(Refused, match=r"credentials .* ipmi_password") as why:
                asyncio.run(driver.power.read(wrong.at))
            assert why.value.refuses_login
            seen.append(sum(tries))
        assert seen == [seen[0]] * 4
        tries.clear()
        with pytest.raises(Refused, match=r"credentials .* ipmi_password"):
            asyncio.run(driver.boot_devices.boot_device(wrong.at))
        assert sum(tries) == seen[0]
        right = Machine({**info, "ipmi_port": front.port})
        assert asyncio.run(driver.power.read(right.at)) is PowerState.OFF
        tries.clear()
        assert asyncio.run(driver.power.read(right.at)) is PowerState.OFF
        assert sum(tries) == 1


@pytest.mark.sampled
@pytest.mark.parametrize("lost", [OPEN_ANSWER, RAKP_2, RAKP_4, 0])
def test_packets_that_are_lost_say_nothing_about_the_account(driver, ipmi_board, lost):
    info = ipmi_board.driver_info
    with udp_front(info["ipmi_port"]) as front:
        front.passes = lambda packet: None if kind(packet) == lost else packet
        machine = Machine({**info, "ipmi_port": front.port})
        with pytest.raises(Unreachable, match="could not be reached"):
            asyncio.run(driver.power.read(machine.at))
        front.passes = lambda packet: packet
        assert asyncio.run(driver.power.read(machine.at)) is PowerState.OFF


def test_a_bmc_that_answers_slowly_does_not_hold_up_one_that_does_not(ipmi_board, monkeypatch):
    info = ipmi_board.driver_info

    async def story(front):
        board, lame = IpmiBoard(IpmiTool(at_once=1)), Machine({**info, "ipmi_port": front.port})
        monkeypatch.setattr(tool_module, "LONG_S", -1.0)  # whatever it takes is long
        assert await board.power(lame.at) is PowerState.OFF
        monkeypatch.setattr(tool_module, "LONG_S", 3600.0)
        front.passes = lambda packet: None
        slow = asyncio.create_task(board.power(lame.at))
        await asyncio.sleep(0.1)
        assert await board.power(Machine(info).at) is PowerState.OFF
        assert not slow.done()
        with pytest.raises(Unreachable):
            await slow

    with udp_front(info["ipmi_port"]) as front:
        asyncio.run(story(front))


def test_bmcs_that_nobody_asks_any_more_are_forgotten_in_time(monkeypatch):
    monkeypatch.setattr(tool_module, "MOST_MARKED", 3)
    monkeypatch.setattr(tool_module, "LONG_S", -1.0)  # whatever they take is long
    tool = IpmiTool()

    async def story():
        for number in range(5):
            at = Machine({"ipmi_address": f"no-name-{'x' * 70}-{number}"}).at
            with pytest.raises(Unreachable):
                await IpmiBoard(tool).power(at)
            assert tool.account(at, "a test") in tool._silent

    asyncio.run(story())
    assert (len(tool._silent), len(tool._lame)) == (3, 3)


@pytest.mark.parametrize("answer", [OPEN_ANSWER, RAKP_2, RAKP_4])
def test_a_bmc_without_a_free_session_is_asked_again(driver, ipmi_board, answer):
    full, info = 1, ipmi_board.driver_info
    with udp_front(info["ipmi_port"]) as front:
        front.passes = lambda packet: (
            with_status(packet, full) if kind(packet) == answer else packet
        )
        outcome = asyncio.run(
            driver.power.set(
                Machine({**info, "ipmi_port": front.port}).at, PowerTarget.ON, f"t{answer}"
            )
        )
    assert isinstance(outcome, Wait)
    assert "no session free" in outcome.reason
    assert "credentials" not in outcome.reason


@pytest.mark.parametrize(
    "wrong",
    [
        {"ipmi_address": ""},
        {"ipmi_address": "-x"},
        {"ipmi_port": "many"},
        {"ipmi_priv_level": "GOD"},
        {"ipmi_protocol_version": "3"},
        {"ipmi_bridging": "triple"},
        {"ipmi_bridging": "dual"},
    ],
)
def test_nonsense_in_driver_info_is_refused_before_anything_is_run(wrong):
    with pytest.raises(ValueError, match="ipmi_"):
        Account.of({"ipmi_address": "bmc", **wrong})


def test_the_password_is_not_on_the_command_line():
    account = Account.of({"ipmi_address": "bmc", "ipmi_username": "u", "ipmi_password": "hush"})
    assert "hush" not in " ".join(account.words)
    assert "hush" not in repr(account)


def test_the_serial_line_is_at_a_port_and_belongs_to_who_came_last(driver, ipmi_board):
    async def heard(reader, words):
        async with asyncio.timeout(60):
            await reader.readuntil(words)

    async def story(info):
        with pytest.raises(Refused, match="a port's number"):
            await driver.console.start(Machine({**info, "ipmi_terminal_port": "top"}).at)
        at = Machine(info).at
        console = await driver.console.start(at)
        assert await driver.console.start(at) == console, "starting it again is harmless"
        host, port = console.url.removeprefix("tcp://").split(":")
        first, writer = await asyncio.open_connection(host, int(port))
        await greeted(first, writer)
        writer.write(b"x")
        await heard(first, b"[x]")
        second, other = await asyncio.open_connection(host, int(port))
        await greeted(second, other)
        async with asyncio.timeout(60):
            await first.read()  # to its end: the line was taken over
        await driver.console.stop(at)
        async with asyncio.timeout(60):
            await second.read()
        with pytest.raises(OSError):
            await asyncio.open_connection(host, int(port))
        for one in (writer, other):
            one.close()

    asyncio.run(story(ipmi_board.driver_info))
