"""Who may do what: no credential, a wrong one, and the roles of the projects around a node."""

import base64
from typing import Any

import pytest

from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.runbook import Runbook
from siderite.baremetal.web import policy
from siderite.baremetal.web.routes import ROUTES
from siderite.core.errors import Forbidden
from siderite.core.who import Who
from tests.baremetal.web.expect import footprint
from tests.baremetal.web.expect import refused
from tests.support.app import PASSWORD
from tests.support.app import Answer
from tests.support.app import Standing
from tests.support.domain import domain_person

PRIVATE = [(route.method, route.path) for route in ROUTES if route.policy != "public"]
BODIES: dict[str, Any] = {
    "POST": {"driver": "fake-hardware"},
    "PATCH": [{"op": "add", "path": "/extra/a", "value": 1}],
    "PUT": {"target": "power on"},
}
CHANGES = {
    "create": ("POST", "/v1/nodes", {"driver": "fake-hardware"}),
    "patch": ("PATCH", "/v1/nodes/{}", [{"op": "add", "path": "/properties/a", "value": 1}]),
    "power": ("PUT", "/v1/nodes/{}/states/power", {"target": "power on"}),
    "provision": ("PUT", "/v1/nodes/{}/states/provision", {"target": "manage"}),
    "maintenance": ("PUT", "/v1/nodes/{}/maintenance", {"reason": "x"}),
    "maintenance off": ("DELETE", "/v1/nodes/{}/maintenance", {}),
    "delete": ("DELETE", "/v1/nodes/{}", {}),
}
READS = ["/v1/nodes/{}", "/v1/nodes/{}/states"]
ASKS = {"validate": 200, "management/boot_device": 403, "management/boot_device/supported": 403}
"""What a machine is asked for whoever drives it, and what its lessee is answered."""


def basic(text: bytes) -> dict[str, str]:
    """The header of HTTP basic."""
    return {"Authorization": "Basic " + base64.b64encode(text).decode()}


def change(app: Standing, what: str, uuid: str, token: str) -> Answer:
    """The answer to one of the changes."""
    method, path, body = CHANGES[what]
    return app.ask(method, path.format(uuid), body, token=token)


@pytest.mark.parametrize("token", ["", "bogus", "x" * 300, "\u00e4", "'"])
def test_without_a_good_token_nothing_is_answered(app: Standing, token: str) -> None:
    uuid = app.plant("enroll")
    before = footprint(app)
    for method, path in PRIVATE:
        target = "/baremetal" + path.replace("{node}", uuid)
        answer = app.ask(method, target, BODIES.get(method, b""), token=token)
        refused(answer, 401)
        assert answer.headers["www-authenticate"].startswith("Basic realm="), (method, path)
    assert footprint(app) == before


def test_an_empty_token_is_no_token(app: Standing) -> None:
    answer = app.ask("GET", "/v1/nodes", token="", headers={"X-Auth-Token": ""})
    refused(answer, 401)


def test_http_basic_is_taken(app: Standing) -> None:
    good = basic(f"admin:{PASSWORD}".encode())
    assert app.ask("GET", "/v1/nodes", token="", headers=good).status == 200
    lower = {"Authorization": good["Authorization"].replace("Basic", "bAsIc")}
    assert app.ask("GET", "/v1/nodes", token="", headers=lower).status == 200


@pytest.mark.parametrize(
    "header",
    [
        basic(b"nobody:x"), basic(b"admin"), basic(b":"), basic(b""), basic(b"\xff\xfe:x"),
        basic(b"a\x00b:x"), basic(b"nobody:\x00"), basic("n\u00f6body:x".encode()),
        {"Authorization": "Basic"}, {"Authorization": "Basic "}, {"Authorization": "Basic %%%"},
        {"Authorization": "Basic \u00e4"}, {"Authorization": "Bearer abc"}, {"Authorization": ""},
        {"Authorization": "Digest username=admin"},
    ],
)  # fmt: skip
def test_wrong_credentials_are_refused(app: Standing, header: dict[str, str]) -> None:
    refused(app.ask("GET", "/v1/nodes", token="", headers=header), 401)


