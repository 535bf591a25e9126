"""Power changes that were asked for, on simulated machines."""

import asyncio

import pytest

from tests.baremetal.workers.lives import facts
from tests.baremetal.workers.lives import lead
from tests.baremetal.workers.lives import script
from tests.baremetal.workers.lives import until
from tests.baremetal.workers.lives import until_power
from tests.baremetal.workers.lives import verb
from tests.support.app import running


async def power(app, uuid, target, status=202, **more):
    body = {"target": target, **more}
    answer = await app.ask("PUT", f"/v1/nodes/{uuid}/states/power", body)
    assert answer.status == status, (answer.status, answer.body)
    return answer


@pytest.mark.parametrize(
    ("target", "end"),
    [
        ("power on", "power on"),
        ("power off", "power off"),
        ("rebooting", "power on"),
        ("soft power off", "power off"),
        ("soft rebooting", "power on"),
    ],
)
def test_each_target_ends_in_its_state_and_is_announced(tmp_path, target, end):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            await power(app, uuid, target)
            node = await until_power(app, uuid)
            assert (node.power_state, node.last_error) == (end, None)
            said = [(status, d["to_power"]) for status, d in await facts(app, uuid, "power_set")]
            assert said == [("start", target), ("end", target)]

    asyncio.run(story())


