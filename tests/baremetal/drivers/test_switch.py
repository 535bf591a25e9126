"""The power switch over any BMC: a machine that must stay on, and a BMC that does not say."""

import asyncio
import time
from dataclasses import replace

import pytest

from siderite.baremetal.domain.hardware import BootDevice
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.domain.steps import in_order
from siderite.baremetal.drivers.agent import Agent
from siderite.baremetal.drivers.agent import AgentSteps
from siderite.baremetal.drivers.agent import Booter
from siderite.baremetal.drivers.agent import Ramdisks
from siderite.baremetal.drivers.agent import RamdiskSettings
from siderite.baremetal.drivers.bmc import PowerOrder
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.switch import RESEND_S
from siderite.baremetal.drivers.switch import UNTOLD
from siderite.baremetal.drivers.switch import Switch
from siderite.core import clock
from tests.baremetal.drivers.machine import Machine

ERASE = Step("deploy", "erase_devices_metadata", in_band=True)


class Board:
    """A BMC whose machine follows at once, and what it was told."""

    def __init__(self, power=PowerState.ON):
        self.state = power
        self.told = []
        self.tells = False

    async def power(self, at):
        return self.state

    async def last_reset(self, at):
        return str(self.told.count(PowerOrder.RESET)) if self.tells else None

    async def press(self, at, order):
        self.told.append(order)
        self.state = PowerState.OFF if "off" in order else PowerState.ON

    async def set_boot_device(self, at, device, *, persistent):
        self.told.append(device)


@pytest.fixture
def machine():
    made = Machine({})
    made.stays_on = True
    return made


@pytest.mark.parametrize(
    ("target", "order"),
    [(PowerTarget.REBOOT, PowerOrder.RESET), (PowerTarget.SOFT_REBOOT, PowerOrder.SOFT_RESET)],
)
def test_a_machine_that_must_stay_on_is_reset_once(machine, target, order):
    board = Board()
    switch = Switch(board)
    done = asyncio.run(machine.until_done(lambda at: switch.set(at, target, "t")))
    assert isinstance(done, Done)
    assert board.told == [order]
    asyncio.run(machine.until_done(lambda at: switch.set(at, target, "u")))
    assert board.told == [order, order], "another reboot is another order"
    board.state = PowerState.OFF  # somebody else did that
    asyncio.run(machine.until_done(lambda at: switch.set(at, target, "v")))
    assert board.told[2:] == [PowerOrder.ON]


@pytest.mark.parametrize("target", [PowerTarget.OFF, PowerTarget.SOFT_OFF])
def test_a_machine_that_must_stay_on_is_not_switched_off(machine, target):
    board = Board()
    outcome = asyncio.run(Switch(board).set(machine.at, target, "t"))
    assert isinstance(outcome, Failed)
    assert "disable_power_off" in outcome.reason
    assert board.told == []


def test_no_step_switches_a_machine_off_that_must_stay_on(machine, tmp_path):
    for name in ("kernel", "ramdisk"):
        (tmp_path / name).touch()
    files = RamdiskSettings(
        tmp_path / "boot", "http://here", "http://here",
        kernel=str(tmp_path / "kernel"), ramdisk=str(tmp_path / "ramdisk"),
    )  # fmt: skip
    board = Board()
    booter = Booter(Switch(board), board, None, Ramdisks(files))
    steps = AgentSteps(booter, Agent(), {}, {})

    async def run(family, name):
        step = Step("deploy", name)

        async def ask(at):
            outcome = await steps.run(at, family, step, f"work/{name}")
            if getattr(outcome, "callback", False):  # it boots: here it calls
                machine.memory |= {"agent_url": "http://a", "agent_last_heartbeat": "now"}
            return outcome

        return await machine.until_done(ask)

    async def story():
        assert isinstance(await run(Family.CLEAN, "boot_ramdisk"), Done)
        assert board.told == [BootDevice.PXE, PowerOrder.RESET]
        assert (await run(Family.CLEAN, "tear_down_agent")).changes == {}
        assert (await run(Family.CLEAN, "boot_instance")).changes == {"power_state": "power on"}
        assert board.told[2:] == [BootDevice.DISK, PowerOrder.RESET]
        assert (await run(Family.TEARDOWN, "tear_down")).changes == {}
        await steps.forget(machine.at, "work/x")
        assert len(board.told) == 4
        framed = await steps.frame(machine.at, Family.CLEAN, [ERASE])
        assert [s.step for s in framed][-2:] == ["tear_down_agent", "boot_instance"]
        bios = Step("bios", "factory_reset")
        assert await steps.frame(machine.at, Family.CLEAN, [bios]) == [bios]

    asyncio.run(story())


