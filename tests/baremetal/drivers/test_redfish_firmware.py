"""Flashing over Redfish: each part once, whatever breaks in between.

sushy-emulator flashes a BIOS at once and nothing else (`test_redfish.py` has it do that), so the
BMC is `tests.lab.redfish_front` with its tasks, restarts and forgotten sessions, and the machine
that of paper, which has a version for each part.
"""

import asyncio
from contextlib import contextmanager

import pytest

from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.drivers.redfish import Lines
from siderite.baremetal.drivers.redfish import firmware
from siderite.baremetal.drivers.redfish.button import RedfishButton
from siderite.baremetal.drivers.redfish.firmware import MEMORY
from siderite.baremetal.drivers.redfish.firmware import RedfishFirmware
from siderite.baremetal.drivers.redfish.inside import RedfishInside
from siderite.baremetal.drivers.redfish.parts import Parts
from siderite.baremetal.drivers.redfish.tasks import RedfishTasks
from siderite.baremetal.drivers.switch import Switch
from tests.baremetal.drivers.machine import Machine
from tests.baremetal.drivers.test_redfish_tasks import process
from tests.lab.redfish_paper import ADAPTER
from tests.lab.redfish_paper import SYSTEM

URL = "https://files.invalid/%s.bin"


def asked(*images, **more):
    """The step that flashes these; `bios-2.0` is for the BIOS."""
    parts = {"nic": "nic:Slot1"}
    settings = [
        {"component": parts.get(name.partition("-")[0], name.partition("-")[0]), "url": URL % name}
        | more
        for name in images
    ]
    return Step("firmware", "update", args={"settings": settings})


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """What takes minutes takes none, in as many looks."""
    looks = firmware.FORGOTTEN_S / firmware.LOOK_S
    monkeypatch.setattr(firmware, "LOOK_S", 0.001)
    monkeypatch.setattr(firmware, "FORGOTTEN_S", 0.001 * looks)


@pytest.fixture
def machine(front):
    front.by_task = lambda method, path: "SimpleUpdate" in path
    made = Machine({**front.driver_info, "redfish_system_id": SYSTEM})
    made.pause_s = 0.001
    return made


class Hands:
    """Flashes with a process of its own each time it is asked."""

    def __init__(self, folder):
        self._folder = folder

    async def __call__(self, at, step):
        with process(self._folder) as driver:
            return await driver.steps.run(at, Family.CLEAN, step, "work/0")


@contextmanager
def flashing(clock):
    """The part that flashes, by another clock."""
    lines = Lines(threads=2)
    tasks = RedfishTasks(lines)
    switch = Switch(RedfishButton(lines), tasks=tasks)
    try:
        yield RedfishFirmware(Parts(lines, switch, RedfishInside(lines), tasks, clock))
    finally:
        lines.close()


def test_parts_are_flashed_one_after_the_other_by_whichever_process(
    paper, front, machine, tmp_path
):
    hands, step = Hands(tmp_path), asked("bios-2.0", "nic-3.0", "bmc-4.0")
    paper.is_on = True

    async def story():
        done = await machine.until_done(lambda at: hands(at, step))
        assert isinstance(done, Done), done
        assert {one.component: one.current_version for one in done.found.firmware} == {
            "bios": "2.0", "nic:Slot1": "3.0", "bmc": "4.0",
        }  # fmt: skip
        assert done.found.firmware[-1].serial_number == "7"
        assert done.changes == {"power_state": "power on"}
        assert done.remember[MEMORY] is None

    asyncio.run(story())
    assert [told["ImageURI"] for told in paper.flashed] == [
        URL % name for name in ("bios-2.0", "nic-3.0", "bmc-4.0")
    ]
    assert {told["TransferProtocol"] for told in paper.flashed} == {"HTTPS"}
    assert len(paper.starts) == 2, "once for each that is not the BMC's"
    assert front.told("SimpleUpdate") == 3


