"""What a machine tells of itself is kept: at verification, by inspection and by steps."""

import asyncio

from siderite.baremetal.drivers.simulated import driver as simulated
from siderite.core import work
from tests.baremetal.workers.lives import lead
from tests.baremetal.workers.lives import script
from tests.baremetal.workers.lives import until
from tests.baremetal.workers.lives import verb
from tests.support.app import running


def test_a_managed_node_shows_its_boot_mode_settings_and_firmware(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            shown = await app.show(uuid)
            assert (shown["boot_mode"], shown["secure_boot"]) == ("uefi", False)
            bios = (await app.ask("GET", f"/v1/nodes/{uuid}/bios")).json["bios"]
            assert {s["name"]: s["value"] for s in bios}["NumLock"] == "On"
            firmware = (await app.ask("GET", f"/v1/nodes/{uuid}/firmware")).json["firmware"]
            assert [part["component"] for part in firmware] == ["bios", "bmc"]

    asyncio.run(story())


def test_a_machine_that_hides_its_settings_is_managed_all_the_same(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            script(app, f"node:{uuid}", fail={"bios": "no", "firmware": "no", "management": "no"})
            await lead(app, uuid, "manage")
            assert (await app.ask("GET", f"/v1/nodes/{uuid}/bios")).json == {"bios": []}
            assert (await app.show(uuid))["boot_mode"] is None

    asyncio.run(story())


def test_inspection_leaves_an_inventory_properties_and_a_port(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            await verb(app, uuid, "inspect")
            node = await until(app, uuid, "manageable")
            assert node.properties["cpu_arch"] == "x86_64"
            found = (await app.ask("GET", f"/v1/nodes/{uuid}/inventory")).json
            macs = [i["mac_address"] for i in found["inventory"]["interfaces"]]
            ports = (await app.ask("GET", f"/v1/nodes/{uuid}/ports")).json["ports"]
            assert [port["address"] for port in ports] == macs[:1]

    asyncio.run(story())


def test_steps_change_settings_firmware_and_raid(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            path = f"/v1/nodes/{uuid}"
            disks = {"logical_disks": [{"raid_level": "1", "size_gb": 50}]}
            await app.ask("PUT", f"{path}/states/raid", disks)
            bios = {"settings": [{"name": "NumLock", "value": "Off"}]}
            image = {"settings": [{"component": "bmc", "url": "http://a/bmc-2.0.bin"}]}
            steps = [
                {"interface": "bios", "step": "apply_configuration", "args": bios},
                {"interface": "firmware", "step": "update", "args": image},
                {"interface": "raid", "step": "create_configuration"},
            ]
            await verb(app, uuid, "clean", clean_steps=steps)
            node = await until(app, uuid, "manageable")
            assert node.raid_config["logical_disks"][0]["size_gb"] == 50
            one = (await app.ask("GET", f"{path}/bios/NumLock")).json
            assert one["NumLock"]["value"] == "Off"
            parts = (await app.ask("GET", f"{path}/firmware")).json["firmware"]
            flashed = {part["component"]: part["last_version_flashed"] for part in parts}
            assert flashed == {"bios": None, "bmc": "2.0"}

    asyncio.run(story())


def test_a_ramdisk_that_sends_what_it_found_ends_the_inspection(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            script(app, f"node:{uuid}", silent=True)
            await verb(app, uuid, "inspect")
            await until(app, uuid, "inspect wait")
            body = {"inventory": {"interfaces": [{"mac_address": "52:54:00:aa:00:01"}]}}
            path = f"/v1/continue_inspection?node_uuid={uuid}"
            async with asyncio.timeout(20):
                while (await app.ask("POST", path, body, token="")).status == 409:
                    await asyncio.sleep(0.02)
            node = await until(app, uuid, "manageable")
            assert node.inspection_finished_at
            assert node.driver_internal_info == {}

    asyncio.run(story())


def test_nothing_is_kept_of_a_node_that_was_deleted_while_it_was_looked_at(tmp_path, monkeypatch):
    """One of the same UUID may come again, and is another machine."""
    looking, go_on = asyncio.Event(), asyncio.Event()
    run = simulated._Simulated.run

    async def slow(self, at, family, step, token):
        outcome = await run(self, at, family, step, token)
        looking.set()
        await go_on.wait()
        return outcome

    monkeypatch.setattr(simulated._Simulated, "run", slow)

    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.plant("manageable", maintenance=True)
            await verb(app, uuid, "inspect")
            async with asyncio.timeout(30):
                await looking.wait()
            assert (await app.ask("DELETE", f"/v1/nodes/{uuid}")).status == 204
            go_on.set()
            async with asyncio.timeout(30):
                while await work.depth(app.program.store) != (0, 0):
                    await asyncio.sleep(0.01)
            again = await app.make_node(uuid=uuid)
            answer = await app.ask("GET", f"/v1/nodes/{again}/inventory")
            assert answer.status == 404, answer

    asyncio.run(story())
