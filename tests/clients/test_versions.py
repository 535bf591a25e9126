"""python-ironicclient with API versions old and new: what a client of each time gets to see."""

from typing import Any

import pytest
from ironicclient import exc

from tests.clients.nodes import Connect
from tests.clients.nodes import Nodes
from tests.clients.shell import Shell
from tests.support.server import Server

AT_1_1 = {
    "uuid", "created_at", "updated_at", "chassis_uuid", "console_enabled", "driver",
    "driver_info", "extra", "instance_info", "instance_uuid", "last_error", "links",
    "maintenance", "maintenance_reason", "ports", "power_state", "properties", "provision_state",
    "provision_updated_at", "reservation", "target_power_state", "target_provision_state",
}  # fmt: skip
AT_1_10 = AT_1_1 | {
    "driver_internal_info", "name", "inspection_started_at", "inspection_finished_at",
    "clean_step",
}  # fmt: skip
AT_1_38 = AT_1_10 | {
    "raid_config", "target_raid_config", "states", "network_interface", "resource_class",
    "portgroups", "boot_interface", "console_interface", "deploy_interface",
    "inspect_interface", "management_interface", "power_interface", "raid_interface",
    "vendor_interface", "volume", "storage_interface", "traits", "rescue_interface",
}  # fmt: skip
AT_1_115 = AT_1_38 | {
    "bios_interface", "fault", "deploy_step", "conductor_group", "automated_clean", "protected",
    "protected_reason", "conductor", "owner", "description", "allocation_uuid", "retired",
    "retired_reason", "lessee", "network_data", "boot_mode", "secure_boot", "shard",
    "parent_node", "firmware_interface", "service_step", "disable_power_off", "instance_name",
    "health",
}  # fmt: skip
AT_1_900 = AT_1_115 | {"wait_reason", "deadline", "power_policy", "power_state_reason"}

KEYS = {
    "1.1": AT_1_1,
    "1.10": AT_1_10,
    "1.11": AT_1_10,
    "1.38": AT_1_38,
    "1.39": AT_1_38,
    "1.115": AT_1_115,
    "1.900": AT_1_900,
}


def test_the_key_sets_have_the_sizes_that_clients_rely_on() -> None:
    assert (len(AT_1_1), len(AT_1_115), len(AT_1_900)) == (22, 69, 73)


@pytest.mark.parametrize("version", KEYS)
def test_each_version_shows_its_own_fields(connect: Connect, nodes: Nodes, version: str) -> None:
    uuid = nodes.make("available")["uuid"]
    api = connect(version)
    assert set(api.node.get(uuid).to_dict()) == KEYS[version]
    listed = next(node for node in api.node.list(detail=True, limit=0) if node.uuid == uuid)
    assert set(listed.to_dict()) == KEYS[version]


@pytest.mark.parametrize("version", KEYS)
def test_a_created_node_is_shown_with_the_fields_of_its_version(
    connect: Connect, nodes: Nodes, version: str
) -> None:
    api = connect(version)
    made = api.node.create(driver="fake-hardware")
    assert set(made.to_dict()) == KEYS[version]
    api.node.delete(made.uuid)


@pytest.mark.parametrize(
    ("version", "shown", "stored"),
    [
        ("1.1", None, "available"),
        ("1.2", "available", "available"),
        ("1.10", "available", "available"),
        ("1.11", "enroll", "enroll"),
        ("1.38", "enroll", "enroll"),
        ("1.115", "enroll", "enroll"),
    ],
)
def test_a_new_node_starts_where_clients_of_the_version_expect(
    connect: Connect, nodes: Nodes, version: str, shown: str | None, stored: str
) -> None:
    api = connect(version)
    made = api.node.create(driver="fake-hardware")
    assert made.provision_state == shown
    assert api.node.get(made.uuid).provision_state == shown
    assert api.node.states(made.uuid).provision_state == shown
    brief = next(node for node in api.node.list(limit=0) if node.uuid == made.uuid)
    assert brief.provision_state == shown
    assert nodes.show(made.uuid)["provision_state"] == stored
    api.node.delete(made.uuid)