def test_a_wrong_password_is_refused(app: Standing) -> None:
    name, _, _ = app.person("member")
    refused(app.ask("GET", "/v1/nodes", token="", headers=basic(f"{name}:wrong".encode())), 401)
    good = basic(f"{name}:{PASSWORD}".encode())
    assert app.ask("GET", "/v1/nodes", token="", headers=good).status == 200


@pytest.mark.parametrize("what", CHANGES)
def test_a_reader_only_reads(app: Standing, what: str) -> None:
    _, token, project = app.person("reader")
    uuid = app.plant("enroll", owner=project)
    before = footprint(app)
    refused(change(app, what, uuid, token), 403, "role")
    assert footprint(app) == before
    for path in READS:
        assert app.ask("GET", path.format(uuid), token=token).status == 200
    if what != "create":
        others = app.plant("enroll", owner="them")
        refused(change(app, what, others, token), 404)
        assert app.node(others).version == 1


@pytest.mark.parametrize("what", ASKS)
def test_who_only_reads_does_not_ask_what_a_node_can_do(app: Standing, what: str) -> None:
    for role, owner, lessee in (("reader", 403, 403), ("member", 200, ASKS[what])):
        _, token, project = app.person(role)
        for field, status in (("owner", owner), ("lessee", lessee)):
            path = f"/v1/nodes/{app.plant('enroll', **{field: project})}/{what}"
            answer = app.ask("GET", path, token=token)
            assert answer.status == status, (role, field, answer)
        theirs = f"/v1/nodes/{app.plant('enroll', owner='them')}/{what}"
        refused(app.ask("GET", theirs, token=token), 404)


def test_a_reader_is_told_so_of_a_node_that_is_addressed_with_a_suffix(app: Standing) -> None:
    _, token, project = app.person("reader")
    mine = app.plant("enroll", owner=project, name=f"of-{project}")
    theirs = app.plant("enroll", owner="them")
    for ident in (mine, f"of-{project}"):
        for version, status in ((90, 403), (91, 404)):
            path = f"/v1/nodes/{ident}.json"
            refused(app.ask("DELETE", path, token=token, version=version), status)
    refused(app.ask("DELETE", f"/v1/nodes/{theirs}.json", token=token, version=90), 404)


@pytest.mark.parametrize("role", ["reader", "member"])
def test_what_other_projects_have_is_not_there(app: Standing, role: str) -> None:
    _, token, project = app.person(role)
    mine, lent = app.plant("enroll", owner=project), app.plant("enroll", lessee=project)
    theirs = [app.plant("enroll"), app.plant("enroll", owner="them", name=f"theirs-{role}")]
    listed = app.ask("GET", "/v1/nodes", token=token).json["nodes"]
    assert {node["uuid"] for node in listed} == {mine, lent}
    before = footprint(app)
    for uuid in (*theirs, f"theirs-{role}"):
        for path in READS:
            said = refused(app.ask("GET", path.format(uuid), token=token), 404, uuid)
            missing = app.ask("GET", path.format("not-there"), token=token)
            assert said.replace(uuid, "not-there") == missing.sentence
        refused(app.ask("GET", f"/v1/nodes?marker={theirs[0]}", token=token), 404)
        if role == "member":
            for what in ("patch", "power", "provision", "maintenance", "maintenance off"):
                refused(change(app, what, uuid, token), 404, uuid)
    assert footprint(app) == before
    for filtered in ("owner=them", f"project={project}&owner=them", "lessee=them"):
        path = f"/v1/nodes/detail?{filtered}"
        assert app.ask("GET", path, token=token).json["nodes"] == []


def test_pages_of_a_project_hold_its_own_nodes_only(app: Standing) -> None:
    _, token, project = app.person("member")
    mine = []
    for _ in range(5):
        mine.append(app.plant("enroll", owner=project))
        app.plant("enroll", owner="them")
    seen: list[str] = []
    path = "/v1/nodes?limit=2"
    while path:
        answer = app.ask("GET", path, token=token).json
        seen += [node["uuid"] for node in answer["nodes"]]
        path = answer.get("next", "").removeprefix("http://cloud.test")
    assert seen == mine


