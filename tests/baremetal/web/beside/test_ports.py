"""Ports: what each version shows and takes, whose they are, and when they may be changed."""

import asyncio
import itertools
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.port import Port
from siderite.baremetal.domain.wire import PORT_FIELDS
from siderite.baremetal.store import PORTS
from siderite.baremetal.web.beside.port_schema import FORM
from siderite.baremetal.web.beside.port_schema import LINK_SINCE
from siderite.baremetal.web.versions import PORT_FILTER_SINCE
from siderite.core.ids import new_uuid
from siderite.core.transition import Cause
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

SINCE = shown.since(shown.PORT)
EDGES = [*shown.edges(shown.PORT), 900]
LINK = {"port_id": "Gi1/0/1", "switch_id": "0A:1b:2c:3d:4e:5f"}
VALUES: dict[str, Any] = {
    "extra": {"a": 1}, "local_link_connection": LINK, "pxe_enabled": False, "portgroup_uuid": None,
    "physical_network": "net-1", "is_smartnic": False, "name": None, "description": "d",
    "vendor": "v", "category": "c", "available_for_dynamic_portgroup": False,
}  # fmt: skip
PAYLOAD = {
    "address", "available_for_dynamic_portgroup", "category", "created_at", "description", "extra",
    "is_smartnic", "local_link_connection", "name", "node_uuid", "physical_network",
    "portgroup_uuid", "pxe_enabled", "updated_at", "uuid", "vendor",
}  # fmt: skip
_numbers = itertools.count(1)


def mac() -> str:
    """An address that no other port has."""
    digits = f"{next(_numbers):06x}"
    return f"52:54:00:{digits[:2]}:{digits[2:4]}:{digits[4:]}"


def post(app: Standing, node: str, *, version: int = 115, **fields: Any) -> Answer:
    """The answer to the creation of a port."""
    body = {"address": mac(), "node_uuid": node, **fields}
    return app.ask("POST", "/v1/ports", body, version=version)


def make(app: Standing, node: str, **fields: Any) -> str:
    """The UUID of a new port."""
    answer = post(app, node, **fields)
    assert answer.status == 201, answer
    return str(answer.json["uuid"])


def patch(app: Standing, port: str, *ops: tuple[Any, ...], version: int = 115) -> Answer:
    """The answer to a patch of (op, path, value)."""
    names = ("op", "path", "value")
    body = [dict(zip(names, op, strict=False)) for op in ops]
    return app.ask("PATCH", f"/v1/ports/{port}", body, version=version)


def listed(app: Standing, query: str = "", path: str = "/v1/ports", **how: Any) -> list[str]:
    """The UUIDs of a list of ports."""
    answer = app.ask("GET", f"{path}?{query}", **how)
    assert answer.status == 200, answer
    return [port["uuid"] for port in answer.json["ports"]]


def test_the_table_of_fields_is_that_of_ironic() -> None:
    assert dict(PORT_FIELDS) == SINCE


@pytest.mark.parametrize("version", EDGES)
def test_a_port_shows_exactly_the_fields_of_the_version(lite: Standing, version: int) -> None:
    expected = {name for name, since in SINCE.items() if since <= version}
    made = post(lite, lite.make_node(), version=version)
    assert (made.status, set(made.json)) == (201, expected)
    path = f"/v1/ports/{made.json['uuid']}"
    assert made.headers["location"].endswith(path)
    assert set(lite.ask("GET", path, version=version).json) == expected
    patched = patch(lite, made.json["uuid"], ("add", "/extra/at", version), version=version)
    assert (patched.status, set(patched.json)) == (200, expected)
    full = lite.ask("GET", "/v1/ports/detail", version=version).json["ports"]
    assert full and all(set(port) == expected for port in full)
    brief = lite.ask("GET", "/v1/ports", version=version).json["ports"]
    assert brief and all(set(port) == {"uuid", "address", "links"} for port in brief)


