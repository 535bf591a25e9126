"""Hooks: the work on a node stops where an outside service has a say, and does what it says."""

import asyncio

import pytest

from siderite.baremetal.usecases.life import callback
from tests.baremetal.workers.lives import facts
from tests.baremetal.workers.lives import lead
from tests.baremetal.workers.lives import script
from tests.baremetal.workers.lives import until
from tests.baremetal.workers.lives import until_power
from tests.baremetal.workers.lives import verb
from tests.support.app import running
from tests.support.server import running_server


@pytest.fixture(params=["sqlite", "postgresql"])
def db(request):
    """No URL is SQLite in the data folder."""
    return "" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


async def hook(app, name="gate", **fields):
    answer = await app.ask("POST", "/v1/hooks", {"name": name, **fields}, version=900)
    assert answer.status == 201, answer
    return answer.json


async def answer(app, uuid, word, status=202, **more):
    said = await app.ask("PUT", f"/v1/nodes/{uuid}/hold", {"answer": word, **more}, version=900)
    assert said.status == status, said
    return said


async def hold_of(app, uuid):
    shown = await app.ask("GET", f"/v1/nodes/{uuid}/hold", version=900)
    assert shown.status == 200, shown
    return shown.json


async def until_held(app, uuid):
    """The node once it is held, in whatever state."""
    async with asyncio.timeout(30):
        while True:
            node = await app.node(uuid)
            if (node.wait_reason or "").startswith("held by hook"):
                return node
            await asyncio.sleep(0.01)


async def told(app, uuid):
    return [(status, data["by"]) for status, data in await facts(app, uuid, "hook")]


async def ready(app, **fields):
    """An available node."""
    uuid = await app.make_node(**fields)
    await lead(app, uuid, "manage", "provide")
    return uuid


def ran(app):
    rows = app.program.machines._db.execute("SELECT what FROM runs ORDER BY began")
    return [row[0] for row in rows]


def test_a_hook_on_a_step_holds_before_it_and_proceed_goes_on(tmp_path, db):
    async def story():
        async with running(tmp_path, db, work=True) as app:
            uuid = await ready(app)
            made = await hook(app, step="deploy.write_image", deadline_s=600)
            await verb(app, uuid, "active")
            node = await until(app, uuid, "deploy hold")
            assert "deploy.write_image" not in ran(app)
            assert node.wait_reason.startswith("held by hook gate for an answer by ")
            assert node.deadline is not None
            held = await hold_of(app, uuid)
            assert (held["hook"], held["hook_name"]) == (made["uuid"], "gate")
            assert held["step"]["step"] == "write_image"
            assert held["on_deadline"] == "fail"
            await answer(app, uuid, "proceed", hold=held["hold"])
            node = await until(app, uuid, "active")
            assert (node.wait_reason, node.deadline) == (None, None)
            assert "deploy.write_image" in ran(app)
            assert await told(app, uuid) == [("start", None), ("end", "answer")]
            gone = await app.ask("GET", f"/v1/nodes/{uuid}/hold", version=900)
            assert gone.status == 404

    asyncio.run(story())


@pytest.mark.parametrize(
    ("state", "held_in", "before"),
    [
        ("deploying", "deploy hold", True),
        ("active", "deploy hold", False),
    ],
)
def test_a_hook_on_a_state_holds_when_it_begins_or_before_it_is_reached(
    tmp_path, state, held_in, before
):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await ready(app)
            await hook(app, state=state)
            await verb(app, uuid, "active")
            await until(app, uuid, held_in)
            assert ("deploy.write_image" not in ran(app)) is before
            await answer(app, uuid, "proceed")
            await until(app, uuid, "active")
            assert await told(app, uuid) == [("start", None), ("end", "answer")]

    asyncio.run(story())


