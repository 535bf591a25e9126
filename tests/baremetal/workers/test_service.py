"""Work that is given up on a real machine: no ramdisk stays, and a workload comes back."""

import asyncio
from contextlib import contextmanager

import httpx
import pytest

from siderite.baremetal.drivers import switch
from siderite.baremetal.drivers.agent import Agent
from siderite.baremetal.drivers.agent.client import AgentSilent
from siderite.baremetal.drivers.bmc import PowerOrder
from siderite.core import work
from siderite.core.clock import now
from siderite.core.store import Op
from siderite.core.transition import Cause
from siderite.core.work import Due
from tests.baremetal.drivers.test_agent import listening
from tests.baremetal.workers.lives import facts
from tests.baremetal.workers.lives import last_word
from tests.baremetal.workers.lives import until
from tests.baremetal.workers.lives import until_power
from tests.baremetal.workers.lives import verb
from tests.baremetal.workers.test_rescue import call
from tests.baremetal.workers.test_rescue import over
from tests.baremetal.workers.test_rescue import tidying_waits
from tests.lab.redfish_paper import SYSTEM
from tests.support.app import running

ISO = "http://images.invalid/deploy.iso"
STEPS = [{"interface": "deploy", "step": "burnin_cpu"}]


def planted(app, front, state, **fields):
    info = {**front.driver_info, "redfish_system_id": SYSTEM, "deploy_iso": ISO}
    interfaces = app.program.baremetal.cards["redfish"].fill_in({})
    return app.plant(state, driver="redfish", **{"driver_info": info, **interfaces, **fields})


async def served(app, front, paper):
    """The UUID of a node that waits for the ramdisk of its service."""
    paper.is_on = True
    uuid = await planted(app, front, "active", power_state="power on")
    await verb(app, uuid, "service", service_steps=STEPS)
    await until(app, uuid, "service wait")
    assert paper.starts == [ISO]
    return uuid


@contextmanager
def failing():
    """The address of a ramdisk whose every step fails."""
    with listening() as (agent, url):
        end = {"command_status": "FAILED", "command_error": {"message": "too hot"}}
        take = agent.given
        agent.given = lambda body, query: {**take(body, query), **end}
        yield url


async def failed_in_its_ramdisk(app, front, paper, url):
    """The UUID of a node whose service failed, and whose ramdisk is left there."""
    uuid = await served(app, front, paper)
    await call(app, uuid, url)
    await until(app, uuid, "service failed")
    assert (await app.ask("DELETE", f"/v1/nodes/{uuid}/maintenance")).status == 202
    return uuid


async def back(app, uuid, paper):
    """Once the workload runs again, and nothing is left to do."""
    async with asyncio.timeout(30):
        while await work.depth(app.program.store) != (0, 0):
            await asyncio.sleep(0.01)
    node = await app.node(uuid)
    assert (node.provision_state, node.power_state) == ("active", "power on")
    assert (paper.is_on, paper.image, paper.starts) == (True, None, [ISO, "disk"])
    assert not {"ramdisk", "bmc_task"} & set(node.driver_internal_info)
    told = [(status, data["to_power"]) for status, data in await facts(app, uuid, "power_set")]
    assert told == [("start", "rebooting"), ("end", "rebooting")] * 2, "into the ramdisk, and back"


def test_a_service_that_is_aborted_gives_the_machine_back_to_its_workload(paper, front, tmp_path):
    async def story():
        async with running(tmp_path, work=True, agent_require_tls=False) as app:
            uuid = await served(app, front, paper)
            await verb(app, uuid, "abort")
            await until(app, uuid, "active")
            await back(app, uuid, paper)

    asyncio.run(story())