def test_a_bmc_is_told_to_fetch_by_tls_however_the_scheme_is_written(
    paper, front, machine, tmp_path
):
    setting = {"component": "bios", "url": (URL % "bios-2.0").replace("https", "HTTPS")}
    step = Step("firmware", "update", args={"settings": [setting]})
    with process(tmp_path) as driver:
        done = asyncio.run(
            machine.until_done(lambda at: driver.steps.run(at, Family.CLEAN, step, "work/0"))
        )
    assert isinstance(done, Done), done
    assert [told["TransferProtocol"] for told in paper.flashed] == ["HTTPS"]


@pytest.mark.parametrize("said", [b'{"Id": "1"}', b"<html>", b"[]"])
def test_a_bmc_that_accepts_an_order_with_odd_words_was_told_all_the_same(
    paper, front, machine, tmp_path, said
):
    front.accepts_with, front.lists_tasks = said, False
    step = asked("bios-2.0")
    with process(tmp_path) as driver:
        done = asyncio.run(
            machine.until_done(lambda at: driver.steps.run(at, Family.CLEAN, step, "work/0"))
        )
    assert isinstance(done, Done), done
    assert front.told("SimpleUpdate") == len(paper.flashed) == 1
    assert paper.versions["bios"] == "2.0"


def test_an_order_whose_answer_was_lost_is_found_among_the_bmcs_tasks(
    paper, front, machine, tmp_path
):
    hands, step = Hands(tmp_path), asked("bios-2.0")

    async def story():
        for image in ("bios-0.1", "bios-2.0"):  # tasks of an earlier day are not taken for it
            machine.memory = {}
            await machine.until_done(lambda at, image=image: hands(at, asked(image)))
        paper.versions["bios"] = "1.0"
        before = len(paper.flashed)
        machine.memory = {}
        while machine.memory.get(MEMORY, {}).get("phase") != "tell":
            machine.memory |= (await hands(machine.at, step)).remember
        await hands(machine.at, step)  # killed before it is noted that the BMC was told
        assert front.told("SimpleUpdate") == 3
        done = await machine.until_done(lambda at: hands(at, step))
        assert isinstance(done, Done), done
        assert front.told("SimpleUpdate") == 3
        assert len(paper.flashed) == before + 1
        assert paper.versions["bios"] == "2.0"

    asyncio.run(story())


def test_a_bmc_that_takes_the_order_and_hangs_up_is_not_told_again(paper, front, machine, tmp_path):
    front.hangs_up = 1
    hands, step = Hands(tmp_path), asked("bios-2.0", "bmc-2.0")

    async def story():
        done = await machine.until_done(lambda at: hands(at, step))
        assert isinstance(done, Done), done

    asyncio.run(story())
    assert any("could not be reached" in why for why in machine.waits)
    assert front.told("SimpleUpdate") == 2
    assert len(paper.flashed) == 2


def test_without_a_list_of_tasks_nothing_is_flashed_that_may_have_been(
    paper, front, machine, tmp_path
):
    front.lists_tasks = False
    hands, step = Hands(tmp_path), asked("bios-2.0")

    async def story():
        while machine.memory.get(MEMORY, {}).get("phase") != "tell":
            machine.memory |= (await hands(machine.at, step)).remember
        failed = await hands(machine.at, step)
        assert isinstance(failed, Failed)
        assert "cannot be told" in failed.reason
        assert paper.flashed == []
        machine.memory = {}
        with process(tmp_path) as driver:  # one process knows what it did
            done = await machine.until_done(
                lambda at: driver.steps.run(at, Family.CLEAN, step, "work/1")
            )
        assert isinstance(done, Done), done
        assert len(paper.flashed) == 1

    asyncio.run(story())


def test_without_one_a_part_that_shows_its_new_version_was_flashed(paper, front, machine, tmp_path):
    front.lists_tasks, front.by_task = False, lambda method, path: False
    front.loses = lambda method, path: "SimpleUpdate" in path
    hands, step = Hands(tmp_path), asked("bmc-2.0")

    async def story():
        with process(tmp_path) as driver:
            while not paper.flashed:
                outcome = await driver.steps.run(machine.at, Family.CLEAN, step, "work/0")
                machine.memory |= outcome.remember
        done = await machine.until_done(lambda at: hands(at, step))
        assert isinstance(done, Done), done
        assert (len(paper.flashed), paper.versions["bmc"]) == (1, "2.0")

    asyncio.run(story())


