"""Firmware and its settings by the API: what may be asked, and a flash that outlives the program
that began it.
"""

import asyncio

import pytest

from siderite.baremetal.drivers.redfish import firmware
from tests.baremetal.workers.lives import lead
from tests.baremetal.workers.lives import until
from tests.baremetal.workers.lives import verb
from tests.lab.redfish_paper import SYSTEM
from tests.support.app import running

GOOD = {"component": "bios", "url": "http://files.invalid/bios-2.0.bin"}
BAD = (
    (None, "args.settings"),
    ([], "args.settings"),
    ({}, "args.settings"),
    (["bios"], "component and url"),
    ([{"component": "bios"}], "component and url"),
    ([{"url": GOOD["url"]}], "component and url"),
    ([GOOD | {"component": "disk"}], "bios, bmc or nic:ID"),
    ([GOOD | {"component": ["bios"]}], "bios, bmc or nic:ID"),
    ([GOOD | {"url": "file:///etc/passwd"}], "http or https"),
    ([GOOD | {"url": "ftp://files.invalid/a"}], "http or https"),
    ([GOOD | {"url": "http://"}], "http or https"),
    ([GOOD | {"url": "http://[::1/a"}], "http or https"),
    ([GOOD | {"url": "http://a b/c"}], "http or https"),
    ([GOOD | {"url": 7}], "http or https"),
    ([GOOD | {"url": "http://files.invalid/" + "a" * 2000}], "at most 2000 characters"),
    ([GOOD | {"url": "http://a:secret@b/c"}], "user or password"),
    ([GOOD | {"checksum": "d41d8"}], "no 'checksum'"),
    ([GOOD | {"wait": -1}], "wait"),
    ([GOOD | {"wait": "soon"}], "wait"),
    ([GOOD, GOOD | {"wait": True}], "wait"),
)

SET = {"name": "NumLock", "value": "Off"}
BAD_BIOS = (
    (None, "args.settings"),
    ([], "args.settings"),
    ({"NumLock": "Off"}, "args.settings"),
    (["NumLock"], "name and value"),
    ([7], "name and value"),
    ([{"name": "NumLock"}], "name and value"),
    ([{"value": "Off"}], "name and value"),
    ([SET | {"name": ""}], "name of a BIOS setting"),
    ([SET | {"name": 7}], "name of a BIOS setting"),
    ([SET | {"value": ["Off"]}], "value of BIOS setting 'NumLock'"),
    ([SET, SET | {"value": "On"}], "asked for twice"),
)


def steps(*settings):
    return [{"interface": "firmware", "step": "update", "args": {"settings": list(settings)}}]


@pytest.mark.parametrize(
    ("interface", "name", "bad"),
    [("firmware", "update", BAD), ("bios", "apply_configuration", BAD_BIOS)],
)
def test_settings_that_cannot_be_meant_are_refused_before_anything_starts(
    tmp_path, interface, name, bad
):
    async def story():
        async with running(tmp_path) as app:
            uuid = await app.plant("manageable")
            template = {"name": "CUSTOM_FLASH"}
            for settings, word in bad:
                args = {} if settings is None else {"settings": settings}
                step = {"interface": interface, "step": name, "args": args}
                refused = await verb(app, uuid, "clean", 400, clean_steps=[step])
                assert word in refused.sentence, (settings, refused.sentence)
                if settings is None:
                    continue  # what is kept for later may lack them so far
                body = template | {"steps": [step | {"priority": 1}]}
                assert (await app.ask("POST", "/v1/deploy_templates", body)).status == 400
                body = {"name": "flash", "steps": [step | {"order": 1}]}
                assert (await app.ask("POST", "/v1/runbooks", body)).status == 400
            assert (await app.node(uuid)).provision_state == "manageable"

    asyncio.run(story())


async def versions(app, uuid):
    answer = await app.ask("GET", f"/v1/nodes/{uuid}/firmware")
    assert answer.status == 200, answer
    return {
        part["component"]: (part["current_version"], part["last_version_flashed"])
        for part in answer.json["firmware"]
    }


def test_a_flash_goes_on_in_the_next_program_and_is_done_once(tmp_path, paper, front, monkeypatch):
    monkeypatch.setattr(firmware, "LOOK_S", 0.01)
    front.by_task = lambda method, path: "SimpleUpdate" in path
    front.patience = 0
    ended = False
    front.waits_for = lambda: ended
    info = {**front.driver_info, "redfish_system_id": SYSTEM}
    wish = steps({"component": "bmc", "url": "http://files.invalid/bmc-2.0.bin"}, GOOD)

    async def story():
        nonlocal ended
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node(driver="redfish", driver_info=info)
            await lead(app, uuid, "manage")
            assert await versions(app, uuid) == {
                "bios": ("1.0", None), "bmc": ("1.0", None), "nic:Slot1": ("1.0", None),
            }  # fmt: skip
            await verb(app, uuid, "clean", clean_steps=wish)
            async with asyncio.timeout(30):
                while "has not ended" not in ((await app.node(uuid)).wait_reason or ""):
                    await asyncio.sleep(0.01)
        ended = True
        async with running(tmp_path, work=True) as app:
            node = await until(app, uuid, "manageable", "clean failed")
            assert (node.provision_state, node.last_error) == ("manageable", None)
            assert await versions(app, uuid) == {
                "bios": ("2.0", "2.0"), "bmc": ("2.0", "2.0"), "nic:Slot1": ("1.0", None),
            }  # fmt: skip
            assert node.power_state == "power off"
            assert not [key for key in node.driver_internal_info if "firmware" in key]

    asyncio.run(story())
    assert front.told("SimpleUpdate") == 2
    assert len(paper.flashed) == 2
    assert len(paper.starts) == 1


@pytest.mark.parametrize("kind", ["bios", "firmware"])
def test_what_a_node_has_no_interface_for_is_not_done(tmp_path, paper, front, kind):
    info = {**front.driver_info, "redfish_system_id": SYSTEM}
    asked = {
        "bios": {"interface": "bios", "step": "factory_reset"},
        "firmware": steps(GOOD)[0],
    }

    async def story():
        async with running(tmp_path, work=True) as app:
            none = {f"{kind}_interface": f"no-{kind}"}
            uuid = await app.make_node(driver="redfish", driver_info=info, **none)
            await lead(app, uuid, "manage")
            await verb(app, uuid, "clean", clean_steps=[asked[kind]])
            node = await until(app, uuid, "clean failed", "manageable")
            assert f"the driver has no step {kind}." in (node.last_error or "")

    asyncio.run(story())
    assert paper.flashed == []
