"""A Redfish BMC through the API, when something happens to it while work is on its way."""

import asyncio

from siderite.baremetal.drivers import bmc
from siderite.baremetal.drivers.agent import steps
from siderite.baremetal.drivers.redfish import lines
from siderite.baremetal.drivers.redfish import settings
from tests.baremetal.workers.lives import lead
from tests.baremetal.workers.lives import until
from tests.baremetal.workers.lives import until_power
from tests.baremetal.workers.lives import verb
from tests.lab.redfish_paper import SYSTEM
from tests.support.app import running
from tests.support.trickling import trickling

APPLY = {
    "interface": "bios", "step": "apply_configuration",
    "args": {"settings": [{"name": "Speed", "value": "Fast"}]},
}  # fmt: skip


def test_a_bmc_that_says_what_cannot_be_stored_is_waited_for(front, paper, tmp_path, database_url):
    info = {**front.driver_info, "redfish_system_id": SYSTEM}

    async def story():
        async with running(tmp_path, database_url, work=True) as app:
            uuid = await app.make_node(driver="redfish", driver_info=info)
            await lead(app, uuid, "manage")
            front.says_with = b'{"error": {"message": "not \\u0000\\ud800now"}}'
            front.is_busy = lambda method, path: 503
            await verb(app, uuid, "clean", clean_steps=[APPLY])
            async with asyncio.timeout(30):
                while "HTTP 503, not ?now" not in ((await app.node(uuid)).wait_reason or ""):
                    await asyncio.sleep(0.01)

    asyncio.run(story())


def test_a_ramdisk_that_is_ended_after_its_node_has_moved_on_is_forgotten(
    front, paper, tmp_path, monkeypatch
):
    """Or a machine that boots by network would be sent to its files for ever."""
    monkeypatch.setattr(steps, "ASK_AGAIN_S", 0.05)
    iso = "http://images.invalid/ramdisk.iso"
    info = {**front.driver_info, "redfish_system_id": SYSTEM, "deploy_iso": iso}

    async def story():
        async with running(tmp_path, work=True, power_watch_interval_s=0.0) as app:
            uuid = await app.make_node(
                driver="redfish", driver_info=info, inspect_interface="agent"
            )
            await lead(app, uuid, "manage")
            await verb(app, uuid, "inspect")
            await until(app, uuid, "inspect wait")
            front.is_busy = lambda method, path: 503 if "Reset" in path else 0
            await verb(app, uuid, "abort")
            await until(app, uuid, "inspect failed")
            await lead(app, uuid, "manage")
            assert (paper.is_on, paper.image) == (True, iso)
            front.is_busy = lambda method, path: 0
            async with asyncio.timeout(30):
                while (node := await app.node(uuid)).driver_internal_info:
                    await asyncio.sleep(0.01)
            assert (node.power_state, paper.is_on, paper.image) == ("power off", False, None)
            assert node.provision_state == "manageable"

    asyncio.run(story())


def test_work_goes_on_once_a_password_that_was_changed_at_the_bmc_is_mended(
    front, paper, tmp_path, monkeypatch
):
    monkeypatch.setattr(bmc, "ASK_AGAIN_S", 0.05)
    monkeypatch.setattr(settings, "LOOK_S", 0.05)
    info = {**front.driver_info, "redfish_system_id": SYSTEM}

    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node(driver="redfish", driver_info=info)
            await lead(app, uuid, "manage")
            front.password = "another one"
            front.sessions.clear()
            await verb(app, uuid, "clean", clean_steps=[APPLY])
            async with asyncio.timeout(30):
                while "HTTP 401" not in ((await app.node(uuid)).wait_reason or ""):
                    await asyncio.sleep(0.01)
            path = "/driver_info/redfish_password"
            patch = [{"op": "replace", "path": path, "value": front.password}]
            answer = await app.ask("PATCH", f"/v1/nodes/{uuid}", patch)
            assert answer.status == 200, answer
            node = await until(app, uuid, "manageable", "clean failed")
            assert (node.provision_state, node.last_error) == ("manageable", None)
            assert paper.settings == {"Speed": "Fast"}

    asyncio.run(story())


