"""What is kept beside nodes, with the `openstack baremetal` commands and openstacksdk."""

import itertools
import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from openstack import exceptions

from tests.clients.nodes import Nodes
from tests.clients.shell import Shell

pytestmark = pytest.mark.filterwarnings(
    "ignore::PendingDeprecationWarning", "ignore::openstack.warnings.OpenStackDeprecationWarning"
)
_numbers = itertools.count(1)
STEP = {"interface": "bios", "step": "factory_reset", "args": {}, "priority": 10}
ORDERED = {"interface": "bios", "step": "factory_reset", "args": {}, "order": 1}
ACTION = {"op": "set-attribute", "args": {"path": "/extra/rack", "value": "7"}}


def number() -> int:
    """A number that no other record of these tests has."""
    return next(_numbers)


def mac() -> str:
    return f"52:54:05:00:00:{number():02x}"


def test_portgroups_by_command(openstack: Shell, nodes: Nodes) -> None:
    node, address, name = nodes.make(), mac(), f"bond-{number()}"
    made = openstack.json(
        "baremetal", "port", "group", "create", "--node", node["uuid"], "--address", address,
        "--name", name, "--mode", "802.3ad", "--property", "miimon=100", "--extra", "a=1",
        "--unsupport-standalone-ports", "--physical-network", "net-1", "--category", "fast",
    )  # fmt: skip
    shown = openstack.json("baremetal", "port", "group", "show", name)
    said = {
        "uuid": made["uuid"], "address": address, "mode": "802.3ad", "properties": {"miimon": 100},
        "standalone_ports_supported": False, "node_uuid": node["uuid"], "extra": {"a": 1},
    }  # fmt: skip
    assert {key: shown[key] for key in said} == said
    port = openstack.json(
        "baremetal", "port", "create", mac(), "--node", node["uuid"], "--port-group", made["uuid"],
        "--pxe-enabled", "false", "--physical-network", "net-1",
    )  # fmt: skip
    listed = openstack.column("uuid", "baremetal", "port", "list", "--port-group", name)
    assert listed == [port["uuid"]]
    groups = ("baremetal", "port", "group", "list")
    assert openstack.column("uuid", *groups, "--node", node["name"]) == [made["uuid"]]
    assert openstack.column("uuid", *groups, "--address", address) == [made["uuid"]]
    openstack("baremetal", "port", "group", "set", name, "--mode", "active-backup")
    said_no = openstack.refused("baremetal", "port", "group", "delete", name)
    assert "contains ports" in said_no
    openstack("baremetal", "port", "unset", port["uuid"], "--port-group")
    openstack("baremetal", "port", "group", "unset", name, "--name", "--extra", "a")
    openstack("baremetal", "port", "group", "delete", made["uuid"])
    assert "could not be found" in openstack.refused(
        "baremetal", "port", "group", "show", made["uuid"]
    )


def test_volumes_by_command(openstack: Shell, nodes: Nodes) -> None:
    node = nodes.make("manageable")["uuid"]
    word = f"iqn.2026-01.test:{number()}"
    connector = openstack.json(
        "baremetal", "volume", "connector", "create", "--node", node, "--type", "iqn",
        "--connector-id", word,
    )  # fmt: skip
    target = openstack.json(
        "baremetal", "volume", "target", "create", "--node", node, "--type", "iscsi",
        "--boot-index", "0", "--volume-id", "v-1", "--property", "auth_password=hunter2",
    )  # fmt: skip
    assert target["properties"] == {"auth_password": "******"}
    kinds = {"connector": connector["uuid"], "target": target["uuid"]}
    for kind, made in kinds.items():
        words = ("baremetal", "volume", kind)
        assert openstack.column("uuid", *words, "list", "--node", node) == [made]
        assert openstack.json(*words, "show", made)["node_uuid"] == node
        openstack(*words, "set", made, "--extra", "a=1")
        openstack(*words, "unset", made, "--extra", "a")
        openstack("baremetal", "node", "power", "on", node)
        nodes.until_power(node, "power on")
        assert "power it off" in openstack.refused(*words, "delete", made)
        openstack("baremetal", "node", "power", "off", node)
        nodes.until_power(node, "power off")
        openstack(*words, "delete", made)
        assert openstack.column("uuid", *words, "list", "--node", node) == []


