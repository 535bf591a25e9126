"""BMCs that follow orders later, by tasks of theirs, and BMCs that begin anew in the middle.

sushy-emulator does neither, so these are moods in front of it (`tests.lab.redfish_front`); and for
speed a machine of paper stands in its place. `tests.baremetal.real.long_lives` drives
the emulator and a virtual machine the same way.
"""

import asyncio
from contextlib import contextmanager

import pytest

from siderite.baremetal.domain.hardware import HardwareError
from siderite.baremetal.domain.hardware import MediaDevice
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.drivers import switch
from siderite.baremetal.drivers.agent import Agent
from siderite.baremetal.drivers.agent import Ramdisks
from siderite.baremetal.drivers.agent import RamdiskSettings
from siderite.baremetal.drivers.ipmi import IpmiTool
from siderite.baremetal.drivers.ipmi import SerialOverLan
from siderite.baremetal.drivers.redfish import Lines
from siderite.baremetal.drivers.redfish import redfish_driver
from tests.baremetal.drivers.machine import Machine
from tests.lab.redfish_paper import SYSTEM

BOOT = Step("deploy", "deploy", 100)
LEAVE = Step("deploy", "tear_down_agent")
START = Step("deploy", "boot_instance")
LIVE, OTHER = "http://images.invalid/live.iso", "http://images.invalid/other.iso"


@contextmanager
def process(folder):
    """The driver as one process has it: what it knows beside the record is gone with it."""
    lines = Lines(threads=2)
    ramdisks = Ramdisks(RamdiskSettings(folder, "http://here", "http://here"))
    try:
        yield redfish_driver(lines, ramdisks, Agent(), SerialOverLan(IpmiTool()))
    finally:
        lines.close()


def made(front):
    info = {**front.driver_info, "redfish_system_id": SYSTEM}
    machine = Machine(info, deploy="ramdisk", boot="redfish-virtual-media")
    machine.instance_info = {"boot_iso": LIVE}
    machine.pause_s = 0.001
    return machine


def test_what_a_bmc_does_by_tasks_is_waited_for_by_whichever_process(paper, front, tmp_path):
    machine = made(front)

    async def another_each_time(step, token):
        async def ask(at):
            with process(tmp_path) as driver:
                return await driver.steps.run(at, Family.DEPLOY, step, token)

        done = await machine.until_done(ask)
        assert isinstance(done, Done), done

    async def story():
        with process(tmp_path) as driver:
            await driver.virtual_media.insert(machine.at, MediaDevice.CDROM, OTHER)
        front.by_task = lambda method, path: "Reset" not in path
        await another_each_time(BOOT, "work/0")
        assert paper.starts == [LIVE]
        assert front.told("Eject") == 1, "what was in there before is out first"
        assert front.told("Insert") == 2
        await another_each_time(LEAVE, "work/1")
        await another_each_time(START, "work/2")
        assert front.told("Eject") == 2
        assert paper.starts == [LIVE, "disk"]
        assert "bmc_task" not in {key for key, value in machine.memory.items() if value}

    asyncio.run(story())
    assert all(task.answer for task in front.tasks), "none was left behind"


def test_an_order_is_not_repeated_while_its_task_runs(paper, front, tmp_path, monkeypatch):
    monkeypatch.setattr(switch, "RESEND_S", dict.fromkeys(switch.RESEND_S, 0.0))
    front.by_task = lambda method, path: "Reset" in path
    front.patience = 5

    async def story():
        with process(tmp_path) as driver:
            machine = made(front)
            assert isinstance(await machine.power(driver, PowerTarget.ON), Done)
            assert paper.is_on
            assert front.told("Reset") == 1
            assert any("has a task for power on" in why for why in machine.waits)

    asyncio.run(story())


def test_a_task_that_fails_is_told_in_the_bmcs_words(paper, front, tmp_path):
    front.by_task = lambda method, path: True
    front.fails_with = "no power supply"

    async def story():
        with process(tmp_path) as driver:
            machine = made(front)
            failed = await machine.power(driver, PowerTarget.ON)
            assert isinstance(failed, Failed)
            assert "ended as Exception: no power supply" in failed.reason
            assert front.driver_info["redfish_address"] in failed.reason
            failed = await machine.until_done(
                lambda at: driver.steps.run(at, Family.DEPLOY, BOOT, "work/0")
            )
            assert isinstance(failed, Failed)
            assert "inserting an image" in failed.reason

    asyncio.run(story())
    assert not paper.is_on


def test_a_machine_that_must_stay_on_has_been_reset_when_the_work_goes_on(paper, front, tmp_path):
    async def story():
        with process(tmp_path) as driver:
            machine = made(front)
            await machine.power(driver, PowerTarget.ON)
            assert len(paper.starts) == 1
        machine.stays_on = True
        front.by_task = lambda method, path: "Reset" in path
        front.orders.clear()

        async def another(at):
            with process(tmp_path) as driver:
                return await driver.power.set(at, PowerTarget.REBOOT, "t")

        assert isinstance(await machine.until_done(another), Done)
        assert [task.answer is not None for task in front.tasks] == [True]
        assert front.told("Reset") == 1
        assert len(paper.starts) == 2

    asyncio.run(story())


