"""Steps that were written down beforehand: deploy templates and runbooks, when they are run."""

import asyncio

import pytest

from tests.baremetal.workers.lives import lead
from tests.baremetal.workers.lives import until
from tests.baremetal.workers.lives import verb
from tests.support.app import running

RESET = {"interface": "bios", "step": "factory_reset", "args": {}, "priority": 95}
NUM_LOCK = {
    "interface": "bios",
    "step": "apply_configuration",
    "args": {"settings": [{"name": "NumLock", "value": "Off"}]},
}


async def runs(app, uuid):
    """What the simulated machine was told to do, in order."""
    rows = app.program.machines._db.execute("SELECT what FROM runs ORDER BY began").fetchall()
    return [row[0] for row in rows]


async def template(app, name, *steps):
    body = {"name": name, "steps": list(steps)}
    answer = await app.ask("POST", "/v1/deploy_templates", body)
    assert answer.status == 201, answer


async def deployed(app, traits, **more):
    """A node whose instance asked for these traits, and what was done to it."""
    uuid = await app.make_node()
    await lead(app, uuid, "manage", "provide")
    every = {"traits": ["CUSTOM_A", "CUSTOM_B"]}
    assert (await app.ask("PUT", f"/v1/nodes/{uuid}/traits", every)).status == 204
    patch = [{"op": "add", "path": "/instance_info/traits", "value": traits}]
    assert (await app.ask("PATCH", f"/v1/nodes/{uuid}", patch)).status == 200
    before = len(await runs(app, uuid))
    await verb(app, uuid, "active", **more)
    node = await until(app, uuid, "active", "deploy failed")
    return node, (await runs(app, uuid))[before:]