@pytest.mark.parametrize("field", VALUES)
def test_a_field_newer_than_the_version_is_not_acceptable(lite: Standing, field: str) -> None:
    since, node = SINCE[field], lite.make_node()
    made = post(lite, node, version=since, **{field: VALUES[field]})
    assert made.status == 201, made
    uuid = made.json["uuid"]
    assert patch(lite, uuid, ("add", f"/{field}", VALUES[field]), version=since).status == 200
    if since == 1:
        return
    before = footprint(lite)
    word = (field, f"1.{since}")
    refused(post(lite, node, version=since - 1, **{field: VALUES[field]}), 406, *word)
    op = ("add", f"/{field}", VALUES[field])
    refused(patch(lite, uuid, op, version=since - 1), 406, *word)
    for query in (f"/{uuid}?fields={field}", f"?fields={field}"):
        refused(lite.ask("GET", f"/v1/ports{query}", version=since - 1), 406, *word)
        assert lite.ask("GET", f"/v1/ports{query}", version=since).status == 200
    assert footprint(lite) == before


@pytest.mark.parametrize("key", LINK_SINCE)
def test_each_key_of_a_local_link_has_its_version(lite: Standing, key: str) -> None:
    whole = {
        "port_id": "p", "switch_id": "0x00000000000000AB", "switch_info": "s", "hostname": "h",
        "network_type": "managed", "vtep-logical-switch": "l", "vtep-physical-switch": "p",
    }  # fmt: skip
    needed = {"port_id", "switch_id", key}
    if key.startswith("vtep"):
        needed = {"port_id", "vtep-logical-switch", "vtep-physical-switch"}
    link = {name: whole[name] for name in needed}
    node, since = lite.make_node(), LINK_SINCE[key]
    made = post(lite, node, version=since, local_link_connection=link)
    assert made.status == 201, made
    lower = {name: text.lower() for name, text in link.items()}
    assert made.json["local_link_connection"] == lower
    refused(post(lite, node, version=since - 1, local_link_connection=link), 406, f"1.{since}")
    if since > 19:
        op = ("add", "/local_link_connection", link)
        refused(patch(lite, made.json["uuid"], op, version=since - 1), 406, f"1.{since}")


@pytest.mark.parametrize("version", [105, 115, 900])
def test_a_link_by_an_ovn_gateway_is_no_longer_taken_from_1_105_on(
    lite: Standing, version: int
) -> None:
    link = {"port_id": "p", "vtep-logical-switch": "l", "vtep-physical-switch": "p"}
    node = lite.make_node()
    uuid = make(lite, node, version=104, local_link_connection=link)
    before = footprint(lite)
    refused(post(lite, node, version=version, local_link_connection=link), 406, "1.105")
    for path, value in (("", link), ("/port_id", "other")):
        op = ("replace", f"/local_link_connection{path}", value)
        refused(patch(lite, uuid, op, version=version), 406, "vtep", "1.105")
    assert footprint(lite) == before
    assert patch(lite, uuid, ("add", "/extra/a", 1), version=version).status == 200
    assert (
        patch(lite, uuid, ("replace", "/local_link_connection", LINK), version=version).status
        == 200
    )


def test_a_link_that_a_version_does_not_know_is_shown_as_none(app: Standing) -> None:
    link = {"port_id": "p", "vtep-logical-switch": "l", "vtep-physical-switch": "\n,"}
    extra = {"x": {"local_link_connection": link, "pxe_enabled": True}}
    more = {"extra": extra, "pxe_enabled": False, "version": 104}
    uuid = make(app, app.make_node(), local_link_connection=link, **more)
    other = make(app, app.make_node(), extra=extra, local_link_connection=LINK)
    for version, seen in ((89, {}), (90, link), (105, link), (900, link)):
        port = app.ask("GET", f"/v1/ports/{uuid}", version=version).json
        assert (port["local_link_connection"], port["extra"]) == (seen, extra)
        assert port["pxe_enabled"] is False
        port = app.ask("GET", f"/v1/ports/{other}", version=version).json
        assert port["local_link_connection"]["port_id"] == LINK["port_id"]


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ({"port_id": "p"}, "switch_id"), ({"bogus": "x"}, "bogus"), ([], "object"),
        ({**LINK, "switch_id": "nonsense"}, "MAC address or an OpenFlow datapath"),
        ({**LINK, "port_id": 7}, "must be text"), ({**LINK, "network_type": "x"}, "unmanaged"),
        ({"port_id": "p", "vtep-logical-switch": "l"}, "both"), ("x", "object"),
        ({"network_type": "managed"}, "port_id"),
    ],
)  # fmt: skip
def test_a_local_link_has_one_of_its_forms(lite: Standing, link: Any, words: str) -> None:
    node = lite.make_node()
    uuid = make(lite, node)
    before = footprint(lite)
    refused(post(lite, node, local_link_connection=link), 400, "local_link_connection", words)
    op = ("replace", "/local_link_connection", link)
    refused(patch(lite, uuid, op), 400, "local_link_connection", words)
    assert footprint(lite) == before


