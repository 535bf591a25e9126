"""A real Redfish BMC through the API: enrolled, inspected, asked, switched."""

import asyncio

import pytest

from tests.baremetal.workers.lives import lead
from tests.baremetal.workers.lives import until
from tests.baremetal.workers.lives import until_power
from tests.baremetal.workers.lives import verb
from tests.lab import tiny_guest
from tests.lab.bmc import redfish_bmcs
from tests.lab.bmc import with_pool
from tests.support.app import running

PATIENCE_S = 120.0


@pytest.fixture
def guest(lab):
    found = tiny_guest(lab)
    yield found
    found.remove()


def test_a_machine_is_enrolled_inspected_asked_and_switched(lab, guest, tmp_path):
    async def story(bmcs):
        async with running(tmp_path / "data", work=True) as app:
            uuid = await app.make_node(driver="redfish", driver_info=bmcs.driver_info(guest.uuid))
            await verb(app, uuid, "manage")
            node = await until(app, uuid, "manageable", patience_s=PATIENCE_S)
            assert node.power_state == "power off"
            await verb(app, uuid, "inspect")
            node = await until(app, uuid, "manageable", patience_s=PATIENCE_S)
            assert node.properties["cpus"] == "1"
            ports = await app.ask("GET", f"/v1/nodes/{uuid}/ports")
            assert [port["address"] for port in ports.json["ports"]] == [guest.mac]
            seen = await app.ask("GET", f"/v1/nodes/{uuid}/inventory")
            assert seen.json["inventory"]["interfaces"][0]["mac_address"] == guest.mac
            settings = await app.ask("GET", f"/v1/nodes/{uuid}/bios")
            assert settings.json["bios"]

            body = {"boot_device": "cdrom", "persistent": True}
            answer = await app.ask("PUT", f"/v1/nodes/{uuid}/management/boot_device", body)
            assert answer.status == 204, answer
            answer = await app.ask("GET", f"/v1/nodes/{uuid}/management/boot_device")
            assert answer.json == body

            answer = await app.ask("PUT", f"/v1/nodes/{uuid}/states/power", {"target": "power on"})
            assert answer.status == 202, answer
            node = await until_power(app, uuid, patience_s=PATIENCE_S)
            assert (node.power_state, node.last_error) == ("power on", None)
            assert guest.is_on()
            bmcs.stop()
            answer = await app.ask("GET", f"/v1/nodes/{uuid}/management/boot_device")
            assert answer.status == 504
            assert bmcs.url in answer.sentence

    with redfish_bmcs(tmp_path / "bmc", with_pool(lab)) as bmcs:
        asyncio.run(story(bmcs))


def test_a_node_that_cannot_be_deployed_is_told_why_before_anything_happens(tmp_path):
    async def story():
        async with running(tmp_path) as app:
            fields = app.program.baremetal.cards["redfish"].fill_in({})
            info = {"redfish_address": "http://127.0.0.1:1"}
            uuid = await app.plant("available", driver="redfish", driver_info=info, **fields)
            refused = await verb(app, uuid, "active", status=400)
            assert "lacks image_source" in refused.sentence
            checked = (await app.ask("GET", f"/v1/nodes/{uuid}/validate")).json
            assert checked["power"] == {"result": True}
            assert "deploy_kernel" in checked["boot"]["reason"]
            image = {"image_source": "http://x/y", "image_checksum": "f"}
            patch = [{"op": "add", "path": "/instance_info", "value": image}]
            await app.ask("PATCH", f"/v1/nodes/{uuid}", patch)
            refused = await verb(app, uuid, "active", status=400)
            assert "there is no ramdisk to boot" in refused.sentence

    asyncio.run(story())


def test_wrong_credentials_end_verification_with_the_remedy(lab, guest, tmp_path):
    async def story(bmcs):
        async with running(tmp_path / "data", work=True) as app:
            info = bmcs.driver_info(guest.uuid, redfish_password="open sesame")
            uuid = await app.make_node(driver="redfish", driver_info=info)
            await verb(app, uuid, "manage")
            node = await until(app, uuid, "enroll", patience_s=PATIENCE_S)
            assert "Check redfish_username and redfish_password" in node.last_error
            assert "open sesame" not in node.last_error
            await lead(app, await app.make_node(), "manage")  # others are not held up

    with redfish_bmcs(tmp_path / "bmc", with_pool(lab)) as bmcs:
        asyncio.run(story(bmcs))