def test_a_deployment_takes_the_steps_of_the_traits_asked_for(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            await template(app, "CUSTOM_A", RESET)
            await template(app, "CUSTOM_B", NUM_LOCK | {"priority": 95})
            node, done = await deployed(app, ["CUSTOM_A"])
            assert node.provision_state == "active", node.last_error
            assert done == ["bios.factory_reset", "deploy.write_image"]
            _, done = await deployed(app, [])
            assert done == ["deploy.write_image"]
            # The client's own word on a step is the last one.
            own = {**RESET, "priority": 0}
            _, done = await deployed(app, ["CUSTOM_A", "CUSTOM_B"], deploy_steps=[own])
            assert done == ["bios.apply_configuration", "deploy.write_image"]
            own = [own, {**NUM_LOCK, "args": {}, "priority": 0}]
            _, done = await deployed(app, ["CUSTOM_A", "CUSTOM_B"], deploy_steps=own)
            assert done == ["deploy.write_image"]

    asyncio.run(story())


def test_a_trait_that_is_asked_for_very_often_is_asked_for(database_url, tmp_path):
    async def story():
        async with running(tmp_path, database_url, work=True) as app:
            await template(app, "CUSTOM_A", RESET)
            async with asyncio.timeout(30):
                node, done = await deployed(app, ["CUSTOM_A"] * 70_000)
            assert node.provision_state == "active", node.last_error
            assert done == ["bios.factory_reset", "deploy.write_image"]

    asyncio.run(story())


def test_two_templates_that_differ_in_a_step_are_refused_unless_the_client_says_what_it_means(
    database_url, tmp_path
):
    async def story():
        async with running(tmp_path, database_url, work=True) as app:
            await template(app, "CUSTOM_A", RESET)
            await template(app, "CUSTOM_B", {**RESET, "priority": 15})
            uuid = await app.plant("available", traits=["CUSTOM_A", "CUSTOM_B"])
            patch = {"op": "add", "path": "/instance_info/traits", "value": ["CUSTOM_B"]}
            assert (await app.ask("PATCH", f"/v1/nodes/{uuid}", [patch])).status == 200
            await lead(app, uuid, "active")
            patch["value"] = ["CUSTOM_B", "CUSTOM_A"]
            assert (await app.ask("PATCH", f"/v1/nodes/{uuid}", [patch])).status == 200
            refused = await verb(app, uuid, "rebuild", 400)
            assert "CUSTOM_A and CUSTOM_B, which differ in step bios.factory_reset" in (
                refused.sentence
            )
            assert (await app.node(uuid)).provision_state == "active"
            before = len(await runs(app, uuid))
            await verb(app, uuid, "rebuild", deploy_steps=[{**RESET, "priority": 15}])
            await until(app, uuid, "active")
            done = ["deploy.write_image", "bios.factory_reset"]
            assert (await runs(app, uuid))[before:] == done

    asyncio.run(story())


def test_two_templates_may_say_the_same_of_a_step(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            await template(app, "CUSTOM_A", RESET)
            await template(app, "CUSTOM_B", NUM_LOCK | {"priority": 95}, RESET)
            node, done = await deployed(app, ["CUSTOM_A", "CUSTOM_B"])
            assert node.provision_state == "active", node.last_error
            assert sorted(done) == [
                "bios.apply_configuration", "bios.factory_reset", "deploy.write_image",
            ]  # fmt: skip

    asyncio.run(story())


def test_a_template_that_comes_to_differ_from_another_in_a_step_fails_the_deployment_in_words(
    tmp_path,
):
    async def story():
        both = ["CUSTOM_A", "CUSTOM_B"]
        async with running(tmp_path) as app:
            await template(app, "CUSTOM_A", RESET)
            uuid = await app.plant("available", traits=both, instance_info={"traits": both})
            await verb(app, uuid, "active")
            await template(app, "CUSTOM_B", {**RESET, "priority": 15})
        async with running(tmp_path, work=True) as app:
            node = await until(app, uuid, "deploy failed", "active")
            assert node.provision_state == "deploy failed"
            assert "differ in step bios.factory_reset" in node.last_error

    asyncio.run(story())


def test_a_template_with_an_unknown_step_fails_the_deployment_in_words(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            await template(app, "CUSTOM_A", {**RESET, "step": "brew"})
            node, _ = await deployed(app, ["CUSTOM_A"])
            assert node.provision_state == "deploy failed"
            assert "bios.brew" in node.last_error

    asyncio.run(story())


def test_a_template_whose_step_lacks_its_settings_is_kept_and_fails_the_deployment_in_words(
    tmp_path,
):
    async def story():
        async with running(tmp_path, work=True) as app:
            bare = {**NUM_LOCK, "args": {}, "priority": 10}
            await template(app, "CUSTOM_A", bare)
            shown = (await app.ask("GET", "/v1/deploy_templates/CUSTOM_A")).json["steps"]
            assert shown == [bare]
            node, _ = await deployed(app, ["CUSTOM_A"])
            assert node.provision_state == "deploy failed"
            assert "bios.apply_configuration" in node.last_error
            assert "settings" in node.last_error
            wrong = {"name": "CUSTOM_B", "steps": [{**bare, "args": {"settings": 5}}]}
            assert (await app.ask("POST", "/v1/deploy_templates", wrong)).status == 400

    asyncio.run(story())


def test_a_runbook_is_run_where_the_nodes_traits_approve(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            reset = {"interface": "bios", "step": "factory_reset", "args": {}}
            steps = [{**NUM_LOCK, "order": 2}, {**reset, "order": 1}]
            body = {"name": "tidy-up", "steps": steps, "public": True}
            made = await app.ask("POST", "/v1/runbooks", body)
            assert made.status == 201, made
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            refused = await verb(app, uuid, "clean", 400, runbook="tidy-up")
            assert "not approved" in refused.sentence
            both = {"runbook": "tidy-up", "clean_steps": [{"interface": "bios", "step": "x"}]}
            assert "not both" in (await verb(app, uuid, "clean", 400, **both)).sentence
            assert (
                "clean or service"
                in (await verb(app, uuid, "provide", 400, runbook="tidy-up")).sentence
            )
            path = f"/v1/runbooks/{made.json['uuid']}/traits/CUSTOM_TIDY"
            assert (await app.ask("PUT", path)).status == 204
            assert (await app.ask("PUT", f"/v1/nodes/{uuid}/traits/CUSTOM_TIDY")).status == 204
            before = len(await runs(app, uuid))
            await verb(app, uuid, "clean", runbook="tidy-up")
            await until(app, uuid, "manageable")
            expected = ["bios.factory_reset", "bios.apply_configuration"]
            assert (await runs(app, uuid))[before:] == expected
            await lead(app, uuid, "provide", "active")
            before = len(await runs(app, uuid))
            await verb(app, uuid, "service", runbook=made.json["uuid"])
            await until(app, uuid, "active")
            assert (await runs(app, uuid))[before:] == expected

    asyncio.run(story())


def test_inspection_rules_are_followed_when_an_inspection_ends(database_url, tmp_path):
    async def story():
        db = "" if database_url.startswith("sqlite") else database_url
        async with running(tmp_path, db, work=True) as app:
            action = {"op": "set-attribute", "args": {"path": "/resource_class", "value": "big"}}
            many = {"op": "gt", "args": {"values": ["{inventory[cpu][count]}", 4]}}
            some = {"op": "lt", "args": [4, "{inventory[cpu][count]}", 1000]}
            trait = {"op": "add-trait", "args": {"name": "CUSTOM_SEEN"}}
            body = {"conditions": [many, some], "actions": [action, trait]}
            made = await app.ask("POST", "/v1/inspection_rules", body)
            assert made.status == 201, made
            uuid = await app.make_node()
            node = await lead(app, uuid, "manage", "inspect")
            assert (node.resource_class, node.traits) == ("big", ["CUSTOM_SEEN"])
            assert node.inspection_finished_at is not None
            fail = {"actions": [{"op": "fail", "args": {"msg": "not ours"}}], "priority": 9}
            assert (await app.ask("POST", "/v1/inspection_rules", fail)).status == 201
            await verb(app, uuid, "inspect")
            node = await until(app, uuid, "inspect failed")
            assert node.last_error == "inspection failed: not ours"

    asyncio.run(story())


def setting(**fields):
    """A rule's actions that set these fields."""
    return [
        {"op": "set-attribute", "args": {"path": f"/{name}", "value": value}}
        for name, value in fields.items()
    ]


def test_a_rule_may_give_a_node_another_driver(database_url, tmp_path):
    async def story():
        db = "" if database_url.startswith("sqlite") else database_url
        async with running(tmp_path, db, work=True) as app:
            wish = setting(driver="ipmi", console_interface="no-console")
            wish += setting(**{"driver_info/ipmi_address": "127.0.0.1"})
            made = await app.ask("POST", "/v1/inspection_rules", {"actions": wish, "priority": 1})
            assert made.status == 201, made
            uuid = await app.make_node(network_interface="noop")
            node = await lead(app, uuid, "manage", "inspect")
            assert node.driver == "ipmi"
            assert node.driver_info["ipmi_address"] == "127.0.0.1"
            assert node.console_interface == "no-console"
            assert node.network_interface == "noop", "the new driver has it, too"
            card = app.program.baremetal.cards["ipmi"]
            assert node.power_interface == card.interfaces["power"][0]

    asyncio.run(story())


@pytest.mark.parametrize(
    ("fields", "enabled", "words"),
    [
        ({"driver": "idrac"}, False, "There is no driver idrac; those here are: fake-hardware"),
        ({"driver": "ipmi", "boot_interface": "x"}, False, "no boot interface 'x'; it has: "),
        ({"driver": "ipmi"}, True, "change the driver, and the console is on"),
    ],
)
def test_a_driver_that_does_not_fit_fails_the_inspection_in_words(tmp_path, fields, enabled, words):
    async def story():
        async with running(tmp_path, work=True) as app:
            rule = {"actions": setting(**fields), "priority": 1}
            assert (await app.ask("POST", "/v1/inspection_rules", rule)).status == 201
            uuid = await app.plant("manageable", console_enabled=enabled)
            await verb(app, uuid, "inspect")
            node = await until(app, uuid, "inspect failed")
            assert words in node.last_error
            assert node.driver == "fake-hardware"

    asyncio.run(story())