def test_links_that_are_no_switch_ports(lite: Standing) -> None:
    node = lite.make_node()
    for link in ({}, {"network_type": "unmanaged"}, {"port_id": "p", "hostname": "h"}):
        assert make(lite, node, local_link_connection=link)
    smart = {"port_id": "p", "hostname": "h"}
    refused(post(lite, node, is_smartnic=True), 400, "port_id and hostname")
    uuid = make(lite, node, is_smartnic=True, local_link_connection=smart)
    op = ("replace", "/local_link_connection", LINK)
    refused(patch(lite, uuid, op), 400, "port_id and hostname")
    assert patch(lite, uuid, op, ("replace", "/is_smartnic", False)).status == 200


def test_a_new_port_has_the_defaults_of_ironic(app: Standing) -> None:
    node = app.make_node()
    port = post(app, node, address="52:54:00:AB:CD:EF").json
    assert port["address"] == "52:54:00:ab:cd:ef"
    assert port["node_uuid"] == node
    assert port["links"][0]["href"] == f"http://cloud.test/baremetal/v1/ports/{port['uuid']}"
    for name, value in {
        "pxe_enabled": True, "is_smartnic": False, "extra": {}, "internal_info": {},
        "local_link_connection": {}, "portgroup_uuid": None, "physical_network": None,
        "name": None, "description": None, "vendor": None, "category": None,
        "available_for_dynamic_portgroup": True, "updated_at": None,
    }.items():  # fmt: skip
        assert port[name] == value, name


def test_a_node_can_be_named_from_1_94_on(app: Standing) -> None:
    node = app.make_node(name=f"node-of-port-{next(_numbers)}")
    name = app.show(node)["name"]
    for ident in (name, node, node.upper()):
        made = app.ask("POST", "/v1/ports", {"address": mac(), "node_ident": ident}, version=94)
        assert made.json["node_uuid"] == node
    body = {"address": mac(), "node_ident": name}
    refused(app.ask("POST", "/v1/ports", body, version=93), 406, "node_ident", "1.94")
    both = {**body, "node_uuid": node}
    refused(app.ask("POST", "/v1/ports", both), 400, "one of")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"address": None}, "address"), ({"address": "52:54:00:12:34"}, "MAC address"),
        ({"address": "52-54-00-12-34-56"}, "MAC address"), ({"node_uuid": None}, "node_uuid"),
        ({"node_uuid": odd.UUID}, "could not be found"), ({"bogus": 1}, "bogus"),
        ({"internal_info": {}}, "internal_info"), ({"physical_network": ""}, "physical_network"),
        ({"physical_network": "x" * 65}, "physical_network"), ({"extra": []}, "extra"),
        ({"portgroup_uuid": odd.UUID}, "could not be found"), ({"uuid": "x"}, "uuid"),
        ({"name": "detail"}, "name"), ({"name": "two words"}, "name"), ({"vendor": 7}, "vendor"),
        ({"vendor": "x" * 33}, "vendor"), ({"category": "x" * 81}, "category"),
        ({"description": "x" * 256}, "description"), ({"pxe_enabled": "maybe"}, "pxe_enabled"),
        ({"is_smartnic": 2}, "is_smartnic"),
    ],
)  # fmt: skip
def test_a_port_that_cannot_be_is_refused_in_words(
    app: Standing, fields: dict[str, Any], words: str
) -> None:
    node = app.make_node()
    before = footprint(app)
    refused(post(app, node, **fields), 400, words)
    assert footprint(app) == before


@pytest.mark.parametrize("missing", ["address", "node_uuid"])
def test_an_address_and_a_node_are_required(lite: Standing, missing: str) -> None:
    body = {"address": mac(), "node_uuid": lite.make_node()}
    del body[missing]
    refused(lite.ask("POST", "/v1/ports", body), 400, missing)


