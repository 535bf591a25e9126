"""Power that steps change: announced before the hardware acts, and with what came of it."""

import asyncio

import pytest

from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.drivers.redfish import firmware
from siderite.baremetal.drivers.redfish.button import RedfishButton
from siderite.baremetal.drivers.simulated import driver as simulated
from siderite.baremetal.usecases.life import progress
from siderite.baremetal.usecases.node import children
from siderite.core import eventlog
from siderite.core import work
from siderite.core.transition import Cause
from tests.baremetal.workers.lives import data
from tests.baremetal.workers.lives import facts
from tests.baremetal.workers.lives import lead
from tests.baremetal.workers.lives import script
from tests.baremetal.workers.lives import until
from tests.baremetal.workers.lives import verb
from tests.baremetal.workers.test_cut_short import left_open
from tests.baremetal.workers.test_cut_short import until_there
from tests.baremetal.workers.test_rescue import call
from tests.baremetal.workers.test_rescue import planted
from tests.baremetal.workers.test_rescue import ramdisk
from tests.lab.redfish_paper import SYSTEM
from tests.support.app import running

NAMES = ("power_on", "reboot", "power_off")
STEPS = [{"interface": "power", "step": name} for name in NAMES]
TARGETS = ["power on", "rebooting", "power off"]


async def told(app, uuid):
    """What was announced of a node's power."""
    return [(status, said["to_power"]) for status, said in await facts(app, uuid, "power_set")]


def pairs(*targets):
    """What is, if all went well."""
    return [(status, target) for target in targets for status in ("start", "end")]


def noting(monkeypatch, kind, name, app, seen):
    """Have a driver note what was announced by the time that it is called."""
    real = getattr(kind, name)

    async def noted(self, at, *args):
        seen.append(await told(app, at.node))
        return await real(self, at, *args)

    monkeypatch.setattr(kind, name, noted)