def test_an_abort_whose_bmc_stays_away_does_not_say_that_the_workload_is_back(
    paper, front, tmp_path, monkeypatch
):
    monkeypatch.setattr("siderite.baremetal.drivers.agent.steps.ASK_AGAIN_S", 0.02)

    async def story():
        async with running(tmp_path, work=True, agent_require_tls=False) as app:
            uuid = await served(app, front, paper)
            front.stop()
            await verb(app, uuid, "abort")
            await tidying_waits(app, uuid)
            change = app.program.door.change(Cause())
            change.put(Op("UPDATE work SET deadline = ? WHERE machine = ?", (change.now, uuid)))
            await app.program.door.commit(change)
            await over(app)
            node = await app.node(uuid)
            assert (node.provision_state, node.fault) == ("service failed", "service failure")
            assert node.maintenance
            assert "its ramdisk may still run: The BMC" in node.maintenance_reason
            assert await last_word(app, uuid) == "update.end"
            front.start()
            assert (await app.ask("DELETE", f"/v1/nodes/{uuid}/maintenance")).status == 202
            await verb(app, uuid, "abort")
            await until(app, uuid, "active")
            await back(app, uuid, paper)

    asyncio.run(story())


@pytest.mark.parametrize("again", [True, False])
def test_so_does_a_service_that_failed_and_is_aborted_then(paper, front, tmp_path, again):
    async def story(url):
        async with running(tmp_path, work=True, agent_require_tls=False) as app:
            uuid = await served(app, front, paper)
            await call(app, uuid, url)
            failed = await until(app, uuid, "service failed")
            assert "burnin_cpu failed" in failed.last_error
            assert paper.is_on, "it is left as it is, to be looked at"
            assert (await app.ask("DELETE", f"/v1/nodes/{uuid}/maintenance")).status == 202
            if again:
                unknown = [{"interface": "deploy", "step": "nothing"}]
                await verb(app, uuid, "service", service_steps=unknown)
                async with asyncio.timeout(30):
                    while "no step" not in ((await app.node(uuid)).last_error or ""):
                        await asyncio.sleep(0.01)
            await verb(app, uuid, "abort")
            await until(app, uuid, "active")
            await back(app, uuid, paper)

    with failing() as url:
        asyncio.run(story(url))


def test_so_does_a_service_without_a_ramdisk_after_one_that_failed_in_its_own(
    paper, front, tmp_path
):
    async def story(url):
        async with running(tmp_path, work=True, agent_require_tls=False) as app:
            uuid = await failed_in_its_ramdisk(app, front, paper, url)
            pause = {"interface": "power", "step": "wait", "args": {"seconds": 0}}
            await verb(app, uuid, "service", service_steps=[pause])
            node = await until(app, uuid, "active")
            assert (paper.is_on, paper.image, paper.starts) == (True, None, [ISO, "disk"])
            assert "ramdisk" not in node.driver_internal_info

    with failing() as url:
        asyncio.run(story(url))


def test_so_does_one_that_is_aborted_before_it_has_left_the_ramdisk_of_the_one_before(
    paper, front, tmp_path
):
    async def story(url):
        async with running(tmp_path, work=True, agent_require_tls=False) as app:
            uuid = await failed_in_its_ramdisk(app, front, paper, url)
            hold = {"interface": "power", "step": "hold"}
            await verb(app, uuid, "service", service_steps=[hold])
            await until(app, uuid, "service hold")
            await verb(app, uuid, "abort")
            await until(app, uuid, "active")
            await back(app, uuid, paper)

    with failing() as url:
        asyncio.run(story(url))


def test_a_ramdisk_that_went_while_its_node_was_held_is_waited_for_and_can_be_given_up(
    paper, front, tmp_path
):
    hold = {"interface": "power", "step": "hold"}

    async def story(agent, url):
        async with running(tmp_path, work=True, agent_require_tls=False) as app:
            paper.is_on = True
            uuid = await planted(app, front, "manageable", power_state="power on")
            await verb(app, uuid, "clean", clean_steps=[*STEPS, hold, *STEPS])
            await until(app, uuid, "clean wait")
            await call(app, uuid, url)
            await until(app, uuid, "clean hold")
            path = f"/v1/nodes/{uuid}/states/power"
            assert (await app.ask("PUT", path, {"target": "power off"})).status == 202
            await until_power(app, uuid)
            await verb(app, uuid, "unhold")
            async with asyncio.timeout(30):
                while "where it is" not in ((await app.node(uuid)).wait_reason or ""):
                    await asyncio.sleep(0.01)
            assert (await app.node(uuid)).provision_state == "clean wait"
            await verb(app, uuid, "abort")
            await until(app, uuid, "clean failed")

    with listening() as (agent, url):
        take = agent.given
        agent.given = lambda body, query: {**take(body, query), "command_status": "SUCCEEDED"}
        asyncio.run(story(agent, url))