@pytest.mark.parametrize("field", ["address", "name", "uuid"])
def test_what_is_taken_is_a_conflict_and_announced(app: Standing, field: str) -> None:
    node = app.make_node()
    name = f"port-{next(_numbers)}"
    first = post(app, node, name=name).json
    before = footprint(app)
    own = new_uuid()
    clash = {"uuid": own, "name": None, field: first[field]}
    clash = {**clash, "address": first["address"].upper()} if field == "address" else clash
    refused(post(app, node, **clash), 409, first[field], "already exists")
    assert footprint(app) == before
    told_of = types(app, first["uuid"] if field == "uuid" else own)
    assert told_of[-2:] == ["port.create.start", "port.create.error"]
    if field == "uuid":
        return
    second = make(app, node)
    before = footprint(app)
    refused(patch(app, second, ("add", f"/{field}", first[field])), 409, first[field])
    assert footprint(app) == before
    assert types(app, second)[-2:] == ["port.update.start", "port.update.error"]
    assert told(app, second)[-1].priority == "ERROR"


def test_facts_tell_of_each_change_once_and_in_order(app: Standing) -> None:
    node = app.plant("manageable", owner="them")
    uuid = make(app, node, extra={"a": 1})
    assert patch(app, uuid, ("replace", "/pxe_enabled", False)).status == 200
    assert patch(app, uuid, ("replace", "/pxe_enabled", False)).status == 200  # no change
    assert app.ask("DELETE", f"/v1/ports/{uuid}").status == 204
    found = told(app, uuid)
    assert [fact.event_type for fact in found] == [
        f"baremetal.port.{action}.{status}"
        for action in ("create", "update", "delete")
        for status in ("start", "end")
    ]
    for fact in found:
        assert (fact.kind, set(fact.data)) == ("PortCRUDPayload 1.8", PAYLOAD)
        assert (fact.project, fact.priority) == ("them", "INFO")
        assert fact.publisher == "ironic-api.here"
        assert (fact.data["node_uuid"], fact.data["extra"]) == (node, {"a": 1})
        assert fact.data["created_at"].endswith("Z")
    assert [fact.data["pxe_enabled"] for fact in found] == [True] * 3 + [False] * 3
    refused(app.ask("GET", f"/v1/ports/{uuid}"), 404, uuid)


WIRING = {
    "pxe_enabled": False, "local_link_connection": LINK, "physical_network": "net-2",
}  # fmt: skip
REWIRABLE = {"enroll", "inspecting", "inspect wait", "manageable"}


@pytest.mark.parametrize("state", NODE.states)
def test_wiring_is_changed_only_while_nothing_depends_on_it(app: Standing, state: str) -> None:
    node = app.plant(state)
    for field, value in WIRING.items():
        uuid = make(app, node)
        before = footprint(app)
        answer = patch(app, uuid, ("add", f"/{field}", value), version=38)
        if state in REWIRABLE:
            assert answer.status == 200, answer
            continue
        refused(answer, 409, field, state, "manageable", "maintenance")
        assert footprint(app) == before
        assert types(app, uuid)[-2:] == ["port.update.start", "port.update.error"]
        assert patch(app, uuid, ("add", "/extra/a", 1)).status == 200
    kept = app.plant(state, maintenance=True)
    uuid = make(app, kept)
    assert patch(app, uuid, ("add", "/pxe_enabled", False), version=38).status == 200


@pytest.mark.parametrize(("state", "instance"), [("active", None), ("manageable", odd.UUID)])
def test_the_address_stays_while_an_instance_uses_it(
    lite: Standing, state: str, instance: str | None
) -> None:
    node = lite.plant(state, instance_uuid=instance)
    uuid = make(lite, node)
    refused(patch(lite, uuid, ("replace", "/address", mac())), 409, "address", "maintenance")
    assert lite.ask("PUT", f"/v1/nodes/{node}/maintenance", {}).status == 202
    new = mac()
    assert patch(lite, uuid, ("replace", "/address", new.upper())).json["address"] == new
    body = [{"op": "remove", "path": "/instance_uuid"}]
    assert lite.ask("PATCH", f"/v1/nodes/{node}", body).status == 200


def test_a_node_being_inspected_keeps_its_ports_from_1_39_on(lite: Standing) -> None:
    uuid = make(lite, lite.plant("inspecting"))
    answer = patch(lite, uuid, ("add", "/extra/a", 1), version=39)
    refused(answer, 409, "inspecting")
    assert answer.headers["retry-after"] == "5"
    assert patch(lite, uuid, ("add", "/extra/a", 1), version=38).status == 200


