"""What an abort leaves to do at a BMC that works by tasks: each is let end before the next."""

import asyncio

import pytest

from siderite.baremetal.domain.hardware import MediaDevice
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.drivers.agent import boot
from tests.baremetal.drivers.machine import Machine
from tests.baremetal.drivers.test_redfish_tasks import BOOT
from tests.baremetal.drivers.test_redfish_tasks import LIVE
from tests.baremetal.drivers.test_redfish_tasks import made
from tests.baremetal.drivers.test_redfish_tasks import process
from tests.lab.redfish_paper import SYSTEM


async def booted(machine, driver):
    done = await machine.until_done(lambda at: driver.steps.run(at, Family.DEPLOY, BOOT, "work/0"))
    assert isinstance(done, Done), done


def test_a_medium_is_out_and_the_disk_chosen_before_an_abort_is_over(paper, front, tmp_path):
    machine = made(front)

    async def another_each_time(at):
        with process(tmp_path) as driver:
            return await driver.steps.forget(at, "work/1", back=True)

    async def story():
        with process(tmp_path) as driver:
            await booted(machine, driver)
        front.by_task = lambda method, path: "Eject" in path or method == "PATCH"
        return await machine.until_done(another_each_time)

    done = asyncio.run(story())
    assert isinstance(done, Done), done
    assert (paper.is_on, paper.image, paper.starts_from) == (False, None, "Hdd")
    assert front.told("Eject") == 1
    assert all(task.answer for task in front.tasks), "none was left behind"
    assert not any(machine.memory.get(key) for key in ("bmc_task", "ramdisk"))


def test_a_medium_that_is_still_being_put_in_is_taken_out_afterwards(paper, front, tmp_path):
    machine = made(front)
    front.by_task = lambda method, path: "Insert" in path
    front.waits_for = lambda: False

    async def story():
        with process(tmp_path) as driver:
            while not machine.memory.get("bmc_task"):
                asked = await driver.steps.run(machine.at, Family.DEPLOY, BOOT, "work/0")
                machine.memory |= asked.remember
            waiting = await driver.steps.forget(machine.at, "work/0")
            assert isinstance(waiting, Wait)
            assert "inserting an image" in waiting.reason
            front.waits_for = lambda: True
            done = await machine.until_done(lambda at: driver.steps.forget(at, "work/0"))
            assert isinstance(done, Done), done

    asyncio.run(story())
    assert front.told("Insert") == front.told("Eject") == 1
    assert paper.image is None


@pytest.mark.parametrize("fails_with", ["the tray is stuck", ""])
def test_a_medium_that_does_not_come_out_holds_nobody_up_for_ever(
    paper, front, tmp_path, monkeypatch, fails_with
):
    machine = made(front)
    front.fails_with = fails_with
    monkeypatch.setattr(boot, "TIDY_S", 120.0 if fails_with else 0.0)

    async def story():
        with process(tmp_path) as driver:
            await booted(machine, driver)
            front.by_task = lambda method, path: "Eject" in path
            front.waits_for = lambda: bool(fails_with)
            return await machine.until_done(lambda at: driver.steps.forget(at, "work/1"))

    assert isinstance(asyncio.run(story()), Done)
    assert (paper.is_on, paper.image) == (False, LIVE)


def test_a_bmc_is_told_once_while_it_takes_a_medium_out(paper, front, tmp_path):
    machine = Machine({**front.driver_info, "redfish_system_id": SYSTEM})
    machine.pause_s = 0.001
    machine.memory = {"ramdisk": {"token": "work/0", "phase": "up"}}
    front.patience = 5

    async def story():
        with process(tmp_path) as driver:
            await driver.virtual_media.insert(machine.at, MediaDevice.CDROM, LIVE)
            front.by_task = lambda method, path: "Eject" in path
            await machine.until_done(lambda at: driver.steps.forget(at, "work/0"))

    asyncio.run(story())
    assert front.told("Eject") == 1
    assert machine.waits
