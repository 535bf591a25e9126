"""BIOS settings over Redfish: a machine takes them while it starts, which takes its time.

sushy-emulator has them at once (`test_redfish.py`), so the machine is that of paper.
"""

import asyncio
from itertools import count

import pytest

from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.drivers.redfish import Lines
from siderite.baremetal.drivers.redfish import settings
from siderite.baremetal.drivers.redfish.button import RedfishButton
from siderite.baremetal.drivers.redfish.inside import RedfishInside
from siderite.baremetal.drivers.redfish.parts import Parts
from siderite.baremetal.drivers.redfish.settings import MEMORY
from siderite.baremetal.drivers.redfish.settings import RedfishSettings
from siderite.baremetal.drivers.redfish.tasks import RedfishTasks
from siderite.baremetal.drivers.switch import Switch
from tests.baremetal.drivers.machine import Machine
from tests.baremetal.drivers.test_redfish_tasks import process
from tests.lab.redfish_paper import SYSTEM

FAST = [{"name": "Speed", "value": "Fast"}]
RESET = Step("bios", "factory_reset")
LEAVE = Step("deploy", "tear_down_agent")


def asked(wanted):
    return Step("bios", "apply_configuration", args={"settings": wanted})


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(settings, "LOOK_S", 0.001)


@pytest.fixture
def machine(front):
    made = Machine({**front.driver_info, "redfish_system_id": SYSTEM})
    made.pause_s = 0.001
    return made


def run(machine, folder, *steps):
    """The steps, one after the other, each look by another process."""

    async def story():
        for number, step in enumerate(steps):

            async def ask(at, step=step, number=number):
                with process(folder) as driver:
                    return await driver.steps.run(at, Family.CLEAN, step, f"work/{number}")

            outcome = await machine.until_done(ask)
            if not isinstance(outcome, Done):
                return outcome
        return outcome

    return asyncio.run(story())


@pytest.mark.parametrize("by_task", [True, False])
def test_a_machine_is_not_switched_off_before_it_has_taken_its_settings(
    paper, front, machine, tmp_path, by_task
):
    front.by_task = lambda method, path: by_task and "Bios" in path
    paper.post = 4
    done = run(machine, tmp_path, asked(FAST), LEAVE)
    assert isinstance(done, Done), done
    assert paper.settings["Speed"] == "Fast"
    assert not paper.is_on
    assert any("'Speed' shows 'Slow', not 'Fast'" in why for why in machine.waits)
    assert MEMORY not in {key for key, value in machine.memory.items() if value}


def test_a_machine_is_off_before_its_bmc_is_told_of_settings(paper, front, machine, tmp_path):
    ran = []

    def heard(method, path):
        if method == "PATCH" and "Bios" in path:
            ran.append(paper.is_on)
        return 0

    front.is_busy = heard
    paper.is_on, paper.deaf = True, 1
    assert isinstance(run(machine, tmp_path, asked(FAST)), Done)
    assert ran == [False]


def test_nor_before_it_has_those_of_the_factory(paper, front, machine, tmp_path):
    paper.settings["Speed"] = "Fast"
    paper.post = 4
    done = run(machine, tmp_path, RESET)
    assert isinstance(done, Done), done
    assert {one.name: one.value for one in done.found.bios} == {"Speed": "Slow"}


def test_settings_that_a_machine_never_takes_are_no_success(paper, front, machine):
    paper.post = 10**9
    paper.settings["SetupPassword"] = ""
    clock = count(0, 400)
    lines = Lines(threads=2)
    tasks = RedfishTasks(lines)
    switch = Switch(RedfishButton(lines), tasks=tasks)
    parts = Parts(lines, switch, RedfishInside(lines), tasks, lambda: next(clock))
    part = RedfishSettings(parts)

    async def story():
        both = [*FAST, {"name": "SetupPassword", "value": "hush"}]
        failed = await machine.until_done(lambda at: part.apply(at, asked(both), "work/0"))
        assert isinstance(failed, Failed)
        assert "'Speed' shows 'Slow', not 'Fast'" in failed.reason
        assert "1800 s after the machine's start" in failed.reason
        machine.memory = {}
        # What cannot be seen is not waited for, and a reset may change nothing.
        unseen = [{"name": "SetupPassword", "value": "hush"}, {"name": "Hidden", "value": "1"}]
        done = await machine.until_done(lambda at: part.apply(at, asked(unseen), "work/1"))
        assert isinstance(done, Done), done
        done = await machine.until_done(lambda at: part.reset(at, RESET, "work/2"))
        assert isinstance(done, Done), done

    asyncio.run(story())
    lines.close()


