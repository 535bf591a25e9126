"""Rescue by a ramdisk: a Redfish BMC with a machine of paper, and the test plays the ramdisk."""

import asyncio
import json
from contextlib import contextmanager
from subprocess import run

import pytest

from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.drivers.agent import Agent
from siderite.baremetal.drivers.agent import AgentSteps
from siderite.baremetal.drivers.agent import Booter
from siderite.baremetal.drivers.agent import Ramdisks
from siderite.baremetal.drivers.agent import RamdiskSettings
from siderite.baremetal.drivers.agent import rescue
from siderite.baremetal.drivers.agent.crypt import sha512_crypt
from siderite.baremetal.drivers.switch import Switch
from siderite.core import eventlog
from siderite.core import log
from siderite.core import work
from siderite.core.store import Op
from siderite.core.transition import Cause
from tests.baremetal.drivers.machine import Machine
from tests.baremetal.drivers.test_agent import listening
from tests.baremetal.drivers.test_switch import Board
from tests.baremetal.workers.lives import last_word
from tests.baremetal.workers.lives import lead
from tests.baremetal.workers.lives import until
from tests.baremetal.workers.lives import verb
from tests.lab.redfish_paper import SYSTEM
from tests.support.app import running

PASSWORD = "let me in, 17 times"
RESCUE_ISO = "http://images.invalid/rescue.iso"
AGENT = {"rescue_interface": "agent"}


@contextmanager
def ramdisk(**becomes):
    """A ramdisk that takes a password, or not; gives what it was told, and where it is."""
    with listening() as (agent, url):
        end = {"command_status": "SUCCEEDED", "command_error": None, **becomes}
        take = agent.given
        agent.given = lambda body, query: {**take(body, query), **end}
        yield agent, url


def planted(app, front, **fields):
    info = {**front.driver_info, "redfish_system_id": SYSTEM, "rescue_iso": RESCUE_ISO}
    interfaces = app.program.baremetal.cards["redfish"].fill_in({**AGENT, **fields})
    return app.plant("active", driver="redfish", driver_info=info, **interfaces)


async def call(app, uuid, url):
    """Look the node up and call, as the ramdisk does; what it calls with."""
    found = await app.ask("GET", f"/v1/lookup?node_uuid={uuid}", token="")
    assert found.status == 200, found
    assert PASSWORD not in found.body.decode()
    token = found.json["config"]["agent_token"]
    beat = {"callback_url": url, "agent_version": "1", "agent_token": token}
    told = await app.ask("POST", f"/v1/heartbeat/{uuid}", beat, token="")
    assert told.status == 202, told
    return beat


async def everything_said(app, uuid):
    """What anybody can learn of a node: the log of events, its own page, its history."""
    events = [bytes(e.payload).decode() for e in await eventlog.read(app.program.store, limit=1000)]
    for path in ("", "/history", "/timeline", "/states", "/validate"):
        page = await app.ask("GET", f"/v1/nodes/{uuid}{path}", version=900)
        assert page.status == 200, page
        events.append(page.body.decode())
    return "".join(events)


