"""Nodes made, listed, shown, changed and removed with the `openstack baremetal` commands."""

import json
import uuid

import pytest

from tests.clients.nodes import Nodes
from tests.clients.shell import Shell

BRIEF = ["uuid", "name", "instance_uuid", "power_state", "provision_state", "maintenance"]


def test_a_node_is_created_with_everything_that_the_client_can_say(
    openstack: Shell, nodes: Nodes
) -> None:
    own, parent = str(uuid.uuid4()), nodes.make()["uuid"]
    made = openstack.json(
        "baremetal", "node", "create", "--driver", "fake-hardware", "--uuid", own,
        "--name", nodes.name(), "--instance-name", "web-1", "--resource-class", "gold",
        "--driver-info", "rack=r1", "--driver-info", "fake_password=hunter2",
        "--property", "cpus=8", "--property", "capabilities=boot_mode:uefi",
        "--extra", "colour=grey", "--extra", 'shelf={"number": 7}',
        "--network-data", '{"links": []}', "--conductor-group", "east", "--no-automated-clean",
        "--owner", "owner-project", "--lessee", "lessee-project", "--description", "A node.",
        "--shard", "shard-1", "--parent-node", parent, "--disable-power-off",
        "--network-interface", "flat", "--storage-interface", "fake",
        "--inspect-interface", "no-inspect", "--rescue-interface", "no-rescue",
        "--boot-interface", "fake", "--deploy-interface", "fake", "--power-interface", "fake",
    )  # fmt: skip
    assert made["uuid"] == own
    assert made["driver_info"] == {"rack": "r1", "fake_password": "******"}
    assert made["properties"] == {"cpus": 8, "capabilities": "boot_mode:uefi"}
    assert made["extra"] == {"colour": "grey", "shelf": {"number": 7}}
    assert made["network_data"] == {"links": []}
    assert made["automated_clean"] is False
    assert made["disable_power_off"] is True
    assert made["network_interface"] == "flat"
    assert made["inspect_interface"] == "no-inspect"
    said = {
        "instance_name": "web-1", "resource_class": "gold", "conductor_group": "east",
        "owner": "owner-project", "lessee": "lessee-project", "description": "A node.",
        "shard": "shard-1", "parent_node": parent,
    }  # fmt: skip
    assert {key: made[key] for key in said} == said


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--name", "states"], "states"),
        (["--name", "two words"], "two words"),
        (["--uuid", "not-a-uuid"], "not-a-uuid"),
        (["--power-interface", "steam"], "steam"),
    ],
)
def test_a_node_that_cannot_be_is_refused_in_words(
    openstack: Shell, words: list[str], complaint: str
) -> None:
    said = openstack.refused("baremetal", "node", "create", "--driver", "fake-hardware", *words)
    assert complaint in said
    assert "(HTTP 400)" in said


@pytest.mark.parametrize("field", ["name", "uuid"])
def test_a_name_or_uuid_that_is_taken_is_refused(
    openstack: Shell, nodes: Nodes, field: str
) -> None:
    node = nodes.make()
    # `openstack` tries again for 10 s after a conflict; this command can be told not to.
    done = openstack.like(program="baremetal").run(
        "--max-retries", "0", "node", "create", "--driver", "fake-hardware",
        f"--{field}", node[field],
    )  # fmt: skip
    assert done.code == 1
    assert f"{node[field]} already exists" in done.err
    assert "(HTTP 409)" in done.err


def test_a_driver_that_is_not_there_is_refused_with_those_there_are(openstack: Shell) -> None:
    said = openstack.refused("baremetal", "node", "create", "--driver", "no-such")
    assert "driver no-such; the drivers here are: fake-hardware" in said