@pytest.mark.parametrize(
    ("state", "target", "held_in", "end"),
    [
        ("inspecting", "inspect", "inspect wait", "manageable"),
        ("manageable", "inspect", "inspect wait", "manageable"),
        ("rescuing", "rescue", "rescue wait", "rescue"),
        ("rescue", "rescue", "rescue wait", "rescue"),
    ],
)
def test_inspection_and_rescue_are_held_in_their_wait_state(tmp_path, state, target, held_in, end):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.plant("manageable" if target == "inspect" else "active")
            await hook(app, state=state)
            more = {"rescue_password": "hunter2"} if target == "rescue" else {}
            await verb(app, uuid, target, **more)
            node = await until_held(app, uuid)
            assert node.provision_state == held_in
            done = any(name.startswith(f"{target}.") for name in ran(app))
            assert done is (state == end), "it stops before the first step, or after the last"
            await callback.heartbeat(app.program.baremetal, uuid)
            await answer(app, uuid, "extend", seconds=900)
            assert (await app.node(uuid)).provision_state == held_in, "a call does not end a hold"
            await answer(app, uuid, "proceed")
            node = await until(app, uuid, end)
            assert (node.wait_reason, node.deadline) == (None, None)
            assert await told(app, uuid) == [
                ("start", None),
                ("success", "answer"),
                ("end", "answer"),
            ]

    asyncio.run(story())


@pytest.mark.parametrize(("policy", "end"), [("proceed", "manageable"), ("fail", "inspect failed")])
def test_a_held_inspection_without_an_answer_follows_the_hooks_policy(tmp_path, policy, end):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.plant("manageable")
            await hook(app, state="inspecting", deadline_s=1, on_deadline=policy)
            await verb(app, uuid, "inspect")
            await until_held(app, uuid)
            await until(app, uuid, end)
            status = "end" if policy == "proceed" else "error"
            assert await told(app, uuid) == [("start", None), (status, "deadline")]

    asyncio.run(story())


@pytest.mark.parametrize("state", ["inspecting", "manageable"])
@pytest.mark.parametrize("ramdisk", [True, False])
def test_nobody_sends_what_was_found_while_an_inspection_is_held(tmp_path, db, state, ramdisk):
    async def story():
        async with running(tmp_path, db, work=True) as app:
            uuid = await app.plant("manageable")
            script(app, f"node:{uuid}", ramdisk=ramdisk)
            await hook(app, state=state)
            await verb(app, uuid, "inspect")
            before = await until_held(app, uuid)
            kept = await app.ask("GET", f"/v1/nodes/{uuid}/inventory")
            fake = {"inventory": {"interfaces": [{"mac_address": "52:54:00:ee:ee:ee"}]}}
            path = f"/v1/continue_inspection?node_uuid={uuid}"
            said = await app.ask("POST", path, fake, token="")
            assert said.status == 404, said
            assert await app.node(uuid) == before
            assert (await app.ask("GET", f"/v1/nodes/{uuid}/inventory")).body == kept.body
            await answer(app, uuid, "proceed")
            await until(app, uuid, "manageable")
            assert "inspect.inspect" in ran(app)
            ports = (await app.ask("GET", f"/v1/nodes/{uuid}/ports")).json["ports"]
            assert "52:54:00:ee:ee:ee" not in [port["address"] for port in ports]

    asyncio.run(story())


