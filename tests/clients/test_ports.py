"""Ports and chassis made, listed, shown, changed and removed with the `openstack` commands."""

import itertools
import uuid
from collections.abc import Iterator

import pytest

from tests.clients.nodes import Nodes
from tests.clients.shell import Shell

_numbers = itertools.count(1)


def mac() -> str:
    """An address that no other port has."""
    return f"52:54:01:00:00:{next(_numbers):02x}"


@pytest.fixture
def chassis(openstack: Shell) -> Iterator[str]:
    """The UUID of a chassis, removed after the test if the test did not."""
    made = openstack.json("baremetal", "chassis", "create", "--description", "Rack 7")["uuid"]
    yield made
    openstack.run("baremetal", "chassis", "delete", made)


def test_a_port_is_created_with_everything_that_the_client_can_say(
    openstack: Shell, nodes: Nodes
) -> None:
    node, own, address = nodes.make(), str(uuid.uuid4()), mac()
    made = openstack.json(
        "baremetal", "port", "create", address.upper(), "--node", node["uuid"], "--uuid", own,
        "--name", f"eth-{address[-2:]}", "--extra", "colour=grey", "--pxe-enabled", "false",
        "--local-link-connection", "switch_id=0A:1B:2C:3D:4E:5F",
        "--local-link-connection", "port_id=Gi1/0/1", "--physical-network", "net-1",
        "--description", "Left one.", "--vendor", "ACME", "--category", "fast",
    )  # fmt: skip
    said = {
        "uuid": own, "address": address, "node_uuid": node["uuid"], "extra": {"colour": "grey"},
        "pxe_enabled": False, "physical_network": "net-1",
        "vendor": "ACME", "category": "fast", "name": f"eth-{address[-2:]}",
        "local_link_connection": {"switch_id": "0a:1b:2c:3d:4e:5f", "port_id": "Gi1/0/1"},
    }  # fmt: skip
    assert {key: made[key] for key in said} == said
    shown = openstack.json("baremetal", "port", "show", own)
    assert shown == {**made, "description": "Left one.", "available_for_dynamic_portgroup": True}
    assert openstack.json("baremetal", "port", "show", "--address", address) == shown


def test_ports_are_listed(openstack: Shell, nodes: Nodes) -> None:
    node, other = nodes.make(), nodes.make()
    addresses = [mac(), mac(), mac()]
    for address, home in zip(addresses, (node, node, other), strict=True):
        openstack("baremetal", "port", "create", address, "--node", home["uuid"])
    rows = openstack.json("baremetal", "port", "list")
    assert list(rows[0]) == ["uuid", "address"]
    assert set(addresses) <= {row["address"] for row in rows}
    of_node = ("baremetal", "port", "list", "--node")
    assert openstack.column("address", *of_node, node["name"]) == addresses[:2]
    assert openstack.column("address", *of_node, other["uuid"]) == addresses[2:]
    words = ("baremetal", "port", "list", "--address", addresses[1])
    assert openstack.column("address", *words) == addresses[1:2]
    words = (*of_node, node["name"], "--sort", "address:desc")
    assert openstack.column("address", *words) == addresses[1::-1]
    full = openstack.json(*of_node, node["name"], "--long")
    assert [row["node_uuid"] for row in full] == [node["uuid"]] * 2
    some = openstack.json(*of_node, node["name"], "--fields", "address", "pxe_enabled")
    assert some[0] == {"address": addresses[0], "pxe_enabled": True}
    limited = openstack.column("address", *of_node, node["name"], "--limit", "1")
    assert limited == addresses[:1]