def test_the_plain_list_has_the_columns_that_people_know(openstack: Shell, nodes: Nodes) -> None:
    node = nodes.make("manageable")
    rows = openstack.json("baremetal", "node", "list")
    assert list(rows[0]) == BRIEF
    mine = next(row for row in rows if row["uuid"] == node["uuid"])
    assert mine == {
        "uuid": node["uuid"], "name": node["name"], "instance_uuid": None,
        "power_state": "power off", "provision_state": "manageable", "maintenance": False,
    }  # fmt: skip
    table = openstack("baremetal", "node", "list")
    assert f"| {node['uuid']} | {node['name']}" in table


def test_the_list_is_shown_in_full_or_by_fields(openstack: Shell, nodes: Nodes) -> None:
    node = nodes.make("manageable", resource_class="gold", properties={"cpus": "8"})
    full = openstack.json("baremetal", "node", "list", "--long")
    mine = next(row for row in full if row["uuid"] == node["uuid"])
    assert mine["resource_class"] == "gold"
    assert mine["properties"] == {"cpus": "8"}
    assert len(mine) > 60
    fields = ("uuid", "name", "driver", "properties")
    short = openstack.json("baremetal", "node", "list", "--fields", *fields)
    assert list(short[0]) == list(fields)
    mine = {"uuid": node["uuid"], "name": node["name"], "driver": "fake-hardware"}
    assert {**mine, "properties": {"cpus": "8"}} in short


def test_the_list_is_filtered_by_everything_that_the_client_can_filter_by(
    openstack: Shell, nodes: Nodes
) -> None:
    instance, marks = str(uuid.uuid4()), nodes.name()
    parent = nodes.make()
    child = nodes.make(parent_node=parent["uuid"])
    node = nodes.make(
        "manageable", resource_class=marks, conductor_group=marks, owner=marks, lessee=marks,
        description=f"In the {marks.upper()} corner.", shard=marks, instance_uuid=instance,
        instance_name=marks,
    )  # fmt: skip
    other = nodes.make("available")
    openstack("baremetal", "node", "set", node["name"], "--retired", "--retired-reason", "old")
    openstack("baremetal", "node", "maintenance", "set", node["name"])

    def listed(*words: str) -> set[str]:
        ours = {parent["uuid"], child["uuid"], node["uuid"], other["uuid"]}
        return ours & set(openstack.column("uuid", "baremetal", "node", "list", *words))

    mine, others = {node["uuid"]}, {parent["uuid"], other["uuid"]}
    assert listed() == mine | others
    for only_mine in (
        ["--resource-class", marks], ["--conductor-group", marks], ["--owner", marks],
        ["--lessee", marks], ["--description-contains", f"{marks} corner"], ["--shards", marks],
        ["--sharded"], ["--instance-name", marks], ["--associated"], ["--maintenance"],
        ["--retired"], ["--provision-state", "manageable"],
        ["--associated", "--maintenance", "--provision-state", "manageable", "--owner", marks],
    ):  # fmt: skip
        assert listed(*only_mine) == mine, only_mine
    for only_others in (
        ["--unassociated"],
        ["--no-maintenance"],
        ["--no-retired"],
        ["--unsharded"],
    ):
        assert listed(*only_others) == others, only_others
    assert listed("--provision-state", "available") == {other["uuid"]}
    assert listed("--driver", "fake-hardware") == mine | others
    assert listed("--conductor", node["conductor"]) == mine | others
    for nobody in (
        ["--driver", "no-such"], ["--fault", "power failure"], ["--chassis", str(uuid.uuid4())],
        ["--provision-state", "active", "--owner", marks],
    ):  # fmt: skip
        assert listed(*nobody) == set(), nobody
    assert listed("--parent-node", parent["uuid"]) == {child["uuid"]}
    assert listed("--include-children") == mine | others | {child["uuid"]}
    said = openstack.refused("baremetal", "node", "list", "--provision-state", "asleep")
    assert '"asleep" is not valid; the states are: enroll,' in said