def test_a_client_of_the_first_version_deploys_and_undeploys(
    connect: Connect, nodes: Nodes
) -> None:
    api = connect("1.1")
    made = api.node.create(driver="fake-hardware")
    api.node.set_provision_state(made.uuid, "active")
    nodes.until(made.uuid, "active")
    assert api.node.get(made.uuid).provision_state == "active"
    api.node.set_provision_state(made.uuid, "deleted")
    nodes.until(made.uuid, "available")
    assert api.node.get(made.uuid).provision_state is None
    api.node.delete(made.uuid)


@pytest.mark.parametrize(("version", "shown"), [("1.38", "inspecting"), ("1.39", "inspect wait")])
def test_inspect_wait_is_shown_to_clients_that_know_it(
    connect: Connect, nodes: Nodes, server: Server, version: str, shown: str
) -> None:
    uuid = nodes.make("manageable")["uuid"]
    server.script(f"node:{uuid}", ramdisk=True, latency_s={"*": 600})
    api = connect(version)
    api.node.set_provision_state(uuid, "inspect")
    nodes.until(uuid, "inspect wait")
    assert api.node.get(uuid).provision_state == shown
    assert api.node.states(uuid).provision_state == shown
    brief = next(node for node in api.node.list(limit=0) if node.uuid == uuid)
    assert brief.provision_state == shown


@pytest.mark.parametrize(
    ("version", "verb", "more"),
    [
        ("1.3", "manage", {}),
        ("1.5", "inspect", {}),
        ("1.14", "clean", {"cleansteps": [{"interface": "raid", "step": "create_configuration"}]}),
        ("1.16", "adopt", {}),
        ("1.37", "rescue", {"rescue_password": "a pass phrase"}),
        ("1.84", "unhold", {}),
        ("1.86", "service", {"servicesteps": [{"interface": "management", "step": "reset_bmc"}]}),
    ],
)
def test_a_verb_newer_than_the_version_is_not_acceptable(
    connect: Connect, nodes: Nodes, version: str, verb: str, more: dict[str, Any]
) -> None:
    uuid = nodes.make()["uuid"]
    # The client has words of its own for a 406.
    with pytest.raises(exc.UnsupportedVersion, match=f"Requested API version {version} is not"):
        connect(version).node.set_provision_state(uuid, verb, **more)
    assert nodes.show(uuid)["provision_state"] == "enroll"


def test_soft_power_came_with_1_27(connect: Connect, nodes: Nodes) -> None:
    uuid = nodes.make("manageable")["uuid"]
    with pytest.raises(exc.UnsupportedVersion):
        connect("1.26").node.set_power_state(uuid, "off", soft=True)
    connect("1.27").node.set_power_state(uuid, "off", soft=True, timeout=30)
    nodes.until_power(uuid, "power off")


@pytest.mark.parametrize("version", ["latest", ["1.38", "1.115"]])
def test_the_client_settles_on_the_newest_version_that_it_knows(
    connect: Connect, nodes: Nodes, version: Any
) -> None:
    made = nodes.make()
    assert set(connect(version).node.get(made["uuid"]).to_dict()) == AT_1_115


def test_a_version_above_ours_is_refused_with_the_range(connect: Connect) -> None:
    with pytest.raises(exc.UnsupportedVersion, match=r"1\.901"):
        connect("1.901").node.list()


def test_the_command_line_speaks_an_old_version_when_told_to(
    openstack: Shell, nodes: Nodes
) -> None:
    name = nodes.name()
    made = openstack.json(
        "--os-baremetal-api-version", "1.10",
        "baremetal", "node", "create", "--driver", "fake-hardware", "--name", name,
    )  # fmt: skip
    assert made["provision_state"] == "available"
    shown = openstack.json("--os-baremetal-api-version", "1.38", "baremetal", "node", "show", name)
    assert "bios_interface" not in shown
    assert shown["rescue_interface"] == "fake"