def test_a_ramdisk_that_is_fetched_ever_so_slowly_does_not_outlast_the_works_deadline(
    front, paper, tmp_path
):
    info = {**front.driver_info, "redfish_system_id": SYSTEM}

    async def story(url):
        options = {"deploy_kernel": url, "deploy_ramdisk": url, "deadline_scale": 0.001}
        async with running(tmp_path, work=True, power_watch_interval_s=0.0, **options) as app:
            uuid = await app.plant(
                "manageable", driver="redfish", driver_info=info, inspect_interface="agent"
            )
            await verb(app, uuid, "inspect")
            node = await until(app, uuid, "inspect failed")
            assert "inspecting was not done by its deadline" in node.last_error
            async with asyncio.timeout(30):
                while list(tmp_path.rglob("vmlinuz*")):
                    await asyncio.sleep(0.01)

    with trickling(0.05) as url:
        asyncio.run(story(url))


def test_a_bmc_that_takes_nobodys_credentials_for_a_while_is_waited_for_by_another_process_too(
    front, paper, tmp_path, monkeypatch
):
    """As one answers that starts its services anew; the work has found it right before."""
    monkeypatch.setattr(lines, "_LOGIN_S", 0.1)
    monkeypatch.setattr(settings, "LOOK_S", 0.05)
    info = {**front.driver_info, "redfish_system_id": SYSTEM}
    paper.is_on, paper.deaf = True, 1  # it does not go off yet

    async def begin():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node(driver="redfish", driver_info=info)
            await lead(app, uuid, "manage")
            await verb(app, uuid, "clean", clean_steps=[APPLY])
            async with asyncio.timeout(30):
                while not front.told("Reset"):
                    await asyncio.sleep(0.01)
            return uuid

    async def go_on(uuid):
        async with running(tmp_path, work=True) as app:
            async with asyncio.timeout(30):
                while "HTTP 401" not in ((await app.node(uuid)).wait_reason or ""):
                    assert (await app.node(uuid)).provision_state == "cleaning"
                    await asyncio.sleep(0.01)
            front.is_busy = lambda method, path: 0
            node = await until(app, uuid, "manageable", "clean failed")
            assert (node.provision_state, node.last_error) == ("manageable", None)

    uuid = asyncio.run(begin())
    front.is_busy = lambda method, path: 401
    asyncio.run(go_on(uuid))


def test_a_machine_is_not_left_off_by_such_a_bmc_in_the_middle_of_a_reboot(
    front, paper, tmp_path, monkeypatch
):
    monkeypatch.setattr(lines, "_LOGIN_S", 0.1)
    info = {**front.driver_info, "redfish_system_id": SYSTEM}
    paper.is_on = True

    async def begin():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node(driver="redfish", driver_info=info)
            await lead(app, uuid, "manage")
            front.is_busy = lambda method, path: 503 if path == SYSTEM and not paper.is_on else 0
            await app.ask("PUT", f"/v1/nodes/{uuid}/states/power", {"target": "rebooting"})
            async with asyncio.timeout(30):
                while paper.is_on:
                    await asyncio.sleep(0.01)
            return uuid

    async def go_on(uuid):
        async with running(tmp_path, work=True) as app:
            async with asyncio.timeout(30):
                while "HTTP 401" not in ((await app.node(uuid)).wait_reason or ""):
                    assert (await app.node(uuid)).target_power_state == "power on"
                    await asyncio.sleep(0.01)
            front.is_busy = lambda method, path: 0
            node = await until_power(app, uuid)
            assert (node.power_state, node.last_error, paper.is_on) == ("power on", None, True)

    uuid = asyncio.run(begin())
    front.is_busy = lambda method, path: 401
    asyncio.run(go_on(uuid))