@pytest.mark.parametrize("tells", [True, False])
def test_a_machine_that_is_reset_once_more_waits_for_a_new_ramdisk(machine, tmp_path, tells):
    """The answer to the first reset got lost, and its ramdisk has been given the token already."""
    board = Board()
    board.tells = tells
    press, lost = board.press, []

    async def loses_the_first(at, order):
        await press(at, order)
        if order is PowerOrder.RESET and not lost:
            lost.append(order)
            machine.memory |= {"agent_secret_token": "given to the first"}
            raise Unreachable("The BMC", "power reset")

    board.press = loses_the_first
    files = RamdiskSettings(tmp_path, "http://here", "http://here", kernel=__file__)
    booter = Booter(Switch(board), board, None, Ramdisks(replace(files, ramdisk=__file__)))

    async def story():
        while True:
            waiting = await booter.boot(machine.at, "work/0")
            machine.memory |= waiting.remember
            if waiting.callback:
                return
            if board.told.count(PowerOrder.RESET) == 2 and not machine.memory.get("second"):
                assert machine.memory["agent_secret_token"] is None
                machine.memory |= {"second": True, "agent_secret_token": "given to the second"}

    asyncio.run(story())
    assert board.told.count(PowerOrder.RESET) == (1 if tells else 2)
    last = "first" if tells else "second"
    assert machine.memory["agent_secret_token"] == f"given to the {last}"


def test_a_machine_that_is_reset_into_its_own_medium_keeps_the_token_that_is_on_it(
    machine, tmp_path
):
    board = Board()
    booter = Booter(Switch(board), board, None, Ramdisks(_files(tmp_path)))
    machine.memory |= {"ramdisk": {"token": "work/0", "phase": "on", "secret": "s"}}
    machine.memory |= {"agent_secret_token": "t", "agent_secret_token_pregenerated": True}
    machine.memory |= {"agent_url": "http://of.the.last"}
    asyncio.run(machine.until_done(lambda at: _booted(booter, at)))
    assert board.told == [PowerOrder.RESET]
    assert machine.memory["agent_secret_token"] == "t"
    assert machine.memory["agent_url"] is None


async def _booted(booter, at):
    outcome = await booter.boot(at, "work/0")
    return Done() if outcome.callback else outcome


def _files(folder):
    return RamdiskSettings(folder, "http://a", "http://a", kernel=__file__, ramdisk=__file__)