def test_a_rescue_is_over_when_the_task_that_takes_its_medium_out_is(paper, front, tmp_path):
    front.by_task = lambda method, path: "Eject" in path
    paper.is_on, paper.image = True, LIVE
    machine = made(front)
    machine.memory = {"agent_rescue": {"token": "work/0", "told": True}}

    async def another(at):
        with process(tmp_path) as driver:
            return await driver.steps.run(at, Family.RESCUE, Step("rescue", "rescue"), "work/0")

    assert isinstance(asyncio.run(machine.until_done(another)), Done)
    assert (paper.image, paper.is_on, front.told("Eject")) == (None, True, 1)
    assert any("has a task for ejecting" in reason for reason in machine.waits)
    assert machine.memory["bmc_task"] is None


@pytest.mark.parametrize("tells", [True, False])
def test_a_reset_whose_answer_got_lost_is_not_done_twice_if_the_bmc_tells_of_it(
    paper, front, tmp_path, tells
):
    paper.is_on, paper.tells_resets = True, tells
    machine = made(front)
    machine.stays_on = True
    lost = []

    def only_the_first(method, path):
        lost.append(path)
        return len(lost) == 1

    async def another(at):
        with process(tmp_path) as driver:
            return await driver.power.set(at, PowerTarget.REBOOT, "t")

    front.loses = only_the_first
    assert isinstance(asyncio.run(machine.until_done(another)), Done)
    assert front.told("Reset") == len(paper.starts) == (1 if tells else 2)
    assert any("could not be reached" in reason for reason in machine.waits)
    asyncio.run(machine.until_done(another))
    assert len(paper.starts) == (2 if tells else 3), "another reboot is another reset"


def test_settings_that_a_task_applies_at_the_start_are_awaited_after_it(paper, front, tmp_path):
    front.by_task = lambda method, path: "Bios" in path
    front.plain_task = True
    front.waits_for = lambda: paper.is_on
    machine = made(front)

    async def story():
        with process(tmp_path) as driver:
            name = (await driver.bios.settings(machine.at))[0].name
        wish = {"settings": [{"name": name, "value": "Other"}]}
        step = Step("bios", "apply_configuration", args=wish)

        async def another(at):
            with process(tmp_path) as driver:
                return await driver.steps.run(at, Family.CLEAN, step, "t")

        done = await machine.until_done(another)
        assert isinstance(done, Done), done
        assert {s.name: s.value for s in done.found.bios}[name] == "Other"
        assert front.told("Bios") == 1

    asyncio.run(story())


@pytest.mark.parametrize("at_once", [True, False])
def test_a_bmc_that_repeats_a_password_it_does_not_take_is_not_quoted(
    paper, front, tmp_path, at_once
):
    said = "'hush-hush' is no value for SetupPassword"
    said += f" {'x' * (300 - len(said) - 8)} 'hush-hush'"  # where its words are cut
    if at_once:
        front.refuses = said
    else:
        front.by_task = lambda method, path: "Bios" in path
        front.fails_with = said
    wish = {"settings": [{"name": "SetupPassword", "value": "hush-hush"}]}
    step = Step("bios", "apply_configuration", args=wish)

    async def story():
        with process(tmp_path) as driver:
            return await made(front).until_done(
                lambda at: driver.steps.run(at, Family.CLEAN, step, "work/0")
            )

    failed = asyncio.run(story())
    assert isinstance(failed, Failed), failed
    assert "'******' is no value for SetupPassword" in failed.reason
    assert "hush" not in failed.reason


def test_a_bmc_that_begins_anew_before_the_start_gets_its_medium_again(paper, front, tmp_path):
    async def story():
        machine = made(front)
        with process(tmp_path) as driver:

            async def ask(at):
                return await driver.steps.run(at, Family.DEPLOY, BOOT, "work/0")

            while machine.memory.get("ramdisk", {}).get("phase") != "on":
                machine.memory |= (await ask(machine.at)).remember
            assert front.told("Insert") == 1
            front.stop()
            paper.image, paper.starts_from = None, "None"  # these do not outlive its restart
            for _ in range(3):
                away = await ask(machine.at)
                assert isinstance(away, Wait)
                assert "could not be reached" in away.reason
                machine.memory |= away.remember
            assert not paper.is_on
            front.start()
            done = await machine.until_done(ask)
            assert isinstance(done, Done), done
            assert paper.starts == [LIVE]
            assert front.told("Insert") == 2
            assert front.told("Reset") == 1
            assert front.logins == 2
            assert front.refused == 1, "one call finds the session gone, and asks for another"

    asyncio.run(story())


