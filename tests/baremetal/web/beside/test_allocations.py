"""Allocations on the wire: versions, bodies, whose they are; how one is found: tests of workers."""

from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siderite.baremetal.domain.wire import ALLOCATION_FIELDS
from tests.baremetal.web import odd
from tests.baremetal.web.expect import footprint
from tests.baremetal.web.expect import refused
from tests.baremetal.web.test_any_request import check
from tests.baremetal.web.test_any_request import one_node
from tests.baremetal.web.test_any_request import repeatable
from tests.baremetal.web.told import told
from tests.baremetal.web.told import types
from tests.support import shown
from tests.support.app import Answer
from tests.support.app import Standing
from tests.support.examples import examples

SHOWN = shown.at(shown.ALLOCATION, 52)
PAYLOAD = SHOWN - {"links"} | {"owner"}
PATH = "/v1/allocations"
PATCHES = odd.patch_of(["name", "extra"])


def post(app: Standing, *, version: int = 115, token: str | None = None, **fields: Any) -> Answer:
    body = {"resource_class": "gold", **fields}
    return app.ask("POST", PATH, body, version=version, token=token)


@pytest.mark.parametrize("version", [52, 57, 58, 59, 60, 115, 900])
def test_each_version_shows_exactly_its_fields(lite: Standing, version: int) -> None:
    expected = SHOWN | ({"owner"} if version >= 60 else set())
    made = post(lite, version=version, traits=["CUSTOM_A"], extra={"a": 1})
    assert (made.status, set(made.json)) == (201, expected)
    assert made.json["state"] == "allocating"
    path = f"{PATH}/{made.json['uuid']}"
    assert made.headers["location"].endswith(path)
    assert lite.ask("GET", path, version=version).json == made.json
    listed = lite.ask("GET", PATH, version=version).json["allocations"]
    assert all(set(item) == expected for item in listed)
    some = lite.ask("GET", f"{PATH}?fields=state", version=version).json["allocations"]
    assert all(set(item) == {"state", "links"} for item in some)
    assert set(ALLOCATION_FIELDS.since) == SHOWN | {"owner"}


def test_each_refusal_of_an_old_version_is_that_of_ironic(lite: Standing) -> None:
    node = lite.plant("active")
    uuid = post(lite).json["uuid"]
    refused(lite.ask("GET", PATH, version=51), 404, "1.52")
    refused(lite.ask("GET", f"/v1/nodes/{node}/allocation", version=51), 404, "1.52")
    refused(post(lite, version=51), 405, "1.52")
    refused(lite.ask("DELETE", f"{PATH}/{uuid}", version=51), 405, "1.52")
    patch = [{"op": "add", "path": "/extra/a", "value": 1}]
    refused(lite.ask("PATCH", f"{PATH}/{uuid}", patch, version=56), 405, "1.57")
    assert lite.ask("PATCH", f"{PATH}/{uuid}", patch, version=57).json["extra"] == {"a": 1}
    refused(post(lite, version=57, node=node), 400, "1.58")
    refused(post(lite, version=59, owner="x"), 406, "owner", "1.60")
    refused(lite.ask("GET", f"{PATH}?owner=x", version=59), 406, "1.60")


