"""Chassis: made, shown, changed and removed, and the nodes in them."""

import asyncio
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siderite.baremetal.web.beside.chassis import FORM
from tests.baremetal.web import odd
from tests.baremetal.web.expect import footprint
from tests.baremetal.web.expect import refused
from tests.baremetal.web.test_any_request import check
from tests.baremetal.web.test_any_request import one_node
from tests.baremetal.web.test_any_request import repeatable
from tests.baremetal.web.told import told
from tests.baremetal.web.told import types
from tests.support.app import Answer
from tests.support.app import Standing
from tests.support.examples import examples

FIELDS = {"uuid", "description", "extra", "created_at", "updated_at", "links", "nodes"}


def make(app: Standing, **fields: Any) -> str:
    """The UUID of a new chassis."""
    answer = app.ask("POST", "/v1/chassis", fields)
    assert answer.status == 201, answer
    return str(answer.json["uuid"])


def patch(app: Standing, uuid: str, op: str, path: str, value: Any = None) -> Answer:
    """The answer to a patch of one operation."""
    return app.ask("PATCH", f"/v1/chassis/{uuid}", [{"op": op, "path": path, "value": value}])


@pytest.mark.parametrize("version", [1, 115, 900])
def test_a_chassis_shows_the_same_fields_in_every_version(app: Standing, version: int) -> None:
    body = {"description": "Rack 7", "extra": {"row": 3}}
    made = app.ask("POST", "/v1/chassis", body, version=version)
    assert (made.status, set(made.json)) == (201, FIELDS)
    uuid = made.json["uuid"]
    assert made.headers["location"] == f"http://cloud.test/baremetal/v1/chassis/{uuid}"
    shown = app.ask("GET", f"/v1/chassis/{uuid}", version=version).json
    assert shown == made.json
    assert (shown["description"], shown["extra"]) == ("Rack 7", {"row": 3})
    # A list in a list, as upstream has it.
    href = f"http://cloud.test/baremetal/v1/chassis/{uuid}/nodes"
    assert shown["nodes"][0][0] == {"href": href, "rel": "self"}
    full = app.ask("GET", "/v1/chassis/detail", version=version).json["chassis"]
    assert all(set(chassis) == FIELDS for chassis in full)
    brief = app.ask("GET", "/v1/chassis", version=version).json["chassis"]
    assert {"uuid", "description", "links"} == set(brief[-1])


def test_a_chassis_is_found_by_its_uuid_only(app: Standing) -> None:
    refused(app.ask("GET", f"/v1/chassis/{odd.UUID}"), 404, odd.UUID)
    refused(app.ask("GET", "/v1/chassis/rack-7"), 400, "UUID")
    uuid = make(app)
    assert app.ask("GET", f"/v1/chassis/{uuid.upper()}").json["uuid"] == uuid
    assert app.ask("GET", f"/v1/chassis/{uuid}.json", version=1).json["uuid"] == uuid
    assert set(app.ask("GET", f"/v1/chassis/{uuid}?fields=extra").json) == {"extra", "links"}
    refused(app.ask("GET", f"/v1/chassis/{uuid}?fields=extra", version=7), 406, "1.8")
    refused(app.ask("GET", "/v1/chassis?detail=true", version=42), 406, "1.43")
    refused(app.ask("GET", f"/v1/chassis/{uuid}?fields=bogus"), 400, "bogus")


@pytest.mark.parametrize(
    "body",
    [
        {"description": "x" * 256},
        {"description": 7},
        {"extra": []},
        {"uuid": "x"},
        {"bogus": 1},
        [],
    ],
)
def test_a_chassis_that_cannot_be_is_refused_in_words(app: Standing, body: Any) -> None:
    before = footprint(app)
    refused(app.ask("POST", "/v1/chassis", body), 400, "Schema error for chassis")
    assert footprint(app) == before


