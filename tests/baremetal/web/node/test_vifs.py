"""Virtual interfaces: which port carries one, and who is told."""

import asyncio
from typing import Any

from tests.baremetal.web.beside.test_ports import make
from tests.baremetal.web.expect import footprint
from tests.baremetal.web.expect import refused
from tests.baremetal.web.kinds import KINDS
from tests.support.app import Answer
from tests.support.app import Standing

KEY = "tenant_vif_port_id"


def node_with(app: Standing, ports: int, **fields: Any) -> tuple[str, list[str]]:
    """A node on a network, and its ports."""
    node = app.plant("manageable", network_interface="flat", **fields)
    return node, [make(app, node, pxe_enabled=n > 0) for n in range(ports)]


def attach(app: Standing, node: str, vif: str, version: int = 115, **more: Any) -> Answer:
    return app.ask("POST", f"/v1/nodes/{node}/vifs", {"id": vif, **more}, version=version)


def attached(app: Standing, node: str) -> list[str]:
    return [vif["id"] for vif in app.ask("GET", f"/v1/nodes/{node}/vifs").json["vifs"]]


def test_each_goes_to_a_free_port_and_is_seen_there(app: Standing) -> None:
    node, ports = node_with(app, 2)
    assert attached(app, node) == []
    assert attach(app, node, "vif-1").status == 204
    # Ports that boot from the network come first.
    assert app.ask("GET", f"/v1/ports/{ports[1]}").json["internal_info"] == {KEY: "vif-1"}
    assert attach(app, node, "vif-2", info="x").status == 204
    assert sorted(attached(app, node)) == ["vif-1", "vif-2"]
    before = footprint(app)
    refused(attach(app, node, "vif-1"), 409, "vif-1", "already attached", ports[1])
    refused(attach(app, node, "vif-3"), 400, "not enough free physical ports")
    refused(app.ask("DELETE", f"/v1/nodes/{node}/vifs/vif-3"), 400, "vif-3", "not attached")
    refused(app.ask("DELETE", f"/v1/ports/{ports[1]}"), 409, "vif-1")
    assert footprint(app) == before
    assert app.ask("DELETE", f"/v1/nodes/{node}/vifs/vif-1").status == 204
    assert attached(app, node) == ["vif-2"]
    assert app.ask("GET", f"/v1/ports/{ports[1]}").json["internal_info"] == {}


def test_a_place_can_be_named_from_1_67_on(app: Standing) -> None:
    node, ports = node_with(app, 2)
    refused(attach(app, node, "v", version=66, port_uuid=ports[0]), 406, "1.67")
    assert attach(app, node, "v", version=67, port_uuid=ports[0].upper()).status == 204
    assert app.ask("GET", f"/v1/ports/{ports[0]}").json["internal_info"] == {KEY: "v"}
    refused(attach(app, node, "w", port_uuid=ports[0]), 400, "free")
    refused(attach(app, node, "w", port_uuid=ports[0], portgroup_uuid=ports[0]), 400, "not both")
    refused(attach(app, node, "w", port_uuid="x"), 400, "UUID")


def test_a_portgroup_with_ports_comes_before_them(app: Standing) -> None:
    node, ports = node_with(app, 2)
    group = KINDS["portgroup"].make(app, node=node)["uuid"]
    empty = KINDS["portgroup"].make(app, node=node)["uuid"]
    put = [{"op": "add", "path": "/portgroup_uuid", "value": group}]
    assert app.ask("PATCH", f"/v1/ports/{ports[0]}", put).status == 200
    assert attach(app, node, "vif-1").status == 204
    shown = app.ask("GET", f"/v1/portgroups/{group}").json
    assert shown["internal_info"] == {KEY: "vif-1"}
    assert attach(app, node, "vif-2").status == 204
    refused(attach(app, node, "vif-3"), 400, "free")  # neither a member nor an empty group
    assert app.ask("GET", f"/v1/portgroups/{empty}").json["internal_info"] == {}
    assert app.ask("GET", f"/v1/ports/{ports[0]}").json["internal_info"] == {}


def test_a_node_without_a_network_has_nothing_to_attach(lite: Standing) -> None:
    node = lite.make_node()
    assert lite.show(node)["network_interface"] == "noop"
    assert attach(lite, node, "vif-1").status == 204
    assert attached(lite, node) == []
    assert lite.ask("DELETE", f"/v1/nodes/{node}/vifs/vif-1").status == 204


def test_what_cannot_be_is_refused_in_words(lite: Standing) -> None:
    node, _ = node_with(lite, 1)
    _, token, project = lite.person("reader")
    mine = lite.plant("enroll", owner=project, network_interface="flat")
    before = footprint(lite)
    path = f"/v1/nodes/{node}/vifs"
    for body in ({}, [], {"id": ""}, {"id": 7}, {"id": None}, {"id": "x" * 256}):
        refused(lite.ask("POST", path, body), 400)
    for method in ("GET", "POST"):
        refused(lite.ask(method, path, {"id": "v"}, version=27), 404, "1.28")
    refused(lite.ask("POST", f"/v1/nodes/{mine}/vifs", {"id": "v"}, token=token), 403)
    refused(lite.ask("GET", path, token=token), 404)
    assert footprint(lite) == before


def test_one_is_attached_once_however_they_race(app: Standing) -> None:
    node, _ = node_with(app, 4)

    async def story() -> list[Answer]:
        path = f"/v1/nodes/{node}/vifs"
        upper = f"/v1/nodes/{node.upper()}/vifs"
        asks = [app.app.ask("POST", where, {"id": "v"}) for where in (path, upper) * 3]
        return await asyncio.gather(*asks)

    assert sorted(answer.status for answer in app.run(story())) == [204] + [409] * 5
    assert attached(app, node) == ["v"]


def test_a_portgroup_that_carries_one_is_not_deleted(lite: Standing) -> None:
    node, _ = node_with(lite, 0)
    group = KINDS["portgroup"].make(lite, node=node)["uuid"]
    port = make(lite, node, portgroup_uuid=group)
    assert attach(lite, node, "vif-1").status == 204
    refused(lite.ask("DELETE", f"/v1/portgroups/{group}"), 400, "contains ports")
    assert lite.ask("DELETE", f"/v1/ports/{port}").status == 204
    before = footprint(lite)
    refused(lite.ask("DELETE", f"/v1/portgroups/{group}"), 409, "bound to VIF vif-1", "detach")
    assert footprint(lite) == before
    assert lite.ask("PUT", f"/v1/nodes/{node}/maintenance").status == 202
    assert lite.ask("DELETE", f"/v1/portgroups/{group}").status == 204