@pytest.mark.parametrize(
    ("what", "owner", "lessee"),
    [
        ("create", 403, 403),
        ("patch", 200, 403),
        ("power", 202, 202),
        ("provision", 202, 202),
        ("maintenance", 202, 403),
        ("maintenance off", 202, 403),
        ("delete", 403, 403),
    ],
)
def test_owners_and_lessees_act_within_their_rights(
    app: Standing, what: str, owner: int, lessee: int
) -> None:
    _, token, project = app.person("member")
    for field, status in (("owner", owner), ("lessee", lessee)):
        uuid = app.plant("enroll", **{field: project})
        answer = change(app, what, uuid, token)
        assert answer.status == status, (field, answer)
        if status == 403:
            refused(answer, 403)
            assert app.node(uuid).version == 1


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("owner", "them", "owner or lessee"),
        ("lessee", "them", "owner or lessee"),
        ("conductor_group", "elsewhere", "conductor_group of a node"),
        ("shard", "elsewhere", "shard of a node"),
        ("automated_clean", False, "turn off a node's automated_clean"),
    ],
)
def test_an_owner_leaves_to_the_operator_what_is_for_the_whole_cloud(
    app: Standing, field: str, value: Any, words: str
) -> None:
    _, token, project = app.person("member")
    uuid = app.plant("enroll", owner=project)
    patch = [{"op": "replace", "path": f"/{field}", "value": value}]
    refused(app.ask("PATCH", f"/v1/nodes/{uuid}", patch, token=token), 403, words)
    assert app.node(uuid).version == 1
    assert app.ask("PATCH", f"/v1/nodes/{uuid}", patch).status == 200


def test_an_owner_has_a_node_cleaned_again(app: Standing) -> None:
    _, token, project = app.person("member")
    uuid = app.plant("enroll", owner=project, automated_clean=False)
    for value in (True, None):
        patch = [{"op": "replace", "path": "/automated_clean", "value": value}]
        assert app.ask("PATCH", f"/v1/nodes/{uuid}", patch, token=token).status == 200
        assert app.node(uuid).automated_clean is value


@pytest.mark.parametrize("version", ["1.1", "1.50", "1.115", "1.900"])
def test_a_lessee_is_not_shown_what_tells_of_the_owners_bmcs(app: Standing, version: str) -> None:
    _, token, project = app.person("member")
    told = {
        "driver_info": {"redfish_address": "https://10.9.8.7", "a": {"driver_info": 1}},
        "driver_internal_info": {"agent_url": "https://10.9.8.7:9999"},
        "last_error": "The BMC https://10.9.8.7 is away\r\n",
        "wait_reason": "10.9.8.7 is away", "power_state_reason": "10.9.8.7 is away",
        "reservation": "host-10.9.8.7", "maintenance_reason": "10.9.8.7 is away (6 readings)",
    }  # fmt: skip
    kept = {
        "extra": {"driver_info": {"a": "\r\n\u2028"}, "last_error": None}, "name": None,
        "maintenance": True, "fault": "power failure",
    }  # fmt: skip
    lent, mine = (
        app.plant("manageable", **told, **kept, **{role: project}) for role in ("lessee", "owner")
    )
    whole = {
        uuid: app.ask("GET", f"/v1/nodes/{uuid}", version=version).json for uuid in (lent, mine)
    }
    assert "10.9.8.7" in str(whole[lent]["last_error"])

    def seen(path: str) -> Any:
        answer = app.ask("GET", path, version=version, token=token)
        assert answer.status == 200, answer
        return answer.json

    shown = {lent: seen(f"/v1/nodes/{lent}"), mine: seen(f"/v1/nodes/{mine}")}
    listed = {one["uuid"]: one for one in seen("/v1/nodes/detail")["nodes"]}
    assert listed == shown
    assert shown[mine] == whole[mine]
    assert "10.9.8.7" not in str(shown[lent])
    assert list(shown[lent]) == list(whole[lent])
    differs = {name for name in shown[lent] if shown[lent][name] != whole[lent][name]}
    assert differs == set(told) & set(whole[lent])
    assert {type(shown[lent][name]) for name in differs} == {str, dict}
    assert "hidden" in seen(f"/v1/nodes/{lent}/states")["last_error"]
    if version != "1.1":
        some = seen("/v1/nodes?fields=uuid,driver_info")["nodes"]
        assert {one["uuid"]: "hidden" in str(one["driver_info"]) for one in some} == {
            lent: True, mine: False,
        }  # fmt: skip
    repaired = app.plant(
        "manageable", lessee=project, maintenance=True, maintenance_reason="a new fan"
    )
    assert seen(f"/v1/nodes/{repaired}")["maintenance_reason"] == "a new fan"
    quiet = app.plant("manageable", lessee=project)
    assert seen(f"/v1/nodes/{quiet}")["last_error"] is None