@pytest.mark.parametrize(("busy", "lists_tasks"), [(429, True), (429, False), (503, False)])
def test_a_bmc_that_is_busy_is_told_later_however_long_that_takes(
    paper, front, machine, busy, lists_tasks
):
    front.lists_tasks = lists_tasks
    told, clock = [], iter(range(0, 10**9, 400))

    def is_busy(method, path):
        told.append(path) if "SimpleUpdate" in path else None
        return busy if "SimpleUpdate" in path and len(told) < 4 else 0

    front.is_busy = is_busy
    with flashing(lambda: next(clock)) as part:

        async def ask(at):
            try:
                return await part.update(at, asked("bmc-2.0"), "work/0")
            except Unreachable as why:
                return Wait(why.sentence, 0.0)

        done = asyncio.run(machine.until_done(ask))
    assert isinstance(done, Done), done
    assert [f"HTTP {busy}" in why for why in machine.waits].count(True) == 3
    assert len(paper.flashed) == 1


def test_a_bmc_without_a_list_that_was_out_of_reach_before_it_was_told_is_told_later(
    paper, front, machine, tmp_path
):
    front.lists_tasks = False
    step = asked("bios-2.0")

    async def story():
        with process(tmp_path) as driver:

            def ask(at):
                return driver.steps.run(at, Family.CLEAN, step, "work/0")

            while machine.memory.get(MEMORY, {}).get("phase") != "tell":
                machine.memory |= (await ask(machine.at)).remember
            front.stop()
            away = await ask(machine.at)
            assert isinstance(away, Wait)
            assert "could not be reached" in away.reason
            front.start()
            done = await machine.until_done(ask)
            assert isinstance(done, Done), done

    asyncio.run(story())
    assert len(paper.flashed) == 1


def test_a_bmc_that_begins_anew_with_its_own_firmware_is_waited_for(
    paper, front, machine, tmp_path
):
    front.patience = 10**6
    hands, step = Hands(tmp_path), asked("bmc-2.0")

    async def story():
        while not front.tasks:
            machine.memory |= (await hands(machine.at, step)).remember
        order = front.tasks[0].order
        assert "has not ended" in (await hands(machine.at, step)).reason
        front.stop()
        for _ in range(3):
            away = await hands(machine.at, step)
            assert isinstance(away, Wait)
            assert "could not be reached" in away.reason
        paper.request(*order[:2], content=order[2], headers={})  # it flashes, and begins anew
        front.start()
        done = await machine.until_done(lambda at: hands(at, step))
        assert isinstance(done, Done), done
        assert done.changes == {}
        assert {one.component: one.current_version for one in done.found.firmware}["bmc"] == "2.0"

    asyncio.run(story())
    assert front.told("SimpleUpdate") == 1
    assert paper.starts == [], "the machine goes on meanwhile"


def test_a_bmc_that_forgot_its_task_and_shows_the_old_version_is_not_believed(
    paper, front, machine, tmp_path, monkeypatch
):
    monkeypatch.setattr(firmware, "SETTLE_S", 0.0)
    front.patience = 10**6
    hands, step = Hands(tmp_path), asked("bmc-2.0")

    async def story():
        while not front.tasks:
            machine.memory |= (await hands(machine.at, step)).remember
        front.stop()
        front.start()
        failed = await machine.until_done(lambda at: hands(at, step))
        assert isinstance(failed, Failed)
        assert "cannot be told" in failed.reason

    asyncio.run(story())
    assert paper.flashed == []


def test_an_update_that_waits_for_a_start_gets_it(paper, front, machine, tmp_path):
    front.plain_task = True
    front.waits_for = lambda: bool(paper.starts)
    hands, step = Hands(tmp_path), asked("nic-2.0", wait=0)

    async def story():
        done = await machine.until_done(lambda at: hands(at, step))
        assert isinstance(done, Done), done

    asyncio.run(story())
    assert len(paper.starts) == 1
    assert len(paper.flashed) == 1