def test_templates_runbooks_and_rules_by_command(openstack: Shell, nodes: Nodes) -> None:
    name = f"CUSTOM_T{number()}"
    made = openstack.json(
        "baremetal", "deploy", "template", "create", name, "--steps", json.dumps([STEP])
    )
    openstack("baremetal", "deploy", "template", "set", name, "--extra", "a=1")
    shown = openstack.json("baremetal", "deploy", "template", "show", name)
    assert (shown["uuid"], shown["steps"], shown["extra"]) == (made["uuid"], [STEP], {"a": 1})
    assert name in openstack.column("name", "baremetal", "deploy", "template", "list")
    openstack("baremetal", "deploy", "template", "delete", name)

    node = nodes.make("manageable")["uuid"]
    book = f"book-{number()}"
    openstack(
        "baremetal", "runbook", "create", "--name", book, "--steps", json.dumps([ORDERED]),
        "--description", "Tidy up.",
    )  # fmt: skip
    openstack("baremetal", "runbook", "trait", "add", book, "CUSTOM_TIDY")
    assert openstack.json("baremetal", "runbook", "show", book)["traits"] == ["CUSTOM_TIDY"]
    assert book in openstack.column("name", "baremetal", "runbook", "list")
    clean = ("baremetal", "node", "clean", node, "--runbook", book)
    assert "not approved" in openstack.refused(*clean)
    openstack("baremetal", "node", "add", "trait", node, "CUSTOM_TIDY")
    openstack(*clean)
    nodes.until(node, "manageable")
    openstack("baremetal", "runbook", "trait", "remove", book, "CUSTOM_TIDY")
    openstack("baremetal", "runbook", "set", book, "--public", "true")
    assert openstack.json("baremetal", "runbook", "show", book)["public"] is True
    openstack("baremetal", "runbook", "delete", book)

    rule = openstack.json(
        "baremetal", "inspection", "rule", "create", "--description", "Rack", "--priority", "7",
        "--actions", json.dumps([ACTION]),
    )["uuid"]  # fmt: skip
    shown = openstack.json("baremetal", "inspection", "rule", "show", rule)
    assert (shown["actions"], shown["priority"], shown["phase"]) == ([ACTION], 7, "main")
    openstack("baremetal", "inspection", "rule", "set", rule, "--description", "Row")
    assert rule in openstack.column("uuid", "baremetal", "inspection", "rule", "list")
    openstack("baremetal", "inspection", "rule", "delete", rule)


def test_traits_vifs_and_children_by_command(openstack: Shell, nodes: Nodes) -> None:
    node = nodes.make(network_interface="flat")["uuid"]
    openstack("baremetal", "node", "add", "trait", node, "CUSTOM_A", "CUSTOM_B")
    traits = ("baremetal", "node", "trait", "list", node)
    assert [row["traits"] for row in openstack.json(*traits)] == ["CUSTOM_A", "CUSTOM_B"]
    openstack("baremetal", "node", "remove", "trait", node, "CUSTOM_A")
    assert nodes.show(node)["traits"] == ["CUSTOM_B"]
    openstack("baremetal", "node", "remove", "trait", node, "--all")
    assert openstack.json(*traits) == []
    openstack("baremetal", "port", "create", mac(), "--node", node)
    vif = str(uuid.uuid4())
    openstack("baremetal", "node", "vif", "attach", node, vif)
    assert openstack.column("id", "baremetal", "node", "vif", "list", node) == [vif]
    openstack("baremetal", "node", "vif", "detach", node, vif)
    assert openstack.json("baremetal", "node", "vif", "list", node) == []
    child = nodes.make(parent_node=node)["uuid"]
    assert child in openstack("baremetal", "node", "children", "list", node)
    assert child in openstack.column("uuid", "baremetal", "node", "list", "--include-children")