def test_a_rescue_system_gets_its_password_once_and_its_user_is_alone_with_it(
    paper, front, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(log._Sink, "level", log.DEBUG)

    async def story(agent, url):
        async with running(tmp_path, work=True, agent_require_tls=False) as app:
            uuid = await planted(app, front)
            await verb(app, uuid, "rescue", rescue_password=PASSWORD)
            waiting = await until(app, uuid, "rescue wait")
            assert waiting.deadline is not None
            assert paper.starts == [RESCUE_ISO]
            said = await everything_said(app, uuid)
            await call(app, uuid, url)
            node = await until(app, uuid, "rescue")
            assert (node.power_state, node.last_error) == ("power on", None)
            assert "rescue_password" not in node.instance_info
            left = {"agent_url", "agent_secret_token", "agent_rescue", "ramdisk", "bmc_task"}
            assert not left & set(node.driver_internal_info)
            assert paper.image is None, "it runs from memory"
            [given] = agent.given_params
            assert given["hashed"] is True
            salt = given["rescue_password"].split("$")[2]
            assert given["rescue_password"] == sha512_crypt(PASSWORD, salt)
            said += await everything_said(app, uuid)

            await lead(app, uuid, "unrescue")
            assert paper.starts == [RESCUE_ISO, "disk"]
            assert (await app.node(uuid)).power_state == "power on"
            assert await work.depth(app.program.store) == (0, 0)
            said += json.dumps(agent.given_params)
            assert PASSWORD not in said
        printed = capsys.readouterr()
        assert PASSWORD not in printed.out + printed.err
        assert given["rescue_password"] not in printed.out + printed.err

    with ramdisk() as (agent, url):
        asyncio.run(story(agent, url))


def test_an_aborted_rescue_leaves_no_ramdisk_and_the_workload_can_come_back(paper, front, tmp_path):
    async def story():
        async with running(tmp_path, work=True, agent_require_tls=False) as app:
            uuid = await planted(app, front)
            await verb(app, uuid, "rescue", rescue_password=PASSWORD)
            await until(app, uuid, "rescue wait")
            await verb(app, uuid, "abort")
            node = await until(app, uuid, "rescue failed")
            assert "Aborted by request" in node.last_error
            assert "rescue_password" not in node.instance_info
            await _nothing_left(app, paper)
            await lead(app, uuid, "unrescue")
            assert paper.starts == [RESCUE_ISO, "disk"]

    asyncio.run(story())


@pytest.mark.parametrize("comes_back", [True, False])
def test_an_abort_while_the_bmc_is_away_is_tidied_up_when_it_is_back_or_told(
    paper, front, tmp_path, monkeypatch, comes_back
):
    monkeypatch.setattr("siderite.baremetal.drivers.agent.steps.ASK_AGAIN_S", 0.02)

    async def story():
        async with running(tmp_path, work=True, agent_require_tls=False) as app:
            uuid = await planted(app, front)
            await verb(app, uuid, "rescue", rescue_password=PASSWORD)
            await until(app, uuid, "rescue wait")
            front.stop()
            await verb(app, uuid, "abort")
            await until(app, uuid, "rescue failed")
            await tidying_waits(app, uuid)
            assert paper.is_on
            if comes_back:
                front.start()
                await _nothing_left(app, paper)
                node = await app.node(uuid)
                assert (node.maintenance, node.fault) == (False, None)
                return
            change = app.program.door.change(Cause())
            change.put(Op("UPDATE work SET deadline = ? WHERE machine = ?", (change.now, uuid)))
            await app.program.door.commit(change)
            await over(app)
            node = await app.node(uuid)
            assert (node.maintenance, node.fault) == (True, "rescue abort failure")
            assert "its ramdisk may still run: The BMC" in node.maintenance_reason
            assert await last_word(app, uuid) == "update.end"

    asyncio.run(story())


async def tidying_waits(app, uuid):
    """Until the BMC was asked in vain."""
    async with asyncio.timeout(30):
        while True:
            reasons = [item.reason or "" for item in await work.of_machine(app.program.store, uuid)]
            if any("could not be reached" in reason for reason in reasons):
                return
            await asyncio.sleep(0.01)


def test_a_ramdisk_that_calls_and_does_not_answer_has_a_deadline_all_the_same(
    paper, front, tmp_path
):
    async def story(url):
        async with running(tmp_path, work=True, agent_require_tls=False) as app:
            uuid = await planted(app, front)
            await verb(app, uuid, "rescue", rescue_password=PASSWORD)
            await until(app, uuid, "rescue wait")
            [parked] = await work.of_machine(app.program.store, uuid)
            beat = await call(app, uuid, url)
            for looked in (1, 2):
                await silent_times(app, uuid, looked)
                await app.ask("POST", f"/v1/heartbeat/{uuid}", beat, token="")
            [again] = await work.of_machine(app.program.store, uuid)
            assert again.deadline == parked.deadline
            change = app.program.door.change(Cause())
            change.put(Op("UPDATE work SET deadline = ? WHERE machine = ?", (change.now, uuid)))
            change.work(work.wake(uuid, parked.lane, change.now))
            await app.program.door.commit(change)
            node = await until(app, uuid, "rescue failed")
            assert "nothing called back" in node.last_error
            assert "HTTP 500" in node.last_error
            assert "rescue_password" not in node.instance_info
            await _nothing_left(app, paper)

    with ramdisk() as (agent, url):
        agent.answers = (500, "not now")
        asyncio.run(story(url))


async def silent_times(app, uuid, times):
    """Until the ramdisk has been asked so often."""
    async with asyncio.timeout(30):
        while True:
            memory = (await app.node(uuid)).driver_internal_info.get("agent_rescue") or {}
            if memory.get("silent", 0) >= times:
                return
            await asyncio.sleep(0.01)


def test_a_ramdisk_that_does_not_take_the_password_is_told_without_it(paper, front, tmp_path):
    async def story(agent, url):
        take = agent.given

        def refuse(body, query):
            words = f"cannot write {body['params']['rescue_password']} anywhere"
            return {**take(body, query), "command_error": {"message": words}}

        agent.given = refuse
        async with running(tmp_path, work=True, agent_require_tls=False) as app:
            uuid = await planted(app, front)
            await verb(app, uuid, "rescue", rescue_password=PASSWORD)
            await until(app, uuid, "rescue wait")
            await call(app, uuid, url)
            node = await until(app, uuid, "rescue failed")
            assert "cannot write ****** anywhere" in node.last_error
            await _nothing_left(app, paper)
            assert "$6$" not in await everything_said(app, uuid)

    with ramdisk(command_status="FAILED") as (agent, url):
        asyncio.run(story(agent, url))


async def over(app):
    """Until no work is left."""
    async with asyncio.timeout(30):
        while await work.depth(app.program.store) != (0, 0):
            await asyncio.sleep(0.01)


async def _nothing_left(app, paper):
    await over(app)
    assert not paper.is_on
    assert paper.image is None


def test_what_a_rescue_lacks_is_told_before_anything_is_done(front, tmp_path):
    async def story():
        async with running(tmp_path) as app:
            uuid = await planted(app, front, rescue_interface="no-rescue")
            refused = await verb(app, uuid, "rescue", 400, rescue_password=PASSWORD)
            assert "does not support rescue" in refused.sentence
            uuid = await planted(app, front)
            for bad in ("", " ", "two\nlines", "\ud800", "x" * 257, 17, None):
                body = {"target": "rescue", "rescue_password": bad}
                refused = await app.ask("PUT", f"/v1/nodes/{uuid}/states/provision", body)
                assert refused.status == 400, bad
            checked = await app.ask("GET", f"/v1/nodes/{uuid}/validate")
            assert checked.json["rescue"] == {"result": True}
            gone = [{"op": "remove", "path": "/driver_info/rescue_iso"}]
            assert (await app.ask("PATCH", f"/v1/nodes/{uuid}", gone)).status == 200
            checked = await app.ask("GET", f"/v1/nodes/{uuid}/validate")
            assert "no ramdisk to boot" in checked.json["rescue"]["reason"]
            refused = await verb(app, uuid, "rescue", 400, rescue_password=PASSWORD)
            assert "cannot be rescued: there is no ramdisk" in refused.sentence
            assert (await app.node(uuid)).provision_state == "active"
            assert not front.orders

    asyncio.run(story())


def test_a_ramdisk_that_may_have_the_password_and_is_silent_is_booted_anew(tmp_path):
    """We are killed right after it took the password: it answers nobody any more."""
    machine = Machine({}, rescue="agent", boot="ipxe")
    machine.pause_s = 0.001
    machine.instance_info = {"rescue_password": PASSWORD}
    for name in ("kernel", "ramdisk"):
        (tmp_path / name).touch()
        machine.driver_info[f"rescue_{name}"] = f"file://{tmp_path}/{name}"
    settings = RamdiskSettings(tmp_path / "boot", "http://a", "http://a", boot_files=str(tmp_path))
    board = Board()
    [step] = rescue.STEPS[Family.RESCUE]

    async def ask(at):
        """Each time by another process."""
        booter = Booter(Switch(board), board, None, Ramdisks(settings))
        steps = AgentSteps(booter, Agent(timeout_s=5), own={}, extra={})
        outcome = await steps.run(at, Family.RESCUE, step, "op/0")
        if isinstance(outcome, Wait) and outcome.callback:
            beat = f"{len(machine.waits)}"
            machine.memory |= {"agent_url": url, "agent_last_heartbeat": beat}
        return outcome

    with ramdisk() as (agent, url):
        take = agent.given

        def lose_the_answer(body, query):
            agent.answers = (500, "")
            agent.given = take
            return take(body, query)

        def answer_again():
            agent.answers = None

        agent.given = lose_the_answer
        boots = []

        async def story():
            async def watched(at):
                outcome = await ask(at)
                if isinstance(outcome, Wait) and "boots anew" in outcome.reason:
                    boots.append(len(machine.waits))
                    answer_again()
                return outcome

            return await machine.until_done(watched)

        assert isinstance(asyncio.run(story()), Done)
        assert len(boots) == 1
        assert [word for word in board.told if word == "on"] == ["on", "on"]
        assert len(agent.given_params) == 1 + rescue.MOST_SILENT
    assert {key for key, value in machine.memory.items() if value} == set()


def test_hashes_are_those_that_a_system_knows():
    for word, salt in (("hunter2", "a"), (PASSWORD * 4, "0123456789./abcd"), ("\u00e4" * 64, "s")):
        known = ["openssl", "passwd", "-6", "-salt", salt, "-stdin"]
        told = run(known, input=word.encode(), check=True, capture_output=True).stdout.decode()
        assert sha512_crypt(word, salt) == told.strip()
    assert sha512_crypt("a") != sha512_crypt("a"), "each has a salt of its own"
