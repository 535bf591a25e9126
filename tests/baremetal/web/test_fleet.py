"""Drivers, conductors, shards, parents and children."""

import asyncio
import json
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siderite.baremetal.domain.node import INTERFACES
from siderite.baremetal.usecases import conductors
from siderite.core.store import Op
from siderite.core.times import iso
from tests.baremetal.web import odd
from tests.baremetal.web.expect import footprint
from tests.baremetal.web.expect import refused
from tests.baremetal.web.test_any_request import check
from tests.baremetal.web.test_any_request import repeatable
from tests.support.app import Answer
from tests.support.app import Standing
from tests.support.app import standing
from tests.support.examples import examples

NEWER = {"storage": 33, "rescue": 38, "bios": 40, "firmware": 86}


def interfaces(version: int) -> set[str]:
    kinds = [kind for kind in INTERFACES if NEWER.get(kind, 30) <= version]
    names = [f"default_{k}_interface" for k in kinds] + [f"enabled_{k}_interfaces" for k in kinds]
    return set(names)


@pytest.mark.parametrize("version", [1, 13, 14, 29, 30, 32, 33, 37, 38, 39, 40, 85, 86, 115])
def test_drivers_show_what_their_version_has(lite: Standing, version: int) -> None:
    expected = {"name", "hosts", "links"}
    if version >= 14:
        expected |= {"properties"}
    if version >= 30:
        expected |= {"type"}
    driver = lite.ask("GET", "/v1/drivers", version=version).json["drivers"][0]
    assert (driver["name"], set(driver)) == ("fake-hardware", expected)
    whole = lite.ask("GET", "/v1/drivers/fake-hardware", version=version).json
    assert set(whole) == expected | (interfaces(version) if version >= 30 else set())
    if version < 30:
        refused(lite.ask("GET", "/v1/drivers?detail=true", version=version), 406, "1.30")
        return
    detailed = lite.ask("GET", "/v1/drivers?detail=true", version=version).json["drivers"]
    assert detailed[0] == whole
    assert whole["type"] == "dynamic"
    assert whole["default_deploy_interface"] == whole["enabled_deploy_interfaces"][0]
    assert lite.ask("GET", "/v1/drivers?type=classic", version=version).json == {"drivers": []}


def test_fields_of_drivers_came_with_1_77(lite: Standing) -> None:
    for path in ("/v1/drivers", "/v1/drivers/fake-hardware"):
        refused(lite.ask("GET", f"{path}?fields=name", version=76), 406, "1.77")
        refused(lite.ask("GET", f"{path}?fields=bogus"), 400, "bogus")
        refused(lite.ask("GET", f"{path}?bogus=1"), 400, "bogus")
    one = lite.ask("GET", "/v1/drivers/fake-hardware?fields=name,type", version=77).json
    assert set(one) == {"name", "type", "links"}
    some = lite.ask("GET", "/v1/drivers?fields=hosts").json["drivers"]
    assert all(set(driver) == {"hosts", "links"} for driver in some)
    refused(lite.ask("GET", "/v1/drivers?fields=hosts&detail=true"), 400, "detail")
    refused(lite.ask("GET", "/v1/drivers?type=x"), 400, "type")


def test_properties_of_drivers_are_described(lite: Standing) -> None:
    for name, driver in lite.app.program.baremetal.cards.items():
        found = lite.ask("GET", f"/v1/drivers/{name}/properties").json
        assert found and all(isinstance(text, str) and text for text in found.values())
        assert [*found][: len(driver.required)] == [*driver.required]
        assert all("Required" in found[key] for key in driver.required)
    path = "/v1/drivers/fake-hardware/raid/logical_disk_properties"
    assert "Required" in lite.ask("GET", path).json["raid_level"]
    refused(lite.ask("GET", path, version=11), 406, "1.12")
    for end in ("", "/properties", "/raid/logical_disk_properties"):
        refused(lite.ask("GET", f"/v1/drivers/bogus{end}"), 404, "bogus", "fake-hardware")


