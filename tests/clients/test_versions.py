"""python-ironicclient with API versions old and new: what a client of each time gets to see."""

from typing import Any

import pytest
from ironicclient import exc

from tests.clients.nodes import Connect
from tests.clients.nodes import Nodes
from tests.clients.shell import Shell
from tests.support import shown
from tests.support.server import Server

AT_1_115 = shown.at(shown.NODE, 115)
AT_1_900 = AT_1_115 | {"wait_reason", "deadline", "power_policy", "power_state_reason"}

KEYS = {
    **{f"1.{minor}": shown.at(shown.NODE, minor) for minor in (1, 10, 11, 38, 39, 115)},
    "1.900": AT_1_900,
}


def test_the_key_sets_have_the_sizes_that_clients_rely_on() -> None:
    assert (len(KEYS["1.1"]), len(AT_1_115), len(AT_1_900)) == (22, 69, 73)


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