FLASH, HOLD = Step("firmware", "update"), Step("deploy", "hold")
WAIT = Step("power", "wait", args={"seconds": 60})
FLASH_CHILDREN = Step("firmware", "update", children=[])
REBOOT_CHILDREN = Step("power", "reboot", children=[])
BOOTED = (
    ([ERASE], "boot_ramdisk erase_devices_metadata"),
    ([HOLD, ERASE], "boot_ramdisk hold erase_devices_metadata"),
    ([FLASH, ERASE, ERASE], "update boot_ramdisk erase_devices_metadata erase_devices_metadata"),
    ([ERASE, FLASH], "boot_ramdisk erase_devices_metadata update"),
    (
        [ERASE, FLASH, HOLD, FLASH, ERASE],
        "boot_ramdisk erase_devices_metadata update hold update boot_ramdisk"
        " erase_devices_metadata",
    ),
    (
        [ERASE, Step("power", "reboot"), ERASE],
        "boot_ramdisk erase_devices_metadata reboot boot_ramdisk erase_devices_metadata",
    ),
    (
        [Step("power", "power_off"), WAIT, Step("power", "power_on"), ERASE],
        "power_off wait power_on boot_ramdisk erase_devices_metadata",
    ),
    (
        [ERASE, FLASH_CHILDREN, REBOOT_CHILDREN, ERASE],
        "boot_ramdisk erase_devices_metadata update reboot erase_devices_metadata",
    ),
)


@pytest.mark.parametrize(("chosen", "framed"), BOOTED)
def test_a_ramdisk_is_booted_anew_after_steps_that_start_the_machine(
    machine, tmp_path, chosen, framed
):
    machine.stays_on = False
    board, files = Board(), RamdiskSettings(tmp_path, "http://here", "http://here")
    steps = AgentSteps(Booter(Switch(board), board, None, Ramdisks(files)), Agent(), {}, {})
    for family, after in (
        (Family.CLEAN, " tear_down_agent"),
        (Family.SERVICE, " tear_down_agent boot_instance"),
    ):
        made = asyncio.run(steps.frame(machine.at, family, chosen))
        assert " ".join(step.step for step in made) == framed + after


DEPLOYED = (
    ((), "deploy write_image prepare_instance_boot tear_down_agent boot_instance"),
    (
        (150, 90),
        "update deploy update boot_ramdisk write_image prepare_instance_boot tear_down_agent"
        " boot_instance",
    ),
    (
        (81,),
        "deploy update boot_ramdisk write_image prepare_instance_boot tear_down_agent"
        " boot_instance",
    ),
)


@pytest.mark.parametrize(("priorities", "framed"), DEPLOYED)
def test_so_it_is_in_a_deploy(machine, tmp_path, priorities, framed):
    board, files = Board(), RamdiskSettings(tmp_path, "http://here", "http://here")
    steps = AgentSteps(Booter(Switch(board), board, None, Ramdisks(files)), Agent(), {}, {})

    async def story():
        own = await steps.steps(machine.at, Family.DEPLOY)
        asked = [Step("firmware", "update", priority) for priority in priorities]
        return await steps.frame(machine.at, Family.DEPLOY, in_order([*own, *asked]))

    assert " ".join(step.step for step in asyncio.run(story())) == framed


@pytest.mark.parametrize(
    ("interface", "brings", "priority"),
    [
        ("direct", "write_image (priority 80)", 70),
        ("direct", "write_image (priority 80)", 30),
        ("direct", "write_image (priority 80)", 10),
        ("ramdisk", "deploy (priority 100)", 90),
    ],
)
def test_a_deploy_does_not_start_its_workload_before_its_time_for_some_step(
    machine, tmp_path, interface, brings, priority
):
    board, files = Board(), RamdiskSettings(tmp_path, "http://here", "http://here")
    steps = AgentSteps(Booter(Switch(board), board, None, Ramdisks(files)), Agent(), {}, {})
    machine.interfaces = {"deploy": interface}

    async def story(*asked):
        own = await steps.steps(machine.at, Family.DEPLOY)
        return await steps.frame(machine.at, Family.DEPLOY, in_order([*own, *asked]))

    for name in ("bios.factory_reset", "firmware.update"):
        step = Step(*name.split("."), priority)
        failed = asyncio.run(story(step))
        assert isinstance(failed, Failed)
        assert f"step {name} starts the machine, and after deploy.{brings}" in failed.reason
    assert isinstance(asyncio.run(story(Step("power", "hold", priority))), list)