def test_living_hosts_are_conductors(tmp_path: Path) -> None:
    with standing(tmp_path) as app:
        ctx = app.app.program.baremetal
        assert app.ask("GET", "/v1/conductors").json == {"conductors": []}
        app.run(conductors.beat(ctx))
        other = "INSERT INTO conductors (hostname, conductor_group, drivers, created_at,"
        other += " updated_at, seen_at) VALUES ('there', '', 'x', 'c', 'u', 7)"
        app.run(app.app.program.store.commit([Op(other)]))
        listed = app.ask("GET", "/v1/conductors").json["conductors"]
        href = "http://cloud.test/baremetal/v1/conductors/here"
        assert listed[0]["links"][0] == {"href": href, "rel": "self"}
        brief = [(c["hostname"], c["conductor_group"], c["alive"]) for c in listed]
        assert brief == [("here", "", True), ("there", "", False)]
        assert set(listed[0]) == {"hostname", "conductor_group", "alive", "links"}
        one = app.ask("GET", "/v1/conductors/here").json
        assert one["drivers"] == sorted(ctx.cards)
        assert set(one) == {
            "hostname", "conductor_group", "alive", "drivers", "created_at", "updated_at", "links",
        }  # fmt: skip
        full = app.ask("GET", "/v1/conductors?detail=true").json["conductors"]
        assert full[0] == one
        driver = app.ask("GET", "/v1/drivers/fake-hardware").json
        assert driver["hosts"] == ["here"]
        page = app.ask("GET", "/v1/conductors?limit=1&sort_key=hostname&sort_dir=desc").json
        assert [c["hostname"] for c in page["conductors"]] == ["there"]
        where = page["next"].removeprefix("http://cloud.test/baremetal")
        page = app.ask("GET", where).json
        assert [c["hostname"] for c in page["conductors"]] == ["here"]
        refused(app.ask("GET", "/v1/conductors/nowhere"), 404, "nowhere")
        refused(app.ask("GET", "/v1/conductors?marker=nowhere"), 404, "nowhere")
        for query in ("sort_key=alive", "fields=bogus", "bogus=1", "limit=0"):
            refused(app.ask("GET", f"/v1/conductors?{query}"), 400)
        refused(app.ask("GET", "/v1/conductors", version=48), 404, "1.49")
        app.run(conductors.beat(ctx))
        app.run(conductors.leave(ctx))
        assert app.ask("GET", "/v1/conductors/here").json["alive"] is False
        assert app.ask("GET", "/v1/drivers/fake-hardware").json["hosts"] == []


def test_hosts_that_were_silent_for_a_week_leave_the_list_and_at_once_where_one_is_all(
    app: Standing,
) -> None:
    ctx = app.app.program.baremetal
    made = (
        "INSERT INTO conductors (hostname, conductor_group, drivers, created_at, updated_at,"
        " seen_at) VALUES (?, '', 'x', ?, ?, 0)"
    )
    now = ctx.door.clock()
    for days, host in ((6, "away"), (8, "gone")):
        then = iso(now - days * 86400)
        app.run(app.app.program.store.commit([Op(made, (host, then, then), 1)]))
    app.run(conductors.beat(ctx))
    listed = app.ask("GET", "/v1/conductors").json["conductors"]
    others = {"away"} if ctx.door.store.dialect == "postgresql" else set()
    assert {one["hostname"] for one in listed} == {"here", *others}
    app.run(app.app.program.store.commit([Op("DELETE FROM conductors")]))


def test_shards_are_counted(app: Standing) -> None:
    def counts() -> dict[str, int]:
        shards = app.ask("GET", "/v1/shards").json["shards"]
        return {shard["name"]: shard["count"] for shard in shards}

    before = counts().get("None", 0)
    for shard in ("s-2", "s-1", "s-2", None):
        app.make_node(**({} if shard is None else {"shard": shard}))
    after = counts()
    assert (after["s-1"], after["s-2"], after["None"] - before) == (1, 2, 1)
    refused(app.ask("GET", "/v1/shards", version=81), 404, "1.82")
    refused(app.ask("GET", "/v1/shards?x=1"), 400, "x")


