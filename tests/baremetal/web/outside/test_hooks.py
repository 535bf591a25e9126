"""Hooks as a resource: made, shown, listed, changed, removed, by whom and at which version; and who
releases what is held at one.
"""

from typing import Any

import pytest

from siderite.baremetal.domain.steps import Hold
from siderite.baremetal.domain.steps import Job
from siderite.baremetal.domain.steps import job_text
from siderite.core import work
from siderite.core.ids import new_uuid
from siderite.core.transition import Cause
from tests.baremetal.web.expect import footprint
from tests.baremetal.web.expect import refused
from tests.baremetal.web.told import types
from tests.support.app import Answer
from tests.support.app import Standing

FIELDS = {
    "uuid", "created_at", "updated_at", "links", "name", "description", "machine", "state", "step",
    "selector", "deadline_s", "on_deadline", "enabled",
}  # fmt: skip


def make(app: Standing, name: str, **fields: object) -> dict[str, object]:
    body = {"name": name, "state": "deploying", **fields}
    answer = app.ask("POST", "/v1/hooks", body, version=900)
    assert answer.status == 201, answer
    made: dict[str, object] = answer.json
    return made


def test_a_hook_is_made_shown_listed_changed_and_removed(app: Standing) -> None:
    selector = {"traits": ["CUSTOM_A"], "owner": "p", "conductor_group": "g", "resource_class": "r"}
    asked = {**selector, "conductor_group": "G"}
    made = make(app, "h-life", selector=asked, deadline_s=60, on_deadline="proceed")
    assert set(made) == FIELDS
    assert (made["machine"], made["enabled"], made["selector"]) == ("node", True, selector)
    for name in ("h-life", made["uuid"]):
        assert app.ask("GET", f"/v1/hooks/{name}", version=900).json == made
    listed = app.ask("GET", "/v1/hooks", version=900).json["hooks"]
    assert [hook for hook in listed if hook["name"] == "h-life"] == [made]
    patch = [
        {"op": "replace", "path": "/enabled", "value": False},
        {"op": "remove", "path": "/selector/owner"},
    ]
    changed = app.ask("PATCH", "/v1/hooks/h-life", patch, version=900)
    assert changed.status == 200, changed
    assert changed.json["enabled"] is False
    assert "owner" not in changed.json["selector"]
    assert app.ask("DELETE", "/v1/hooks/h-life", version=900).status == 204
    refused(app.ask("GET", "/v1/hooks/h-life", version=900), 404, "could not be found")
    assert types(app, str(made["uuid"])) == [
        f"hook.{action}.{status}"
        for action in ("create", "update", "delete")
        for status in ("start", "end")
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "two words"), ("name", ""), ("state", "enroll"), ("state", 7), ("step", "x"),
        ("machine", "server"), ("deadline_s", 0), ("deadline_s", "5"), ("on_deadline", "wait"),
        ("selector", []), ("selector", {"x": 1}), ("selector", {"owner": 7}),
        ("selector", {"uuid": "r01-n01"}), ("selector", {"uuid": None}),
        ("selector", {"traits": "A"}), ("enabled", "maybe"), ("bogus", 1),
    ],
)  # fmt: skip
def test_a_field_that_cannot_be_so_is_refused(lite: Standing, field: str, value: object) -> None:
    body = {"name": "h-wrong", "state": "deploying", field: value}
    refused(lite.ask("POST", "/v1/hooks", body, version=900), 400, field)


def test_a_name_is_taken_once(app: Standing) -> None:
    make(app, "h-once")
    body = {"name": "h-once", "state": "cleaning"}
    refused(app.ask("POST", "/v1/hooks", body, version=900), 409, "h-once")


def test_hooks_are_for_administrators_and_unknown_to_other_clouds_versions(lite: Standing) -> None:
    _, token, _ = lite.person("member")
    body = {"name": "h-who", "state": "deploying"}
    refused(lite.ask("POST", "/v1/hooks", body, version=900, token=token), 403)
    refused(lite.ask("GET", "/v1/hooks", version=900, token=token), 403)
    for version in ("1.1", "1.115"):
        assert lite.ask("GET", "/v1/hooks", version=version).status == 404
        assert lite.ask("POST", "/v1/hooks", body, version=version).status == 404


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ({"state": "verifying"}, "must be one of cleaning, deploying, servicing, inspecting"),
        ({"state": "deleting"}, "manageable, available, active, rescue"),
        ({"state": "active", "step": "deploy.write_image"}, "steps are run in cleaning, deploying"),
        ({}, "before a step, or before what it leads to"),
    ],
)
def test_where_nothing_can_be_held_the_possible_places_are_told(
    lite: Standing, place: dict[str, str], words: str
) -> None:
    refused(lite.ask("POST", "/v1/hooks", {"name": "h-x", **place}, version=900), 400, words)