def test_a_verb_that_takes_the_place_of_held_work_ends_the_hold(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.plant("active")
            await hook(app, state="rescuing")
            await verb(app, uuid, "rescue", rescue_password="hunter2")
            await until_held(app, uuid)
            await verb(app, uuid, "deleted")
            assert await told(app, uuid) == [("start", None), ("error", "abort")]
            await answer(app, uuid, "proceed", 409)
            await until(app, uuid, "available")

    asyncio.run(story())


@pytest.mark.parametrize("clean", [True, False])
def test_a_node_is_held_before_it_becomes_available_even_if_nothing_is_cleaned(tmp_path, clean):
    async def story():
        async with running(tmp_path, work=True, automated_clean=clean) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            await hook(app, state="available")
            await verb(app, uuid, "provide")
            await until(app, uuid, "clean hold")
            await answer(app, uuid, "proceed")
            await until(app, uuid, "available")

    asyncio.run(story())


def test_an_answer_of_fail_ends_the_work_with_its_reason(tmp_path, db):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await ready(app)
            await hook(app, state="deploying")
            await verb(app, uuid, "active")
            await until(app, uuid, "deploy hold")
            await answer(app, uuid, "fail", reason="the switch port is wrong")
            node = await until(app, uuid, "deploy failed")
            assert node.last_error == "hook gate said no: the switch port is wrong"
            assert not node.maintenance
            [start, error] = await facts(app, uuid, "hook")
            assert (error[0], error[1]["reason"]) == ("error", "the switch port is wrong")
            assert start[1]["hold"] == error[1]["hold"]
            await answer(app, uuid, "proceed", 409)

    asyncio.run(story())


@pytest.mark.parametrize(("policy", "end"), [("proceed", "active"), ("fail", "deploy failed")])
def test_a_deadline_without_an_answer_follows_the_hooks_own_policy(tmp_path, policy, end):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await ready(app)
            await hook(app, state="deploying", deadline_s=1, on_deadline=policy)
            await verb(app, uuid, "active")
            await until(app, uuid, "deploy hold")
            node = await until(app, uuid, end)
            status = "end" if policy == "proceed" else "error"
            assert await told(app, uuid) == [("start", None), (status, "deadline")]
            if policy == "fail":
                assert "had no answer by" in node.last_error

    asyncio.run(story())


@pytest.mark.parametrize(("state", "target"), [("deploying", "active"), ("inspecting", "inspect")])
@pytest.mark.parametrize("policy", ["proceed", "fail"])
def test_no_deadline_passes_while_the_node_is_in_maintenance(
    tmp_path, monkeypatch, policy, state, target
):
    monkeypatch.setattr("siderite.baremetal.usecases.life.hooks.LOOK_AGAIN_S", 0.1)

    async def story():
        async with running(tmp_path, work=True) as app:
            begin = {"active": "available", "inspect": "manageable"}
            uuid = await app.plant(begin[target], power_state="power off")
            await hook(app, state=state, deadline_s=1, on_deadline=policy)
            await verb(app, uuid, target)
            await until_held(app, uuid)
            held = await hold_of(app, uuid)
            path = f"/v1/nodes/{uuid}/maintenance"
            assert (await app.ask("PUT", path, {"reason": "a new fan"})).status == 202
            async with asyncio.timeout(20):
                while "in maintenance" not in ((await app.node(uuid)).wait_reason or ""):
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.3)
            assert (await hold_of(app, uuid))["hold"] == held["hold"]
            assert await told(app, uuid) == [("start", None)]
            assert (await app.ask("DELETE", path)).status == 202
            ends = {"deploying": "deploy failed", "inspecting": "inspect failed"}
            if policy == "proceed":
                ends = {"deploying": "active", "inspecting": "manageable"}
            await until(app, uuid, ends[state])

    asyncio.run(story())


def test_no_answer_has_steps_run_while_the_power_is_being_changed(tmp_path, db):
    async def story():
        async with running(tmp_path, db, work=True, power_wait_s=0.0) as app:
            uuid = await app.plant("available", power_state="power off")
            await hook(app, state="deploying")
            await verb(app, uuid, "active")
            await until_held(app, uuid)
            script(app, f"node:{uuid}", latency_s={"power": 0.5})
            await app.ask("PUT", f"/v1/nodes/{uuid}/states/power", {"target": "power on"})
            for word, more in (("proceed", {}), ("fail", {"reason": "the disk is bad"})):
                said = await answer(app, uuid, word, 409, **more)
                assert "on its way to 'power on'" in said.sentence
            await answer(app, uuid, "extend", seconds=600)
            await until_power(app, uuid)
            await answer(app, uuid, "proceed")
            await until(app, uuid, "active")

    asyncio.run(story())


@pytest.mark.parametrize("policy", ["proceed", "fail"])
def test_no_deadline_passes_while_the_power_is_being_changed(tmp_path, monkeypatch, policy):
    monkeypatch.setattr("siderite.baremetal.usecases.life.hooks.STEADY_S", 0.1)

    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.plant("available", power_state="power off")
            await hook(app, state="deploying", deadline_s=1, on_deadline=policy)
            await verb(app, uuid, "active")
            await until_held(app, uuid)
            script(app, f"node:{uuid}", latency_s={"power": 2.0})
            await app.ask("PUT", f"/v1/nodes/{uuid}/states/power", {"target": "power on"})
            async with asyncio.timeout(20):
                while "power is being changed" not in ((await app.node(uuid)).wait_reason or ""):
                    await asyncio.sleep(0.01)
            script(app, f"node:{uuid}")
            node = await until(app, uuid, "active" if policy == "proceed" else "deploy failed")
            assert node.wait_reason is None

    asyncio.run(story())


