"""The power watch on simulated machines: who is right, what failures lead to, who wins races."""

import asyncio

import pytest

from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.usecases.power import power_schedule
from siderite.baremetal.usecases.power import power_watch
from siderite.baremetal.usecases.power.power_schedule import Plan
from siderite.baremetal.workers.power_watch import PowerWatch
from siderite.baremetal.workers.reading import Reading
from siderite.core import eventlog
from siderite.core import sequencer
from siderite.wiring.baremetal import rhythm
from tests.baremetal.workers.lives import facts
from tests.baremetal.workers.lives import lead
from tests.baremetal.workers.lives import script
from tests.support.app import running

OFTEN = {"power_watch_interval_s": 0.2, "power_timeout_s": 20.0}


@pytest.fixture(params=["sqlite", "postgresql"])
def db(request):
    """No URL is SQLite in the data folder."""
    return "" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


async def seen(app, uuid, patience_s=30.0, **fields):
    """The node once it has these fields."""
    async with asyncio.timeout(patience_s):
        while True:
            node = await app.node(uuid)
            if all(getattr(node, name) == value for name, value in fields.items()):
                return node
            await asyncio.sleep(0.01)


async def power(app, uuid, target):
    answer = await app.ask("PUT", f"/v1/nodes/{uuid}/states/power", {"target": target})
    assert answer.status == 202, answer
    await seen(app, uuid, target_power_state=None)


async def switched_on(app, **fields):
    """A manageable node that is on, and is recorded so."""
    uuid = await app.make_node(**fields)
    await lead(app, uuid, "manage")
    await power(app, uuid, "power on")
    return uuid


async def policy(app, uuid, value):
    patch = [{"op": "replace", "path": "/power_policy", "value": value}]
    answer = await app.ask("PATCH", f"/v1/nodes/{uuid}", patch, version=900)
    assert answer.status == 200, answer


def asked(app):
    """How often the hardware was told to switch."""
    rows = app.program.machines._db.execute("SELECT what FROM runs WHERE what LIKE 'power.%'")
    return [row[0].removeprefix("power.") for row in rows]


async def told(app, uuid):
    """The node's facts of power that nobody asked for."""
    if app.program.store.dialect == "postgresql":
        await sequencer.place(app.program.store)
    kinds = [
        entry.event_type.removeprefix("baremetal.node.")
        for entry in await eventlog.read(app.program.store, limit=100_000)
        if entry.resource == uuid
    ]
    return [kind for kind in kinds if kind.startswith("power_") and "power_set" not in kind]


def test_hardware_is_right_by_default_and_the_record_follows(tmp_path, db):
    async def story():
        async with running(tmp_path, db, work=True, **OFTEN) as app:
            uuid = await switched_on(app, driver_info={"rack": "r1"})
            app.program.machines.cut_power("r1")
            await seen(app, uuid, power_state="power off")
            [(status, data)] = (await facts(app, uuid, "power_state_corrected"))[1:]
            assert (status, data["from_power"]) == ("success", "power on")
            assert asked(app) == ["power on"], "only what was asked for"

    asyncio.run(story())


def test_a_node_is_watched_from_when_it_is_verified(tmp_path, db):
    async def story():
        async with running(tmp_path, db, work=True, **OFTEN) as app:
            uuid = await app.make_node()
            ctx = app.program.baremetal
            assert await power_schedule.due(ctx, ctx.door.clock(), 10) == []
            await lead(app, uuid, "manage")
            app.program.machines.set_power(Endpoint(uuid, {}, {}, {}), "power on")
            await seen(app, uuid, power_state="power on")
            body = {"driver": "fake-hardware"}
            old = await app.ask("POST", "/v1/nodes", body, version=10)  # it starts available
            await seen(app, old.json["uuid"], power_state="power off")

    asyncio.run(story())


def test_record_is_right_and_the_machine_is_put_back(tmp_path, db):
    async def story():
        async with running(tmp_path, db, work=True, **OFTEN) as app:
            uuid = await switched_on(app, driver_info={"rack": "r1"})
            await policy(app, uuid, "record")
            app.program.machines.cut_power("r1")
            async with asyncio.timeout(30):
                while asked(app) != ["power on", "power on"]:
                    await asyncio.sleep(0.01)
            node = await seen(app, uuid, target_power_state=None)
            assert node.power_state == "power on"
            said = [(status, d["to_power"]) for status, d in await facts(app, uuid, "power_set")]
            assert said == [("start", "power on"), ("end", "power on")] * 2

    asyncio.run(story())


def test_a_record_that_cannot_be_restored_stays_as_it_is(tmp_path):
    async def story():
        async with running(tmp_path, work=True, power_policy="record", **OFTEN) as app:
            uuid = await switched_on(app, driver_info={"rack": "r1"})
            script(app, "rack:r1", fail={"power": "fuse blown"})
            app.program.machines.cut_power("r1")
            async with asyncio.timeout(30):
                while "fuse blown" not in ((await app.node(uuid)).last_error or ""):
                    await asyncio.sleep(0.01)
            assert (await app.node(uuid)).power_state == "power on"
            script(app, "rack:r1", fail={})
            async with asyncio.timeout(30):
                while len(asked(app)) < 2:
                    await asyncio.sleep(0.01)
            await seen(app, uuid, target_power_state=None, power_state="power on")

    asyncio.run(story())