def test_a_ramdisk_that_is_away_is_asked_for_nothing_while_nobody_has_its_work(
    paper, front, tmp_path, monkeypatch
):
    """It may be back, and would begin with a step that a client aborts just then."""
    real, is_aborted, asked = Agent._ask, asyncio.Event(), []
    monkeypatch.setattr("siderite.baremetal.drivers.agent.client.CALLS_S", 0.0)

    async def away(self, at, method, *more):
        asked.append(method)
        if asked.count("POST") == 1 and method == "POST":
            raise AgentSilent("the ramdisk is away")
        if "POST" in asked:
            await is_aborted.wait()
        return await real(self, at, method, *more)

    async def story(agent, url):
        async with running(tmp_path, work=True, agent_require_tls=False) as app:
            monkeypatch.setattr(Agent, "_ask", away)
            uuid = await served(app, front, paper)
            await call(app, uuid, url)
            async with asyncio.timeout(30):
                while "is away" not in ((await app.node(uuid)).wait_reason or ""):
                    await asyncio.sleep(0.01)
            await until(app, uuid, "service wait")
            await verb(app, uuid, "abort")
            is_aborted.set()
            await over(app)
            assert (asked[-1], agent.commands) == ("POST", [])

    with listening() as (agent, url):
        asyncio.run(story(agent, url))


def test_a_ramdisk_that_is_away_has_no_more_time_than_it_had_though_it_calls_now_and_then(
    paper, front, tmp_path, monkeypatch
):
    monkeypatch.setattr("siderite.baremetal.drivers.agent.client.CALLS_S", 0.0)

    async def parked(app, uuid, beat=None):
        """Its work once it waits for a call, after this one if it is given."""
        fence = None
        if beat is not None:
            [before] = await work.of_machine(app.program.store, uuid)
            fence = before.fence
            told = await app.ask("POST", f"/v1/heartbeat/{uuid}", beat, token="")
            assert told.status == 202, told
        async with asyncio.timeout(30):
            while True:
                [item] = await work.of_machine(app.program.store, uuid)
                is_new = not item.is_leased and item.fence != fence
                if is_new and "does not answer" in (item.reason or "") and item.due > now() + 60:
                    return item
                await asyncio.sleep(0.01)

    async def story():
        async with running(tmp_path, work=True, agent_require_tls=False) as app:
            uuid = await served(app, front, paper)
            beat = await call(app, uuid, "http://127.0.0.1:1")
            first = await parked(app, uuid)
            assert (await app.node(uuid)).provision_state == "service wait"
            again = await parked(app, uuid, beat)
            assert (again.deadline, again.due) == (first.deadline, first.deadline)

    asyncio.run(story())


async def never_called(app, uuid, failed, front, *, away):
    """The node once its ramdisk is late, its BMC perhaps away just then, and all is tidied up."""
    if away:
        front.stop()
    change = app.program.door.change(Cause())
    late = "UPDATE work SET due = ?, deadline = ? WHERE machine = ?"
    change.work(Due(late, (change.now, change.now, uuid), 1, change.now))
    await app.program.door.commit(change)
    node = await until(app, uuid, failed)
    assert "nothing called back" in node.last_error
    if away:
        front.start()
    await over(app)
    return await app.node(uuid)