def test_children_are_found_by_their_parent(app: Standing) -> None:
    parent = app.make_node()
    child, other = app.make_node(parent_node=parent), app.make_node()

    def patch(value: Any) -> Any:
        body = [{"op": "add", "path": "/parent_node", "value": value}]
        return app.ask("PATCH", f"/v1/nodes/{other}", body)

    refused(patch(odd.UUID), 400, odd.UUID)
    refused(patch(other), 400, other)
    assert patch(parent).status == 200
    found = app.ask("GET", f"/v1/nodes/{parent}/children").json
    assert found["children"] == [child, other]
    href = f"http://cloud.test/baremetal/v1/nodes/{parent}/children"
    assert found["links"] == {"href": href, "rel": "self"}
    refused(app.ask("GET", f"/v1/nodes/{parent}/children", version=82), 404, "1.83")

    def listed(query: str) -> set[str]:
        return {node["uuid"] for node in app.ask("GET", f"/v1/nodes?{query}").json["nodes"]}

    assert not {child, other} & listed("")
    assert {child, other, parent} <= listed("include_children=true")
    assert listed(f"parent_node={parent}") == {child, other}
    _, token, project = app.person("reader")
    mine = app.plant("enroll", owner=project)
    hidden, seen = app.plant("enroll", parent_node=mine), None
    seen = app.plant("enroll", parent_node=mine, owner=project)
    answer = app.ask("GET", f"/v1/nodes/{mine}/children", token=token)
    assert answer.json["children"] == [seen]
    assert hidden not in json.dumps(answer.json)


def test_no_child_outlives_its_parent_however_they_race(app: Standing) -> None:
    parent = app.make_node()
    child = app.make_node(parent_node=parent)
    before = footprint(app)
    refused(app.ask("DELETE", f"/v1/nodes/{parent}"), 409, child, "children")
    assert footprint(app) == before
    assert app.ask("DELETE", f"/v1/nodes/{child}").status == 204
    assert app.ask("DELETE", f"/v1/nodes/{parent}").status == 204

    async def story(parent: str) -> list[Answer]:
        body = {"driver": "fake-hardware", "parent_node": parent}
        asks = [app.app.ask("POST", "/v1/nodes", body) for _ in range(4)]
        asks.insert(1, app.app.ask("DELETE", f"/v1/nodes/{parent}"))
        return await asyncio.gather(*asks)

    for _ in range(5):
        parent = app.make_node()
        assert {answer.status for answer in app.run(story(parent))} <= {201, 204, 400, 409}
        gone = app.ask("GET", f"/v1/nodes/{parent}").status == 404
        left = app.ask("GET", f"/v1/nodes?parent_node={parent}").json["nodes"]
        assert not (gone and left)


@hypothesis.settings(repeatable, max_examples=examples(20))
@given(data=st.data())
def test_no_query_is_a_server_error(lite: Standing, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(
        ["drivers", "drivers/fake-hardware", "conductors", "conductors/here", "shards", "volume",
         "drivers/fake-hardware/properties", "drivers/fake-hardware/raid/logical_disk_properties"]
    ))  # fmt: skip
    query = data.draw(odd.QUERIES)
    check(lite, "GET", f"/v1/{path}?{query}", version=data.draw(st.just("1.115") | odd.VERSIONS))


def test_a_node_is_not_put_below_one_that_is_below_it(lite: Standing) -> None:
    top = lite.make_node()
    middle = lite.make_node(parent_node=top)
    bottom = lite.make_node(parent_node=middle)
    for below in (middle, bottom):
        body = [{"op": "add", "path": "/parent_node", "value": below}]
        refused(lite.ask("PATCH", f"/v1/nodes/{top}", body), 400, "parent_node", "below")
    assert lite.node(top).parent_node is None