def test_observe_notes_the_difference_and_changes_nothing(tmp_path, db):
    async def story():
        async with running(tmp_path, work=True, power_policy="observe", **OFTEN) as app:
            uuid = await switched_on(app, driver_info={"rack": "r1"})
            app.program.machines.cut_power("r1")
            async with asyncio.timeout(30):
                while (await app.node(uuid)).power_state_reason is None:
                    await asyncio.sleep(0.01)
            shown = await app.show(uuid)
            assert shown["power_state"] == "power on"
            assert "the machine says 'power off'" in shown["power_state_reason"]
            await power(app, uuid, "power on")
            node = await seen(app, uuid, power_state_reason=None)
            assert node.power_state == "power on"
            assert (await told(app, uuid))[1:] == ["power_conflict.start", "power_conflict.end"]

    asyncio.run(story())


def test_an_unreachable_bmc_leads_to_unknown_then_maintenance_and_back_without_any_action(
    tmp_path, db
):
    async def story():
        options = {**OFTEN, "power_policy": "record"}
        async with running(tmp_path, db, work=True, **options) as app:
            uuid = await switched_on(app, driver_info={"rack": "r1"})
            script(app, "rack:r1", unreachable=True)
            app.program.machines.cut_power("r1")
            async with asyncio.timeout(30):
                while (shown := await app.show(uuid))["power_state"] != "unknown":
                    await asyncio.sleep(0.01)
            assert "3 readings in a row" in shown["power_state_reason"]
            upstream = await app.ask("GET", f"/v1/nodes/{uuid}", version="1.115")
            assert upstream.json["power_state"] is None
            node = await seen(app, uuid, maintenance=True)
            assert node.fault == "power failure"
            assert "check its address" in node.maintenance_reason
            assert asked(app) == ["power on"], "nobody acts on a machine that cannot be read"
            script(app, "rack:r1", unreachable=False)
            node = await seen(app, uuid, maintenance=False, target_power_state=None, fault=None)
            async with asyncio.timeout(30):
                while len(asked(app)) < 2:
                    await asyncio.sleep(0.01)
            await seen(app, uuid, power_state="power on", target_power_state=None)
            assert (await told(app, uuid))[1:] == [
                "power_state_corrected.success", "power_unknown.start", "power_failure.start",
                "power_failure.end", "power_unknown.end", "power_state_corrected.success",
            ]  # fmt: skip

    asyncio.run(story())


def test_failures_in_a_row_are_counted_on_after_a_restart(tmp_path, db):
    async def story():
        async with running(tmp_path, work=True, **OFTEN) as app:
            uuid = await switched_on(app, driver_info={"rack": "r1"})
            script(app, "rack:r1", unreachable=True)
            async with asyncio.timeout(30):
                while await failures(app, uuid) < 2:
                    await asyncio.sleep(0.01)
            before = await failures(app, uuid)
        async with running(tmp_path) as app:
            assert await failures(app, uuid) >= before

    async def failures(app, uuid):
        rows = await app.program.store.fetch(
            "SELECT failures FROM power_watch WHERE node = ?", (uuid,)
        )
        return rows[0][0]

    asyncio.run(story())


def test_a_node_in_maintenance_is_not_read_until_it_is_given_back(tmp_path):
    async def story():
        async with running(tmp_path, work=True, **OFTEN) as app:
            uuid = await switched_on(app, driver_info={"rack": "r1"})
            other = await switched_on(app, driver_info={"rack": "r1"})
            assert (await app.ask("PUT", f"/v1/nodes/{uuid}/maintenance", {})).status == 202
            app.program.machines.cut_power("r1")
            await seen(app, other, power_state="power off")
            await asyncio.sleep(0.5)
            assert (await app.node(uuid)).power_state == "power on"
            assert (await app.ask("DELETE", f"/v1/nodes/{uuid}/maintenance")).status == 202
            await seen(app, uuid, power_state="power off")

    asyncio.run(story())


def test_a_machine_that_flaps_is_told_of_less_and_less_often(tmp_path, monkeypatch):
    """It is on or off, whenever it is looked at, as it was not the last time."""
    pauses = []

    async def other(self, node):
        return Reading(PowerState.OFF if node.power_state == "power on" else PowerState.ON)

    async def noted(ctx, node, verdict, plan, record=power_watch.record):
        pauses.append(plan.pause)
        return await record(ctx, node, verdict, plan)

    async def story():
        monkeypatch.setattr(PowerWatch, "_ask", other)
        monkeypatch.setattr(power_watch, "record", noted)
        async with running(tmp_path, work=True, power_watch_interval_s=0.32) as app:
            uuid = await app.plant("active", power_state="power on")
            async with asyncio.timeout(30):
                while len(pauses) < 6:
                    await asyncio.sleep(0.01)
            facts_ = await told(app, uuid)
        assert set(facts_) == {"power_state_corrected.success"}
        assert pauses[:6] == pytest.approx([0.02, 0.04, 0.08, 0.16, 0.32, 0.02])

    asyncio.run(story())


