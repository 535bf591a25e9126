"""Verbs in every state: what is legal is done, what is not is refused with what would be."""

import asyncio
from typing import Any

import pytest

from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.drivers.contract import Endpoint
from tests.baremetal.web.expect import footprint
from tests.baremetal.web.expect import refused
from tests.baremetal.web.kinds import KINDS
from tests.support.app import Answer
from tests.support.app import Standing
from tests.support.app import running

LEGAL = {
    "active": ["available", "deploy failed"],
    "rebuild": ["active", "deploy failed", "error"],
    "deleted": ["active", "rescue", "wait call-back", "deploy failed", "error", "rescue wait",
                "rescue failed", "unrescue failed", "service wait", "service failed"],
    "manage": ["enroll", "available", "clean failed", "inspect failed", "adopt failed"],
    "provide": ["manageable"],
    "inspect": ["manageable", "inspect failed"],
    "abort": ["clean wait", "inspect wait", "rescue wait", "clean hold", "deploy hold",
              "service hold", "service wait", "service failed", "wait call-back"],
    "clean": ["manageable"],
    "adopt": ["manageable", "adopt failed"],
    "rescue": ["active", "rescue", "rescue failed", "unrescue failed", "service failed"],
    "unrescue": ["rescue", "rescue failed", "unrescue failed"],
    "unhold": ["clean hold", "deploy hold", "service hold"],
    "service": ["active", "service failed", "service hold"],
}  # fmt: skip
"""The verbs and the states that they are legal in, as Ironic has them."""

LEGAL["deploy"], LEGAL["undeploy"] = LEGAL["active"], LEGAL["deleted"]
BUSY = [
    "deploying", "cleaning", "verifying", "deleting", "inspecting", "adopting", "rescuing",
    "unrescuing", "servicing",
]  # fmt: skip
"""The states in which an Ironic holds its lock; in those of waiting it does not."""
STEPS = [{"interface": "deploy", "step": "erase_devices"}]
WITH: dict[str, dict[str, Any]] = {
    "clean": {"clean_steps": STEPS},
    "service": {"service_steps": STEPS},
    "rescue": {"rescue_password": "secret"},
}


def wish(app: Standing, uuid: str, verb: str) -> Answer:
    """The answer to a verb with all that it needs."""
    body = {"target": verb, **WITH.get(verb, {})}
    return app.ask("PUT", f"/v1/nodes/{uuid}/states/provision", body)


def legal_in(state: str) -> list[str]:
    """The verbs of a state, without aliases."""
    return [
        verb
        for verb, states in LEGAL.items()
        if state in states and verb not in ("deploy", "undeploy")
    ]


@pytest.mark.parametrize("state", NODE.states)
def test_every_verb_is_done_or_refused_by_the_table(app: Standing, state: str) -> None:
    for verb, states in LEGAL.items():
        uuid = app.plant(state)
        before = footprint(app)
        answer = wish(app, uuid, verb)
        if state in states:
            assert (answer.status, answer.body) == (202, b""), (verb, answer)
            where = f"http://cloud.test/baremetal/v1/nodes/{uuid}/states"
            assert answer.headers["location"] == where
            assert app.node(uuid).version == 2
            continue
        said = f'The requested action "{verb}" can not be performed on node "{uuid}" while it is in'
        refused(answer, 409 if state in BUSY else 400, said, f'"{state}"', *legal_in(state))
        assert ("retry-after" in answer.headers) == (state in BUSY), answer
        assert footprint(app) == before


@pytest.mark.parametrize("verb", ["active", "deploy", "rebuild"])
def test_nothing_is_deployed_in_maintenance(app: Standing, verb: str) -> None:
    uuid = app.plant(LEGAL[verb][0], maintenance=True)
    refused(wish(app, uuid, verb), 400, "maintenance mode")


@pytest.mark.parametrize("verb", ["deleted", "undeploy", "rebuild"])
def test_what_is_protected_stays(app: Standing, verb: str) -> None:
    uuid = app.plant("active", protected=True)
    refused(wish(app, uuid, verb), 403, "is protected and cannot be undeployed, rebuilt or deleted")


def test_what_is_retired_is_not_made_available(app: Standing) -> None:
    uuid = app.plant("manageable", retired=True)
    refused(wish(app, uuid, "provide"), 400, "is retired", "clear `retired` first")
    assert app.node(uuid).provision_state == "manageable"
    assert wish(app, uuid, "clean").status == 202


def test_a_protected_node_is_not_removed_even_in_maintenance(app: Standing) -> None:
    uuid = app.plant("active", protected=True, maintenance=True)
    refused(app.ask("DELETE", f"/v1/nodes/{uuid}"), 403, "protected")