def test_settings_have_no_more_time_where_the_clock_was_set_back_meanwhile(paper, front, machine):
    paper.post = 10**9
    clock = iter([10_000, *range(0, 10**9, 400)])
    lines = Lines(threads=2)
    tasks = RedfishTasks(lines)
    switch = Switch(RedfishButton(lines), tasks=tasks)
    part = RedfishSettings(Parts(lines, switch, RedfishInside(lines), tasks, lambda: next(clock)))
    failed = asyncio.run(machine.until_done(lambda at: part.apply(at, asked(FAST), "work/0")))
    assert isinstance(failed, Failed)
    assert next(clock) <= 2800, "it was looked at for 1800 s"
    lines.close()


def test_a_change_that_a_former_version_began_is_brought_to_its_end(paper, machine, tmp_path):
    paper.settings["Speed"] = "Fast"
    machine.memory = {MEMORY: "work/0"}
    done = run(machine, tmp_path, asked(FAST))
    assert isinstance(done, Done), done
    assert paper.is_on


def killed(machine, folder, step):
    """Asked for until the BMC has the settings, by a process that dies before it can say so."""

    async def story():
        with process(folder) as driver:
            await driver.steps.run(machine.at, Family.CLEAN, step, "work/0")

    asyncio.run(story())


@pytest.mark.parametrize("status", [400, 409, 503])
def test_settings_that_are_pending_since_we_were_killed_are_those_asked_for(
    paper, machine, tmp_path, status
):
    paper.refuses_more = status
    paper.post = 2
    killed(machine, tmp_path, asked(FAST))
    assert machine.memory == {}
    done = run(machine, tmp_path, asked(FAST))
    assert isinstance(done, Done), done
    assert paper.settings["Speed"] == "Fast"
    assert paper.is_on


@pytest.mark.parametrize(
    "other", [{"name": "Speed", "value": "Slow"}, {"name": "SetupPassword", "value": "hush"}]
)
def test_other_settings_that_are_pending_are_not_taken_for_them(paper, machine, tmp_path, other):
    paper.refuses_more = 400
    killed(machine, tmp_path, asked([other]))
    failed = run(machine, tmp_path, asked([*FAST, {"name": "SetupPassword", "value": "loud"}]))
    assert isinstance(failed, Failed)
    assert "settings are pending already" in failed.reason
    assert not paper.is_on


@pytest.fixture
def hasty(monkeypatch):
    """Settings that do not show soon never will."""
    monkeypatch.setattr(settings, "APPLY_S", 0.2)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("times", [1, 2])
def test_a_bmc_that_forgets_settings_with_its_task_is_told_them_once_more(
    front, paper, machine, tmp_path, times
):
    """It began anew before the machine could start with them."""
    front.by_task = lambda method, path: "Bios" in path
    forgets = count(1)

    async def ask(at):
        if at.driver_internal_info.get(MEMORY, {}).get("task") and next(forgets) <= times:
            front.tasks.clear()
        with process(tmp_path) as driver:
            return await driver.steps.run(at, Family.CLEAN, asked(FAST), "work/0")

    outcome = asyncio.run(machine.until_done(ask))
    assert front.told("Bios") == 2
    if times == 1:
        assert isinstance(outcome, Done), outcome
        assert paper.settings["Speed"] == "Fast"
    else:
        assert isinstance(outcome, Failed)
        assert "shows 'Slow', not 'Fast'" in outcome.reason
