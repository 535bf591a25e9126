"""Every version at which a client gets to see something new, with each of the real clients."""

from collections.abc import Callable
from typing import Any

import pytest
from ironicclient import exc

from tests.clients.nodes import Connect
from tests.clients.nodes import Nodes
from tests.clients.shell import Shell
from tests.clients.test_versions import AT_1_1
from tests.clients.test_versions import AT_1_115

# The SDK warns of its own future.
pytestmark = pytest.mark.filterwarnings(
    "ignore::PendingDeprecationWarning", "ignore::openstack.warnings.OpenStackDeprecationWarning"
)

Call = Callable[[Any, str], Any]
NEWEST = 115
NODE = {
    1: " ".join(AT_1_1), 3: "driver_internal_info", 5: "name",
    6: "inspection_started_at inspection_finished_at", 7: "clean_step",
    12: "raid_config target_raid_config", 14: "states", 20: "network_interface",
    21: "resource_class", 24: "portgroups",
    31: "boot_interface console_interface deploy_interface inspect_interface management_interface"
        " power_interface raid_interface vendor_interface",
    32: "volume", 33: "storage_interface", 37: "traits", 38: "rescue_interface",
    40: "bios_interface", 42: "fault", 44: "deploy_step", 46: "conductor_group",
    47: "automated_clean", 48: "protected protected_reason", 49: "conductor", 50: "owner",
    51: "description", 52: "allocation_uuid", 61: "retired retired_reason", 65: "lessee",
    66: "network_data", 75: "boot_mode secure_boot", 82: "shard", 83: "parent_node",
    86: "firmware_interface", 87: "service_step", 95: "disable_power_off", 104: "instance_name",
    109: "health",
}  # fmt: skip
PORT = {
    1: "uuid address extra node_uuid created_at updated_at links", 18: "internal_info",
    19: "local_link_connection pxe_enabled", 24: "portgroup_uuid", 34: "physical_network",
    53: "is_smartnic", 88: "name", 97: "description", 100: "vendor", 101: "category",
    111: "available_for_dynamic_portgroup",
}  # fmt: skip
KINDS = {"node": NODE, "port": PORT}


def shown_at(kind: str, version: int) -> set[str]:
    """The fields that a client of a version sees."""
    table = KINDS[kind]
    return {name for since in table if since <= version for name in table[since].split()}


def edges(kind: str) -> list[int]:
    """The versions around each change, the oldest and the newest."""
    around = {at for since in KINDS[kind] for at in (since - 1, since) if at}
    return sorted(around | {NEWEST})


def test_the_table_has_all_that_a_node_shows() -> None:
    assert shown_at("node", NEWEST) == AT_1_115


def test_ironics_client_sees_each_field_from_its_version_on(connect: Connect, nodes: Nodes) -> None:
    node = nodes.make("available")["uuid"]
    made = connect("1.115").port.create(node_uuid=node, address="52:54:0e:00:00:01")
    for version in edges("node"):
        got = connect(f"1.{version}").node.get(node).to_dict()
        assert set(got) == shown_at("node", version), version
    for version in edges("port"):
        got = connect(f"1.{version}").port.get(made.uuid).to_dict()
        assert set(got) == shown_at("port", version), version
    connect("1.115").port.delete(made.uuid)


VISIBLE = {
    "name": 5, "resource_class": 21, "traits": 37, "conductor_group": 46, "is_protected": 48,
    "owner": 50, "description": 51, "is_retired": 61, "lessee": 65, "shard": 82,
}  # fmt: skip
"""What the SDK calls fields that the node of the test has, and their versions."""


def test_the_sdk_sees_each_field_from_its_version_on(baremetal: Any, nodes: Nodes) -> None:
    made = nodes.make(
        "available", resource_class="gold", conductor_group="", owner="o", lessee="l",
        description="A node.", shard="s1",
    )["uuid"]  # fmt: skip
    baremetal.set_node_traits(made, ["CUSTOM_A"])
    for field, since in VISIBLE.items():
        baremetal.default_microversion = f"1.{since - 1}"
        assert getattr(baremetal.get_node(made), field) is None, field
        baremetal.default_microversion = f"1.{since}"
        assert getattr(baremetal.get_node(made), field) is not None, field
    baremetal.default_microversion = None


def test_the_command_shows_each_field_from_its_version_on(openstack: Shell, nodes: Nodes) -> None:
    node = nodes.make("available")["uuid"]
    hidden = {"links", "ports", "portgroups", "states", "volume"}  # links that no person reads
    for version in sorted(KINDS["node"])[1:]:
        shown = openstack.json(
            "--os-baremetal-api-version", f"1.{version}", "baremetal", "node", "show", node
        )
        assert set(shown) - hidden == shown_at("node", version) - hidden, version


PLACES: list[tuple[str, int, Call]] = [
    ("portgroups", 23, lambda api, node: api.portgroup.list()),
    ("vifs", 28, lambda api, node: api.node.vif_list(node)),
    ("volume connectors", 32, lambda api, node: api.volume_connector.list()),
    ("volume targets", 32, lambda api, node: api.volume_target.list()),
    ("traits", 37, lambda api, node: api.node.get_traits(node)),
    ("bios", 40, lambda api, node: api.node.list_bios_settings(node)),
    ("conductors", 49, lambda api, node: api.conductor.list()),
    ("allocations", 52, lambda api, node: api.allocation.list()),
    ("deploy templates", 55, lambda api, node: api.deploy_template.list()),
    ("history", 78, lambda api, node: api.node.get_history_list(node)),
    ("inventory", 81, lambda api, node: api.node.get_inventory(node)),
    ("shards", 82, lambda api, node: api.shard.list()),
    ("firmware", 86, lambda api, node: api.node.list_firmware_components(node)),
    ("runbooks", 92, lambda api, node: api.runbook.list()),
    ("inspection rules", 96, lambda api, node: api.inspection_rule.list()),
]


@pytest.mark.parametrize(("name", "since", "call"), PLACES, ids=[place[0] for place in PLACES])
def test_an_address_is_there_from_its_version_on(
    connect: Connect, nodes: Nodes, name: str, since: int, call: Call
) -> None:
    node = nodes.make("manageable")["uuid"]
    nodes._ask("PUT", f"/{node}/states/provision", {"target": "inspect"})
    nodes.until(node, "manageable")
    with pytest.raises((exc.NotFound, exc.UnsupportedVersion, exc.MethodNotAllowed)):
        call(connect(f"1.{since - 1}"), node)
    call(connect(f"1.{since}"), node)
