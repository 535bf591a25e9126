"""The token of a ramdisk: on the medium that was made for it, or else for whoever asks first."""

import asyncio

import pytest

from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.drivers.agent import Ramdisks
from siderite.baremetal.drivers.agent import RamdiskSettings
from siderite.baremetal.drivers.agent import boot
from siderite.baremetal.drivers.switch import Switch
from tests.baremetal.drivers.machine import Machine
from tests.baremetal.drivers.test_switch import Board
from tests.baremetal.workers.lives import until
from tests.baremetal.workers.lives import until_power
from tests.baremetal.workers.lives import verb
from tests.baremetal.workers.test_service import ISO
from tests.baremetal.workers.test_service import STEPS
from tests.baremetal.workers.test_service import planted
from tests.lab.redfish_paper import SYSTEM
from tests.support.app import running

TOKEN, FLAG = "agent_secret_token", "agent_secret_token_pregenerated"


def configured(tmp_path):
    """A service with a kernel and a ramdisk to make media of."""
    for name in ("kernel", "ramdisk"):
        (tmp_path / name).write_bytes(b"x")
    options = {f"deploy_{name}": str(tmp_path / name) for name in ("kernel", "ramdisk")}
    return running(tmp_path, work=True, agent_require_tls=False, **options)


async def serviced(app, front, **info):
    """A node that waits for the ramdisk of its service."""
    known = {**front.driver_info, "redfish_system_id": SYSTEM, **info}
    uuid = await planted(app, front, "active", power_state="power on", driver_info=known)
    await verb(app, uuid, "service", service_steps=STEPS)
    return await until(app, uuid, "service wait")


async def looked_up(app, node):
    """The token that whoever asks for the node is given."""
    found = await app.ask("GET", f"/v1/lookup?node_uuid={node.uuid}", token="")
    return found.json["config"]["agent_token"]


def test_a_medium_that_is_made_for_a_ramdisk_has_its_token_and_nobody_is_given_it(
    paper, front, tmp_path
):
    async def story():
        async with configured(tmp_path) as app:
            node = await serviced(app, front)
            info = node.driver_internal_info
            assert info[FLAG] is True
            [iso] = (tmp_path / "boot" / node.uuid).glob("*/boot.iso")
            assert f"ipa-agent-token={info[TOKEN]}".encode() in iso.read_bytes()
            assert await looked_up(app, node) == "******"
            shown = (await app.show(node.uuid))["driver_internal_info"]
            assert (shown[TOKEN], shown[FLAG]) == ("******", True)
            beat = {"callback_url": "http://127.0.0.1:1", "agent_token": info[TOKEN]}
            answer = await app.ask("POST", f"/v1/heartbeat/{node.uuid}", beat, token="")
            assert answer.status == 202, answer
            await verb(app, node.uuid, "abort")
            left = await until(app, node.uuid, "active")
            assert not {TOKEN, FLAG} & set(left.driver_internal_info)

    asyncio.run(story())


@pytest.mark.parametrize("target", ["power off", "rebooting"])
def test_the_token_on_a_medium_stays_when_somebody_switches_the_machine_meanwhile(
    paper, front, tmp_path, monkeypatch, target
):
    """Else whoever asks before the ramdisk does gets one, and the ramdisk's is not known."""
    real, is_held = Switch.set, asyncio.Event()

    async def held(self, at, to, token):
        await is_held.wait()
        return await real(self, at, to, token)

    async def story():
        async with configured(tmp_path) as app:
            node = await serviced(app, front)
            info = node.driver_internal_info
            monkeypatch.setattr(Switch, "set", held)
            path = f"/v1/nodes/{node.uuid}/states/power"
            assert (await app.ask("PUT", path, {"target": target})).status == 202
            beat = {"callback_url": "http://127.0.0.1:1", "agent_token": info[TOKEN]}
            early = await app.ask("POST", f"/v1/heartbeat/{node.uuid}", beat, token="")
            assert early.status == 409, "it may be the ramdisk that goes"
            is_held.set()
            left = (await until_power(app, node.uuid)).driver_internal_info
            assert (left[TOKEN], left[FLAG], "agent_url" in left) == (info[TOKEN], True, False)
            assert await looked_up(app, node) == "******"
            again = await app.ask("POST", f"/v1/heartbeat/{node.uuid}", beat, token="")
            assert again.status == 202, again

    asyncio.run(story())


def test_a_ramdisk_on_a_ready_image_asks_for_its_token(paper, front, tmp_path):
    async def story():
        async with running(tmp_path, work=True, agent_require_tls=False) as app:
            node = await serviced(app, front, deploy_iso=ISO)
            assert not {TOKEN, FLAG} & set(node.driver_internal_info)
            assert len(await looked_up(app, node)) >= 32
            assert await looked_up(app, node) == "******"

    asyncio.run(story())


