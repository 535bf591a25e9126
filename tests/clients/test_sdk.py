"""openstacksdk's bare metal proxy."""

import uuid
from typing import Any

import pytest
from openstack import exceptions

from tests.clients.nodes import Nodes
from tests.support.server import Server

WAIT_S = 30
STEPS = [{"interface": "raid", "step": "create_configuration"}]
# The SDK warns of its own future.
pytestmark = pytest.mark.filterwarnings(
    "ignore::PendingDeprecationWarning", "ignore::openstack.warnings.OpenStackDeprecationWarning"
)


def test_a_node_is_created_found_listed_and_deleted(baremetal: Any, nodes: Nodes) -> None:
    name, group = nodes.name(), nodes.name()
    made = baremetal.create_node(
        driver="fake-hardware", name=name, properties={"cpus": "8"}, conductor_group=group
    )
    assert made.provision_state == "enroll"
    assert baremetal.get_node(name).id == made.id
    assert baremetal.get_node(made.id, fields=["uuid", "name"]).name == name
    assert baremetal.find_node(name).id == made.id
    assert baremetal.find_node("no-such-node") is None
    with pytest.raises(exceptions.NotFoundException, match="could not be found"):
        baremetal.get_node("no-such-node")

    (brief,) = baremetal.nodes(conductor_group=group)
    assert (brief.id, brief.name, brief.driver) == (made.id, name, None)
    (full,) = baremetal.nodes(details=True, conductor_group=group)
    assert (full.driver, full.properties) == ("fake-hardware", {"cpus": "8"})
    (some,) = baremetal.nodes(fields=["uuid", "driver"], conductor_group=group)
    assert (some.id, some.driver, some.name) == (made.id, "fake-hardware", None)

    baremetal.delete_node(made.id)
    assert baremetal.find_node(name) is None
    assert baremetal.delete_node(made.id, ignore_missing=True) is None


def test_a_long_list_comes_page_by_page(baremetal: Any, nodes: Nodes) -> None:
    group = nodes.name()
    made = [nodes.make(conductor_group=group)["uuid"] for _ in range(5)]
    listed = [node.id for node in baremetal.nodes(conductor_group=group, limit=2)]
    assert listed == made
    detailed = [node.id for node in baremetal.nodes(details=True, conductor_group=group, limit=2)]
    assert detailed == made


@pytest.mark.parametrize("state", ["manageable", "available"])
def test_a_node_is_created_right_into_a_later_state(
    baremetal: Any, nodes: Nodes, state: str
) -> None:
    made = baremetal.create_node(driver="fake-hardware", name=nodes.name(), provision_state=state)
    assert nodes.until(made.id, state)["name"] == made.name


def test_a_node_is_changed_by_its_fields_and_by_patches(baremetal: Any, nodes: Nodes) -> None:
    made = nodes.make()
    node = baremetal.update_node(made["uuid"], extra={"colour": "grey"}, resource_class="gold")
    assert (node.extra, node.resource_class) == ({"colour": "grey"}, "gold")
    # As a program does: fetch, change, commit.
    node = baremetal.get_node(made["name"])
    node = baremetal.update_node(node, instance_id=str(uuid.uuid4()), description="A node.")
    assert node.description == "A node."
    node = baremetal.patch_node(
        node,
        [
            {"op": "add", "path": "/properties/cpus", "value": "8"},
            {"op": "replace", "path": "/extra/colour", "value": "blue"},
            {"op": "remove", "path": "/instance_uuid"},
        ],
    )
    shown = nodes.show(made["uuid"])
    assert shown["properties"] == {"cpus": "8"}
    assert shown["extra"] == {"colour": "blue"}
    assert shown["instance_uuid"] is None
    assert node.instance_id is None


def test_a_patch_of_what_cannot_be_patched_is_refused(baremetal: Any, nodes: Nodes) -> None:
    made = nodes.make()
    patch = [{"op": "replace", "path": "/provision_state", "value": "active"}]
    with pytest.raises(exceptions.BadRequestException, match="Cannot patch /provision_state"):
        baremetal.patch_node(made["uuid"], patch)


def test_the_sdk_waits_for_provision_states(baremetal: Any, nodes: Nodes) -> None:
    uuid_ = nodes.make()["uuid"]

    def ask(target: str, **more: Any) -> Any:
        return baremetal.set_node_provision_state(uuid_, target, wait=True, timeout=WAIT_S, **more)

    assert ask("manage").provision_state == "manageable"
    assert ask("clean", clean_steps=STEPS).provision_state == "manageable"
    assert ask("provide").provision_state == "available"
    active = ask("active", config_drive={"meta_data": {"name": "web-1"}})
    assert (active.provision_state, active.power_state) == ("active", "power on")
    assert ask("deleted").provision_state == "available"