def test_a_refusal_of_the_hardware_is_told_and_changes_nothing(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            script(app, f"node:{uuid}", fail={"power": "fuse blown"})
            await power(app, uuid, "power on")
            node = await until_power(app, uuid)
            assert node.power_state == "power off"
            assert "fuse blown" in node.last_error
            assert not node.maintenance
            assert [status for status, _ in await facts(app, uuid, "power_set")] == [
                "start",
                "error",
            ]

    asyncio.run(story())


def test_what_no_patience_can_mend_is_told_at_once(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            info = {"redfish_address": "fe80::1"}
            uuid = await app.plant("manageable", driver="redfish", driver_info=info)
            await power(app, uuid, "power on")
            node = await until_power(app, uuid)
            assert "an IPv6 address is written in []" in node.last_error

    asyncio.run(story())


@pytest.mark.parametrize("hard", [True, False])
def test_a_guest_that_ignores_a_soft_off_is_switched_off_hard_if_so_configured(tmp_path, hard):
    async def story():
        async with running(tmp_path, work=True, soft_power_off_then_hard=hard) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            await power(app, uuid, "power on")
            await until_power(app, uuid)
            script(app, f"node:{uuid}", latency_s={"power.soft power off": 900})
            await power(app, uuid, "soft power off", timeout=1)
            node = await until_power(app, uuid)
            if hard:
                assert (node.power_state, node.last_error) == ("power off", None)
            else:
                assert node.power_state == "power on"
                assert "did not reach 'power off' in time" in node.last_error

    asyncio.run(story())


def test_a_hard_off_overrules_a_soft_one_and_nothing_else(tmp_path):
    async def story():
        async with running(tmp_path, work=True, power_wait_s=0.1) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            await power(app, uuid, "power on")
            await until_power(app, uuid)
            slow = {"power.soft power off": 900, "power.power off": 1}
            script(app, f"node:{uuid}", latency_s=slow)
            await power(app, uuid, "soft power off", timeout=600)
            await power(app, uuid, "soft power off", status=409)
            await power(app, uuid, "power on", status=409)
            await power(app, uuid, "power off")
            await power(app, uuid, "power off", status=409)
            node = await until_power(app, uuid)
            assert (node.power_state, node.last_error) == ("power off", None)
            said = [(status, d["to_power"]) for status, d in await facts(app, uuid, "power_set")]
            assert said[2:] == [
                ("start", "soft power off"),
                ("error", "soft power off"),
                ("start", "power off"),
                ("end", "power off"),
            ]

    asyncio.run(story())


def test_no_action_starts_while_the_power_cannot_be_read(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node(driver_info={"rack": "r1"})
            await lead(app, uuid, "manage")
            script(app, "rack:r1", unreachable=True)
            await power(app, uuid, "power on", timeout=1)
            node = await until_power(app, uuid)
            assert "the BMC does not answer: check its address" in node.last_error
            runs = app.program.machines._db.execute("SELECT count(*) FROM runs").fetchone()
            assert runs[0] == 0, "the hardware was never asked"

    asyncio.run(story())


def test_a_verb_waits_for_a_change_of_power_that_is_soon_over(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            script(app, f"node:{uuid}", latency_s={"power": 0.3})
            await power(app, uuid, "power on")
            await power(app, uuid, "power off")
            await verb(app, uuid, "provide")
            said = [(status, d["to_power"]) for status, d in await facts(app, uuid, "power_set")]
            on, off = "power on", "power off"
            assert said == [("start", on), ("end", on), ("start", off), ("end", off)]

    asyncio.run(story())


def test_volumes_are_changed_once_the_node_is_off_which_was_just_asked_for(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            await power(app, uuid, "power on")
            await until_power(app, uuid)
            volume = {"node_uuid": uuid, "type": "iqn", "connector_id": "iqn.2026-01.test:a"}
            made = await app.ask("POST", "/v1/volume/connectors", volume)
            path = f"/v1/volume/connectors/{made.json['uuid']}"
            script(app, f"node:{uuid}", latency_s={"power": 0.3})
            await power(app, uuid, "power off")
            patch = [{"op": "add", "path": "/extra/a", "value": 1}]
            assert (await app.ask("PATCH", path, patch)).status == 200
            await power(app, uuid, "power on")
            await power(app, uuid, "power off")
            assert (await app.ask("DELETE", path)).status == 204

    asyncio.run(story())


def test_a_request_during_a_long_change_of_power_is_told_to_come_back(tmp_path):
    async def story():
        async with running(tmp_path, work=True, power_wait_s=0.1) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            script(app, f"node:{uuid}", latency_s={"power": 0.5})
            await power(app, uuid, "power on")
            answer = await power(app, uuid, "power off", 409)
            assert "already on its way to 'power on'" in answer.sentence
            assert answer.headers["retry-after"] == "2"
            refused = await verb(app, uuid, "provide", 409)
            assert "retry" in refused.sentence
            assert (await until_power(app, uuid)).power_state == "power on"

    asyncio.run(story())


def test_power_is_refused_while_cleaning_and_where_it_is_disabled(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node(disable_power_off=True)
            await lead(app, uuid, "manage")
            answer = await power(app, uuid, "power off", 409)
            assert "disable_power_off" in answer.sentence
            script(app, f"node:{uuid}", latency_s={"*": 3600}, ramdisk=True)
            await verb(app, uuid, "provide")
            await until(app, uuid, "clean wait")
            answer = await power(app, uuid, "power on", 400)
            assert "abort it" in answer.sentence

    asyncio.run(story())


def test_no_work_switches_a_node_off_that_must_stay_on(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node(disable_power_off=True)
            await lead(app, uuid, "manage", "provide", "active", "deleted")
            assert (await app.node(uuid)).power_state == "power on"
            await lead(app, uuid, "manage")
            steps = [{"interface": "power", "step": "power_off"}]
            await verb(app, uuid, "clean", clean_steps=steps)
            node = await until(app, uuid, "clean failed")
            assert "disable_power_off" in node.last_error
            assert node.power_state == "power on"

    asyncio.run(story())


def test_a_power_cut_is_what_the_hardware_then_says(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node(driver_info={"rack": "r1"})
            await lead(app, uuid, "manage")
            await power(app, uuid, "power on")
            await until_power(app, uuid)
            app.program.machines.cut_power("r1")
            await power(app, uuid, "power off")
            node = await until_power(app, uuid)
            assert node.power_state == "power off"
            runs = app.program.machines._db.execute("SELECT what FROM runs").fetchall()
            assert [row[0] for row in runs] == ["power.power on"], "it was off already"

    asyncio.run(story())
