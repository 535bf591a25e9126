"""Boot mode and secure boot are changed by durable work."""

import asyncio

import pytest

from siderite.core import work
from siderite.core.store import Op
from siderite.core.transition import Cause
from tests.baremetal.workers.lives import facts
from tests.baremetal.workers.lives import last_word
from tests.baremetal.workers.lives import script
from tests.baremetal.workers.test_rescue import over
from tests.baremetal.workers.test_service import planted
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


def test_what_is_changed_of_the_firmware_is_announced_as_an_update_of_the_node(
    tmp_path, database_url
):
    async def story():
        async with running(tmp_path, database_url, work=True) as app:
            uuid = await app.plant("manageable", last_error="of old")
            states = f"/v1/nodes/{uuid}/states"
            await app.ask("PUT", f"{states}/boot_mode", {"target": "uefi"})
            await until(app, uuid, "boot_mode", "uefi")
            assert await last_word(app, uuid) == "update.end"
            script(app, f"node:{uuid}", fail={"management": "no such thing"})
            await app.ask("PUT", f"{states}/secure_boot", {"target": True})
            await over(app)
            assert await last_word(app, uuid) == "update.end"
            disks = {"logical_disks": [{"raid_level": "1", "size_gb": 100}]}
            for _ in range(2):  # what is so already is no change
                assert (await app.ask("PUT", f"{states}/raid", disks)).status == 204
            assert await last_word(app, uuid) == "update.end"
            told = await facts(app, uuid, "update")
            ends = [status for status, _ in told]
            assert ends == ["start", "end", "start", "error", *["start", "end"] * 2]
            assert [data["boot_mode"] for _, data in told[:2]] == [None, "uefi"]
            assert "no such thing" in told[3][1]["last_error"]

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


@pytest.fixture
def by_task(front, paper):
    """A BMC that changes how its machine starts by a task."""
    front.by_task = lambda method, path: method == "PATCH"
    front.plain_task = True
    return front


async def asked(app, front):
    """A node that was told to start by UEFI, whose BMC has a task for that."""
    uuid = await planted(app, front, "manageable", boot_mode="bios")
    answer = await app.ask("PUT", f"/v1/nodes/{uuid}/states/boot_mode", {"target": "uefi"})
    assert answer.status == 202, answer
    async with asyncio.timeout(20):
        while not front.tasks:
            await asyncio.sleep(0.01)
    return uuid


async def late(app, uuid):
    """Until the node's work has ended because time was up."""
    async with asyncio.timeout(20):
        while await work.depth(app.program.store) != (0, 0):
            # Again and again: whoever has the work just now writes the old deadline back.
            change = app.program.door.change(Cause())
            change.put(Op("UPDATE work SET deadline = ? WHERE machine = ?", (change.now, uuid)))
            await app.program.door.commit(change)
            await asyncio.sleep(0.05)


def test_a_bmc_that_changes_it_by_a_task_is_asked_until_that_has_ended(by_task, paper, tmp_path):
    by_task.patience = 10**6

    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await asked(app, by_task)
            async with asyncio.timeout(20):
                while not by_task.tasks[0].asked:
                    await asyncio.sleep(0.01)
            assert (await app.show(uuid))["boot_mode"] == "bios"
        async with running(tmp_path, work=True) as app:  # another process goes on
            by_task.patience = 0
            await until(app, uuid, "boot_mode", "uefi")
            assert paper.mode == "UEFI"
        assert len(by_task.tasks) == 1

    asyncio.run(story())


def test_a_task_that_fails_or_never_ends_is_the_nodes_last_error(by_task, paper, tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            by_task.fails_with = "locked by the setup password"
            uuid = await asked(app, by_task)
            await over(app)
            node = await app.node(uuid)
            assert node.boot_mode == "bios"
            assert "Failed to change boot_mode to uefi: The BMC" in node.last_error
            assert "locked by the setup password" in node.last_error
            by_task.fails_with, by_task.patience = "", 10**6
            by_task.tasks.clear()
            uuid = await asked(app, by_task)
            await late(app, uuid)
            node = await app.node(uuid)
            assert node.boot_mode == "bios"
            assert "has a task for boot mode uefi, which has not ended" in node.last_error

    asyncio.run(story())


def test_a_task_that_waits_for_the_next_start_is_left_to_it(by_task, paper, tmp_path, monkeypatch):
    monkeypatch.setattr("siderite.baremetal.workers.firmware_settings._MOST_LOOKS", 1)
    by_task.waits_for = lambda: False

    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await asked(app, by_task)
            await until(app, uuid, "boot_mode", "uefi")
            assert by_task.tasks[0].asked == 2
            assert (await app.node(uuid)).last_error is None

    asyncio.run(story())


def test_a_bmc_that_has_forgotten_its_task_is_told_anew(by_task, paper, tmp_path, monkeypatch):
    monkeypatch.setattr("siderite.baremetal.workers.firmware_settings._RETRY_S", 0.05)
    by_task.patience = 10**6

    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await asked(app, by_task)
            by_task.stop()  # it begins anew
            by_task.by_task = lambda method, path: False
            by_task.start()
            await until(app, uuid, "boot_mode", "uefi")
            assert paper.mode == "UEFI"

    asyncio.run(story())