def test_the_sdk_asks_for_the_other_verbs(baremetal: Any, nodes: Nodes) -> None:
    uuid_ = nodes.make("manageable")["uuid"]
    for target, more, state in (
        ("inspect", {}, "manageable"),
        ("adopt", {}, "active"),
        ("rescue", {"rescue_password": "a pass phrase"}, "rescue"),
        ("unrescue", {}, "active"),
        ("rebuild", {}, "active"),
    ):
        baremetal.set_node_provision_state(uuid_, target, **more)
        assert nodes.until(uuid_, state)["last_error"] is None, target


def test_the_sdk_waits_for_several_nodes(baremetal: Any, nodes: Nodes) -> None:
    made = [nodes.make("manageable")["uuid"] for _ in range(3)]
    for uuid_ in made:
        baremetal.set_node_provision_state(uuid_, "provide")
    waited = baremetal.wait_for_nodes_provision_state(made, "available", timeout=WAIT_S)
    assert sorted(node.id for node in waited) == sorted(made)


def test_a_failure_ends_the_sdks_wait_with_the_reason(
    baremetal: Any, nodes: Nodes, server: Server
) -> None:
    uuid_ = nodes.make("manageable")["uuid"]
    server.script(f"node:{uuid_}", fail={"inspect": "no ramdisk to be had"})
    with pytest.raises(exceptions.ResourceFailure, match="no ramdisk to be had"):
        baremetal.set_node_provision_state(uuid_, "inspect", wait=True, timeout=WAIT_S)


def test_an_illegal_verb_reaches_the_sdk_with_the_legal_ones(baremetal: Any, nodes: Nodes) -> None:
    node = nodes.make()
    with pytest.raises(exceptions.BadRequestException, match="Legal here: manage"):
        baremetal.set_node_provision_state(node["uuid"], "provide")


def test_the_sdk_switches_power_and_waits(baremetal: Any, nodes: Nodes) -> None:
    uuid_ = nodes.make("manageable")["uuid"]
    baremetal.set_node_power_state(uuid_, "power on", wait=True, timeout=WAIT_S)
    assert baremetal.get_node(uuid_).power_state == "power on"
    baremetal.set_node_power_state(uuid_, "soft power off", wait=True, timeout=WAIT_S)
    assert baremetal.get_node(uuid_).power_state == "power off"
    baremetal.set_node_power_state(uuid_, "rebooting")
    baremetal.wait_for_node_power_state(uuid_, "power on", timeout=WAIT_S)


def test_the_sdk_validates(baremetal: Any, nodes: Nodes) -> None:
    good = nodes.make()["uuid"]
    answer = baremetal.validate_node(good)
    assert {answer[kind].result for kind in ("boot", "deploy", "power", "storage")} == {True}
    bad = nodes.make(inspect_interface="no-inspect")["uuid"]
    with pytest.raises(exceptions.ValidationException, match="does not support inspect"):
        baremetal.validate_node(bad, required=["inspect"])


def test_the_sdk_sets_and_clears_maintenance(baremetal: Any, nodes: Nodes) -> None:
    uuid_ = nodes.make()["uuid"]
    node = baremetal.set_node_maintenance(uuid_, "disk swap")
    assert (node.is_maintenance, node.maintenance_reason) == (True, "disk swap")
    node = baremetal.unset_node_maintenance(uuid_)
    assert (node.is_maintenance, node.maintenance_reason) == (False, None)
    # A program may also change the field and commit.
    node.is_maintenance = True
    baremetal.update_node(node)
    assert nodes.show(uuid_)["maintenance"] is True


def test_the_sdk_reads_the_range_of_versions(baremetal: Any) -> None:
    data = baremetal.get_endpoint_data()
    assert data.min_microversion == (1, 1)
    assert data.max_microversion == (1, 900)


def test_ports_and_chassis_are_made_found_changed_and_deleted(baremetal: Any, nodes: Nodes) -> None:
    node = nodes.make()["uuid"]
    port = baremetal.create_port(address="52:54:03:00:00:0A", node_id=node, extra={"a": 1})
    assert (port.address, port.node_id, port.is_pxe_enabled) == ("52:54:03:00:00:0a", node, True)
    assert [found.id for found in baremetal.ports(node=node)] == [port.id]
    assert [found.extra for found in baremetal.ports(details=True, node=node)] == [{"a": 1}]
    assert baremetal.find_port(port.id).id == port.id
    patch = [{"op": "replace", "path": "/pxe_enabled", "value": False}]
    assert baremetal.patch_port(port.id, patch).is_pxe_enabled is False
    baremetal.delete_port(port.id)
    assert list(baremetal.ports(node=node)) == []

    chassis = baremetal.create_chassis(description="Rack 9")
    assert baremetal.get_chassis(chassis.id).description == "Rack 9"
    assert chassis.id in [found.id for found in baremetal.chassis()]
    assert baremetal.update_chassis(chassis.id, description="Rack 10").description == "Rack 10"
    baremetal.delete_chassis(chassis.id)
    assert baremetal.find_chassis(chassis.id) is None