class Slow:
    """Readings that begin, and end when told to."""

    def __init__(self, real):
        self.real = real
        self.began = asyncio.Event()
        self.go_on = asyncio.Event()
        self.answer = PowerState.ON
        self.count = 0

    async def read(self, at):
        self.count += 1
        self.began.set()
        await self.go_on.wait()
        return self.answer

    async def set(self, at, to, token):
        return await self.real.set(at, to, token)


@pytest.fixture
def slow(monkeypatch):
    """Readings of the power watch that take as long as the test likes."""
    from siderite.baremetal.workers import power_watch as worker

    made = Slow(None)
    original = worker.PowerWatch._ask

    async def ask(self, node):
        made.real = self._drivers[node.driver].power
        if made.go_on.is_set():
            return await original(self, node)
        return Reading(await made.read(None))

    monkeypatch.setattr(worker.PowerWatch, "_ask", ask)
    return made


def test_a_request_during_a_reading_wins_over_it(tmp_path, db, slow):
    async def story():
        async with running(tmp_path, db, work=True, **OFTEN) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            async with asyncio.timeout(30):
                await slow.began.wait()
            # Somebody had switched it on by hand, which the reading will say, but then:
            await power(app, uuid, "power off")
            lost = []
            record = power_watch.record

            async def watched(*args):
                lost.append(not await record(*args))
                return not lost[-1]

            power_watch.record = watched
            try:
                slow.go_on.set()
                async with asyncio.timeout(30):
                    while not lost:
                        await asyncio.sleep(0.01)
            finally:
                power_watch.record = record
            assert lost[0] is True, "the stale reading changed nothing"
            assert (await app.node(uuid)).power_state == "power off"
            assert await told(app, uuid) == ["power_state_corrected.success"], "of the verification"

    asyncio.run(story())


def test_readings_under_way_are_in_nobodys_way(tmp_path, slow):
    async def story():
        async with running(tmp_path, work=True, **OFTEN) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            async with asyncio.timeout(30):
                await slow.began.wait()
            for number in range(20):
                patch = [{"op": "add", "path": "/extra/n", "value": number}]
                assert (await app.ask("PATCH", f"/v1/nodes/{uuid}", patch)).status == 200
            await lead(app, uuid, "provide", "active")
            slow.go_on.set()

    asyncio.run(story())


def test_a_bounded_number_of_readings_is_under_way_and_none_is_forgotten(tmp_path, slow):
    async def story():
        options = {**OFTEN, "power_watch_in_flight": 3}
        async with running(tmp_path, work=True, **options) as app:
            for _ in range(20):
                await app.plant("active", power_state="power off")
            slow.answer = PowerState.OFF
            async with asyncio.timeout(30):
                while slow.count < 3:
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.3)
            assert slow.count == 3
            slow.go_on.set()
            async with asyncio.timeout(30):
                while await left(app):
                    await asyncio.sleep(0.01)

    async def left(app):
        rows = await app.program.store.fetch("SELECT count(*) FROM power_watch WHERE pause = 0")
        return rows[0][0]

    asyncio.run(story())


@pytest.mark.parametrize("patches", [False, True])
def test_maintenance_that_a_user_has_set_is_not_ended_by_a_good_reading(tmp_path, patches):
    """Though the node was in maintenance before, for a power failure."""

    async def story():
        async with running(tmp_path, work=True, **OFTEN) as app:
            script(app, "all", unreachable=True)
            fault = {"fault": "power failure", "maintenance": True, "power_state_reason": "away"}
            theirs, ours = [await app.plant("active", **fault) for _ in range(2)]
            path = f"/v1/nodes/{theirs}/maintenance"
            if patches:
                patch = [{"op": "replace", "path": "/maintenance", "value": True}]
                assert (await app.ask("PATCH", f"/v1/nodes/{theirs}", patch)).status == 200
            else:
                assert (await app.ask("PUT", path, {"reason": "disk swap"})).status == 202
            script(app, "all", unreachable=False)
            await seen(app, ours, maintenance=False)
            node = await app.node(theirs)
            assert (node.maintenance, node.fault) == (True, None)
            assert node.maintenance_reason == (None if patches else "disk swap")
            assert (await app.ask("DELETE", path)).status == 202
            await seen(app, theirs, power_state="power off", power_state_reason=None)

    asyncio.run(story())


def test_when_a_node_is_read_next_is_not_put_off_by_a_clock_that_was_set_back(tmp_path, db):
    async def story():
        async with running(tmp_path, db) as app:
            uuid = await app.plant("active")
            ctx = app.program.baremetal
            watch = PowerWatch(ctx, {}, rhythm(app.program.config))
            now = ctx.door.clock()
            watch._plans[uuid] = Plan(uuid, now + 3600.0, 8.0, 0, was=0.0)
            await watch._write()
            assert await power_schedule.due(ctx, now + 9.0, 1) == [uuid]

    asyncio.run(story())