def test_a_port_can_be_moved_to_another_node(app: Standing) -> None:
    here, there = app.plant("manageable", owner="a"), app.plant("enroll", owner="b")
    uuid = make(app, here)
    moved = patch(app, uuid, ("replace", "/node_uuid", there))
    assert moved.json["node_uuid"] == there
    assert [fact.project for fact in told(app, uuid)[-2:]] == ["a", "b"]
    assert listed(app, path=f"/v1/nodes/{there}/ports") == [uuid]
    busy = app.plant("active")
    refused(patch(app, uuid, ("replace", "/node_uuid", busy)), 409, busy, "active")
    refused(patch(app, uuid, ("replace", "/node_uuid", odd.UUID)), 400, odd.UUID)


@pytest.mark.parametrize(
    ("op", "words"),
    [
        (("replace", "/uuid", odd.UUID), "Cannot patch /uuid"),
        (("replace", "/internal_info", {}), "Cannot patch /internal_info"),
        (("remove", "/address"), "address can not be removed"),
        (("remove", "/node_uuid"), "node_uuid can not be removed"),
        (("replace", "/node_ident", "x"), "Cannot patch /node_ident"),
        (("replace", "/address", "x"), "MAC address"),
        (("add", "/portgroup_uuid", odd.UUID), "could not be found"),
        (("add", "/name/x", 1), "not an object"),
        (("remove", "/extra/x"), "not there"),
    ],
)
def test_a_patch_that_cannot_be_is_refused_in_words(
    app: Standing, op: tuple[Any, ...], words: str
) -> None:
    uuid = make(app, app.make_node())
    before = footprint(app)
    refused(patch(app, uuid, op), 400, words)
    assert footprint(app) == before
    assert types(app, uuid) == ["port.create.start", "port.create.end"]


def test_what_is_removed_by_a_patch_gets_its_default(lite: Standing) -> None:
    fields = {name: value for name, value in VALUES.items() if name != "name"}
    uuid = make(lite, lite.make_node(), **fields)
    fresh = post(lite, lite.make_node()).json
    for name in fields:
        shown = patch(lite, uuid, ("remove", f"/{name}"))
        assert (shown.status, shown.json[name]) == (200, fresh[name]), name


def test_a_patch_is_judged_by_what_comes_of_it(lite: Standing) -> None:
    uuid = make(lite, lite.make_node(), local_link_connection=LINK)
    one = ("remove", "/local_link_connection/port_id")
    refused(patch(lite, uuid, one), 400, "local_link_connection")
    both = patch(lite, uuid, one, ("remove", "/local_link_connection/switch_id"))
    assert (both.status, both.json["local_link_connection"]) == (200, {})
    steps = [("remove", "/extra"), ("add", "/extra/a", 1), ("add", "/extra/b", 2)]
    assert patch(lite, uuid, *steps).json["extra"] == {"a": 1, "b": 2}


def test_a_port_in_use_is_not_deleted(app: Standing) -> None:
    node = app.plant("active")
    port = Port(
        uuid=new_uuid(), node_uuid=node,
        created_at="2026-01-01T00:00:00.000000+00:00", address=mac(),
        internal_info={"tenant_vif_port_id": "vif-7"},
    )  # fmt: skip
    change = app.app.program.door.change(Cause())
    change.put(PORTS.insert(port))
    app.run(app.app.program.door.commit(change))
    before = footprint(app)
    refused(app.ask("DELETE", f"/v1/ports/{port.uuid}"), 409, "vif-7", "detach")
    assert footprint(app) == before
    assert types(app, port.uuid) == ["port.delete.start", "port.delete.error"]
    assert app.ask("PUT", f"/v1/nodes/{node}/maintenance", {}).status == 202
    assert app.ask("DELETE", f"/v1/ports/{port.uuid}").status == 204


def test_a_node_takes_its_ports_along(app: Standing) -> None:
    node, other = app.make_node(), app.make_node()
    mine = [make(app, node) for _ in range(3)]
    theirs = make(app, other)
    assert app.ask("DELETE", f"/v1/nodes/{node}").status == 204
    for uuid in mine:
        refused(app.ask("GET", f"/v1/ports/{uuid}"), 404)
        assert types(app, uuid)[-2:] == ["port.delete.start", "port.delete.end"]
    assert app.ask("GET", f"/v1/ports/{theirs}").status == 200