@pytest.mark.parametrize("state", NODE.states)
def test_a_node_is_removed_only_where_it_carries_nothing(app: Standing, state: str) -> None:
    removable = state in ("manageable", "enroll", "adopt failed", "available")
    uuid = app.plant(state)
    answer = app.ask("DELETE", f"/v1/nodes/{uuid}")
    if removable:
        assert (answer.status, answer.body) == (204, b"")
    else:
        refused(answer, 409, state, "maintenance")
        assert app.node(uuid).version == 1
    in_use = app.plant(state, instance_uuid=uuid)
    refused(app.ask("DELETE", f"/v1/nodes/{in_use}"), 409)
    cared_for = app.plant(state, maintenance=True)
    assert app.ask("DELETE", f"/v1/nodes/{cared_for}").status == 204
    refused(app.ask("GET", f"/v1/nodes/{cared_for}"), 404)


TARGETS = {
    "power on": "power on",
    "power off": "power off",
    "rebooting": "power on",
    "soft power off": "power off",
    "soft rebooting": "power on",
}


@pytest.mark.parametrize("target", TARGETS)
def test_power_is_asked_for_by_its_targets(app: Standing, target: str) -> None:
    assert set(TARGETS) == set(PowerTarget)
    uuid = app.plant("active", last_error="old")
    path = f"/v1/nodes/{uuid}/states/power"
    answer = app.ask("PUT", path, {"target": target})
    assert (answer.status, answer.body) == (202, b"")
    assert answer.headers["location"].endswith(f"/v1/nodes/{uuid}/states")
    node = app.node(uuid)
    assert (node.target_power_state, node.last_error) == (TARGETS[target], None)
    shown = app.ask("GET", f"/v1/nodes/{uuid}").json
    assert shown["driver_internal_info"]["last_power_state_change"] == shown["updated_at"]
    busy = app.ask("PUT", path, {"target": target})
    refused(busy, 409, "retry")
    assert busy.headers["retry-after"] == "2"
    refused(wish(app, uuid, "deleted"), 409, "retry")


def test_what_is_done_at_once_is_seen_by_who_asked_for_it(
    tmp_path, database_url, monkeypatch
) -> None:
    monkeypatch.setattr("siderite.core.worker.MOMENT_S", 30.0)

    async def story() -> None:
        async with running(tmp_path, database_url, work=True) as app:
            uuid = await app.plant("enroll")
            states = f"/v1/nodes/{uuid}/states"
            for what, target, field, then in (
                ("provision", "manage", "provision_state", "manageable"),
                ("power", "power on", "power_state", "power on"),
            ):
                asked = await app.ask("PUT", f"{states}/{what}", {"target": target})
                assert asked.status == 202
                shown = await app.show(uuid)
                assert (shown[field], shown[f"target_{field}"]) == (then, None)

    asyncio.run(story())


@pytest.mark.parametrize("state", ["cleaning", "clean wait"])
def test_power_is_left_alone_while_cleaning(app: Standing, state: str) -> None:
    uuid = app.plant(state)
    answer = app.ask("PUT", f"/v1/nodes/{uuid}/states/power", {"target": "power off"})
    refused(answer, 400, "can not be performed", state)


@pytest.mark.parametrize("target", ["power off", "soft power off"])
def test_power_off_can_be_disabled(app: Standing, target: str) -> None:
    uuid = app.plant("active", disable_power_off=True)
    answer = app.ask("PUT", f"/v1/nodes/{uuid}/states/power", {"target": target})
    refused(answer, 409, "Failed to set node power state to")
    assert app.node(uuid).target_power_state is None


@pytest.mark.parametrize("target", ["rebooting", "soft rebooting"])
def test_a_node_that_is_never_off_can_be_rebooted(lite: Standing, target: str) -> None:
    uuid = lite.plant("active", disable_power_off=True)
    answer = lite.ask("PUT", f"/v1/nodes/{uuid}/states/power", {"target": target})
    assert answer.status == 202, answer


@pytest.mark.parametrize("rack", [{"a": 1}, [1], 10**30])
def test_a_simulated_node_may_have_any_rack(lite: Standing, rack: Any) -> None:
    machines = lite.app.program.machines
    at = Endpoint.of(lite.node(lite.make_node(driver_info={"rack": rack})))
    machines.set_power(at, "power on")
    assert machines.power(at) == "power on"


def test_validate_speaks_of_every_interface_but_vendor(app: Standing) -> None:
    answer = app.ask("GET", f"/v1/nodes/{app.plant('active')}/validate").json
    assert set(answer) == {
        "bios", "boot", "console", "deploy", "firmware", "inspect", "management", "network",
        "power", "raid", "rescue", "storage",
    }  # fmt: skip
    for verdict in answer.values():
        assert verdict["result"] is True or verdict["reason"]


@pytest.mark.parametrize("has", [[], ["CUSTOM_ONE", "CUSTOM_TWO"]])
def test_validate_says_of_a_deploy_what_the_verb_would_be_refused_for(
    app: Standing, has: list[str]
) -> None:
    step = {"interface": "bios", "step": "factory_reset", "args": {}}
    for priority, name in enumerate(("CUSTOM_ONE", "CUSTOM_TWO"), 1):
        fields = {"name": name, "steps": [{**step, "priority": priority}]}
        assert app.ask("POST", "/v1/deploy_templates", fields).status in (201, 409)
    asks = {"traits": ["CUSTOM_ONE", "CUSTOM_TWO"]}
    uuid = app.plant("available", instance_info=asks, traits=has)
    verdict = app.ask("GET", f"/v1/nodes/{uuid}/validate").json["deploy"]
    assert verdict["result"] is False
    path = f"/v1/nodes/{uuid}/states/provision"
    refused(app.ask("PUT", path, {"target": "active"}), 400, verdict["reason"])
    uuid = app.plant("available", instance_info={"traits": has[:1]}, traits=has)
    assert app.ask("GET", f"/v1/nodes/{uuid}/validate").json["deploy"] == {"result": True}