def test_the_list_is_sorted_and_paged(openstack: Shell, nodes: Nodes) -> None:
    group = nodes.name()
    made = [nodes.make(conductor_group=group) for _ in range(5)]
    of_group = ("baremetal", "node", "list", "--conductor-group", group)
    by_name = sorted(node["name"] for node in made)
    assert openstack.column("name", *of_group, "--sort", "name:asc") == by_name
    assert openstack.column("name", *of_group, "--sort", "name:desc") == by_name[::-1]
    in_order = [node["uuid"] for node in made]
    assert openstack.column("uuid", *of_group) == in_order
    assert openstack.column("uuid", *of_group, "--limit", "2") == in_order[:2]
    rest = openstack.column("uuid", *of_group, "--limit", "2", "--marker", in_order[1])
    assert rest == in_order[2:4]
    assert openstack.column("uuid", *of_group, "--limit", "0") == in_order


def test_a_node_is_shown_by_name_by_uuid_and_by_instance(openstack: Shell, nodes: Nodes) -> None:
    instance = str(uuid.uuid4())
    node = nodes.make("manageable", instance_uuid=instance)
    by_name = openstack.json("baremetal", "node", "show", node["name"])
    assert by_name["uuid"] == node["uuid"]
    assert openstack.json("baremetal", "node", "show", node["uuid"]) == by_name
    assert openstack.json("baremetal", "node", "show", instance, "--instance") == by_name
    some = openstack.json(
        "baremetal", "node", "show", instance, "--instance", "--fields", "name", "instance_uuid"
    )
    assert (some["name"], some["instance_uuid"]) == (node["name"], instance)
    said = openstack.refused("baremetal", "node", "show", str(uuid.uuid4()), "--instance")
    assert "not found" in said.lower()
    said = openstack.refused("baremetal", "node", "show", "no-such-node")
    assert "Node no-such-node could not be found" in said
    assert "(HTTP 404)" in said


def test_fields_are_set_and_unset(openstack: Shell, nodes: Nodes) -> None:
    node = nodes.make("manageable")
    name, instance = nodes.name(), str(uuid.uuid4())
    openstack(
        "baremetal", "node", "set", node["uuid"], "--name", name, "--resource-class", "gold",
        "--property", "cpus=8", "--property", "memory_mb=1024", "--extra", "colour=grey",
        "--extra", 'a~0b~1c={"deep": [1]}', "--driver-info", "rack=r7", "--instance-info",
        "image_source=http://127.0.0.1/image", "--instance-uuid", instance,
        "--description", "A node.", "--owner", "someone", "--lessee", "another",
        "--conductor-group", "east", "--automated-clean", "--shard", "one",
        "--network-data", '{"links": []}', "--inspect-interface", "no-inspect",
        "--disable-power-off", "--instance-name", "web-1", "--retired", "--retired-reason", "old",
    )  # fmt: skip
    shown = openstack.json("baremetal", "node", "show", name)
    assert shown["properties"] == {"cpus": 8, "memory_mb": 1024}
    assert shown["extra"] == {"colour": "grey", "a~b/c": {"deep": [1]}}
    assert shown["driver_info"] == {"rack": "r7"}
    assert shown["instance_info"] == {"image_source": "http://127.0.0.1/image"}
    said = {
        "uuid": node["uuid"], "resource_class": "gold", "instance_uuid": instance,
        "description": "A node.", "owner": "someone", "lessee": "another", "shard": "one",
        "conductor_group": "east", "automated_clean": True, "network_data": {"links": []},
        "inspect_interface": "no-inspect", "disable_power_off": True, "instance_name": "web-1",
        "retired": True, "retired_reason": "old",
    }  # fmt: skip
    assert {key: shown[key] for key in said} == said

    openstack(
        "baremetal", "node", "unset", name, "--resource-class", "--property", "cpus",
        "--extra", "colour", "--driver-info", "rack", "--instance-info", "image_source",
        "--instance-uuid", "--description", "--owner", "--lessee", "--conductor-group",
        "--automated-clean", "--shard", "--network-data", "--inspect-interface",
        "--instance-name", "--retired",
    )  # fmt: skip
    openstack("baremetal", "node", "set", name, "--enable-power-off")
    shown = openstack.json("baremetal", "node", "show", name)
    assert shown["properties"] == {"memory_mb": 1024}
    assert "colour" not in shown["extra"]
    unset = {
        "driver_info": {}, "instance_info": {}, "instance_uuid": None, "resource_class": None,
        "description": None, "owner": None, "lessee": None, "conductor_group": "",
        "automated_clean": None, "shard": None, "network_data": {}, "inspect_interface": "fake",
        "disable_power_off": False, "instance_name": None, "retired": False,
        "retired_reason": None,
    }  # fmt: skip
    assert {key: shown[key] for key in unset} == unset

    openstack("baremetal", "node", "unset", name, "--name")
    assert openstack.json("baremetal", "node", "show", node["uuid"])["name"] is None
    openstack("baremetal", "node", "set", node["uuid"], "--name", name)