def test_what_a_bmc_refuses_or_lacks_is_told_and_nothing_more_is_flashed(
    paper, front, machine, tmp_path
):
    hands = Hands(tmp_path)

    async def story():
        step = Step(
            "firmware", "update",
            args={"settings": [
                {"component": "bios", "url": URL % "bios-2.0"},
                {"component": "nic:Slot9", "url": URL % "nic-2.0"},
            ]},
        )  # fmt: skip
        failed = await machine.until_done(lambda at: hands(at, step))
        assert isinstance(failed, Failed)
        assert "nic:Slot9" in failed.reason and "nic:Slot1" in failed.reason
        assert front.told("SimpleUpdate") == 0
        front.fails_with = "the image is not signed"
        machine.memory = {}
        failed = await machine.until_done(lambda at: hands(at, asked("bios-2.0", "bmc-2.0")))
        assert isinstance(failed, Failed)
        assert "the image is not signed" in failed.reason
        assert (front.told("SimpleUpdate"), paper.flashed) == (1, [])

    asyncio.run(story())


def test_a_bmc_that_wants_to_know_the_part_is_told(paper, front, machine, tmp_path):
    front.by_task = lambda method, path: False
    paper.wants_targets = True
    hands = Hands(tmp_path)

    async def story():
        done = await machine.until_done(lambda at: hands(at, asked("nic-2.0", "bios-2.0")))
        assert isinstance(done, Done), done

    asyncio.run(story())
    assert [told["Targets"] for told in paper.flashed] == [[ADAPTER], [SYSTEM]]


def test_a_part_is_given_the_time_that_was_asked_for_and_then_no_more(paper, front, machine):
    now = [1000.0]

    async def story():
        with flashing(lambda: now[0]) as hands:
            for more, limit in (({"wait": 90}, 90.0), ({}, 300.0)):
                paper.versions["bmc"] = "2.0"  # the same as the image's
                machine.memory = {}
                step = asked("bmc-2.0", **more)
                while machine.memory.get(MEMORY, {}).get("phase") != "settle":
                    machine.memory |= (await hands.update(machine.at, step, "t")).remember
                for seconds in (0.0, limit - 1.0):
                    now[0] = machine.memory[MEMORY]["since"] + seconds
                    waiting = await hands.update(machine.at, step, "t")
                    assert isinstance(waiting, Wait)
                    assert f"{limit:g} s" in waiting.reason
                now[0] += 2.0
                assert isinstance(
                    await machine.until_done(lambda at, step=step: hands.update(at, step, "t")),
                    Done,
                )

    asyncio.run(story())


def test_a_bmc_whose_tasks_are_too_old_to_tell_is_not_told_again(paper, front, machine):
    now = [1000.0]

    async def story():
        with flashing(lambda: now[0]) as hands:
            step = asked("bios-2.0")
            machine.memory |= (await hands.update(machine.at, step, "t")).remember
            now[0] += firmware.SURE_S + 1
            failed = await hands.update(machine.at, step, "t")
            assert isinstance(failed, Failed)
            assert "cannot be told" in failed.reason

    asyncio.run(story())
    assert paper.flashed == []


def test_a_part_has_no_more_time_to_settle_where_the_clock_was_set_back(paper, front, machine):
    clock = iter(range(0, 10**9, 100))
    place = {"token": "work/0", "phase": "settle", "since": 10_000.0, "has_started": True}
    machine.memory = {MEMORY: place}
    with flashing(lambda: next(clock)) as part:
        step = asked("bios-2.0", wait=500)
        done = asyncio.run(machine.until_done(lambda at: part.update(at, step, "work/0")))
    assert isinstance(done, Done), done
    assert next(clock) < 1000


def test_nobody_is_told_anew_where_the_clock_was_set_back_since_it_was_noted(paper, front, machine):
    place = {"token": "work/0", "phase": "tell", "since": 10_000.0, "known": [], "was": "1.0"}
    machine.memory = {MEMORY: place}
    with flashing(lambda: 0.0) as part:
        asking = machine.until_done(lambda at: part.update(at, asked("bios-2.0"), "work/0"))
        failed = asyncio.run(asking)
    assert isinstance(failed, Failed), failed
    assert paper.flashed == []
