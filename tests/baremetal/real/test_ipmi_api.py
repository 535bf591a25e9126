"""A whole IPMI BMC through the API: asked, lit, switched, listened to, inspected both ways.

OpenIPMI's simulator is the BMC (`tests.lab.ipmi_sim`); no machine runs behind it, so in the second
test this test says what the ramdisk would.
"""

import asyncio

from siderite.baremetal.store import NODES
from tests.baremetal.workers.lives import lead
from tests.baremetal.workers.lives import until
from tests.baremetal.workers.lives import until_power
from tests.baremetal.workers.lives import verb
from tests.lab.ipmi_sim import greeted
from tests.lab.udp_front import udp_front
from tests.support.app import running

MAC = "52:54:00:aa:bb:01"
SENSORS = [
    {"kind": "Temperature", "name": "Inlet Temp", "reading": 21.0, "unit": "C", "health": "ok"},
    {"kind": "Fan", "name": "Fan 1", "reading": 3000.0, "unit": "RPM", "health": "ok"},
    {"kind": "Voltage", "name": "12V", "reading": 12.0, "unit": "V", "health": "ok"},
    {"kind": "Power", "name": "PSU draw", "reading": 120.0, "unit": "W", "health": "ok"},
]
FOUND = {
    "inventory": {
        "interfaces": [{"name": "eth0", "mac_address": MAC}],
        "cpu": {"count": 8, "architecture": "x86_64"},
        "memory": {"physical_mb": 16384},
        "disks": [{"name": "/dev/sda", "size": 500 << 30}],
    }
}


async def switched(app, uuid, target):
    answer = await app.ask("PUT", f"/v1/nodes/{uuid}/states/power", {"target": target})
    assert answer.status == 202, answer
    node = await until_power(app, uuid, patience_s=60)
    assert node.last_error is None
    return node.power_state