def test_maintenance_goes_with_its_reason_and_the_fault(app: Standing) -> None:
    uuid = app.plant("active", fault="power failure")
    path = f"/v1/nodes/{uuid}/maintenance"
    assert app.ask("PUT", path, {"reason": "disk swap"}).status == 202
    node = app.show(uuid)
    assert (node["maintenance"], node["maintenance_reason"]) == (True, "disk swap")
    answer = app.ask("DELETE", path)
    assert (answer.status, answer.body) == (202, b"")
    node = app.show(uuid)
    assert (node["maintenance"], node["maintenance_reason"], node["fault"]) == (False, None, None)


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", ""), ("PATCH", ""), ("DELETE", ""), ("GET", "/states"), ("PUT", "/states/provision"),
     ("PUT", "/states/power"), ("PUT", "/maintenance"), ("DELETE", "/maintenance"),
     ("GET", "/validate")],
)  # fmt: skip
@pytest.mark.parametrize(
    "ident", ["bogus", "1be26c0b-03f2-4d2e-ae87-c02d7f33c123", "1be26c0b", "%25"]
)
def test_a_node_that_is_not_there_is_not_found(
    app: Standing, method: str, path: str, ident: str
) -> None:
    body: Any = [{"op": "add", "path": "/extra/a", "value": 1}]
    if "states" in path:
        body = {"target": "power on" if path.endswith("power") else "manage"}
    if path == "/maintenance":
        body = {}
    refused(app.ask(method, f"/v1/nodes/{ident}{path}", body), 404, "could not be found")


def test_a_node_on_its_way_says_where_to_in_the_words_of_the_api(app: Standing) -> None:
    """Although what is told of was written a moment ago, by the machine."""
    uuid = app.plant("manageable")
    assert wish(app, uuid, "provide").status == 202
    answer = wish(app, uuid, "inspect")
    assert answer.status == 409
    assert " It is on its way to 'available'; " in answer.sentence


@pytest.mark.parametrize(
    ("state", "verb", "key"),
    [("manageable", "clean", "clean_steps"), ("active", "service", "service_steps"),
     ("available", "active", "deploy_steps"), ("active", "rebuild", "deploy_steps")],
)  # fmt: skip
def test_a_lessee_does_not_choose_the_steps_that_are_run(
    app: Standing, state: str, verb: str, key: str
) -> None:
    _, token, project = app.person("member")
    step = {"interface": "bios", "step": "factory_reset", "args": {}}
    steps = [{**step, "priority": 90}] if key == "deploy_steps" else [step]
    body = {"target": verb, key: steps}
    lent, mine = app.plant(state, lessee=project), app.plant(state, owner=project)
    before = footprint(app)
    answer = app.ask("PUT", f"/v1/nodes/{lent}/states/provision", body, token=token)
    refused(answer, 403, "node:provision:steps", "owner")
    assert footprint(app) == before
    answer = app.ask("PUT", f"/v1/nodes/{mine}/states/provision", body, token=token)
    assert answer.status == 202, answer


def test_steps_are_not_run_on_children_that_are_on_loan(app: Standing) -> None:
    _, token, project = app.person("member")
    parent = app.plant("manageable", owner=project)
    app.plant("manageable", owner="them", lessee=project, parent_node=parent)
    step = {"interface": "bios", "step": "factory_reset", "execute_on_child_nodes": True}
    body = {"target": "clean", "clean_steps": [step]}
    answer = app.ask("PUT", f"/v1/nodes/{parent}/states/provision", body, token=token)
    refused(answer, 403, "node:provision:steps")


def test_a_lessee_runs_public_runbooks_and_none_that_their_own_project_wrote(
    app: Standing,
) -> None:
    """The owner's trait may be there for something else, and an own runbook can say anything."""
    _, token, project = app.person("member")
    kind, trait = KINDS["runbook"], "CUSTOM_GPU"
    own = app.ask("POST", kind.path, kind.body(app), token=token).json["uuid"]
    public = kind.make(app, public=True)["uuid"]
    for runbook, who in ((own, token), (public, None)):
        path = f"{kind.path}/{runbook}/traits/{trait}"
        assert app.ask("PUT", path, token=who).status == 204

    def ask(runbook: str, **whose: str) -> Answer:
        uuid = app.plant("active", traits=[trait], **whose)
        body = {"target": "service", "runbook": runbook}
        return app.ask("PUT", f"/v1/nodes/{uuid}/states/provision", body, token=token)

    refused(ask(own, lessee=project), 403, "node:provision:steps")
    assert ask(public, lessee=project).status == 202
    assert ask(own, owner=project).status == 202