def test_a_whole_life_tells_what_its_steps_do_to_the_power(database_url, tmp_path):
    async def story():
        db = database_url if database_url.startswith("postgresql") else ""
        async with running(tmp_path, db, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage", "provide", "active", "deleted")
            assert await told(app, uuid) == pairs("power on", "power off")
            said = [
                (one["provision_state"], one["power_state"])
                for _, one in await facts(app, uuid, "power_set")
            ]
            assert said == [
                ("deploying", "power off"), ("deploying", "power on"),
                ("deleting", "power on"), ("deleting", "power off"),
            ]  # fmt: skip
            assert await left_open(app, uuid) == []

    asyncio.run(story())


def test_a_step_of_power_is_announced_before_the_hardware_acts(tmp_path, monkeypatch):
    seen = []

    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            noting(monkeypatch, simulated._Simulated, "set", app, seen)
            await verb(app, uuid, "clean", clean_steps=STEPS)
            await until(app, uuid, "manageable")
            assert await told(app, uuid) == pairs(*TARGETS)
            log = await eventlog.read(app.program.store, limit=1000)
            ends = [data(one) for one in log if one.event_type.endswith("power_set.end")]
            assert [one["power_state"] for one in ends] == ["power on", "power on", "power off"]

    asyncio.run(story())
    assert [one[-1] for one in seen] == [("start", target) for target in TARGETS]


def test_a_step_of_power_that_fails_is_told_as_that(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            script(app, f"node:{uuid}", fail={"power": "fuse blown"})
            await verb(app, uuid, "clean", clean_steps=STEPS)
            await until(app, uuid, "clean failed")
            [_, (status, said)] = await facts(app, uuid, "power_set")
            assert (status, said["provision_state"]) == ("error", "cleaning")
            assert "fuse blown" in said["last_error"]
            assert await left_open(app, uuid) == []

    asyncio.run(story())


def test_what_a_restart_interrupts_is_told_once(tmp_path, monkeypatch):
    real = simulated._Simulated.set
    began = asyncio.Event()

    async def busy(self, at, to, token):
        began.set()
        return Wait("busy", 0.02)

    async def story():
        monkeypatch.setattr(simulated._Simulated, "set", busy)
        async with running(tmp_path, work=True) as app:
            uuid = await app.plant("manageable", power_state="power off")
            await verb(app, uuid, "clean", clean_steps=STEPS[:1])
            await began.wait()
        monkeypatch.setattr(simulated._Simulated, "set", real)
        async with running(tmp_path, work=True) as app:
            await until(app, uuid, "manageable")
            assert await told(app, uuid) == pairs("power on")

    asyncio.run(story())


def test_a_step_of_power_on_a_node_that_is_deleted_has_an_end_in_the_log(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.plant("manageable", power_state="power off")
            script(app, f"node:{uuid}", unreachable=True)
            await verb(app, uuid, "clean", clean_steps=STEPS)
            async with asyncio.timeout(30):
                while not await told(app, uuid):
                    await asyncio.sleep(0.01)
            assert (await app.ask("PUT", f"/v1/nodes/{uuid}/maintenance", {})).status == 202
            answer = await app.ask("DELETE", f"/v1/nodes/{uuid}")
            assert answer.status == 204, answer
            assert await told(app, uuid) == [("start", "power on"), ("error", "power on")]

    asyncio.run(story())


async def deleted_just_when_it_begins(app, monkeypatch, uuid, where, begin):
    """What is told of a node's power if it is deleted, as by another process (who asks by its name
    does not wait for its worker here), while a step that `begin` begins announces that it changes.
    """
    begun, looked, gone = asyncio.Event(), asyncio.Event(), asyncio.Event()
    switches, of_machine = where.switches, work.of_machine

    async def late(*args):
        begun.set()
        await looked.wait()
        found = await switches(*args)
        await gone.wait()
        return found

    async def slow(*args):
        found = await of_machine(*args)
        monkeypatch.setattr(work, "of_machine", of_machine)
        looked.set()
        while not await told(app, uuid):
            await asyncio.sleep(0.01)
        return found

    monkeypatch.setattr(where, "switches", late)
    await begin()
    async with asyncio.timeout(30):
        await begun.wait()
        assert (await app.ask("PUT", f"/v1/nodes/{uuid}/maintenance", {})).status == 202
        name = [{"op": "add", "path": "/name", "value": "goes"}]
        assert (await app.ask("PATCH", f"/v1/nodes/{uuid}", name)).status == 200
        monkeypatch.setattr(work, "of_machine", slow)
        assert (await app.ask("DELETE", "/v1/nodes/goes")).status == 204
    gone.set()
    return await told(app, uuid)


def test_a_step_of_power_that_begins_just_when_its_node_goes_has_an_end_in_the_log(
    tmp_path, monkeypatch
):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.plant("manageable", power_state="power off")
            assert await deleted_just_when_it_begins(
                app, monkeypatch, uuid, progress,
                lambda: verb(app, uuid, "clean", clean_steps=STEPS),
            ) == [("start", "power on"), ("error", "power on")]  # fmt: skip

    asyncio.run(story())


def test_booting_a_ramdisk_and_the_disk_again_is_told_and_recorded(
    paper, front, tmp_path, monkeypatch
):
    """The machine of a rescue is on while its ramdisk is waited for."""
    seen = []

    async def story(url):
        async with running(tmp_path, work=True, agent_require_tls=False) as app:
            uuid = await planted(app, front)
            noting(monkeypatch, RedfishButton, "press", app, seen)
            await verb(app, uuid, "rescue", rescue_password="x")
            waiting = await until(app, uuid, "rescue wait")
            assert waiting.power_state == "power on"
            assert await told(app, uuid) == pairs("rebooting")
            await call(app, uuid, url)
            await until(app, uuid, "rescue")
            await lead(app, uuid, "unrescue")
            assert await told(app, uuid) == pairs("rebooting", "power off", "power on")
            assert await left_open(app, uuid) == []

    with ramdisk() as (_, url):
        asyncio.run(story(url))
    assert [one[-1][0] for one in seen] == ["start"] * len(seen)
    assert len(seen) >= 3


BIOS = {
    "interface": "bios", "step": "apply_configuration",
    "args": {"settings": [{"name": "NumLock", "value": "Off"}]},
}  # fmt: skip
FLASH = {
    "interface": "firmware", "step": "update",
    "args": {"settings": [{"component": "bios", "url": "http://files.invalid/bios-2.0.bin"}]},
}  # fmt: skip


@pytest.mark.parametrize("step", [BIOS, FLASH])
def test_the_start_by_which_firmware_becomes_so_is_told(paper, front, tmp_path, monkeypatch, step):
    monkeypatch.setattr(firmware, "LOOK_S", 0.01)
    seen = []

    async def story():
        async with running(tmp_path, work=True) as app:
            info = {**front.driver_info, "redfish_system_id": SYSTEM}
            uuid = await app.make_node(driver="redfish", driver_info=info)
            await lead(app, uuid, "manage")
            noting(monkeypatch, RedfishButton, "press", app, seen)
            await verb(app, uuid, "clean", clean_steps=[step])
            node = await until(app, uuid, "manageable", "clean failed")
            assert node.last_error is None
            assert await told(app, uuid) == pairs("rebooting", "power off")

    asyncio.run(story())
    assert {one[-1][0] for one in seen} == {"start"}


async def redfish_child(app, front):
    """A node that is manageable, and its child behind a Redfish BMC."""
    parent = await app.plant("manageable")
    info = {**front.driver_info, "redfish_system_id": SYSTEM}
    child = await app.make_node(driver="redfish", driver_info=info, parent_node=parent)
    await lead(app, child, "manage")
    return parent, child


@pytest.mark.parametrize("step", [BIOS, FLASH])
def test_what_a_parents_step_does_to_a_childs_power_is_told_before_it_does(
    paper, front, tmp_path, monkeypatch, step
):
    monkeypatch.setattr(firmware, "LOOK_S", 0.01)
    seen = []

    async def story():
        async with running(tmp_path, work=True) as app:
            parent, child = await redfish_child(app, front)
            noting(monkeypatch, RedfishButton, "press", app, seen)
            await verb(app, parent, "clean", clean_steps=[{**step, "execute_on_child_nodes": True}])
            node = await until(app, parent, "manageable", "clean failed")
            assert node.last_error is None
            assert await told(app, child) == pairs("rebooting")
            assert (await app.node(child)).power_state == "power on"

    asyncio.run(story())
    assert {one[-1] for one in seen} == {("start", "rebooting")}


def test_a_parents_step_that_fails_while_it_switches_a_child_is_told_as_that(
    paper, front, tmp_path, monkeypatch
):
    async def dead(self, at, *args):
        raise Refused("The BMC", "a start", "the button is stuck")

    async def story():
        async with running(tmp_path, work=True) as app:
            parent, child = await redfish_child(app, front)
            monkeypatch.setattr(RedfishButton, "press", dead)
            await verb(app, parent, "clean", clean_steps=[{**BIOS, "execute_on_child_nodes": True}])
            node = await until(app, parent, "clean failed")
            assert "the button is stuck" in node.last_error
            [_, (status, said)] = await facts(app, child, "power_set")
            assert (status, said["to_power"]) == ("error", "rebooting")
            assert "the button is stuck" in said["last_error"]

    asyncio.run(story())


def test_a_child_that_is_deleted_while_a_step_switches_it_has_an_end_in_the_log(
    paper, front, tmp_path, monkeypatch
):
    async def away(self, at, *args):
        raise Unreachable("The BMC", "a start", "it is away")

    async def story():
        async with running(tmp_path, work=True) as app:
            parent, child = await redfish_child(app, front)
            monkeypatch.setattr(RedfishButton, "press", away)
            await verb(app, parent, "clean", clean_steps=[{**BIOS, "execute_on_child_nodes": True}])

            async def has_begun():
                return bool(await told(app, child))

            await until_there(has_begun)
            assert (await app.ask("PUT", f"/v1/nodes/{child}/maintenance", {})).status == 202
            answer = await app.ask("DELETE", f"/v1/nodes/{child}")
            assert answer.status == 204, answer
            assert await told(app, child) == [("start", "rebooting"), ("error", "rebooting")]

    asyncio.run(story())


def test_a_step_that_begins_to_switch_a_child_just_when_that_goes_has_an_end_in_the_log(
    paper, front, tmp_path, monkeypatch
):
    steps = [{**BIOS, "execute_on_child_nodes": True}]

    async def story():
        async with running(tmp_path, work=True) as app:
            parent, child = await redfish_child(app, front)
            assert await deleted_just_when_it_begins(
                app, monkeypatch, child, children,
                lambda: verb(app, parent, "clean", clean_steps=steps),
            ) == [("start", "rebooting"), ("error", "rebooting")]  # fmt: skip

    asyncio.run(story())


@pytest.mark.parametrize("stays_on", [True, False])
def test_a_machine_that_is_torn_down_goes_off_and_says_so_unless_it_must_stay_on(
    paper, front, tmp_path, stays_on
):
    async def story():
        async with running(tmp_path, work=True, automated_clean=False) as app:
            paper.is_on = True
            info = {**front.driver_info, "redfish_system_id": SYSTEM}
            interfaces = app.program.baremetal.cards["redfish"].fill_in({})
            uuid = await app.plant(
                "active", driver="redfish", driver_info=info, power_state="power on",
                disable_power_off=stays_on, **interfaces,
            )  # fmt: skip
            await verb(app, uuid, "deleted")
            node = await until(app, uuid, "available")
            assert await told(app, uuid) == ([] if stays_on else pairs("power off"))
            assert node.power_state == ("power on" if stays_on else "power off")

    asyncio.run(story())


SILENT = Wait("the ramdisk boots and will call", 30.0, callback=True)
BOOTS_ANEW = Wait("it is to boot once more", 0.02, switches=PowerTarget.REBOOT)


async def waiting_with(app, monkeypatch, *outcomes):
    """A node that waits for its ramdisk, and what its driver then answers, the last again and
    again; its work is looked at.
    """
    answers = list(outcomes)

    async def run(self, at, family, step, token):
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def silent(self, at, family, step, token):
        return SILENT

    monkeypatch.setattr(simulated._Simulated, "run", silent)
    uuid = await app.plant("available", power_state="power on")
    await verb(app, uuid, "active")
    await until(app, uuid, "wait call-back")
    monkeypatch.setattr(simulated._Simulated, "run", run)
    change = app.program.door.change(Cause())
    change.work(work.wake(uuid, "provision", change.now))
    await app.program.door.commit(change)
    return uuid


def test_a_boot_that_begins_anew_in_a_wait_state_is_told(tmp_path, monkeypatch):
    is_up = Wait("the ramdisk boots", 0.02, power=PowerState.ON)

    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await waiting_with(app, monkeypatch, BOOTS_ANEW, is_up, Done())
            await until(app, uuid, "active")
            assert (await told(app, uuid))[:2] == pairs("rebooting")
            assert await left_open(app, uuid) == []

    asyncio.run(story())


def test_a_boot_that_is_given_up_in_a_wait_state_ends_in_the_log(tmp_path, monkeypatch):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await waiting_with(app, monkeypatch, BOOTS_ANEW, SILENT)

            async def has_begun():
                return bool(await told(app, uuid))

            await until_there(has_begun)
            await verb(app, uuid, "deleted")

            async def has_ended():
                return ("error", "rebooting") in await told(app, uuid)

            await until_there(has_ended)

    asyncio.run(story())


def test_a_change_of_power_that_is_asked_for_while_the_ramdisk_is_asked_ends_first(
    tmp_path, monkeypatch
):
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def slow(self, at, family, step, token):
        asked.set()
        await go_on.wait()
        return Done()

    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await waiting_with(app, monkeypatch, SILENT)
            script(app, f"node:{uuid}", latency_s={"power": 0.3})
            monkeypatch.setattr(simulated._Simulated, "run", slow)
            change = app.program.door.change(Cause())
            change.work(work.wake(uuid, "provision", change.now))
            await app.program.door.commit(change)
            await asked.wait()
            path = f"/v1/nodes/{uuid}/states/power"
            assert (await app.ask("PUT", path, {"target": "rebooting"})).status == 202
            go_on.set()
            await until(app, uuid, "active")
            log = [
                (one.event_type.removeprefix("baremetal.node."), data(one).get("event"))
                for one in await eventlog.read(app.program.store, limit=1000)
            ]
            assert log.index(("power_set.end", None)) < log.index(
                ("provision_set.success", "resume")
            )

    asyncio.run(story())


def test_an_inspection_that_its_rules_fail_has_still_switched_the_machine_off(
    tmp_path, monkeypatch
):
    real = simulated._Simulated.run

    async def run(self, at, family, step, token):
        if family is Family.INSPECT:
            return Done({"power_state": "power off"})
        return await real(self, at, family, step, token)

    async def story():
        monkeypatch.setattr(simulated._Simulated, "run", run)
        async with running(tmp_path, work=True) as app:
            rule = {"actions": [{"op": "fail", "args": {"msg": "too small"}}]}
            made = await app.ask("POST", "/v1/inspection_rules", rule)
            assert made.status == 201, made
            uuid = await app.plant("manageable", power_state="power on")
            await verb(app, uuid, "inspect")
            node = await until(app, uuid, "inspect failed")
            assert node.power_state == "power off"
            assert await told(app, uuid) == pairs("power off")

    asyncio.run(story())