def test_no_port_outlives_its_node_however_they_race(app: Standing) -> None:
    async def story() -> tuple[list[Answer], str]:
        # By name and by UUID: what asks by the same word waits its turn, and would not race.
        name = f"raced-{next(_numbers)}"
        node = await app.app.make_node(name=name)
        bodies = [{"address": mac(), "node_uuid": node} for _ in range(8)]
        asks = [app.app.ask("POST", "/v1/ports", body) for body in bodies]
        asks.insert(1, app.app.ask("DELETE", f"/v1/nodes/{name}"))
        return await asyncio.gather(*asks), node

    for _ in range(10):
        answers, node = app.run(story())
        assert {answer.status for answer in answers} <= {201, 204, 400}
        gone = app.ask("GET", f"/v1/nodes/{node}").status == 404
        left = [p for p in app.ask("GET", "/v1/ports/detail").json["ports"]
                if p["node_uuid"] == node]  # fmt: skip
        assert not (gone and left)


def test_lists_are_filtered_by_everything_there_is(app: Standing) -> None:
    shard = f"shard-{next(_numbers)}"
    name = f"node-of-list-{next(_numbers)}"
    node = app.make_node(name=name, shard=shard, conductor_group=shard)
    first = make(app, node, description=f"Left {shard}")
    second = make(app, node)
    make(app, app.make_node())
    address = app.ask("GET", f"/v1/ports/{second}").json["address"]
    for query in (
        f"node={node}", f"node={name}", f"node_uuid={node}", f"shard={shard}",
        f"shard=x,{shard}", f"conductor_groups={shard}", f"node={node}&shard={shard}",
        f"conductor_groups={shard.upper()}",
    ):  # fmt: skip
        assert listed(app, query) == [first, second], query
    assert listed(app, f"address={address.upper()}") == [second]
    assert listed(app, f"description_contains=left%20{shard}") == [first]
    assert listed(app, "address=52:54:ff:ff:ff:ff") == []
    for path in (f"/v1/nodes/{node}/ports", f"/v1/nodes/{name}/ports/detail"):
        assert listed(app, path=path) == [first, second]
    refused(app.ask("GET", "/v1/ports?node=nobody"), 404, "nobody")
    refused(app.ask("GET", "/v1/nodes/nobody/ports"), 404, "nobody")
    refused(app.ask("GET", f"/v1/ports?portgroup={odd.UUID}"), 404, "Portgroup", odd.UUID)
    refused(app.ask("GET", "/v1/ports?address=x"), 400, "MAC address")
    refused(app.ask("GET", "/v1/ports?node_uuid=x"), 400, "UUID")
    refused(app.ask("GET", "/v1/ports?bogus=x"), 400, "bogus", "A list of ports takes")
    refused(app.ask("GET", f"/v1/ports?node={name}", version=4), 406, "1.5")