def test_unsetting_what_is_not_there_is_refused_in_words(openstack: Shell, nodes: Nodes) -> None:
    node = nodes.make()
    said = openstack.refused("baremetal", "node", "unset", node["name"], "--extra", "colour")
    assert "colour" in said
    assert "(HTTP 400)" in said


def test_a_protected_node_is_neither_undeployed_nor_deleted(openstack: Shell, nodes: Nodes) -> None:
    node = nodes.make("active")
    openstack("baremetal", "node", "set", node["name"], "--protected", "--protected-reason", "mine")
    for words in (["undeploy"], ["rebuild"], ["delete"]):
        said = openstack.refused("baremetal", "node", *words, node["name"])
        assert "clear `protected` first" in said, words
    openstack("baremetal", "node", "unset", node["name"], "--protected")
    shown = openstack.json("baremetal", "node", "show", node["name"])
    assert (shown["protected"], shown["protected_reason"]) == (False, None)


def test_validate_says_of_each_interface_whether_it_can_be_used(
    openstack: Shell, nodes: Nodes
) -> None:
    node = nodes.make(inspect_interface="no-inspect")
    rows = openstack.json("baremetal", "node", "validate", node["name"])
    results = {row["Interface"]: row["Result"] for row in rows}
    assert list(results) == sorted(results)
    assert results == {
        "bios": True, "boot": True, "console": True, "deploy": True, "firmware": True,
        "inspect": False, "management": True, "network": True, "power": True, "raid": True,
        "rescue": True, "storage": True,
    }  # fmt: skip
    reasons = {row["Interface"]: row["Reason"] for row in rows}
    assert "does not support inspect" in reasons["inspect"]
    assert not reasons["power"]


def test_several_nodes_are_deleted_and_those_that_cannot_be_are_named(
    openstack: Shell, nodes: Nodes
) -> None:
    made = [nodes.make()["name"] for _ in range(2)]
    ran = openstack.run("baremetal", "node", "delete", made[0], "no-such-node", made[1])
    assert ran.code == 1
    assert [f"Deleted node {name}" in ran.out for name in made] == [True, True]
    assert "Failed to delete node no-such-node" in ran.err
    for name in made:
        openstack.refused("baremetal", "node", "show", name)


@pytest.mark.parametrize("end", [".a", "_a", "-a~B"])
def test_a_name_may_have_any_unreserved_character(openstack: Shell, nodes: Nodes, end: str) -> None:
    name = nodes.name() + end
    made = openstack.json(
        "baremetal", "node", "create", "--driver", "fake-hardware", "--name", name
    )
    assert openstack.json("baremetal", "node", "show", name)["uuid"] == made["uuid"]
    openstack("baremetal", "node", "delete", name)


def test_secrets_are_never_printed(openstack: Shell, nodes: Nodes) -> None:
    node = nodes.make(driver_info={"ipmi_password": "hunter2", "rack": "r1"})
    openstack("baremetal", "node", "set", node["name"], "--driver-info", "redfish_password=hunter3")
    shown = openstack.json("baremetal", "node", "show", node["name"])
    assert shown["driver_info"]["rack"] == "r1"
    listed = openstack.json("baremetal", "node", "list", "--long")
    assert "hunter" not in json.dumps([shown, listed])
