"""Boot mode and secure boot are changed by durable work."""

import asyncio

from tests.baremetal.workers.lives import script
from tests.support.app import Application
from tests.support.app import running


async def until(app: Application, uuid: str, field: str, value: object) -> None:
    """Wait until a node shows this."""
    async with asyncio.timeout(20):
        while (await app.show(uuid))[field] != value:
            await asyncio.sleep(0.01)


def test_boot_mode_and_secure_boot_follow_the_request(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.plant("manageable")
            states = f"/v1/nodes/{uuid}/states"
            answer = await app.ask("PUT", f"{states}/boot_mode", {"target": "uefi"})
            assert answer.headers["location"].endswith(states)
            await until(app, uuid, "boot_mode", "uefi")
            answer = await app.ask("PUT", f"{states}/secure_boot", {"target": "on"})
            assert answer.status == 202
            await until(app, uuid, "secure_boot", True)
            shown = (await app.ask("GET", states)).json
            assert (shown["boot_mode"], shown["secure_boot"]) == ("uefi", True)

    asyncio.run(story())


def test_a_refusal_of_the_machine_is_the_nodes_last_error(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.plant("manageable")
            script(app, f"node:{uuid}", fail={"management.set_boot_mode": "no such mode"})
            await app.ask("PUT", f"/v1/nodes/{uuid}/states/boot_mode", {"target": "bios"})
            async with asyncio.timeout(20):
                while (node := await app.node(uuid)).last_error is None:
                    await asyncio.sleep(0.01)
            assert "Failed to change boot_mode to bios" in node.last_error
            assert "no such mode" in node.last_error
            assert node.boot_mode is None

    asyncio.run(story())


def test_a_machine_that_is_away_is_asked_again_and_meanwhile_busy(tmp_path, monkeypatch):
    async def story():
        monkeypatch.setattr("siderite.baremetal.workers.firmware_settings._RETRY_S", 0.05)
        async with running(tmp_path, work=True) as app:
            uuid = await app.plant("manageable")
            path = f"/v1/nodes/{uuid}/states/boot_mode"
            script(app, f"node:{uuid}", unreachable=True)
            assert (await app.ask("PUT", path, {"target": "bios"})).status == 202
            again = await app.ask("PUT", path, {"target": "uefi"})
            assert (again.status, "boot_mode bios" in again.sentence) == (409, True)
            script(app, f"node:{uuid}")
            await until(app, uuid, "boot_mode", "bios")

    asyncio.run(story())