FILTERS = {
    "fields": (8, "uuid"), "portgroup": (24, "x"), "detail": (43, "true"), "shard": (82, "s"),
    "description_contains": (97, "d"), "conductor_groups": (99, "g"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_newer_than_the_version_is_not_acceptable(lite: Standing, name: str) -> None:
    since, value = FILTERS[name]
    assert PORT_FILTER_SINCE[name] == since
    answer = lite.ask("GET", f"/v1/ports?{name}={value}", version=since)
    assert answer.status == (404 if name == "portgroup" else 200)
    refused(lite.ask("GET", f"/v1/ports?{name}={value}", version=since - 1), 406, f"1.{since}")


@pytest.mark.parametrize("sort", ["id", "address", "node_uuid", "pxe_enabled", "vendor"])
@pytest.mark.parametrize("way", ["asc", "desc"])
def test_pages_join_to_the_whole_list(app: Standing, sort: str, way: str) -> None:
    node = app.make_node()
    mine = [make(app, node, vendor=v, pxe_enabled=v == "b") for v in ("b", "a", "b", "a", "c")]
    order = f"sort_key={sort}&sort_dir={way}"
    whole = listed(app, f"node={node}&{order}")
    assert sorted(whole) == sorted(mine)
    seen: list[str] = []
    path = f"/v1/nodes/{node}/ports?limit=2&{order}"
    while path:
        page = app.ask("GET", path).json
        seen += [port["uuid"] for port in page["ports"]]
        path = page.get("next", "").removeprefix("http://cloud.test/baremetal")
        assert not path or path.startswith(f"/v1/nodes/{node}/ports?")
    assert seen == whole
    refused(app.ask("GET", "/v1/ports?sort_key=extra"), 400, "sort_key")
    refused(app.ask("GET", f"/v1/ports?marker={odd.UUID}"), 404, odd.UUID)


@pytest.mark.parametrize("version", [50, 87, 88, 115])
def test_a_port_is_not_addressed_by_what_can_be_no_name(lite: Standing, version: int) -> None:
    for odd_name in ("52:54:00:12:34:56", "malformed:uuid"):
        path = f"/v1/ports/{odd_name}"
        refused(lite.ask("GET", path, version=version), 400, odd_name, "UUID")
        refused(lite.ask("DELETE", path, version=version), 400, odd_name)
        body = [{"op": "add", "path": "/extra/a", "value": 1}]
        refused(lite.ask("PATCH", path, body, version=version), 400, odd_name)


def test_a_port_is_found_by_its_name_from_1_88_on(lite: Standing) -> None:
    name = f"eth-{next(_numbers)}"
    uuid = make(lite, lite.make_node(), name=name)
    assert lite.ask("GET", f"/v1/ports/{name}", version=88).json["uuid"] == uuid
    refused(lite.ask("GET", f"/v1/ports/{name}", version=87), 404, "1.88")
    assert patch(lite, name, ("add", "/extra/a", 1)).status == 200
    assert lite.ask("DELETE", f"/v1/ports/{name}").status == 204


def test_ports_are_seen_by_those_who_see_their_node(app: Standing) -> None:
    _, token, project = app.person("member")
    mine, loan = app.plant("enroll", owner=project), app.plant("enroll", lessee=project)
    ports = [make(app, mine), make(app, loan)]
    hidden = make(app, app.plant("enroll", owner="them"))
    assert listed(app, token=token) == ports
    assert listed(app, f"node={mine}", token=token) == ports[:1]
    for uuid in ports:
        assert app.ask("GET", f"/v1/ports/{uuid}", token=token).status == 200
        body = [{"op": "add", "path": "/extra/a", "value": 1}]
        refused(app.ask("PATCH", f"/v1/ports/{uuid}", body, token=token), 403, "port:update")
        refused(app.ask("DELETE", f"/v1/ports/{uuid}", token=token), 403, "port:delete")
    body = {"address": mac(), "node_uuid": mine}
    refused(app.ask("POST", "/v1/ports", body, token=token), 403, "port:create")
    refused(app.ask("GET", f"/v1/ports/{hidden}", token=token), 404, hidden)
    refused(app.ask("GET", f"/v1/ports?marker={hidden}", token=token), 404, hidden)


@hypothesis.settings(repeatable, max_examples=examples(15))
@given(data=st.data())
def test_no_creation_or_patch_of_a_port_is_a_server_error(
    app: Standing, data: st.DataObject
) -> None:
    state = data.draw(st.sampled_from(["enroll", "manageable", "active", "inspecting"]))
    with one_node(app, state=state, name="n1") as node:
        uuid = make(app, node, name="p1", extra={"a": {}})
        version = data.draw(st.just("1.115") | odd.VERSIONS)
        body = odd.as_bytes(data.draw(odd.port_creation(node)))
        made = check(app, "POST", "/v1/ports", body=body, version=version)
        if made.status == 201:
            where = made.headers["location"].removeprefix("http://cloud.test")
            assert check(app, "GET", where).status == 200
        body = odd.as_bytes(data.draw(odd.patch_of(FORM.fields)))
        ident = data.draw(st.sampled_from([uuid, "p1", uuid.upper()]))
        check(app, "PATCH", f"/v1/ports/{ident}", body=body, version=version)
        query = data.draw(odd.QUERIES)
        check(app, "GET", f"/v1/ports?{query}", version=version)
        check(app, "GET", f"/v1/nodes/{node}/ports/detail?{query}", version=version)
        assert check(app, "DELETE", f"/v1/ports/{uuid}").status in (204, 409)