@pytest.mark.parametrize("away", [True, False])
def test_a_deploy_whose_ramdisk_never_calls_leaves_the_machine_off(
    paper, front, tmp_path, monkeypatch, away
):
    """Also if the BMC is away just then."""
    monkeypatch.setattr("siderite.baremetal.drivers.agent.steps.ASK_AGAIN_S", 0.02)
    image = {"image_source": "http://images.invalid/os.img", "image_checksum": "0" * 64}

    async def story():
        async with running(tmp_path, work=True, agent_require_tls=False) as app:
            uuid = await planted(app, front, "available", instance_info=image)
            await verb(app, uuid, "active")
            await until(app, uuid, "wait call-back")
            assert (paper.is_on, paper.image) == (True, ISO)
            await never_called(app, uuid, "deploy failed", front, away=away)
            assert (paper.is_on, paper.image) == (False, None)

    asyncio.run(story())


@pytest.mark.parametrize("away", [True, False])
def test_so_does_an_inspection_and_its_reason_stays(paper, front, tmp_path, monkeypatch, away):
    monkeypatch.setattr("siderite.baremetal.drivers.agent.steps.ASK_AGAIN_S", 0.02)

    async def story():
        async with running(tmp_path, work=True, agent_require_tls=False) as app:
            uuid = await planted(app, front, "manageable", inspect_interface="agent")
            await verb(app, uuid, "inspect")
            await until(app, uuid, "inspect wait")
            assert (paper.is_on, paper.image) == (True, ISO)
            node = await never_called(app, uuid, "inspect failed", front, away=away)
            assert (paper.is_on, paper.image) == (False, None)
            assert "nothing called back" in node.last_error
            assert "ramdisk" not in node.driver_internal_info

    asyncio.run(story())


def test_a_machine_that_does_not_follow_at_once_is_told_again_until_its_ramdisk_is_gone(
    paper, front, tmp_path, monkeypatch
):
    monkeypatch.setitem(switch.RESEND_S, PowerOrder.OFF, 0.1)

    async def story():
        async with running(tmp_path, work=True, agent_require_tls=False) as app:
            uuid = await planted(app, front, "manageable", inspect_interface="agent")
            await verb(app, uuid, "inspect")
            await until(app, uuid, "inspect wait")
            paper.deaf = 2
            await verb(app, uuid, "abort")
            await until(app, uuid, "inspect failed")
            await over(app)
            assert (paper.deaf, paper.is_on, paper.image) == (0, False, None)
            assert (await app.node(uuid)).power_state == "power off"
            assert await last_word(app, uuid) == "power_state_corrected.success"

    asyncio.run(story())


def test_a_machine_that_must_stay_on_says_that_the_ramdisk_it_was_given_up_in_still_runs(
    paper, front, tmp_path
):
    async def story():
        async with running(tmp_path, work=True, agent_require_tls=False) as app:
            paper.is_on = True
            kept = {"disable_power_off": True, "power_state": "power on"}
            uuid = await planted(app, front, "manageable", inspect_interface="agent", **kept)
            await verb(app, uuid, "inspect")
            await until(app, uuid, "inspect wait")
            await verb(app, uuid, "abort")
            await until(app, uuid, "inspect failed")
            await over(app)
            node = await app.node(uuid)
            assert (paper.is_on, paper.image, paper.starts) == (True, None, [ISO])
            assert node.last_error.startswith("Aborted by request in state inspect wait")
            assert "Its ramdisk may still run: the machine must stay on" in node.last_error
            assert "a reboot ends it" in node.last_error
            assert await last_word(app, uuid) == "update.end"
            assert (node.power_state, node.maintenance) == ("power on", False)
            assert "ramdisk" not in node.driver_internal_info
            body = {"target": "rebooting"}
            assert (await app.ask("PUT", f"/v1/nodes/{uuid}/states/power", body)).status == 202
            await over(app)
            assert paper.starts == [ISO, "disk"]

    asyncio.run(story())