@pytest.mark.parametrize("late", [True, False])
def test_a_held_node_goes_on_when_it_has_run_its_parents_step(tmp_path, monkeypatch, late):
    monkeypatch.setattr("siderite.baremetal.usecases.life.hooks.STEADY_S", 0.1)
    step = {"interface": "bios", "step": "factory_reset", "execute_on_child_nodes": True}

    async def story():
        async with running(tmp_path, work=True) as app:
            parent = await app.plant("manageable")
            uuid = await app.plant("available", power_state="power off", parent_node=parent)
            gate = {"deadline_s": 1 if late else 600, "on_deadline": "proceed"}
            await hook(app, state="deploying", selector={"uuid": uuid}, **gate)
            await verb(app, uuid, "active")
            await until_held(app, uuid)
            script(app, f"node:{uuid}", latency_s={"bios.factory_reset": 2.0})
            await verb(app, parent, "clean", clean_steps=[step])
            async with asyncio.timeout(20):
                while "parent_step" not in (await app.node(uuid)).driver_internal_info:
                    await asyncio.sleep(0.01)
                while late and "its parent" not in ((await app.node(uuid)).wait_reason or ""):
                    await asyncio.sleep(0.01)
            if not late:
                said = await answer(app, uuid, "proceed", 409)
                assert f"runs a step for its parent {parent}" in said.sentence
            assert (await until(app, parent, "manageable")).last_error is None
            if not late:
                await answer(app, uuid, "proceed")
            await until(app, uuid, "active")

    asyncio.run(story())


