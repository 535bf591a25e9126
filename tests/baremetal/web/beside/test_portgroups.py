"""Portgroups and the ports in them."""

import asyncio

from tests.baremetal.web import odd
from tests.baremetal.web.beside.test_ports import make
from tests.baremetal.web.beside.test_ports import patch
from tests.baremetal.web.beside.test_ports import post
from tests.baremetal.web.expect import footprint
from tests.baremetal.web.expect import refused
from tests.baremetal.web.kinds import KINDS
from tests.baremetal.web.told import types
from tests.support.app import Answer
from tests.support.app import Standing

KIND = KINDS["portgroup"]


def test_ports_come_into_a_group_and_out_of_it(app: Standing) -> None:
    node = KIND.node(app)
    group = KIND.make(app, node=node)
    uuid = group["uuid"]
    inside = [make(app, node, portgroup_uuid=uuid), make(app, node)]
    assert patch(app, inside[1], ("add", "/portgroup_uuid", uuid.upper())).status == 200
    outside = make(app, node)
    for path in (
        f"/v1/portgroups/{uuid}/ports", f"/v1/portgroups/{group['name']}/ports/detail",
        f"/v1/ports?portgroup={group['name']}", f"/v1/ports?portgroup={uuid}",
    ):  # fmt: skip
        assert [port["uuid"] for port in app.ask("GET", path).json["ports"]] == inside
    refused(app.ask("GET", f"/v1/portgroups/{uuid}/ports", version=23), 404, "1.24")
    refused(app.ask("GET", f"/v1/nodes/{node}/portgroups", version=23), 404, "1.24")
    href = group["ports"][0]["href"]
    assert href == f"http://cloud.test/baremetal/v1/portgroups/{uuid}/ports"
    before = footprint(app)
    refused(app.ask("DELETE", f"/v1/portgroups/{uuid}"), 400, "contains ports", "portgroup_uuid")
    assert footprint(app) == before
    assert types(app, uuid)[-2:] == ["portgroup.delete.start", "portgroup.delete.error"]
    for port in inside:
        assert patch(app, port, ("remove", "/portgroup_uuid")).json["portgroup_uuid"] is None
    assert app.ask("GET", f"/v1/portgroups/{uuid}/ports").json == {"ports": []}
    assert app.ask("DELETE", f"/v1/portgroups/{uuid}").status == 204
    refused(patch(app, outside, ("add", "/portgroup_uuid", uuid)), 400, uuid, "could not be found")


def test_group_and_port_are_of_one_node(app: Standing) -> None:
    node, other = KIND.node(app), KIND.node(app)
    group = KIND.make(app, node=node)["uuid"]
    before = footprint(app)
    refused(post(app, other, portgroup_uuid=group), 400, "one node")
    assert footprint(app) == before
    port = make(app, node, portgroup_uuid=group)
    refused(patch(app, port, ("replace", "/node_uuid", other)), 400, "one node")
    out = (("replace", "/node_uuid", other), ("remove", "/portgroup_uuid"))
    refused(KIND.patch(app, group, ("replace", "/node_uuid", other)), 409, "ports")
    assert patch(app, port, *out).status == 200
    assert KIND.patch(app, group, ("replace", "/node_uuid", other)).status == 200


def test_ports_fit_their_group(app: Standing) -> None:
    node = KIND.node(app)
    group = KIND.make(app, node=node)["uuid"]
    first = make(app, node, portgroup_uuid=group, physical_network="a")
    refused(post(app, node, portgroup_uuid=group, physical_network="b"), 409, "the same")
    second = make(app, node, portgroup_uuid=group, physical_network="a", pxe_enabled=False)
    refused(patch(app, second, ("replace", "/physical_network", "b")), 409, "the same")
    refuse = ("replace", "/standalone_ports_supported", False)
    refused(KIND.patch(app, group, refuse), 409, "pxe_enabled", first)
    assert patch(app, first, ("replace", "/pxe_enabled", False)).status == 200
    assert KIND.patch(app, group, refuse).status == 200
    refused(patch(app, first, ("replace", "/pxe_enabled", True)), 409, "standalone")


def test_a_group_in_use_stays_as_it_is(lite: Standing) -> None:
    for state in ("active", "available", "inspecting"):
        node = lite.plant(state)
        group = KIND.make(lite, node=node)["uuid"]
        if state != "inspecting":
            refused(KIND.patch(lite, group, ("replace", "/mode", "802.3ad")), 409, "mode", state)
        else:
            answer = KIND.patch(lite, group, ("add", "/extra/a", 1))
            refused(answer, 409, "inspecting")
            assert answer.headers["retry-after"] == "5"
            assert KIND.patch(lite, group, ("add", "/extra/a", 1), version=38).status == 200
    active = lite.plant("active")
    group = KIND.make(lite, node=active)["uuid"]
    new = ("replace", "/address", "52:54:0a:00:00:01")
    refused(KIND.patch(lite, group, new), 409, "address", "maintenance")
    assert lite.ask("PUT", f"/v1/nodes/{active}/maintenance", {}).status == 202
    assert KIND.patch(lite, group, new).status == 200


def test_groups_are_filtered_by_everything_there_is(app: Standing) -> None:
    shard = odd.UUID[:8]
    node = KIND.node(app, shard=shard, conductor_group=shard)
    group = KIND.make(app, node=node)
    KIND.make(app)

    def listed(query: str) -> list[str]:
        return [one["uuid"] for one in app.ask("GET", f"/v1/portgroups?{query}").json["portgroups"]]

    for query in (
        f"node={node}", f"address={group['address'].upper()}", f"shard=x,{shard}",
        f"conductor_groups={shard}",
    ):  # fmt: skip
        assert listed(query) == [group["uuid"]], query
    refused(app.ask("GET", "/v1/portgroups?shard=x", version=105), 406, "1.106")
    refused(app.ask("GET", "/v1/portgroups?conductor_groups=x", version=98), 406, "1.99")
    refused(app.ask("GET", "/v1/portgroups?address=x"), 400, "MAC address")


def test_no_port_is_in_a_group_that_is_gone_however_they_race(app: Standing) -> None:
    async def story(group: str, ports: list[str]) -> list[Answer]:
        put = [{"op": "add", "path": "/portgroup_uuid", "value": group}]
        asks = [app.app.ask("PATCH", f"/v1/ports/{port}", put) for port in ports]
        asks.insert(1, app.app.ask("DELETE", f"/v1/portgroups/{group}"))
        return await asyncio.gather(*asks)

    for _ in range(5):
        node = KIND.node(app)
        group = KIND.make(app, node=node)["uuid"]
        ports = [make(app, node) for _ in range(4)]
        assert {answer.status for answer in app.run(story(group, ports))} <= {200, 204, 400}
        gone = app.ask("GET", f"/v1/portgroups/{group}").status == 404
        inside = [port for port in ports
                  if app.ask("GET", f"/v1/ports/{port}").json["portgroup_uuid"]]  # fmt: skip
        assert not (gone and inside)