def test_facts_tell_of_each_change_once_and_in_order(app: Standing) -> None:
    uuid = make(app, description="a", extra={"password": "no secret of ours"})
    assert patch(app, uuid, "replace", "/description", "b").json["description"] == "b"
    assert patch(app, uuid, "replace", "/description", "b").status == 200  # no change
    assert app.ask("DELETE", f"/v1/chassis/{uuid}").status == 204
    found = told(app, uuid)
    assert [fact.event_type for fact in found] == [
        f"baremetal.chassis.{action}.{status}"
        for action in ("create", "update", "delete")
        for status in ("start", "end")
    ]
    for fact in found:
        assert fact.kind == "ChassisCRUDPayload 1.0"
        assert set(fact.data) == {"created_at", "description", "extra", "updated_at", "uuid"}
        assert (fact.publisher, fact.project) == ("ironic-api.here", None)
    assert [fact.data["description"] for fact in found] == ["a"] * 3 + ["b"] * 3


def test_each_failure_is_announced(app: Standing) -> None:
    uuid = make(app)
    node = app.make_node(chassis_uuid=uuid)
    before = footprint(app)
    refused(app.ask("POST", "/v1/chassis", {"uuid": uuid}), 409, uuid, "already exists")
    refused(patch(app, uuid, "replace", "/uuid", odd.UUID), 400, "Cannot overwrite UUID")
    refused(app.ask("DELETE", f"/v1/chassis/{uuid}"), 400, "contains nodes", "chassis_uuid")
    assert footprint(app) == before
    assert types(app, uuid)[2:] == [
        f"chassis.{action}.{status}"
        for action in ("create", "update", "delete")
        for status in ("start", "error")
    ]
    assert {fact.priority for fact in told(app, uuid)[3::2]} == {"ERROR"}
    assert app.ask("DELETE", f"/v1/nodes/{node}").status == 204
    assert app.ask("DELETE", f"/v1/chassis/{uuid}").status == 204


def test_a_patch_of_what_is_no_field_announces_nothing(app: Standing) -> None:
    uuid = make(app)
    refused(patch(app, uuid, "add", "/nodes", []), 400, "Cannot patch /nodes")
    refused(patch(app, uuid, "remove", "/uuid"), 400, "uuid can not be removed")
    refused(patch(app, uuid, "replace", "/description", "x" * 256), 400, "description")
    assert types(app, uuid) == ["chassis.create.start", "chassis.create.end"]
    assert patch(app, uuid, "add", "/extra/a", 1).json["extra"] == {"a": 1}
    assert patch(app, uuid, "remove", "/extra").json["extra"] == {}


def test_nodes_come_into_a_chassis_that_is_there_and_out_of_it(app: Standing) -> None:
    uuid, other = make(app), make(app)
    nodes = [app.make_node(chassis_uuid=uuid), app.make_node()]
    before = footprint(app)
    wrong = {"driver": "fake-hardware", "chassis_uuid": odd.UUID}
    refused(app.ask("POST", "/v1/nodes", wrong), 400, "chassis_uuid", odd.UUID)
    put = [{"op": "add", "path": "/chassis_uuid", "value": odd.UUID}]
    refused(app.ask("PATCH", f"/v1/nodes/{nodes[1]}", put), 400, "chassis_uuid", odd.UUID)
    assert footprint(app) == before
    put[0]["value"] = uuid
    assert app.ask("PATCH", f"/v1/nodes/{nodes[1]}", put).json["chassis_uuid"] == uuid
    for path in (f"/v1/chassis/{uuid}/nodes", f"/v1/nodes?chassis_uuid={uuid}"):
        listed = app.ask("GET", path).json["nodes"]
        assert [node["uuid"] for node in listed] == nodes
        assert "driver" not in listed[0]
    full = app.ask("GET", f"/v1/chassis/{uuid}/nodes/detail").json["nodes"]
    assert [node["chassis_uuid"] for node in full] == [uuid, uuid]
    assert app.ask("GET", f"/v1/chassis/{other}/nodes").json == {"nodes": []}
    refused(app.ask("GET", f"/v1/chassis/{odd.UUID}/nodes"), 404, odd.UUID)
    page = app.ask("GET", f"/v1/chassis/{uuid}/nodes?limit=1").json
    where = page["next"].removeprefix("http://cloud.test/baremetal")
    assert where.startswith(f"/v1/chassis/{uuid}/nodes?")
    assert [node["uuid"] for node in app.ask("GET", where).json["nodes"]] == nodes[1:]
    out = [{"op": "remove", "path": "/chassis_uuid"}]
    for node in nodes:
        path = f"/v1/nodes/{node}"
        refused(app.ask("PATCH", path, out, version=24), 406, "chassis_uuid", "1.25")
        assert app.ask("PATCH", path, out, version=25).json["chassis_uuid"] is None
    assert app.ask("DELETE", f"/v1/chassis/{uuid}").status == 204


