"""Conductor groups: which workers act on which machines."""

import asyncio

from siderite.core import work
from tests.baremetal.workers.lives import until_power
from tests.support.app import running


async def asked_to_power_on(app, **fields):
    uuid = await app.plant("manageable", power_state="power off", **fields)
    answer = await app.ask("PUT", f"/v1/nodes/{uuid}/states/power", {"target": "power on"})
    assert answer.status == 202, answer
    return uuid


def test_a_worker_acts_on_machines_of_its_groups_and_of_none_however_they_are_spelt(tmp_path):
    async def story():
        async with running(tmp_path, work=True, worker_groups="Rack1, HALL-2") as app:
            made = [await app.make_node(conductor_group=group) for group in ("RACK1", "hall-2", "")]
            elsewhere = await asked_to_power_on(app, conductor_group="rack3")
            for uuid in made:
                body = {"target": "manage"}
                await app.ask("PUT", f"/v1/nodes/{uuid}/states/provision", body)
                async with asyncio.timeout(60):
                    while (await app.show(uuid))["provision_state"] != "manageable":
                        await asyncio.sleep(0.02)
            [left] = await work.of_machine(app.program.store, elsewhere)
            assert (left.pool, left.owner) == ("rack3", None)
            [host] = (await app.ask("GET", "/v1/conductors")).json["conductors"]
            assert host["conductor_group"] == "rack1, hall-2"

    asyncio.run(story())


def test_work_that_waits_goes_with_its_machine_to_another_group(tmp_path, database_url):
    async def story():
        async with running(tmp_path, database_url, work=True, worker_groups="rack1") as app:
            uuid = await asked_to_power_on(app, conductor_group="rack2")
            [waiting] = await work.of_machine(app.program.store, uuid)
            assert (waiting.pool, waiting.owner) == ("rack2", None)
            moved = [{"op": "replace", "path": "/conductor_group", "value": "rack1"}]
            assert (await app.ask("PATCH", f"/v1/nodes/{uuid}", moved)).status == 200
            assert (await until_power(app, uuid)).power_state == "power on"

    asyncio.run(story())