def test_who_asks_before_the_machine_is_off_does_not_keep_the_token_from_its_ramdisk(
    paper, front, tmp_path, monkeypatch
):
    real, given = Switch.toward, []

    async def story():
        async with configured(tmp_path) as app:

            async def slow(self, at, order, token):
                if not given:
                    given.append("")
                    found = await app.ask("GET", f"/v1/lookup?node_uuid={at.node}", token="")
                    given[0] = found.json["config"]["agent_token"]
                return await real(self, at, order, token)

            monkeypatch.setattr(Switch, "toward", slow)
            node = await serviced(app, front, deploy_iso=ISO)
            assert len(given[0]) >= 32
            assert await looked_up(app, node) not in ("******", given[0])

    asyncio.run(story())


def test_nor_from_one_that_boots_by_network(tmp_path):
    for name in ("kernel", "ramdisk"):
        (tmp_path / name).touch()
    files = RamdiskSettings(
        tmp_path / "boot", "http://here", "http://here",
        kernel=str(tmp_path / "kernel"), ramdisk=str(tmp_path / "ramdisk"),
    )  # fmt: skip
    board, machine = Board(), Machine({}, boot="ipxe")
    booter = boot.Booter(Switch(board), board, None, Ramdisks(files))

    async def ask(at):
        if board.state is PowerState.ON and not board.told:
            machine.memory[TOKEN] = "given to somebody else"
        outcome = await booter.boot(at, "op/0")
        return Done() if outcome.callback else outcome

    asyncio.run(machine.until_done(ask))
    assert machine.memory.get(TOKEN) is None


def test_a_medium_that_an_older_worker_made_leaves_its_ramdisk_to_ask_for_the_token(
    paper, front, tmp_path, monkeypatch
):
    """As in a rolling upgrade: a newer worker began the boot, and it was to put a token there."""
    real = Ramdisks.iso

    async def older(self, at, secret, *, inspects=False, token=""):
        return await real(self, at, secret, inspects=inspects)

    async def story():
        async with configured(tmp_path) as app:
            node = await serviced(app, front)
            assert not {TOKEN, FLAG} & set(node.driver_internal_info)
            assert len(await looked_up(app, node)) >= 32

    monkeypatch.setattr(Ramdisks, "iso", older)
    monkeypatch.setattr(boot, "_known_by", lambda at, token, waiting: waiting)
    asyncio.run(story())


def test_a_boot_that_an_older_worker_began_has_its_token_on_the_medium(
    paper, front, tmp_path, monkeypatch
):
    """It made the token the node's before there was a medium: nobody is given that any more."""
    real, given = boot.Booter.boot, "t" * 43

    async def older(self, at, token, *more, **how):
        outcome = await real(self, at, token, *more, **how)
        if at.driver_internal_info.get("ramdisk") is None:
            del outcome.remember["ramdisk"]["agent_token"]
            outcome.remember.update({TOKEN: given, FLAG: True})
        return outcome

    async def story():
        async with configured(tmp_path) as app:
            node = await serviced(app, front)
            assert node.driver_internal_info[TOKEN] == given
            [iso] = (tmp_path / "boot" / node.uuid).glob("*/boot.iso")
            assert f"ipa-agent-token={given}".encode() in iso.read_bytes()

    monkeypatch.setattr(boot.Booter, "boot", older)
    asyncio.run(story())


def test_who_asks_for_the_token_before_the_medium_is_made_is_not_taken_for_its_ramdisk(
    paper, front, tmp_path, monkeypatch
):
    real = Ramdisks.iso
    given = []

    async def story():
        async with configured(tmp_path) as app:

            async def slow(self, at, secret, **more):
                if not given:
                    path = f"/v1/lookup?node_uuid={at.node}"
                    found = await app.ask("GET", path, token="")
                    given.append(found.json["config"]["agent_token"])
                    beat = {"callback_url": "http://127.0.0.1:1", "agent_token": given[0]}
                    await app.ask("POST", f"/v1/heartbeat/{at.node}", beat, token="")
                return await real(self, at, secret, **more)

            monkeypatch.setattr(Ramdisks, "iso", slow)
            node = await serviced(app, front)
            info = node.driver_internal_info
            assert "agent_url" not in info
            assert info[TOKEN] not in ("******", *given)
            [iso] = (tmp_path / "boot" / node.uuid).glob("*/boot.iso")
            assert f"ipa-agent-token={info[TOKEN]}".encode() in iso.read_bytes()
            shown = (await app.show(node.uuid))["driver_internal_info"]
            assert info[TOKEN] not in str(shown)

    asyncio.run(story())
