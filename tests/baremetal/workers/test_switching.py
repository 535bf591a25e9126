"""Power that steps change: announced before the hardware acts, and with what came of it."""

import asyncio

import pytest

from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.drivers.redfish import firmware
from siderite.baremetal.drivers.redfish.button import RedfishButton
from siderite.baremetal.drivers.simulated import driver as simulated
from siderite.core import eventlog
from tests.baremetal.workers.lives import data
from tests.baremetal.workers.lives import facts
from tests.baremetal.workers.lives import lead
from tests.baremetal.workers.lives import script
from tests.baremetal.workers.lives import until
from tests.baremetal.workers.lives import verb
from tests.baremetal.workers.test_cut_short import left_open
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