def held(
    app: Standing, *, at_hook: bool, kind: str = "deploy", state: str = "deploy hold", **whose: Any
) -> str:
    """A node whose deployment, or other work, is held, at a hook or by a step."""
    uuid = app.plant(state, **whose)
    door = app.app.program.door
    change = door.change(Cause())
    stop = Hold(
        id=new_uuid(), hook=new_uuid(), name="gate", index=0, since=change.now,
        until=change.now + 60, on_deadline="fail",
    )  # fmt: skip
    job = job_text(Job(new_uuid(), hold=stop if at_hook else None))
    change.work(work.add(uuid, "provision", kind, job=job, now=change.now, deadline=work.FAR))
    app.run(door.commit(change))
    return uuid


def test_a_lessee_does_not_release_a_node_from_a_hook(app: Standing) -> None:
    _, token, project = app.person("member")

    def unhold(uuid: str) -> Answer:
        path = f"/v1/nodes/{uuid}/states/provision"
        return app.ask("PUT", path, {"target": "unhold"}, token=token)

    lent = held(app, at_hook=True, lessee=project)
    before = footprint(app)
    refused(unhold(lent), 403, "hold:answer", "owner")
    assert footprint(app) == before
    assert unhold(held(app, at_hook=False, lessee=project)).status == 202
    assert unhold(held(app, at_hook=True, owner=project)).status == 202


@pytest.mark.parametrize(
    ("kind", "state"),
    [("service", "service hold"), ("clean", "clean hold"), ("inspect", "inspect wait")],
)
def test_a_lessee_does_not_give_up_what_a_hook_holds_of_others(
    app: Standing, kind: str, state: str
) -> None:
    """A service that is aborted leads to `active`, as one that its hook lets go on."""
    _, token, project = app.person("member")

    def abort(**whose: Any) -> Answer:
        path = f"/v1/nodes/{held(app, kind=kind, state=state, **whose)}/states/provision"
        return app.ask("PUT", path, {"target": "abort"}, token=token)

    refused(abort(at_hook=True, lessee=project), 403, "hold:answer", "owner")
    assert abort(at_hook=False, lessee=project).status == 202
    assert abort(at_hook=True, owner=project).status == 202


@pytest.mark.parametrize(("kind", "state"), [("deploy", "deploy hold"), ("rescue", "rescue wait")])
def test_a_lessee_gives_up_a_deploy_or_a_rescue_that_a_hook_holds(
    app: Standing, kind: str, state: str
) -> None:
    _, token, project = app.person("member")
    lent = held(app, at_hook=True, kind=kind, state=state, lessee=project)
    path = f"/v1/nodes/{lent}/states/provision"
    assert app.ask("PUT", path, {"target": "abort"}, token=token).status == 202
    assert app.node(lent).provision_state == f"{kind} failed"


def test_a_lessee_does_not_replace_a_service_that_a_hook_holds(app: Standing) -> None:
    """Not by a public runbook either: the hook may be before a step that this one has not."""
    _, token, project = app.person("member")
    step = {"interface": "deploy", "step": "burnin_cpu", "args": {}, "order": 1}
    runbook = {"name": "CUSTOM_BURN", "steps": [step]}
    assert app.ask("POST", "/v1/runbooks", runbook).status == 201
    trait = "/v1/runbooks/CUSTOM_BURN/traits/CUSTOM_BURN"
    assert app.ask("PUT", trait).status == 204
    public = [{"op": "replace", "path": "/public", "value": True}]
    assert app.ask("PATCH", "/v1/runbooks/CUSTOM_BURN", public).status == 200

    def service(**whose: Any) -> Answer:
        uuid = held(app, kind="service", state="service hold", traits=["CUSTOM_BURN"], **whose)
        path = f"/v1/nodes/{uuid}/states/provision"
        return app.ask("PUT", path, {"target": "service", "runbook": "CUSTOM_BURN"}, token=token)

    refused(service(at_hook=True, lessee=project), 403, "hold:answer", "owner")
    assert service(at_hook=False, lessee=project).status == 202