def test_a_lessee_says_what_is_to_run_on_a_node_and_is_shown_no_more_for_it(app: Standing) -> None:
    _, token, project = app.person("member")
    uuid = app.plant(
        "available", owner="them", lessee=project, driver_info={"redfish_address": "10.9.8.7"}
    )
    theirs = app.plant("available", owner="them")
    image = {"op": "add", "path": "/instance_info/image_source", "value": "http://a/image"}
    mine = [
        image,
        {"op": "add", "path": "/instance_name", "value": "web-1"},
        {"op": "add", "path": "/extra/a", "value": 1},
    ]
    answer = app.ask("PATCH", f"/v1/nodes/{uuid}", mine, token=token)
    assert answer.status == 200, answer
    assert answer.json == app.ask("GET", f"/v1/nodes/{uuid}", token=token).json
    assert "10.9.8.7" not in str(answer.json)
    node = app.node(uuid)
    assert node.instance_info == {"image_source": "http://a/image"}
    assert (node.instance_name, node.extra) == ("web-1", {"a": 1})
    for field, value in (("properties", {}), ("instance_uuid", uuid), ("description", "x")):
        other = [image, {"op": "replace", "path": f"/{field}", "value": value}]
        refused(app.ask("PATCH", f"/v1/nodes/{uuid}", other, token=token), 403, "owner of node")
    refused(app.ask("PATCH", f"/v1/nodes/{theirs}", [image], token=token), 404)
    _, reader, _ = app.person("reader", project)
    refused(app.ask("PATCH", f"/v1/nodes/{uuid}", [image], token=reader), 403, "role")
    assert app.node(uuid) == node


def test_an_owner_puts_a_node_below_their_own_nodes_only(app: Standing) -> None:
    """A node with children cannot be deleted, and its owner's steps are for all of them."""
    _, token, project = app.person("member")
    uuid = app.plant("enroll", owner=project)
    mine, lent, theirs = (
        app.plant("enroll", **fields)
        for fields in ({"owner": project}, {"owner": "them", "lessee": project}, {"owner": "them"})
    )
    nowhere = "5a1c5c1e-9d4b-4d7e-8b7a-1a2b3c4d5e6f"
    said = {}
    for parent, status in ((theirs, 400), (nowhere, 400), (lent, 403), (mine, 200)):
        patch = [{"op": "add", "path": "/parent_node", "value": parent}]
        answer = app.ask("PATCH", f"/v1/nodes/{uuid}", patch, token=token)
        assert answer.status == status, answer
        if status != 200:
            said[parent] = refused(answer, status).replace(parent, "it")
            assert app.node(uuid).version == 1
    assert said[theirs] == said[nowhere]
    assert app.node(theirs).version == app.node(lent).version == 1