@pytest.mark.parametrize(
    "fields",
    [{"resource_class": None}, {"resource_class": ""}, {"resource_class": "x" * 81},
     {"traits": ["fast"]}, {"traits": "CUSTOM_A"}, {"candidate_nodes": [odd.UUID]},
     {"candidate_nodes": [7]}, {"node": odd.UUID}, {"node": 7}, {"name": "two words"},
     {"uuid": "x"}, {"extra": 7}, {"state": "active"}, {"node_uuid": odd.UUID}, {"bogus": 1}],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_words(app: Standing, fields: dict[str, Any]) -> None:
    before = footprint(app)
    refused(post(app, **fields), 400)
    assert footprint(app) == before


def test_candidates_are_found_by_name_and_uuid_with_one_question(
    app: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, token, project = app.person("member")
    mine = [app.plant("enroll", owner=project, name=f"mine-{n}-{project}") for n in range(5)]
    unnamed, theirs = app.plant("enroll", lessee=project), app.plant("enroll", owner="them")
    store, asked = app.app.program.store, []
    fetch = store.fetch

    async def counted(sql: str, *args: Any) -> Any:
        asked.append(sql)
        return await fetch(sql, *args)

    wanted = [unnamed.upper(), *(f"mine-{n}-{project}" for n in range(5)), unnamed]
    with monkeypatch.context() as patched:
        patched.setattr(store, "fetch", counted)
        made = post(app, token=token, candidate_nodes=wanted)
    assert made.json["candidate_nodes"] == [unnamed, *mine, unnamed]
    assert len([sql for sql in asked if "FROM nodes" in sql]) == 1
    for other in (theirs, "None", "nobody"):
        said = post(app, token=token, candidate_nodes=[unnamed, other])
        refused(said, 400, f"Node {other} could not be found")


def test_only_its_name_and_extra_can_be_patched(app: Standing) -> None:
    uuid = post(app).json["uuid"]
    path = f"{PATH}/{uuid}"
    new = [{"op": "add", "path": "/name", "value": "wish"}]
    assert app.ask("PATCH", path, new).json["name"] == "wish"
    assert app.ask("GET", f"{PATH}/wish").json["uuid"] == uuid
    refused(post(app, name="wish"), 409, "wish", "already exists")
    refused(post(app, name="detail"), 400, "cannot be an allocation's name")
    for name in ("node_uuid", "resource_class", "traits", "owner", "state"):
        body = [{"op": "replace", "path": f"/{name}", "value": "x"}]
        refused(app.ask("PATCH", path, body), 400, f"Cannot patch /{name}")
    assert app.ask("DELETE", f"{PATH}/wish").status == 204
    assert types(app, uuid) == [
        f"allocation.{action}.{status}"
        for action in ("create", "update", "delete")
        for status in ("start", "end")
    ]
    for fact in told(app, uuid):
        assert (fact.kind, set(fact.data)) == ("AllocationCRUDPayload 1.1", PAYLOAD)


def test_a_node_in_use_gets_an_allocation_at_once(app: Standing) -> None:
    node = app.plant("active", resource_class="gold", instance_uuid=odd.UUID, traits=["CUSTOM_A"])
    other = app.plant("active")
    before = footprint(app)
    for fields, words in (
        ({"traits": ["CUSTOM_B"]}, "traits"), ({"resource_class": "silver"}, "resource class"),
        ({"candidate_nodes": [other]}, "candidate_nodes"),
        ({"uuid": odd.UUID.replace("1", "2")}, odd.UUID),
    ):  # fmt: skip
        refused(post(app, node=node, **fields), 409, words)
    assert footprint(app) == before
    refused(post(app, node=app.plant("available", resource_class="gold")), 409, "active")
    made = app.ask("POST", PATH, {"node": node, "traits": ["CUSTOM_A"]}).json
    assert (made["uuid"], made["state"], made["node_uuid"]) == (odd.UUID, "active", node)
    assert made["resource_class"] == "gold"
    assert app.node(node).allocation_uuid == odd.UUID
    refused(post(app, node=node), 409, "taken")
    for query in (f"node={node}", "state=active"):
        listed = app.ask("GET", f"{PATH}?{query}").json["allocations"]
        assert [item["uuid"] for item in listed] == [odd.UUID]
    where = f"/v1/nodes/{node}/allocation"
    assert app.ask("GET", f"{where}?fields=uuid").json["uuid"] == odd.UUID
    refused(app.ask("DELETE", where), 409, "undeploy")
    assert app.ask("PUT", f"/v1/nodes/{node}/maintenance", {}).status == 202
    owner = [{"op": "add", "path": "/owner", "value": "x"}]
    assert app.ask("PATCH", f"/v1/nodes/{node}", owner).status == 200
    assert app.ask("DELETE", where).status == 204
    assert (app.node(node).instance_uuid, app.node(node).allocation_uuid) == (None, None)
    refused(app.ask("GET", where), 404, "nobody")


def test_an_allocation_ends_with_the_instance_it_gave(app: Standing) -> None:
    node = app.plant("active", resource_class="gold", traits=["CUSTOM_A"], instance_info={"a": 1})
    body = {"node": node, "owner": "them", "traits": ["CUSTOM_A"]}
    uuid = app.ask("POST", PATH, body).json["uuid"]
    assert app.node(node).instance_info == {"a": 1, "traits": ["CUSTOM_A"]}
    path = f"/v1/nodes/{node}"
    owner = [{"op": "add", "path": "/owner", "value": "us"}]
    refused(app.ask("PATCH", path, owner), 409, "them", uuid)
    away = [{"op": "remove", "path": "/instance_uuid"}]
    refused(app.ask("PATCH", path, away), 409, uuid, "undeploy")
    failed = ["node.update.start", "node.update.error"]
    assert types(app, node) == ["node.update.start", "node.update.end", *failed, *failed]
    assert app.ask("PUT", f"{path}/maintenance", {}).status == 202
    assert app.ask("PATCH", path, away).json["allocation_uuid"] is None
    assert app.node(node).instance_info == {"a": 1}, "lest the next deploy follows their templates"
    refused(app.ask("GET", f"{PATH}/{uuid}"), 404)
    assert types(app, uuid)[-2:] == ["allocation.delete.start", "allocation.delete.end"]
    node = app.plant("active", resource_class="gold", maintenance=True)
    uuid = app.ask("POST", PATH, {"node": node}).json["uuid"]
    assert app.ask("DELETE", f"/v1/nodes/{node}").status == 204
    refused(app.ask("GET", f"{PATH}/{uuid}"), 404)


def test_what_one_says_of_a_node_stays_though_its_allocation_ends_by_it(app: Standing) -> None:
    node = app.plant("active", resource_class="gold", traits=["CUSTOM_A"], maintenance=True)
    app.ask("POST", PATH, {"node": node, "traits": ["CUSTOM_A"]})
    patch = [
        {"op": "remove", "path": "/instance_uuid"},
        {"op": "add", "path": "/instance_info", "value": {"b": 2}},
    ]
    assert app.ask("PATCH", f"/v1/nodes/{node}", patch).json["allocation_uuid"] is None
    assert app.node(node).instance_info == {"b": 2}


def test_allocations_are_seen_by_their_owner(app: Standing) -> None:
    _, token, project = app.person("member")
    mine = post(app, token=token).json
    assert mine["owner"] == project
    theirs = post(app, owner="them").json["uuid"]
    refused(post(app, token=token, owner="them"), 400, "owner")
    listed = app.ask("GET", PATH, token=token).json["allocations"]
    assert [item["uuid"] for item in listed] == [mine["uuid"]]
    refused(app.ask("GET", f"{PATH}/{theirs}", token=token), 404)
    refused(app.ask("DELETE", f"{PATH}/{theirs}", token=token), 404)
    assert app.ask("DELETE", f"{PATH}/{mine['uuid']}", token=token).status == 204
    _, reader, _ = app.person("reader")
    refused(post(app, token=reader), 403, "allocation:create")
    refused(app.ask("GET", f"{PATH}?node={odd.UUID}"), 400, odd.UUID)
    refused(app.ask("GET", f"{PATH}?state=bogus"), 400, "allocating")


@hypothesis.settings(repeatable, max_examples=examples(15))
@given(data=st.data())
def test_no_creation_or_patch_is_a_server_error(lite: Standing, data: st.DataObject) -> None:
    with one_node(lite, state="active", name="n1", resource_class="gold") as node:
        version = data.draw(st.just("1.115") | odd.VERSIONS)
        names = st.sampled_from(["name", "node", "candidate_nodes", "traits", "uuid", "owner"])
        values = odd.JSON | st.sampled_from([node, "n1", [node], ["CUSTOM_A"], odd.UUID])
        body = {"resource_class": "gold", **data.draw(st.dictionaries(names, values, max_size=3))}
        patch = odd.as_bytes(data.draw(PATCHES))
        made = check(lite, "POST", PATH, body=odd.as_bytes(body), version=version)
        if made.status == 201:
            uuid = made.json["uuid"]
            check(lite, "PATCH", f"{PATH}/{uuid}", body=patch, version=version)
            assert check(lite, "DELETE", f"{PATH}/{uuid}").status in (204, 409)
        check(lite, "GET", f"{PATH}?{data.draw(odd.QUERIES)}", version=version)


def test_a_list_that_is_too_long_is_refused_with_how_long_it_is(lite: Standing) -> None:
    body = {"resource_class": "gold", "candidate_nodes": ["n"] * 1001}
    refused(lite.ask("POST", "/v1/allocations", body), 400, "a list of 0 to 1000, not one of 1001")
    body = {"resource_class": "gold", "candidate_nodes": "n"}
    refused(lite.ask("POST", "/v1/allocations", body), 400, "a list of 0 to 1000, not text")