@pytest.mark.parametrize("then", ["active", "service failed"])
def test_a_bmc_that_refuses_to_switch_off_does_not_make_the_workload_run(
    paper, front, tmp_path, monkeypatch, then
):
    def request(method, path, **how):
        if path.endswith("/Reset"):
            return httpx.Response(400, json={"error": {"message": "the button is locked"}})
        return ask(method, path, **how)

    async def story():
        async with running(tmp_path, work=True, agent_require_tls=False) as app:
            uuid = await served(app, front, paper)
            if then == "active":
                await never_called(app, uuid, "service failed", front, away=False)
                assert (await app.ask("DELETE", f"/v1/nodes/{uuid}/maintenance")).status == 202
            monkeypatch.setattr(paper, "request", request)
            await verb(app, uuid, "abort")
            await over(app)
            node = await app.node(uuid)
            assert (node.provision_state, node.fault) == (then, "service failure")
            assert node.maintenance
            assert "its ramdisk may still run" in node.maintenance_reason
            assert "the button is locked" in node.maintenance_reason
            assert (paper.is_on, paper.starts) == (True, [ISO])

    ask = paper.request
    asyncio.run(story())


def test_a_machine_whose_ramdisk_was_given_up_is_not_put_back_on(
    paper, front, tmp_path, monkeypatch
):
    """Though the record is what counts: it says that the machine is off, too."""
    image = {"image_source": "http://images.invalid/os.img", "image_checksum": "0" * 64}
    options = {"power_policy": "record", "power_watch_interval_s": 0.2}

    async def story(agent, url):
        async with running(tmp_path, work=True, agent_require_tls=False, **options) as app:
            uuid = await planted(app, front, "available", instance_info=image)
            await verb(app, uuid, "active")
            await until(app, uuid, "wait call-back")
            await call(app, uuid, url)
            await until(app, uuid, "deploy failed")
            await over(app)
            await asyncio.sleep(1)
            node = await app.node(uuid)
            assert (paper.is_on, node.power_state) == (False, "power off")
            assert node.target_power_state is None
            assert paper.starts == [ISO]

    with listening() as (agent, url):
        end = {"command_status": "FAILED", "command_error": {"message": "too small"}}
        take = agent.given
        agent.given = lambda body, query: {**take(body, query), **end}
        asyncio.run(story(agent, url))


def test_a_deploy_that_would_start_its_workload_too_soon_fails_before_anything_is_done(
    paper, front, tmp_path
):
    image = {"image_source": "http://images.invalid/os.img", "image_checksum": "0" * 64}
    steps = [{"interface": "bios", "step": "factory_reset", "args": {}, "priority": 30}]

    async def story():
        async with running(tmp_path, work=True, agent_require_tls=False) as app:
            uuid = await planted(app, front, "available", instance_info=image)
            await verb(app, uuid, "active", deploy_steps=steps)
            node = await until(app, uuid, "deploy failed")
            assert "give it a priority above 80" in node.last_error
            await over(app)
            assert (front.orders, paper.starts) == ([], [])

    asyncio.run(story())


def test_a_deploy_says_what_its_ramdisk_said_also_if_that_came_at_once(
    paper, front, tmp_path, monkeypatch
):
    """It is looked at once more when the work is about to wait: by then the step has failed. Only
    when that is recorded does the machine go off, and its ramdisk fall silent.
    """
    image = {"image_source": "http://images.invalid/os.img", "image_checksum": "0" * 64}

    async def story(url):
        async with running(tmp_path, work=True, agent_require_tls=False) as app:
            uuid = await planted(app, front, "available", instance_info=image)
            await verb(app, uuid, "active")
            await until(app, uuid, "wait call-back")
            await call(app, uuid, url)
            node = await until(app, uuid, "deploy failed")
            assert "no disk is big enough" in node.last_error
            async with asyncio.timeout(30):
                while await work.depth(app.program.store) != (0, 0):
                    await asyncio.sleep(0.01)
            assert (paper.is_on, paper.image) == (False, None)

    with listening() as (agent, url):
        failure = {"command_error": {"message": "no disk is big enough"}}
        agent.becomes = {"command_status": "FAILED", **failure}
        ask = Agent._ask

        async def silent_if_off(self, at, *what):
            if not paper.is_on:
                raise AgentSilent("the ramdisk does not answer")
            token = at.driver_internal_info["agent_secret_token"]
            monkeypatch.setattr("tests.baremetal.drivers.test_agent.TOKEN", token)
            return await ask(self, at, *what)

        monkeypatch.setattr(Agent, "_ask", silent_if_off)
        asyncio.run(story(url))