def test_an_owner_cannot_feel_for_a_chassis(app: Standing) -> None:
    _, token, project = app.person("member")
    uuid = app.plant("enroll", owner=project)
    made = app.ask("POST", "/v1/chassis", {}).json["uuid"]
    for chassis in (made, "5a1c5c1e-9d4b-4d7e-8b7a-1a2b3c4d5e6f"):
        patch = [{"op": "add", "path": "/chassis_uuid", "value": chassis}]
        refused(app.ask("PATCH", f"/v1/nodes/{uuid}", patch, token=token), 403, "chassis")
    assert app.node(uuid).version == 1
    assert app.ask("DELETE", f"/v1/chassis/{made}").status == 204


def test_a_role_of_another_project_does_not_count(app: Standing) -> None:
    _, token, _ = app.person("reader")
    elsewhere = app.run(app.app.project())
    uuid = app.plant("enroll", owner=elsewhere)
    refused(app.ask("GET", f"/v1/nodes/{uuid}", token=token), 404)


def test_a_token_for_no_project_gets_no_node_and_changes_no_public_runbook(app: Standing) -> None:
    token = app.run(domain_person(app.app, "member"))
    node = app.plant("available", owner="them", resource_class="gold", power_state="power off")
    runbook = {"name": "for-all", "public": True, "steps": [
        {"interface": "bios", "step": "factory_reset", "args": {}, "order": 1},
    ]}  # fmt: skip
    public = app.ask("POST", "/v1/runbooks", runbook).json["uuid"]
    before = footprint(app)
    patch = [{"op": "replace", "path": "/steps/0/step", "value": "other"}]
    for method, path, body in (
        ("POST", "/v1/allocations", {"resource_class": "gold"}),
        ("POST", "/v1/runbooks", {**runbook, "name": "mine", "public": False}),
        ("PATCH", f"/v1/runbooks/{public}", patch),
        ("DELETE", f"/v1/runbooks/{public}", b""),
        ("GET", "/v1/nodes", b""),
        ("GET", f"/v1/nodes/{node}", b""),
        ("GET", "/v1/nodes/not-there", b""),
    ):
        refused(app.ask(method, path, body, token=token), 403, "for no project", "Get one")
    assert footprint(app) == before
    assert app.ask("GET", "/v1", token=token).status == 200


def test_what_belongs_to_no_project_is_not_theirs_whose_token_is_for_none() -> None:
    nowhere = Who("u", "u", None, None, frozenset({"member"}))
    public = Runbook(uuid="r", name="r", steps=[], public=True, created_at="")
    node = Node(uuid="n", driver="fake-hardware", created_at="", provision_state="enroll")
    for name, owned in (("runbook:update", public), ("node:power", node)):
        with pytest.raises(Forbidden):
            policy.check_owner(name, nowhere, owned)


def test_an_administrator_with_a_token_for_no_project_sees_and_does_everything(
    app: Standing,
) -> None:
    token = app.run(domain_person(app.app, "admin"))
    uuid = app.plant("enroll", owner="them")
    assert app.ask("GET", f"/v1/nodes/{uuid}", token=token).status == 200
    assert change(app, "power", uuid, token).status == 202


@pytest.mark.parametrize("role", ["admin", "service"])
def test_administrators_and_services_see_and_do_everything(app: Standing, role: str) -> None:
    _, token, _ = app.person(role)
    for what in CHANGES:
        uuid = app.plant("enroll", owner="them")
        assert change(app, what, uuid, token).status in (200, 201, 202, 204), what


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/simulator/v1/scripts"), ("PUT", "/simulator/v1/scripts/all"),
     ("DELETE", "/simulator/v1/scripts/all"), ("POST", "/simulator/v1/racks/r1/power-cut")],
)  # fmt: skip
def test_simulated_machines_are_the_administrators(app: Standing, method: str, path: str) -> None:
    _, token, _ = app.person("member")
    refused(app.ask(method, path, {}, token=token), 403)
    refused(app.ask(method, path, {}, token=""), 401)
    refused(app.ask(method, path, {}, token="", headers=basic(b"admin:x")), 401)
    assert app.ask(method, path, {}).status in (200, 204)