def test_a_node_that_an_old_version_cannot_take_out_of_its_chassis_announces_nothing(
    app: Standing,
) -> None:
    node = app.make_node(chassis_uuid=make(app))
    before = types(app, node)
    out = [{"op": "remove", "path": "/chassis_uuid"}]
    refused(app.ask("PATCH", f"/v1/nodes/{node}", out, version=24), 406, "chassis_uuid", "1.25")
    assert types(app, node) == before


def test_no_node_is_in_a_chassis_that_is_gone_however_they_race(app: Standing) -> None:
    async def story(uuid: str) -> list[Answer]:
        body = {"driver": "fake-hardware", "chassis_uuid": uuid}
        asks = [app.app.ask("POST", "/v1/nodes", body) for _ in range(8)]
        asks.insert(4, app.app.ask("DELETE", f"/v1/chassis/{uuid}"))
        return await asyncio.gather(*asks)

    for _ in range(5):
        uuid = make(app)
        assert {answer.status for answer in app.run(story(uuid))} <= {201, 204, 400}
        gone = app.ask("GET", f"/v1/chassis/{uuid}").status == 404
        inside = app.ask("GET", f"/v1/nodes?chassis_uuid={uuid}").json["nodes"]
        assert not (gone and inside)


def test_pages_join_to_the_whole_list(app: Standing) -> None:
    mine = [make(app, description=f"chassis {n}") for n in "bca"]
    path, seen = "/v1/chassis?limit=2&sort_key=description&sort_dir=desc", []
    while path:
        page = app.ask("GET", path).json
        seen += [chassis["uuid"] for chassis in page["chassis"]]
        path = page.get("next", "").removeprefix("http://cloud.test/baremetal")
    assert [uuid for uuid in seen if uuid in mine] == [mine[1], mine[0], mine[2]]
    refused(app.ask("GET", "/v1/chassis?sort_key=nodes"), 400, "sort_key")
    refused(app.ask("GET", f"/v1/chassis?marker={odd.UUID}"), 404, odd.UUID)
    refused(app.ask("GET", "/v1/chassis?description=x"), 400, "A list of chassis takes")


def test_chassis_are_for_those_who_see_all(app: Standing) -> None:
    uuid = make(app)
    for role in ("reader", "member"):
        _, token, _ = app.person(role)
        for path in ("", "/detail", f"/{uuid}", f"/{uuid}/nodes"):
            refused(app.ask("GET", f"/v1/chassis{path}", token=token), 403, "chassis:read")
        refused(app.ask("POST", "/v1/chassis", {}, token=token), 403, "chassis:create")
        refused(app.ask("DELETE", f"/v1/chassis/{uuid}", token=token), 403, "chassis:delete")
    _, token, _ = app.person("service")
    assert app.ask("GET", f"/v1/chassis/{uuid}", token=token).status == 200


@hypothesis.settings(repeatable, max_examples=examples(15))
@given(data=st.data())
def test_no_creation_or_patch_of_a_chassis_is_a_server_error(
    app: Standing, data: st.DataObject
) -> None:
    with one_node(app, state="enroll", name="n1"):
        version = data.draw(st.just("1.115") | odd.VERSIONS)
        body = odd.as_bytes(data.draw(odd.CHASSIS_CREATION))
        check(app, "POST", "/v1/chassis", body=body, version=version)
        uuid = make(app, extra={"a": {}})
        body = odd.as_bytes(data.draw(odd.patch_of(FORM.fields)))
        check(app, "PATCH", f"/v1/chassis/{uuid}", body=body, version=version)
        query = data.draw(odd.QUERIES)
        for path in ("", f"/{uuid}", f"/{uuid}/nodes"):
            check(app, "GET", f"/v1/chassis{path}?{query}", version=version)
        assert check(app, "DELETE", f"/v1/chassis/{uuid}").status == 204
