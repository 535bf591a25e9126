"""What is given up half-way: it is announced, and leaves nothing behind."""

import asyncio

import pytest

from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.drivers.simulated import driver as simulated
from siderite.baremetal.workers import steps
from siderite.core import eventlog
from siderite.core import sequencer
from siderite.core import work
from tests.baremetal.workers.lives import lead
from tests.baremetal.workers.lives import script
from tests.baremetal.workers.lives import until
from tests.baremetal.workers.lives import verb
from tests.support.app import running

FOREVER = {"latency_s": {"*": 3600}, "ramdisk": True}
HOOK = {"name": "asks", "state": "deploying"}


async def left_open(app, uuid):
    """The operations on a node that began and have neither end nor error, in the log."""
    if app.program.store.dialect == "postgresql":
        await sequencer.place(app.program.store)
    begun = []
    for entry in await eventlog.read(app.program.store, limit=10000):
        operation, _, status = entry.event_type.rpartition(".")
        if entry.resource != uuid:
            continue
        if status == "start":
            begun.append(operation)
        elif status in ("end", "error"):
            begun.remove(operation)
    return begun


async def lanes(app, uuid):
    """What is still to be done to a node."""
    return [item.lane for item in await work.of_machine(app.program.store, uuid)]


async def until_there(condition):
    """Once it is so."""
    async with asyncio.timeout(30):
        while not await condition():
            await asyncio.sleep(0.01)


async def _deploys(app, uuid):
    script(app, f"node:{uuid}", **FOREVER)
    await verb(app, uuid, "active")
    await until(app, uuid, "wait call-back")


async def _changes_power(app, uuid):
    script(app, f"node:{uuid}", unreachable=True)
    path = f"/v1/nodes/{uuid}/states/power"
    assert (await app.ask("PUT", path, {"target": "power on"})).status == 202


async def _opens_its_console(app, uuid):
    script(app, f"node:{uuid}", unreachable=True)
    path = f"/v1/nodes/{uuid}/states/console"
    assert (await app.ask("PUT", path, {"enabled": True})).status == 202


async def _is_held(app, uuid):
    assert (await app.ask("POST", "/v1/hooks", HOOK, version=900)).status == 201
    await verb(app, uuid, "active")
    await until(app, uuid, "deploy hold")


def test_what_a_deleted_node_was_doing_has_an_end_in_the_log(database_url, tmp_path):
    async def story():
        db = database_url if database_url.startswith("postgresql") else ""
        async with running(tmp_path, db, work=True) as app:
            for begin in (_deploys, _changes_power, _opens_its_console, _is_held):
                uuid = await app.plant("available", power_state="power off")
                await begin(app, uuid)
                assert len(await left_open(app, uuid)) == 1, begin
                assert (await app.ask("PUT", f"/v1/nodes/{uuid}/maintenance", {})).status == 202
                answer = await app.ask("DELETE", f"/v1/nodes/{uuid}")
                assert answer.status == 204, answer
                assert await left_open(app, uuid) == [], begin

    asyncio.run(story())


@pytest.mark.parametrize("ends", [True, False])
def test_a_worker_whose_node_is_deleted_meanwhile_stops_without_a_word(
    tmp_path, monkeypatch, capfd, ends
):
    """It is nobody's mistake."""
    began, go_on = asyncio.Event(), asyncio.Event()
    set_power = simulated._Simulated.set

    async def slow(self, at, to, token):
        began.set()
        await go_on.wait()
        outcome = await set_power(self, at, to, token)
        return outcome if ends else Wait("busy", 1.0)

    monkeypatch.setattr(simulated._Simulated, "set", slow)

    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.plant("manageable", power_state="power off")
            path = f"/v1/nodes/{uuid}"
            assert (await app.ask("PUT", f"{path}/states/power", {"target": "power on"})).status
            await began.wait()
            assert (await app.ask("DELETE", path)).status == 204
            go_on.set()

            async def is_over():
                return not await lanes(app, uuid)

            await until_there(is_over)
            assert "failed unexpectedly" not in capfd.readouterr().err

    asyncio.run(story())


