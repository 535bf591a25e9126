"""Files that machines boot from do not outlive what they were for."""

import asyncio

from siderite.baremetal.workers.boot_files import BootFiles
from siderite.core.store import Op
from siderite.core.transition import Cause
from tests.baremetal.workers.lives import until
from tests.baremetal.workers.lives import verb
from tests.baremetal.workers.test_service import planted
from tests.lab.redfish_paper import SYSTEM
from tests.support.app import running

SECRET, OTHER = "s" * 24, "o" * 24


def files(folder, node, secret):
    place = folder / node / secret
    place.mkdir(parents=True)
    (place / "boot.iso").write_bytes(b"iso")
    return place


async def rewritten(app, uuid, doc):
    """What a hand wrote over in a node's record."""
    rows = await app.program.store.fetch("SELECT doc FROM nodes WHERE uuid = ?", (uuid,))
    change = app.program.door.change(Cause())
    change.put(Op("UPDATE nodes SET doc = ? WHERE uuid = ?", (doc, uuid)))
    await app.program.door.commit(change)
    return rows[0][0]


def test_a_node_that_is_deleted_while_its_ramdisk_runs_leaves_no_files(paper, front, tmp_path):
    iso = tmp_path / "ramdisk.iso"
    iso.write_bytes(b"iso")
    boot = tmp_path / "boot"

    async def story():
        async with running(tmp_path, work=True, deploy_iso=str(iso)) as app:
            info = {**front.driver_info, "redfish_system_id": SYSTEM}
            uuid = await planted(
                app, front, "manageable", inspect_interface="agent", driver_info=info
            )
            await verb(app, uuid, "inspect")
            await until(app, uuid, "inspect wait")
            sweeper = BootFiles(app.program.baremetal, boot)
            await sweeper.sweep()
            assert [place.name for place in boot.glob("*/*/*")] == ["boot.iso"]
            assert (await app.ask("PUT", f"/v1/nodes/{uuid}/maintenance", {})).status == 202
            assert (await app.ask("DELETE", f"/v1/nodes/{uuid}")).status == 204
            await sweeper.sweep()
            assert list(boot.iterdir()) == []
            assert iso.exists(), "what the files came from stays"

    asyncio.run(story())


def test_only_the_boot_that_a_node_knows_of_keeps_its_files(database_url, tmp_path):
    async def story():
        async with running(tmp_path, database_url) as app:
            record = {"ramdisk": {"token": "t", "phase": "up", "secret": SECRET}}
            boots = app.program.baremetal, tmp_path / "boot"
            kept, gone, foreign = [], [], []
            booted = await app.plant("wait call-back", driver_internal_info=record)
            kept.append(files(boots[1], booted, SECRET))
            gone.append(files(boots[1], booted, OTHER))
            gone.append(files(boots[1], await app.plant("active"), SECRET))
            spoilt = await app.plant("wait call-back", driver_internal_info=record)
            kept.append(files(boots[1], spoilt, OTHER))
            foreign.append(files(boots[1], "notes", SECRET))
            foreign.append(files(boots[1], booted, "x.d"))
            doc = await rewritten(app, spoilt, "nonsense")
            await BootFiles(*boots).sweep()
            await BootFiles(*boots).sweep()
            await rewritten(app, spoilt, doc)
            assert [place.exists() for place in (*kept, *foreign)] == [True] * 4
            assert [place.exists() for place in gone] == [False] * 2

    asyncio.run(story())


def test_it_is_swept_when_the_service_starts_and_no_folder_is_no_trouble(tmp_path):
    async def story():
        async with running(tmp_path, work=True):
            pass
        place = files(tmp_path / "boot", "1be26c0b-03f2-4d2e-ae87-c02d7f33c123", SECRET)
        async with running(tmp_path, work=True), asyncio.timeout(20):
            while place.parent.exists():
                await asyncio.sleep(0.01)

    asyncio.run(story())
