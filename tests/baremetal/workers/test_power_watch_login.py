"""The power watch and BMCs that do not take the credentials: seldom asked, and at once when those
are mended.
"""

import asyncio

import pytest

from siderite.baremetal.workers.power_watch import PowerWatch
from siderite.core.store import Op
from tests.baremetal.workers.lives import lead
from tests.baremetal.workers.lives import verb
from tests.baremetal.workers.test_power_watch import seen
from tests.lab.redfish_moody import moody_bmc
from tests.support.app import running

INTERVAL_S = 0.2


@pytest.fixture(params=["sqlite", "postgresql"])
def db(request):
    """No URL is SQLite in the data folder."""
    return "" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture(autouse=True)
def attentive(monkeypatch):
    """What is due is seen at once, though pauses are long."""
    monkeypatch.setattr(PowerWatch, "_idle_s", 0.01)


@pytest.fixture
def bmc():
    with moody_bmc() as made:
        made.password = "hunter2"
        yield made


async def planted(app, bmc, **more):
    """An active node of this BMC that is recorded as off."""
    info = {**bmc.driver_info, **more}
    return await app.plant("active", driver="redfish", driver_info=info, power_state="power off")


async def pauses(app, uuid):
    rows = await app.program.store.fetch(
        "SELECT pause, failures FROM power_watch WHERE node = ?", (uuid,)
    )
    return rows[0]


def test_wrong_credentials_are_told_at_once_and_tried_ever_more_seldom(tmp_path, db, bmc):
    async def story():
        async with running(tmp_path, db, work=True, power_watch_interval_s=INTERVAL_S) as app:
            uuid = await planted(app, bmc, redfish_password="wrong")
            node = await seen(app, uuid, power_state=None)
            assert "does not take the credentials (HTTP 401)" in node.power_state_reason
            assert "Check redfish_username" in node.power_state_reason
            assert "asked ever more seldom" in node.power_state_reason
            assert "(1 reading)" in node.power_state_reason
            async with asyncio.timeout(30):
                while (await pauses(app, uuid))[1] < 3:
                    await asyncio.sleep(0.01)
            pause, failures = await pauses(app, uuid)
            assert pause == pytest.approx(INTERVAL_S * 2 ** (failures - 1))
            assert bmc.failed_logins in (failures, failures + 1)

    asyncio.run(story())


def test_a_pause_has_an_end_and_credentials_that_are_mended_are_tried_at_once(tmp_path, db, bmc):
    async def story():
        async with running(tmp_path, db, work=True, power_watch_interval_s=1200.0) as app:
            uuid = await planted(app, bmc, redfish_password="wrong")
            await seen(app, uuid, power_state=None)
            for number, pause_s in enumerate((1200.0, 2400.0, 3600.0, 3600.0), 1):
                async with asyncio.timeout(30):
                    while tuple(await pauses(app, uuid)) != (pause_s, number):
                        await asyncio.sleep(0.01)
                tried = bmc.failed_logins
                await app.program.store.commit([due_now(uuid)])
                async with asyncio.timeout(30):
                    while bmc.failed_logins == tried:
                        await asyncio.sleep(0.01)
            patch = [{"op": "add", "path": "/driver_info/redfish_password", "value": "hunter2"}]
            assert (await app.ask("PATCH", f"/v1/nodes/{uuid}", patch)).status == 200
            await seen(app, uuid, power_state="power off", power_state_reason=None)
            assert bmc.logins == 1

    asyncio.run(story())


def due_now(uuid):
    """Have it read now, as if its pause were over."""
    return Op("UPDATE power_watch SET due = 0 WHERE node = ?", (uuid,))


def test_credentials_that_are_mended_during_a_reading_are_tried_after_it(tmp_path, bmc):
    async def story():
        async with running(tmp_path, work=True, power_watch_interval_s=1200.0) as app:
            uuid = await planted(app, bmc, redfish_password="wrong")
            await seen(app, uuid, power_state=None)
            bmc.answers.clear()
            asked = bmc.asked
            for word in ("wrong too", "hunter2"):
                patch = [{"op": "add", "path": "/driver_info/redfish_password", "value": word}]
                assert (await app.ask("PATCH", f"/v1/nodes/{uuid}", patch)).status == 200
                async with asyncio.timeout(30):
                    while bmc.asked == asked:
                        await asyncio.sleep(0.01)
            bmc.answers.set()
            await seen(app, uuid, power_state="power off", power_state_reason=None)

    asyncio.run(story())


def test_a_power_change_that_waits_for_credentials_goes_on_when_they_are_mended(tmp_path, db, bmc):
    async def story():
        options = {"power_watch_interval_s": 0.0, "power_timeout_s": 600.0}
        async with running(tmp_path, db, work=True, **options) as app:
            uuid = await planted(app, bmc)
            body = {"target": "power off"}
            assert (await app.ask("PUT", f"/v1/nodes/{uuid}/states/power", body)).status == 202
            await seen(app, uuid, target_power_state=None)
            bmc.password = "another"
            bmc.sessions.clear()
            body = {"target": "power on"}
            assert (await app.ask("PUT", f"/v1/nodes/{uuid}/states/power", body)).status == 202
            async with asyncio.timeout(30):
                while "HTTP 401" not in ((await app.node(uuid)).wait_reason or ""):
                    await asyncio.sleep(0.01)
            assert bmc.failed_logins == 1
            patch = [{"op": "add", "path": "/driver_info/redfish_password", "value": "another"}]
            assert (await app.ask("PATCH", f"/v1/nodes/{uuid}", patch)).status == 200
            await seen(app, uuid, power_state="power on", target_power_state=None)

    asyncio.run(story())


def test_a_node_is_verified_by_one_login(tmp_path, bmc):
    """Though another node's work got in with the same credentials a while ago."""

    async def story():
        async with running(tmp_path, work=True, power_watch_interval_s=0.0) as app:
            fields = {"driver": "redfish", "driver_info": bmc.driver_info}
            first, second = [await app.make_node(**fields) for _ in range(2)]
            await lead(app, first, "manage")
            bmc.password = "another"
            bmc.sessions.clear()
            await verb(app, second, "manage")
            async with asyncio.timeout(30):
                while (node := await app.node(second)).last_error is None:
                    await asyncio.sleep(0.01)
            assert "HTTP 401" in node.last_error
            assert node.provision_state == "enroll"
            assert bmc.failed_logins == 1

    asyncio.run(story())