def test_a_console_that_was_asked_for_does_not_open_for_the_next_instance(tmp_path, monkeypatch):
    monkeypatch.setattr("siderite.baremetal.workers.console._RETRY_S", 600.0)

    async def story():
        async with running(tmp_path, work=True, power_timeout_s=3600.0) as app:
            uuid = await app.plant("active")
            script(app, f"node:{uuid}", unreachable=True)
            path = f"/v1/nodes/{uuid}/states/console"
            assert (await app.ask("PUT", path, {"enabled": True})).status == 202

            async def is_parked():
                items = await work.of_machine(app.program.store, uuid)
                return [item.is_leased for item in items] == [False]

            await until_there(is_parked)
            script(app, f"node:{uuid}", unreachable=False)
            await lead(app, uuid, "deleted")
            assert await lanes(app, uuid) == []
            assert await left_open(app, uuid) == []

    asyncio.run(story())


@pytest.mark.parametrize("end", ["available", "error"])
def test_a_node_that_is_torn_down_while_it_waits_shows_no_step(tmp_path, end):
    steps = [{"interface": "deploy", "step": "burnin_cpu"}]
    fails = {"fail": {"teardown": "no"}} if end == "error" else {}

    async def story():
        async with running(tmp_path, work=True) as app:
            for state, target, waits, more in (
                ("available", "active", "wait call-back", {}),
                ("active", "service", "service wait", {"service_steps": steps}),
            ):
                uuid = await app.plant(state)
                script(app, f"node:{uuid}", **FOREVER)
                await verb(app, uuid, target, **more)
                await until(app, uuid, waits)
                script(app, f"node:{uuid}", **fails)
                await verb(app, uuid, "deleted")
                _shows_no_step(await until(app, uuid, end))
            uuid = await app.plant("manageable")
            script(app, f"node:{uuid}", **FOREVER)
            await verb(app, uuid, "provide")
            waiting = await until(app, uuid, "clean wait")
            assert "clean_steps" in waiting.driver_internal_info
            await verb(app, uuid, "abort")
            _shows_no_step(await until(app, uuid, "clean failed"))

    asyncio.run(story())


def _shows_no_step(node):
    assert (node.clean_step, node.deploy_step, node.service_step) == ({}, {}, {})
    assert [key for key in node.driver_internal_info if "_step" in key] == []