def test_an_allocation_by_command(openstack: Shell, nodes: Nodes) -> None:
    kind = f"kind-{number()}"
    node = nodes.make("available", resource_class=kind)["uuid"]
    name = f"wish-{number()}"
    made = openstack.json(
        "baremetal", "allocation", "create", "--resource-class", kind, "--name", name,
        "--extra", "a=1", "--wait", "20",
    )  # fmt: skip
    assert (made["state"], made["node_uuid"]) == ("active", node)
    assert openstack.json("baremetal", "allocation", "show", name)["node_uuid"] == node
    words = ("baremetal", "allocation", "list", "--node", node)
    assert openstack.column("uuid", *words) == [made["uuid"]]
    openstack("baremetal", "allocation", "set", name, "--extra", "b=2")
    openstack("baremetal", "allocation", "unset", name, "--extra", "a")
    assert openstack.json("baremetal", "allocation", "show", name)["extra"] == {"b": 2}
    said = openstack.refused(
        "baremetal", "allocation", "create", "--resource-class", kind, "--wait", "20"
    )
    assert "no available nodes match" in said
    openstack("baremetal", "allocation", "delete", name)
    assert nodes.show(node)["instance_uuid"] is None


def test_drivers_conductors_and_shards_by_command(openstack: Shell, nodes: Nodes) -> None:
    shard = f"shard-{number()}"
    nodes.make(shard=shard)
    assert "fake-hardware" in openstack.column("name", "baremetal", "driver", "list")
    shown = openstack.json("baremetal", "driver", "show", "fake-hardware")
    assert shown["default_network_interface"] == "noop"
    (host,) = openstack.column("hostname", "baremetal", "conductor", "list")
    assert shown["hosts"] in ([host], host)
    conductor = openstack.json("baremetal", "conductor", "show", host)
    assert (conductor["alive"], "fake-hardware" in conductor["drivers"]) == (True, True)
    openstack("baremetal", "driver", "property", "list", "fake-hardware")
    raid = openstack.json("baremetal", "driver", "raid", "property", "list", "fake-hardware")
    assert "raid_level" in [row["property"] for row in raid]
    assert shard in openstack.column("name", "baremetal", "shard", "list")


def test_a_file_of_resources_by_command(openstack: Shell, nodes: Nodes, tmp_path: Path) -> None:
    name, group = nodes.name(), f"bond-{number()}"
    port = {"address": mac(), "pxe_enabled": False}
    node = {
        "name": name, "driver": "fake-hardware", "ports": [{"address": mac()}],
        "portgroups": [{"name": group, "address": mac(), "ports": [port]}],
    }  # fmt: skip
    file = tmp_path / "resources.json"
    file.write_text(json.dumps({"nodes": [node]}))
    openstack("baremetal", "create", str(file))
    assert len(openstack.json("baremetal", "port", "list", "--node", name)) == 2
    (inside,) = openstack.column("address", "baremetal", "port", "list", "--port-group", group)
    assert inside == port["address"]