def test_extend_gives_more_time(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await ready(app)
            await hook(app, state="deploying", deadline_s=2)
            await verb(app, uuid, "active")
            node = await until(app, uuid, "deploy hold")
            await answer(app, uuid, "extend", seconds=3600)
            later = await app.node(uuid)
            assert later.deadline > node.deadline
            assert later.deadline in later.wait_reason
            await asyncio.sleep(2.2)
            assert (await app.node(uuid)).provision_state == "deploy hold"
            await answer(app, uuid, "proceed")
            await until(app, uuid, "active")
            assert await told(app, uuid) == [
                ("start", None), ("success", "answer"), ("end", "answer"),
            ]  # fmt: skip

    asyncio.run(story())


def test_only_the_selected_nodes_are_held(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            chosen = await ready(app, resource_class="gpu", conductor_group="hall2")
            trait = await app.ask("PUT", f"/v1/nodes/{chosen}/traits/CUSTOM_BURN_IN")
            assert trait.status == 204
            plain = await ready(app, resource_class="gpu")
            selector = {
                "traits": ["CUSTOM_BURN_IN"], "resource_class": "gpu", "conductor_group": "hall2",
            }  # fmt: skip
            await hook(app, state="deploying", selector=selector)
            await hook(app, name="off", state="deploying", enabled=False)
            for uuid in (chosen, plain):
                await verb(app, uuid, "active")
            await until(app, plain, "active")
            await until(app, chosen, "deploy hold")

    asyncio.run(story())


def test_a_hook_can_be_for_one_node(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            chosen, plain = await ready(app), await ready(app)
            await hook(app, state="deploying", selector={"uuid": chosen.upper()})
            for uuid in (chosen, plain):
                await verb(app, uuid, "active")
            await until(app, plain, "active")
            await until(app, chosen, "deploy hold")

    asyncio.run(story())


def test_several_hooks_at_one_place_are_asked_one_after_the_other(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await ready(app)
            for name in ("first", "second"):
                await hook(app, name=name, state="deploying")
            await verb(app, uuid, "active")
            for name in ("first", "second"):
                async with asyncio.timeout(30):
                    while True:
                        await until(app, uuid, "deploy hold")
                        held = await hold_of(app, uuid)
                        if held["hook_name"] == name:
                            break
                        await asyncio.sleep(0.01)
                await answer(app, uuid, "proceed", hold=held["hold"])
            await until(app, uuid, "active")

    asyncio.run(story())


@pytest.mark.parametrize(
    ("word", "end", "fact"),
    [("unhold", "active", ("end", "unhold")), ("abort", "deploy failed", ("error", "abort"))],
)
def test_an_operator_may_overrule_a_hook(tmp_path, word, end, fact):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await ready(app)
            await hook(app, state="deploying")
            await verb(app, uuid, "active")
            await until(app, uuid, "deploy hold")
            await verb(app, uuid, word)
            await until(app, uuid, end)
            assert await told(app, uuid) == [("start", None), fact]

    asyncio.run(story())


def test_servicing_and_manual_cleaning_can_be_held_too(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            await hook(app, step="bios.factory_reset")
            steps = [{"interface": "bios", "step": "factory_reset"}]
            await verb(app, uuid, "clean", clean_steps=steps)
            await until(app, uuid, "clean hold")
            await answer(app, uuid, "proceed")
            await until(app, uuid, "manageable")
            await lead(app, uuid, "provide", "active")
            await verb(app, uuid, "service", service_steps=steps)
            await until(app, uuid, "service hold")
            await answer(app, uuid, "fail", reason="not today")
            node = await until(app, uuid, "service failed")
            assert "not today" in node.last_error

    asyncio.run(story())


@pytest.mark.parametrize(
    "body",
    [
        {}, {"answer": "yes"}, {"answer": "fail"}, {"answer": "extend"},
        {"answer": "proceed", "x": 1},
        {"answer": "extend", "seconds": 0}, {"answer": "proceed", "seconds": 5}, [],
        {"answer": "proceed", "hold": "x"}, {"answer": ["proceed"]},
    ],
)  # fmt: skip
def test_an_answer_that_cannot_be_understood_is_refused(tmp_path, body):
    async def story():
        async with running(tmp_path) as app:
            uuid = await app.plant("deploy hold")
            said = await app.ask("PUT", f"/v1/nodes/{uuid}/hold", body, version=900)
            assert said.status == 400, said
            early = await app.ask("PUT", f"/v1/nodes/{uuid}/hold", {"answer": "proceed"})
            assert early.status == 404

    asyncio.run(story())


def test_a_hook_needs_a_place(tmp_path):
    async def story():
        async with running(tmp_path) as app:
            none = await app.ask("POST", "/v1/hooks", {"name": "gate"}, version=900)
            assert (none.status, "a state or a step" in none.sentence) == (400, True)
            made = await hook(app, state="deploying")
            patch = [{"op": "remove", "path": "/state"}]
            left = await app.ask("PATCH", f"/v1/hooks/{made['uuid']}", patch, version=900)
            assert left.status == 400
            unknown = await app.ask("GET", "/v1/hooks", version="1.115")
            assert unknown.status == 404

    asyncio.run(story())


def test_a_hold_outlives_the_process_and_so_does_its_deadline(tmp_path):
    with running_server(tmp_path) as server:
        old, new = server.headers("1.10"), server.headers("1.900")
        gate = {"name": "gate", "state": "deploying", "deadline_s": 3, "on_deadline": "proceed"}
        api = server.api
        assert api.post("/baremetal/v1/hooks", json=gate, headers=new).status_code == 201
        node = api.post("/baremetal/v1/nodes", json={"driver": "fake-hardware"}, headers=old).json()
        path = f"/baremetal/v1/nodes/{node['uuid']}"
        wish = {"target": "active"}
        assert api.put(path + "/states/provision", json=wish, headers=new).status_code == 202
        wait_for_state(server, path, new, "deploy hold")
        server.kill()
        server.start()
        wait_for_state(server, path, new, "active")


def wait_for_state(server, path, headers, state):
    from tests.baremetal.workers.receiver import wait_for

    def there():
        return server.api.get(path, headers=headers).json()["provision_state"] == state

    wait_for(there)
