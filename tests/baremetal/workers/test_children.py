"""Steps on the children of a node: they run on them, on no other node, and the parent waits."""

import asyncio

import pytest

from siderite.baremetal.usecases.node import children
from siderite.baremetal.usecases.power import power
from tests.baremetal.workers.lives import facts
from tests.baremetal.workers.lives import lead
from tests.baremetal.workers.lives import script
from tests.baremetal.workers.lives import until
from tests.baremetal.workers.lives import until_power
from tests.baremetal.workers.lives import verb
from tests.support.app import running


def on_children(step, **more):
    return {"interface": "power", "step": step, "execute_on_child_nodes": True, **more}


async def family(app, count=2, **fields):
    """A node that is on and manageable, and its children, which are on."""
    parent = await app.make_node()
    await lead(app, parent, "manage")
    children = [await app.make_node(parent_node=parent, **fields) for _ in range(count)]
    for uuid in (parent, *children):
        await app.ask("PUT", f"/v1/nodes/{uuid}/states/power", {"target": "power on"})
        await until_power(app, uuid)
    return parent, children


async def powers(app, *uuids):
    return [(await app.node(uuid)).power_state for uuid in uuids]


def test_a_step_on_children_is_for_them_and_not_for_the_parent(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            parent, (one, other) = await family(app)
            await verb(app, parent, "clean", clean_steps=[on_children("power_off")])
            node = await until(app, parent, "manageable")
            assert node.last_error is None
            assert await powers(app, parent, one, other) == ["power on", "power off", "power off"]
            steps = [
                on_children("power_on", limit_child_node_execution=[other.upper()]),
                {"interface": "power", "step": "power_off"},
            ]
            await verb(app, parent, "clean", clean_steps=steps)
            node = await until(app, parent, "manageable")
            assert await powers(app, parent, one, other) == ["power off", "power off", "power on"]
            assert "child_steps" not in node.driver_internal_info
            for child, times in ((one, 2), (other, 3)):
                told = [status for status, _ in await facts(app, child, "power_set")]
                assert told == ["start", "end"] * times

    asyncio.run(story())


def test_each_child_is_asked_once_though_the_service_stops_in_between(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            parent, children = await family(app, 3)
            script(app, "all", latency_s={"*": 0.4})
            await verb(app, parent, "clean", clean_steps=[on_children("reboot")])
            async with asyncio.timeout(30):
                while len(await facts(app, children[1], "power_set")) < 3:
                    await asyncio.sleep(0.01)
        async with running(tmp_path, work=True) as app:
            await until(app, parent, "manageable")
            for child in children:
                told = [status for status, _ in await facts(app, child, "power_set")]
                assert told == ["start", "end"] * 2, child

    asyncio.run(story())


def test_a_child_that_cannot_follow_fails_the_step_and_is_named(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            parent, (child,) = await family(app, 1)
            script(app, f"node:{child}", fail={"power": "the board is dead"})
            await verb(app, parent, "clean", clean_steps=[on_children("power_off")])
            node = await until(app, parent, "clean failed")
            assert child in node.last_error
            assert "the board is dead" in node.last_error
            assert "child_steps" not in node.driver_internal_info
            assert await powers(app, parent) == ["power on"]
            script(app, f"node:{child}")
            patch = [{"op": "add", "path": "/disable_power_off", "value": True}]
            await app.ask("PATCH", f"/v1/nodes/{child}", patch)
            await app.ask("DELETE", f"/v1/nodes/{parent}/maintenance")
            await lead(app, parent, "manage")
            await verb(app, parent, "clean", clean_steps=[on_children("power_off")])
            node = await until(app, parent, "clean failed")
            assert "disable_power_off" in node.last_error
            assert await powers(app, child) == ["power on"]

    asyncio.run(story())


def test_a_child_that_is_on_and_could_not_be_rebooted_fails_the_step(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            parent, (child,) = await family(app, 1)
            script(app, f"node:{child}", fail={"power": "the board is dead"})
            await verb(app, parent, "clean", clean_steps=[on_children("reboot")])
            node = await until(app, parent, "clean failed", "manageable")
            assert "the board is dead" in (node.last_error or "")
            assert await powers(app, child) == ["power on"]

    asyncio.run(story())


def test_what_an_earlier_version_made_of_a_reboot_is_known_by_the_error(tmp_path, monkeypatch):
    """It does not know of the step that it carries out."""
    monkeypatch.setattr(
        children, "power_of", lambda ctx, run, target: lambda change, child: power.begin(
            ctx, change, child, target
        )
    )  # fmt: skip

    async def story():
        async with running(tmp_path, work=True) as app:
            parent, (child,) = await family(app, 1)
            script(app, f"node:{child}", fail={"power": "fuse blown"})
            await verb(app, parent, "clean", clean_steps=[on_children("reboot")])
            node = await until(app, parent, "manageable", "clean failed")
            assert node.provision_state == "clean failed"
            assert "fuse blown" in node.last_error

    asyncio.run(story())


def test_what_else_fails_on_a_child_while_it_is_rebooted_is_not_the_reboots(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            parent, (child,) = await family(app, 1)
            broken = {"console": "no serial line"}
            script(app, f"node:{child}", latency_s={"power": 0.3}, fail=broken)
            await verb(app, parent, "clean", clean_steps=[on_children("reboot")])
            async with asyncio.timeout(30):
                while (await app.node(child)).target_power_state is None:
                    await asyncio.sleep(0.01)
                path = f"/v1/nodes/{child}/states/console"
                assert (await app.ask("PUT", path, {"enabled": True})).status == 202
                while (await app.node(child)).last_error is None:
                    await asyncio.sleep(0.01)
            node = await until(app, parent, "manageable", "clean failed")
            assert (node.provision_state, node.last_error) == ("manageable", None)
            assert "no serial line" in (await app.node(child)).last_error

    asyncio.run(story())


def test_what_cannot_be_done_on_children_is_refused(tmp_path):
    alone = {"interface": "power", "step": "power_on", "limit_child_node_execution": ["x"]}

    async def story():
        async with running(tmp_path) as app:
            uuid = await app.plant("manageable")
            for step, words in (
                (on_children("wait"), "wait cannot be executed on child nodes"),
                (on_children("hold"), "hold cannot be executed on child nodes"),
                (on_children("power_on", limit_child_node_execution=["x"]), "list of UUIDs"),
                (on_children("power_on", limit_child_node_execution=[7]), "list of UUIDs"),
                (alone, "goes with execute_on_child_nodes"),
            ):
                answer = await verb(app, uuid, "clean", 400, clean_steps=[step])
                assert words in answer.sentence

    asyncio.run(story())


async def num_lock(app, uuid):
    answer = await app.ask("GET", f"/v1/nodes/{uuid}/bios/NumLock")
    return answer.json["NumLock"]["value"] if answer.status == 200 else None


def on_bios(step="apply_configuration", **args):
    return {**on_children(step), "interface": "bios", "args": args}


def num_lock_off():
    return on_bios(settings=[{"name": "NumLock", "value": "Off"}])


def test_a_step_of_the_childrens_own_driver_runs_on_them_and_not_on_the_parent(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            parent, (one, other) = await family(app)
            await verb(app, parent, "clean", clean_steps=[num_lock_off()])
            node = await until(app, parent, "manageable")
            assert node.last_error is None
            assert [await num_lock(app, child) for child in (one, other)] == ["Off", "Off"]
            assert await num_lock(app, parent) != "Off"
            assert "child_steps" not in node.driver_internal_info

    asyncio.run(story())


def test_what_a_step_changes_of_a_child_is_announced_as_an_update_of_it(tmp_path):
    step = {**on_children("create_configuration"), "interface": "raid"}
    disks = {"logical_disks": [{"raid_level": "1", "size_gb": 100}]}

    async def story():
        async with running(tmp_path, work=True) as app:
            parent, (child,) = await family(app, 1)
            await app.ask("PUT", f"/v1/nodes/{child}/states/raid", disks)
            asked = await facts(app, child, "update")
            await verb(app, parent, "clean", clean_steps=[step])
            await until(app, parent, "manageable")
            assert (await app.node(child)).raid_config["logical_disks"]
            told = await facts(app, child, "update")
            assert [status for status, _ in told[len(asked) :]] == ["start", "end"]

    asyncio.run(story())


def test_a_step_that_fails_on_a_child_fails_the_parents_with_its_reason(tmp_path):
    erase = {**on_children("erase_devices"), "interface": "deploy"}
    failing = (
        (on_bios(settings=[{"name": "Nonsense", "value": "1"}]), "there is none to change"),
        (on_bios("no_such_step"), "the driver has no step bios.no_such_step"),
        (erase, "runs in a ramdisk"),
    )

    async def story():
        async with running(tmp_path, work=True) as app:
            for step, why in failing:
                parent, (child,) = await family(app, 1)
                await verb(app, parent, "clean", clean_steps=[step])
                node = await until(app, parent, "clean failed")
                assert f"child node {child}: " in node.last_error
                assert why in node.last_error

    asyncio.run(story())


def test_a_step_on_a_child_runs_once_though_the_service_stops_in_between(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            parent, children = await family(app, 2)
            script(app, "all", latency_s={"*": 0.4})
            await verb(app, parent, "clean", clean_steps=[num_lock_off()])
            async with asyncio.timeout(30):
                while "parent_step" not in (await app.node(children[1])).driver_internal_info:
                    await asyncio.sleep(0.01)
        async with running(tmp_path, work=True) as app:
            node = await until(app, parent, "manageable")
            assert node.last_error is None
            assert [await num_lock(app, child) for child in children] == ["Off", "Off"]
            runs = app.program.machines._db.execute(
                "SELECT count(*) FROM runs WHERE what = 'bios.apply_configuration'"
            ).fetchone()
            assert runs[0] == 2

    asyncio.run(story())


def test_only_children_that_the_caller_may_act_on_are_acted_on(tmp_path):
    async def story():
        async with running(tmp_path) as app:
            _, token, project = await app.person("member")
            parent = await app.plant("manageable", owner=project)
            mine = await app.plant("manageable", owner=project, parent_node=parent)
            theirs = await app.plant("manageable", owner="them", parent_node=parent)
            stranger = await app.plant("manageable", owner=project)

            async def ask(only):
                step = on_children("power_off", limit_child_node_execution=only)
                body = {"target": "clean", "clean_steps": [step]}
                path = f"/v1/nodes/{parent}/states/provision"
                return await app.ask("PUT", path, body, token=token)

            for only, status in (([], 403), ([theirs], 403), ([stranger], 400), ([mine], 202)):
                answer = await ask(only)
                assert answer.status == status, (only, answer)
                assert theirs not in answer.body.decode()

    asyncio.run(story())


def test_a_step_in_the_ramdisk_fails_where_none_may_be_booted(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            steps = [{"interface": "deploy", "step": "erase_devices_metadata"}]
            await verb(app, uuid, "clean", clean_steps=steps, disable_ramdisk=True)
            node = await until(app, uuid, "clean failed")
            assert "deploy.erase_devices_metadata" in node.last_error
            assert "disable_ramdisk forbids" in node.last_error
            ran = app.program.machines._db.execute("SELECT count(*) FROM runs").fetchone()
            assert ran[0] == 0

    asyncio.run(story())


ORDERS = (
    ("PUT", "states/boot_mode", {"target": "bios"}),
    ("PUT", "states/secure_boot", {"target": True}),
    ("PUT", "management/boot_device", {"boot_device": "pxe"}),
    ("PUT", "management/inject_nmi", {}),
    ("POST", "vmedia", {"device_type": "cdrom", "image_url": "http://images/x.iso"}),
    ("DELETE", "vmedia", None),
)


def test_nothing_else_is_done_to_a_child_while_it_runs_a_step_for_its_parent(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            parent = await app.plant("manageable")
            child = await app.plant("manageable", parent_node=parent)
            script(app, f"node:{child}", latency_s={"bios.factory_reset": 0.3})
            step = {**on_children("factory_reset"), "interface": "bios"}
            await verb(app, parent, "clean", clean_steps=[step])
            async with asyncio.timeout(30):
                while "parent_step" not in (await app.node(child)).driver_internal_info:
                    await asyncio.sleep(0.01)
            refusals = [
                await app.ask("PUT", f"/v1/nodes/{child}/states/power", {"target": "power on"}),
                await verb(app, child, "provide", 409),
                *[
                    await app.ask(how, f"/v1/nodes/{child}/{path}", body)
                    for how, path, body in ORDERS
                ],
            ]
            for refusal in refusals:
                assert (refusal.status, refusal.headers["retry-after"]) == (409, "2")
                assert f"a step for its parent {parent}" in refusal.sentence
            assert (await until(app, parent, "manageable")).last_error is None
            await lead(app, child, "provide")

    asyncio.run(story())


@pytest.mark.parametrize(
    ("path", "value", "refused"),
    [
        ("/driver_info/redfish_address", "http://elsewhere", True),
        ("/driver", "ipmi", True),
        ("/bios_interface", "no-bios", True),
        ("/parent_node", None, True),
        ("/driver_info/redfish_password", "another", False),
        ("/description", "busy", False),
        ("/maintenance", True, False),
    ],
)
def test_how_a_child_is_driven_stays_while_it_runs_a_step_for_its_parent(
    database_url, tmp_path, path, value, refused
):
    async def story():
        async with running(tmp_path, database_url) as app:
            parent = await app.plant("manageable")
            busy = {"parent_step": {"token": "work/0"}}
            child = await app.plant("manageable", parent_node=parent, driver_internal_info=busy)
            before = await app.node(child)
            patch = [{"op": "replace" if value is None else "add", "path": path, "value": value}]
            answer = await app.ask("PATCH", f"/v1/nodes/{child}", patch)
            assert answer.status == (409 if refused else 200), answer
            if refused:
                assert f"a step for its parent {parent}" in answer.sentence
                assert await app.node(child) == before
                told = [status for status, _ in await facts(app, child, "update")]
                assert told == ["start", "error"]

    asyncio.run(story())


def test_a_parent_whose_work_is_aborted_forgets_which_children_it_has_asked(tmp_path):
    async def story():
        async with running(tmp_path) as app:
            asked = {"child_steps": {"token": "work/0", "asked": []}}
            parent = await app.plant("clean wait", driver_internal_info=asked)
            await verb(app, parent, "abort")
            node = await app.node(parent)
            assert node.provision_state == "clean failed"
            assert node.driver_internal_info == {}

    asyncio.run(story())