async def typed_on_console(app, uuid):
    """What comes back of an `x` on the serial line."""
    states = f"/v1/nodes/{uuid}/states/console"
    assert (await app.ask("PUT", states, {"enabled": True})).status == 202
    async with asyncio.timeout(60):
        while not (shown := (await app.ask("GET", states)).json)["console_info"]:
            await asyncio.sleep(0.02)
        host, _, port = shown["console_info"]["url"].removeprefix("tcp://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        await greeted(reader, writer)
        writer.write(b"x")
        await reader.readuntil(b"[x]")
        writer.close()
        assert (await app.ask("PUT", states, {"enabled": False})).status == 202
        while (await app.ask("GET", states)).json["console_enabled"]:
            await asyncio.sleep(0.02)


def test_a_bmc_is_asked_lit_switched_and_listened_to(ipmi_board, tmp_path):
    async def story():
        async with running(tmp_path / "data", work=True) as app:
            uuid = await app.make_node(
                driver="ipmi", driver_info=ipmi_board.driver_info, inspect_interface="ipmitool"
            )
            assert (await lead(app, uuid, "manage")).power_state == "power off"
            managed = f"/v1/nodes/{uuid}/management"
            answer = await app.ask("GET", f"{managed}/sensors", version="1.900")
            assert answer.json["sensors"] == SENSORS

            light = f"{managed}/indicators/identify@chassis"
            for state, told in (("on", "0 1"), ("off", "0 0")):
                answer = await app.ask("PUT", light, {"state": state})
                assert answer.status == 204, answer
                assert ipmi_board.says("identify") == told
            answer = await app.ask("PUT", f"{managed}/inject_nmi", {})
            assert (answer.status, "Invalid data field" in answer.sentence) == (502, True)
            assert "127.0.0.1" in answer.sentence, "what this BMC cannot do, it says itself"

            body = {"boot_device": "pxe", "persistent": False}
            assert (await app.ask("PUT", f"{managed}/boot_device", body)).status == 204
            assert ipmi_board.says("boot") == "pxe"
            assert (await app.ask("GET", f"{managed}/boot_device")).json == body

            for target, power in (
                ("power on", "power on"),
                ("soft rebooting", "power on"),
                ("soft power off", "power off"),
            ):
                assert await switched(app, uuid, target) == power
            await typed_on_console(app, uuid)

            node = await lead(app, uuid, "inspect")
            assert node.properties == {"vendor": "Siderite Works"}
            seen = (await app.ask("GET", f"/v1/nodes/{uuid}/inventory")).json
            assert seen["inventory"]["system_vendor"] == {
                "manufacturer": "Siderite Works",
                "product_name": "Iron 1000",
                "serial_number": "SERIAL-42",
            }
            assert "inspect_interface agent" in seen["plugin_data"]["unknown"]
            firmware = (await app.ask("GET", f"/v1/nodes/{uuid}/firmware")).json["firmware"]
            assert [(part["component"], part["current_version"]) for part in firmware] == [
                ("bmc", "9.08")
            ]

    asyncio.run(story())


def test_an_open_console_follows_its_bmc_to_another_address(ipmi_board, tmp_path):
    info = ipmi_board.driver_info

    async def on(app, uuid):
        states = f"/v1/nodes/{uuid}/states/console"
        async with asyncio.timeout(60):
            while not (shown := (await app.ask("GET", states)).json)["console_info"]:
                await asyncio.sleep(0.02)
        return shown["console_info"]["url"].removeprefix("tcp://").split(":")

    async def story(front):
        async with running(tmp_path / "data", work=True) as app:
            old = {**info, "ipmi_port": front.port}
            uuid = await app.make_node(driver="ipmi", driver_info=old)
            assert (await lead(app, uuid, "manage")).power_state == "power off"
            states = f"/v1/nodes/{uuid}/states/console"
            assert (await app.ask("PUT", states, {"enabled": True})).status == 202
            await on(app, uuid)
            front.passes = lambda packet: None  # nobody is there any more
            patch = [
                {"op": "replace", "path": "/driver_info/ipmi_port", "value": info["ipmi_port"]}
            ]
            assert (await app.ask("PATCH", f"/v1/nodes/{uuid}", patch)).status == 200
            reader, writer = await asyncio.open_connection(*await on(app, uuid))
            await greeted(reader, writer)
            writer.close()

    with udp_front(info["ipmi_port"]) as front:
        asyncio.run(story(front))


def test_a_machine_is_inspected_by_its_ramdisk_and_rules_judge_what_it_found(ipmi_board, tmp_path):
    async def story():
        (tmp_path / "kernel").touch()
        boot = {name: str(tmp_path / "kernel") for name in ("deploy_kernel", "deploy_ramdisk")}
        async with running(tmp_path / "data", work=True) as app:
            uuid = await app.make_node(driver="ipmi", driver_info=ipmi_board.driver_info)
            await app.ask("POST", "/v1/ports", {"node_uuid": uuid, "address": MAC})
            await lead(app, uuid, "manage")
            refused = await verb(app, uuid, "inspect", status=400)
            assert "set deploy_kernel and deploy_ramdisk" in refused.sentence

        async with running(tmp_path / "data", work=True, **boot) as app:
            rule = {
                "conditions": [{"op": "gt", "args": {"values": ["{inventory[cpu][count]}", 7]}}],
                "actions": [{"op": "set-attribute", "args": ["/extra/size", "large"]}],
            }
            assert (await app.ask("POST", "/v1/inspection_rules", rule)).status == 201
            await verb(app, uuid, "inspect")
            await until(app, uuid, "inspect wait", patience_s=60)
            assert ipmi_board.says("power") == "1"
            assert ipmi_board.says("boot") == "pxe"
            node = await NODES.get(app.program.store, uuid)
            params = node.driver_internal_info["ramdisk"]["boot"]["params"]
            assert "/baremetal/v1/continue_inspection" in params
            answer = await app.ask("POST", "/v1/continue_inspection", FOUND, token="")
            assert answer.status == 202, answer
            node = await until(app, uuid, "manageable", "inspect failed", patience_s=60)
            assert node.last_error is None
            assert node.properties == {
                "cpus": "8", "cpu_arch": "x86_64", "memory_mb": "16384", "local_gb": "500",
            }  # fmt: skip
            assert node.extra == {"size": "large"}
            assert (node.power_state, ipmi_board.says("power")) == ("power off", "0")
            assert "ramdisk" not in node.driver_internal_info

    asyncio.run(story())