@pytest.mark.parametrize("by_task", [True, False])
def test_an_order_given_twice_by_a_crash_is_no_failure(paper, front, tmp_path, by_task):
    """We are killed before the BMC's answer is noted; it refuses the second, or its task fails."""
    front.by_task = lambda method, path: "Insert" in path and by_task
    machine = made(front)

    async def another(at):
        with process(tmp_path) as driver:
            return await driver.steps.run(at, Family.DEPLOY, BOOT, "work/0")

    async def story():
        machine.memory |= (await another(machine.at)).remember
        await another(machine.at)  # its answer is lost
        assert front.told("Insert") == 1
        if not by_task:  # it shows the image only later
            paper.shows_image = False
            machine.memory |= (refused := await another(machine.at)).remember
            assert isinstance(refused, Wait)
            assert "it is not empty" in refused.reason
            paper.shows_image = True
        assert isinstance(await machine.until_done(another), Done)
        assert paper.starts == [LIVE]
        assert front.told("Insert") == 2

    asyncio.run(story())


@pytest.mark.parametrize("word", ["Insert", "Systems/"])
def test_a_task_that_a_bmc_forgot_is_asked_for_anew(paper, front, tmp_path, word):
    """It was put off and never done, for the BMC began anew before that."""
    front.by_task = lambda method, path: word in path and "Reset" not in path
    front.patience = 10**6

    async def story():
        machine = made(front)
        with process(tmp_path) as driver:

            async def ask(at):
                return await driver.steps.run(at, Family.DEPLOY, BOOT, "work/0")

            while not front.tasks:
                machine.memory |= (await ask(machine.at)).remember
            for _ in range(2):
                assert "has a task" in (await ask(machine.at)).reason
            front.stop()
            front.by_task = lambda method, path: False
            front.start()
            assert isinstance(await machine.until_done(ask), Done)
            assert paper.starts == [LIVE]

    asyncio.run(story())


@pytest.mark.parametrize("status", [403, 404, 409, 429, 500, 503])
def test_a_medium_that_the_bmc_would_not_take_out_is_not_said_to_be_out(
    paper, front, tmp_path, status
):
    machine = made(front)

    async def story():
        with process(tmp_path) as driver:
            await driver.virtual_media.insert(machine.at, MediaDevice.CDROM, OTHER)
            front.is_busy = lambda method, path: status if path.endswith("Eject") else 0
            with pytest.raises(HardwareError, match=str(status)):
                await driver.virtual_media.eject(machine.at, MediaDevice.CDROM)
            assert paper.image == OTHER
            with pytest.raises(HardwareError):
                await driver.virtual_media.insert(machine.at, MediaDevice.CDROM, LIVE)
            front.is_busy = lambda method, path: 0
            await driver.virtual_media.eject(machine.at, MediaDevice.CDROM)
            assert paper.image is None

    asyncio.run(story())


@pytest.mark.parametrize("status", [400, 409])
def test_a_medium_that_came_out_by_itself_is_out_and_leaves_room_for_another(
    paper, front, tmp_path, status
):
    machine = made(front)

    def gone_by_then(method, path):
        if not path.endswith("Eject"):
            return 0
        paper.image = None
        return status

    async def story():
        with process(tmp_path) as driver:
            await driver.virtual_media.insert(machine.at, MediaDevice.CDROM, OTHER)
            front.is_busy = gone_by_then
            assert await driver.virtual_media.eject(machine.at, MediaDevice.CDROM) is None
            await driver.virtual_media.insert(machine.at, MediaDevice.CDROM, OTHER)
            assert await driver.virtual_media.insert(machine.at, MediaDevice.CDROM, LIVE) is None
            assert paper.image == LIVE

    asyncio.run(story())


@pytest.mark.parametrize("status", [403, 409, 503])
@pytest.mark.parametrize("slot", ["Cd", "Cd2"])
def test_a_medium_that_stays_is_told_of_though_the_one_beside_it_came_out(
    paper, front, tmp_path, slot, status
):
    machine = made(front)
    paper.image, paper.image_beside = OTHER, LIVE

    async def story():
        with process(tmp_path) as driver:
            front.is_busy = lambda method, path: status if path.endswith(f"{slot}/Eject") else 0
            with pytest.raises(HardwareError, match=str(status)):
                await driver.virtual_media.eject(machine.at, MediaDevice.CDROM)
            assert (paper.image if slot == "Cd" else paper.image_beside) is not None
            front.is_busy = lambda method, path: 0
            await driver.virtual_media.eject(machine.at, MediaDevice.CDROM)
            assert (paper.image, paper.image_beside) == (None, None)

    asyncio.run(story())


def test_a_medium_is_for_a_slot_of_its_kind(paper, front, tmp_path):
    machine = made(front)
    paper.image = OTHER

    async def story():
        with process(tmp_path) as driver:
            with pytest.raises(HardwareError, match="no virtual media of this kind"):
                await driver.virtual_media.insert(machine.at, MediaDevice.FLOPPY, LIVE)
            assert await driver.virtual_media.eject(machine.at, MediaDevice.FLOPPY) is None
            assert (paper.image, front.told("Insert"), front.told("Eject")) == (OTHER, 0, 0)

    asyncio.run(story())