def test_a_port_is_changed_and_removed(openstack: Shell, nodes: Nodes) -> None:
    node, address, new = nodes.make(), mac(), mac()
    port = openstack.json("baremetal", "port", "create", address, "--node", node["uuid"])["uuid"]
    openstack(
        "baremetal", "port", "set", port, "--address", new, "--extra", "a=1", "--pxe-disabled",
        "--physical-network", "net-2", "--name", f"eth-{new[-2:]}", "--description", "d",
        "--local-link-connection", "switch_id=0a:1b:2c:3d:4e:5f",
        "--local-link-connection", "port_id=p",
    )  # fmt: skip
    shown = openstack.json("baremetal", "port", "show", port)
    said = {"address": new, "extra": {"a": 1}, "pxe_enabled": False, "physical_network": "net-2"}
    assert {key: shown[key] for key in said} == said
    assert shown["local_link_connection"]["port_id"] == "p"
    openstack(
        "baremetal", "port", "unset", port, "--extra", "a", "--physical-network", "--name",
        "--description", "--local-link-connection", "switch_id", "--local-link-connection",
        "port_id",
    )  # fmt: skip
    shown = openstack.json("baremetal", "port", "show", port)
    gone = {"extra": {}, "physical_network": None, "name": None, "local_link_connection": {}}
    assert {key: shown[key] for key in gone} == gone
    openstack("baremetal", "port", "delete", port)
    assert "could not be found" in openstack.refused("baremetal", "port", "show", port)


def test_an_address_that_is_taken_is_refused(openstack: Shell, nodes: Nodes) -> None:
    node, address = nodes.make(), mac()
    openstack("baremetal", "port", "create", address, "--node", node["uuid"])
    done = openstack.like(program="baremetal").run(
        "--max-retries", "0", "port", "create", address, "--node", node["uuid"]
    )
    assert done.code == 1
    assert f"A port with MAC address {address} already exists" in done.err
    assert "(HTTP 409)" in done.err


@pytest.mark.parametrize(
    ("address", "words", "complaint"),
    [
        ("nonsense", [], "MAC address"),
        ("52:54:02:00:00:01", ["--port-group", str(uuid.uuid4())], "could not be found"),
        ("52:54:02:00:00:02", ["--local-link-connection", "x=y"], "has no key"),
    ],
)
def test_a_port_that_cannot_be_is_refused_in_words(
    openstack: Shell, nodes: Nodes, address: str, words: list[str], complaint: str
) -> None:
    node = nodes.make()["uuid"]
    said = openstack.refused("baremetal", "port", "create", address, "--node", node, *words)
    assert complaint in said
    assert "(HTTP 400)" in said


def test_a_chassis_is_made_shown_changed_and_removed(openstack: Shell) -> None:
    own = str(uuid.uuid4())
    made = openstack.json(
        "baremetal", "chassis", "create", "--uuid", own, "--description", "Rack 7",
        "--extra", "row=3",
    )  # fmt: skip
    assert (made["uuid"], made["description"], made["extra"]) == (own, "Rack 7", {"row": 3})
    assert openstack.json("baremetal", "chassis", "show", own)["uuid"] == own
    openstack("baremetal", "chassis", "set", own, "--description", "Rack 8", "--extra", "a=1")
    shown = openstack.json("baremetal", "chassis", "show", own)
    assert (shown["description"], shown["extra"]) == ("Rack 8", {"row": 3, "a": 1})
    openstack("baremetal", "chassis", "unset", own, "--description", "--extra", "a")
    shown = openstack.json("baremetal", "chassis", "show", own)
    assert (shown["description"], shown["extra"]) == (None, {"row": 3})
    assert own in openstack.column("uuid", "baremetal", "chassis", "list")
    long = openstack.json("baremetal", "chassis", "list", "--long")
    assert {"row": 3} in [row["extra"] for row in long]
    openstack("baremetal", "chassis", "delete", own)
    assert "could not be found" in openstack.refused("baremetal", "chassis", "show", own)


def test_a_chassis_is_kept_while_nodes_are_in_it(
    openstack: Shell, nodes: Nodes, chassis: str
) -> None:
    name = nodes.name()
    openstack(
        "baremetal", "node", "create", "--driver", "fake-hardware", "--name", name,
        "--chassis-uuid", chassis,
    )  # fmt: skip
    listed = openstack.column("name", "baremetal", "node", "list", "--chassis", chassis)
    assert listed == [name]
    said = openstack.refused("baremetal", "chassis", "delete", chassis)
    assert "contains nodes" in said
    openstack("baremetal", "node", "unset", name, "--chassis-uuid")
    openstack("baremetal", "chassis", "delete", chassis)
    said = openstack.refused("baremetal", "node", "set", name, "--chassis-uuid", chassis)
    assert "(HTTP 400)" in said