def test_a_step_on_children_does_not_switch_their_parent_off(machine, tmp_path):
    machine.stays_on = False
    board, files = Board(), RamdiskSettings(tmp_path, "http://here", "http://here")
    steps = AgentSteps(Booter(Switch(board), board, None, Ramdisks(files)), Agent(), {}, {})
    made = asyncio.run(steps.frame(machine.at, Family.CLEAN, [FLASH_CHILDREN]))
    assert made == [FLASH_CHILDREN]


@pytest.mark.parametrize("stays_on", [True, False])
def test_no_order_is_given_while_the_bmc_does_not_say_whether_the_machine_is_on(machine, stays_on):
    machine.stays_on = stays_on
    board = Board(PowerState.UNKNOWN)
    switch = Switch(board)

    async def story():
        for target in (PowerTarget.ON, PowerTarget.REBOOT):
            outcome = await switch.set(machine.at, target, "t")
            machine.memory |= outcome.remember
            outcome = await switch.set(machine.at, target, "t")
            assert outcome.reason == UNTOLD
            assert outcome.again_in > 0
        assert board.told == []

    asyncio.run(story())


def test_files_that_cannot_be_made_are_told_of_and_made_when_they_can_be(tmp_path):
    (tmp_path / "kernel").touch()
    kernel = str(tmp_path / "kernel")
    files = RamdiskSettings(
        tmp_path / "boot", "http://here", "http://here", kernel=kernel, ramdisk=kernel
    )
    board = Board(PowerState.OFF)
    steps = AgentSteps(Booter(Switch(board), board, None, Ramdisks(files)), Agent(), {}, {})
    memory = {"ramdisk": {"token": "work/0", "phase": "off", "secret": "s"}}
    booting = Endpoint("n1", {}, {}, {}, memory)

    async def story():
        step = Step("deploy", "boot_ramdisk")
        (tmp_path / "boot").write_text("a file where the folder should be")
        waiting = await steps.run(booting, Family.CLEAN, step, "work/0")
        assert isinstance(waiting, Wait)
        assert "cannot be made" in waiting.reason
        assert "data directory" in waiting.reason
        (tmp_path / "boot").unlink()
        waiting = await steps.run(booting, Family.CLEAN, step, "work/0")
        assert waiting.remember["ramdisk"]["phase"] == "on"

    asyncio.run(story())


def test_work_that_was_given_up_takes_no_files_of_the_boot_after_it(tmp_path):
    """It may be tidied up when the next has begun already."""
    old, new = (tmp_path / "boot" / "n1" / secret for secret in ("old", "new"))
    for folder in (old, new):
        folder.mkdir(parents=True)
        (folder / "boot.iso").touch()
    board, files = Board(), RamdiskSettings(tmp_path / "boot", "http://here", "http://here")
    steps = AgentSteps(Booter(Switch(board), board, None, Ramdisks(files)), Agent(), {}, {})

    async def story(secret):
        machine = Machine({})
        machine.memory = {"ramdisk": {"token": "work/0", "phase": "up", "secret": secret}}
        return await machine.until_done(lambda at: steps.forget(at, "work/1"))

    assert isinstance(asyncio.run(story("old")), Done)
    assert (old.exists(), new.exists()) == (False, True)
    asyncio.run(story("new"))
    assert not new.parent.exists()


def test_an_order_is_given_again_though_the_clock_was_set_back(machine, monkeypatch):
    class Deaf(Board):
        async def press(self, at, order):
            self.told.append(order)

    machine.stays_on = False
    monkeypatch.setitem(RESEND_S, PowerOrder.OFF, 0.0)
    board, real = Deaf(), clock.now._epoch or time.time() - time.monotonic()
    switch = Switch(board)
    for epoch in (real, real - 3600.0):
        monkeypatch.setattr(clock.now, "_epoch", epoch)
        asyncio.run(switch.set(machine.at, PowerTarget.OFF, "t"))
    assert board.told == [PowerOrder.OFF] * 2