def test_a_node_whose_power_is_being_changed_does_not_go_on_when_its_ramdisk_calls(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(steps, "STEADY_S", 0.02)

    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.plant("available", power_state="power off")
            latency_s = {"deploy.write_image": 0.2, "power": 0.6}
            script(app, f"node:{uuid}", ramdisk=True, latency_s=latency_s)
            await verb(app, uuid, "active")
            await until(app, uuid, "wait call-back")
            path = f"/v1/nodes/{uuid}/states/power"
            assert (await app.ask("PUT", path, {"target": "rebooting"})).status == 202

            async def has_called():
                return "is let end" in ((await app.node(uuid)).wait_reason or "")

            await until_there(has_called)
            node = await app.node(uuid)
            assert (node.provision_state, node.target_power_state) == ("wait call-back", "power on")
            node = await until(app, uuid, "active")
            assert node.target_power_state is None

    asyncio.run(story())


def test_a_power_change_does_not_hide_what_a_node_waits_for(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.plant("active", power_state="power on")
            await verb(app, uuid, "service", service_steps=[{"interface": "power", "step": "hold"}])
            held = await until(app, uuid, "service hold")
            assert "held" in held.wait_reason
            path = f"/v1/nodes/{uuid}/states/power"
            assert (await app.ask("PUT", path, {"target": "power off"})).status == 202

            async def is_off():
                node = await app.node(uuid)
                return node.target_power_state is None and node.power_state == "power off"

            await until_there(is_off)
            assert (await app.node(uuid)).wait_reason == held.wait_reason

    asyncio.run(story())


@pytest.mark.parametrize("then", ["service hold", "service failed"])
def test_what_is_left_of_an_abort_does_not_abort_what_came_after_it(tmp_path, monkeypatch, then):
    """The BMC is away when a service is aborted, and back when the next one is under way."""
    away = True

    async def forget(self, at, token, **how):
        return Wait("away", 0.02) if away else None

    monkeypatch.setattr(simulated._Simulated, "forget", forget)

    async def story():
        nonlocal away
        async with running(tmp_path, work=True) as app:
            uuid = await app.plant("active")
            hold = [{"interface": "power", "step": "hold"}]
            await verb(app, uuid, "service", service_steps=hold)
            await until(app, uuid, "service hold")
            await verb(app, uuid, "abort")
            await until(app, uuid, "service failed")
            unknown = [{"interface": "deploy", "step": "nothing"}]
            await verb(app, uuid, "service", service_steps=hold if "hold" in then else unknown)
            if "hold" in then:
                await until(app, uuid, then)
            else:

                async def has_failed():
                    return "has no step" in ((await app.node(uuid)).last_error or "")

                await until_there(has_failed)
            away = False

            async def is_tidy():
                return "cleanup" not in await lanes(app, uuid)

            await until_there(is_tidy)
            assert (await app.node(uuid)).provision_state == then

    asyncio.run(story())


@pytest.mark.parametrize(
    ("family", "state", "end"),
    [(Family.SERVICE, "active", "active"), (Family.CLEAN, "manageable", "clean failed")],
)
def test_an_abort_that_had_to_wait_leaves_no_more_behind_than_any(
    tmp_path, monkeypatch, family, state, end
):
    slow = Step("deploy", "burnin_cpu", in_band=True)  # it cannot be interrupted
    monkeypatch.setitem(simulated.STEPS, family, [slow])
    forgotten = []

    async def forget(self, at, token, **how):
        forgotten.append(token)

    monkeypatch.setattr(simulated._Simulated, "forget", forget)

    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.plant(state)
            script(app, f"node:{uuid}", latency_s={"*": 0.2}, ramdisk=True)
            steps = [{"interface": "deploy", "step": "burnin_cpu"}]
            await verb(app, uuid, family, **{f"{family}_steps": steps})
            await until(app, uuid, f"{family} wait")
            await verb(app, uuid, "abort")
            assert (await app.node(uuid)).provision_state == f"{family} wait"
            node = await until(app, uuid, end)
            assert "aborted by request" in node.last_error
            assert (node.maintenance, node.fault) == (False, None)

            async def is_tidy():
                return not await lanes(app, uuid)

            await until_there(is_tidy)
            assert len(forgotten) == 1

    asyncio.run(story())


@pytest.mark.parametrize("by", ["maintenance", "patch", "deletion"])
def test_a_power_failure_that_somebody_ends_has_its_end_in_the_log(tmp_path, by):
    """Not only one that a good reading ends."""
    ask = {
        "maintenance": ("DELETE", "/maintenance", None),
        "patch": ("PATCH", "", [{"op": "remove", "path": "/maintenance"}]),
        "deletion": ("DELETE", "", None),
    }
    method, path, body = ask[by]

    async def story():
        async with running(tmp_path) as app:
            uuid = await app.plant(
                "manageable", maintenance=True, fault="power failure", power_state_reason="away"
            )
            more = () if body is None else (body,)
            answer = await app.ask(method, f"/v1/nodes/{uuid}{path}", *more)
            assert answer.status in (200, 202, 204), answer
            log = await eventlog.read(app.program.store, limit=100)
            ends = [fact.event_type for fact in log if ".power_" in fact.event_type]
            prefix = "baremetal.node."
            both = [f"{prefix}power_failure.end", f"{prefix}power_unknown.end"]
            assert ends == (both if by == "deletion" else both[:1])

    asyncio.run(story())