def test_records_by_the_sdk(baremetal: Any, nodes: Nodes) -> None:
    node = nodes.make("manageable", network_interface="flat")["uuid"]
    group = baremetal.create_port_group(node_id=node, address=mac(), name=f"b-{number()}")
    assert [found.id for found in baremetal.port_groups(node=node)] == [group.id]
    assert baremetal.find_port_group(group.name).id == group.id
    assert baremetal.update_port_group(group.id, mode="802.3ad").mode == "802.3ad"
    port = baremetal.create_port(address=mac(), node_id=node, port_group_id=group.id)
    assert baremetal.get_port(port.id).port_group_id == group.id
    baremetal.attach_vif_to_node(node, "vif-1")
    assert baremetal.list_node_vifs(node) == ["vif-1"]
    with pytest.raises(exceptions.ConflictException, match="already attached"):
        baremetal.attach_vif_to_node(node, "vif-1", retry_on_conflict=False)
    assert baremetal.detach_vif_from_node(node, "vif-1") is True
    assert baremetal.detach_vif_from_node(node, "vif-1", ignore_missing=True) is False
    baremetal.delete_port(port.id)
    baremetal.delete_port_group(group.id)
    assert list(baremetal.port_groups(node=node)) == []

    baremetal.set_node_traits(node, ["CUSTOM_A", "CUSTOM_B"])
    baremetal.add_node_trait(node, "CUSTOM_C")
    baremetal.remove_node_trait(node, "CUSTOM_A")
    assert baremetal.get_node(node).traits == ["CUSTOM_B", "CUSTOM_C"]

    connector = baremetal.create_volume_connector(
        node_id=node, type="iqn", connector_id=f"iqn.2026-02.test:{number()}"
    )
    assert [one.id for one in baremetal.volume_connectors(node=node)] == [connector.id]
    assert baremetal.find_volume_connector(connector.id).id == connector.id
    target = baremetal.create_volume_target(
        node_id=node, volume_type="iscsi", volume_id="v", boot_index=0
    )
    assert baremetal.update_volume_target(target, volume_id="w").volume_id == "w"
    full = [one.volume_id for one in baremetal.volume_targets(details=True, node=node)]
    assert full == ["w"]
    baremetal.delete_volume_target(target.id)
    baremetal.delete_volume_connector(connector.id)


def test_written_steps_by_the_sdk(baremetal: Any) -> None:
    template = baremetal.create_deploy_template(name=f"CUSTOM_S{number()}", steps=[STEP])
    assert baremetal.find_deploy_template(template.name).id == template.id
    changed = baremetal.update_deploy_template(template.id, extra={"a": 1})
    assert changed.extra == {"a": 1}
    baremetal.delete_deploy_template(template.id)

    book = baremetal.create_runbook(name=f"sdk-{number()}", steps=[ORDERED])
    baremetal.set_runbook_traits(book, ["CUSTOM_A"])
    baremetal.add_runbook_trait(book, "CUSTOM_B")
    baremetal.remove_runbook_trait(book, "CUSTOM_A")
    assert baremetal.get_runbook(book.id).traits == ["CUSTOM_B"]
    assert book.id in [one.id for one in baremetal.runbooks(details=True)]
    patch = [{"op": "add", "path": "/description", "value": "Tidy up."}]
    assert baremetal.patch_runbook(book.id, patch).description == "Tidy up."
    baremetal.delete_runbook(book.id)

    rule = baremetal.create_inspection_rule(actions=[ACTION], priority=3)
    assert baremetal.get_inspection_rule(rule.id).actions == [ACTION]
    assert baremetal.update_inspection_rule(rule.id, description="d").description == "d"
    assert rule.id in [one.id for one in baremetal.inspection_rules()]
    baremetal.delete_inspection_rule(rule.id)


def test_allocations_and_hosts_by_the_sdk(baremetal: Any, nodes: Nodes) -> None:
    kind = f"kind-{number()}"
    node = nodes.make("available", resource_class=kind)["uuid"]
    wish = baremetal.create_allocation(resource_class=kind, name=f"sdk-wish-{number()}")
    found = baremetal.wait_for_allocation(wish, timeout=20)
    assert (found.state, found.node_id) == ("active", node)
    assert baremetal.get_node(node).allocation_id == wish.id
    assert [one.id for one in baremetal.allocations(node=node)] == [wish.id]
    assert baremetal.update_allocation(wish.id, extra={"a": 1}).extra == {"a": 1}
    none = baremetal.create_allocation(resource_class=kind)
    with pytest.raises(exceptions.ResourceFailure, match="no available nodes match"):
        baremetal.wait_for_allocation(none, timeout=20)
    for one in (wish, none):
        baremetal.delete_allocation(one.id)
    assert baremetal.get_node(node).instance_id is None

    (brief,) = baremetal.conductors()
    conductor = baremetal.get_conductor(brief.hostname)
    assert (conductor.alive, "fake-hardware" in conductor.drivers) == (True, True)
    driver = baremetal.get_driver("fake-hardware")
    assert driver.hosts == [conductor.hostname]
    assert "fake-hardware" in [one.name for one in baremetal.drivers(details=True)]
