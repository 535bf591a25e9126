"""Tidying up after an abort, as work: what the driver wants remembered is."""

import asyncio

import pytest

from siderite.baremetal.usecases.life import abort
from siderite.baremetal.usecases.life.abort import CLEANUP_S
from siderite.core.transition import Cause
from tests.lab.redfish_paper import SYSTEM
from tests.support.app import running


@pytest.fixture(params=["sqlite", "postgresql"])
def db(request):
    """No URL is SQLite in the data folder."""
    return "" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


def test_a_task_of_the_bmc_is_followed_from_one_look_to_the_next(tmp_path, db, paper, front):
    front.by_task = lambda method, path: "Eject" in path
    front.patience, paper.is_on, paper.image = 3, True, "http://images.invalid/live.iso"

    async def story():
        async with running(tmp_path, db, work=True, power_watch_interval_s=0.0) as app:
            info = {**front.driver_info, "redfish_system_id": SYSTEM}
            uuid = await app.plant(
                "clean failed", driver="redfish", driver_info=info, last_error="aborted",
                driver_internal_info={"ramdisk": {"token": "work/0", "phase": "up"}},
            )  # fmt: skip
            change = app.program.door.change(Cause())
            abort.tidy_up(app.program.baremetal, change, await app.node(uuid), "work/0")
            await app.program.door.commit(change)
            async with asyncio.timeout(CLEANUP_S):
                while await app.program.store.fetch(
                    "SELECT 1 FROM work WHERE machine = ?", (uuid,)
                ):
                    await asyncio.sleep(0.02)
            return await app.node(uuid)

    node = asyncio.run(story())
    assert (node.driver_internal_info, node.last_error) == ({}, "aborted")
    assert front.told("Eject") == 1
    assert (paper.is_on, paper.image) == (False, None)
