"""Flashing over Redfish where the BMC forgets its task: the machine may be flashed all the same, so
nobody starts it meanwhile.
"""

import asyncio

import pytest

from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.drivers.redfish import firmware
from siderite.baremetal.drivers.redfish.firmware import MEMORY
from tests.baremetal.drivers.machine import Machine
from tests.baremetal.drivers.test_redfish_firmware import asked
from tests.baremetal.drivers.test_redfish_firmware import flashing
from tests.lab.redfish_paper import SYSTEM


@pytest.fixture
def machine(front, paper):
    front.by_task = lambda method, path: "SimpleUpdate" in path
    front.patience = 10**6
    paper.is_on = True
    made = Machine({**front.driver_info, "redfish_system_id": SYSTEM})
    made.pause_s = 0.001
    return made


async def told(machine, front, ask):
    """Until the BMC has begun, and that is noted."""
    while machine.memory.get(MEMORY, {}).get("phase") != "follow":
        machine.memory |= (await ask(machine.at)).remember
    assert len(front.tasks) == 1


def test_a_task_that_is_not_there_for_a_while_goes_on_and_nobody_starts_the_machine(
    paper, front, machine
):
    now = [1000.0]

    async def story(ask):
        await told(machine, front, ask)
        front.is_forgetful = True  # its services start anew
        for _ in range(24):
            waiting = await ask(machine.at)
            assert isinstance(waiting, Wait)
            assert "may go on all the same" in waiting.reason
            machine.memory |= waiting.remember
            now[0] += firmware.LOOK_S
        assert front.told("Reset") == 0
        front.is_forgetful = False
        for _ in range(3):
            waiting = await ask(machine.at)
            assert isinstance(waiting, Wait)
            machine.memory |= waiting.remember
        assert "lost_at" not in machine.memory[MEMORY]
        assert front.told("Reset") == 0
        front.patience = 0
        assert isinstance(await machine.until_done(ask), Done)

    with flashing(lambda: now[0]) as part:
        asyncio.run(story(lambda at: part.update(at, asked("bios-2.0"), "work/0")))
    assert len(paper.flashed) == front.told("SimpleUpdate") == 1
    assert len(paper.starts) == 1


def test_a_monitor_that_is_gone_for_good_leaves_the_task_itself(paper, front, machine):
    now = [1000.0]

    async def story(ask):
        await told(machine, front, ask)
        front.has_monitors = False
        for _ in range(3):
            waiting = await ask(machine.at)
            assert "has not ended" in waiting.reason or "has a task" in waiting.reason
            machine.memory |= waiting.remember
        now[0] += 2 * firmware.FORGOTTEN_S
        assert "has not ended" in (await ask(machine.at)).reason
        assert front.told("Reset") == 0
        front.patience = 0
        assert isinstance(await machine.until_done(ask), Done)

    with flashing(lambda: now[0]) as part:
        asyncio.run(story(lambda at: part.update(at, asked("bios-2.0"), "work/0")))
    assert len(paper.flashed) == front.told("SimpleUpdate") == 1


def test_a_task_that_stays_forgotten_is_believed_to_be_over_in_the_end(paper, front, machine):
    now = [1000.0]

    async def story(ask):
        await told(machine, front, ask)
        order = front.tasks[0].order
        front.stop()
        paper.request(*order[:2], content=order[2], headers={})
        front.start()
        while machine.memory[MEMORY]["phase"] == "follow":
            assert front.told("Reset") == 0
            machine.memory |= (await ask(machine.at)).remember
            now[0] += firmware.LOOK_S
        assert now[0] - 1000.0 > firmware.FORGOTTEN_S
        assert isinstance(await machine.until_done(ask), Done)

    with flashing(lambda: now[0]) as part:
        asyncio.run(story(lambda at: part.update(at, asked("bios-2.0"), "work/0")))
    assert len(paper.flashed) == 1
    assert len(paper.starts) == 1


@pytest.mark.sampled
@pytest.mark.parametrize("is_seen", [True, False])
def test_time_in_which_a_bmc_is_away_does_not_make_it_sure_that_its_task_is_over(
    front, machine, is_seen
):
    """Whether anybody asks it meanwhile, or we are away as well."""
    now = [1000.0]

    async def story(ask):
        async def looks(often):
            for _ in range(often):
                waiting = await ask(machine.at)
                machine.memory |= waiting.remember
                assert "may go on all the same" in waiting.reason
                now[0] += firmware.LOOK_S

        await told(machine, front, ask)
        front.is_forgetful = True  # its services stop, and then it restarts
        await looks(12)
        tasks = list(front.tasks)
        front.stop()
        if is_seen:
            away = await ask(machine.at)
            assert isinstance(away, Wait)
            assert "could not be reached" in away.reason
            machine.memory |= away.remember
        now[0] += 2 * firmware.FORGOTTEN_S
        front.tasks += tasks
        front.start()
        await looks(24 if is_seen else 12)
        front.is_forgetful = False
        assert "has not ended" in (await ask(machine.at)).reason
        assert front.told("Reset") == 0

    with flashing(lambda: now[0]) as part:
        asyncio.run(story(lambda at: part.update(at, asked("bios-2.0"), "work/0")))


def test_the_update_of_an_earlier_day_is_not_followed_in_place_of_a_forgotten_task(
    paper, front, machine
):
    """The BMC has no list of its tasks when it is told, and has one later."""
    now = [1000.0]
    front.lists_tasks = False

    async def begun(ask):
        front.patience = 0
        assert isinstance(await machine.until_done(ask), Done)
        earlier = front.tasks.pop()
        paper.versions["bios"], machine.memory = "1.0", {}
        front.patience = 10**6
        await told(machine, front, ask)
        front.tasks[:] = [earlier]
        front.orders.clear()

    async def followed(ask):
        for _ in range(5):
            machine.memory |= (await ask(machine.at)).remember
            now[0] += firmware.LOOK_S
        assert machine.memory[MEMORY]["phase"] == "follow"
        assert front.told("Reset") == 0

    for story in (begun, followed):
        with flashing(lambda: now[0]) as part:
            asyncio.run(story(lambda at, part=part: part.update(at, asked("bios-2.0"), "work/0")))
        front.lists_tasks, front.has_monitors = True, False
