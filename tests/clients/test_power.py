"""Power and maintenance, asked with the `openstack baremetal` commands."""

import pytest
from ironicclient import exc

from tests.clients.nodes import Connect
from tests.clients.nodes import Nodes
from tests.clients.shell import Shell
from tests.support.server import Server


def test_power_goes_on_off_and_round(openstack: Shell, nodes: Nodes) -> None:
    node = nodes.make("manageable")
    name, uuid = node["name"], node["uuid"]
    for words, power in (
        (["power", "on", name], "power on"),
        (["reboot", uuid], "power on"),
        (["reboot", name, "--soft"], "power on"),
        (["reboot", name, "--soft", "--power-timeout", "30"], "power on"),
        (["power", "off", name, "--soft"], "power off"),
        (["power", "on", uuid, "--power-timeout", "30"], "power on"),
        (["power", "off", uuid], "power off"),
        (["power", "off", name], "power off"),
        (["power", "on", name], "power on"),
        (["power", "off", name, "--soft", "--power-timeout", "30"], "power off"),
    ):
        assert openstack("baremetal", "node", *words) == ""
        nodes.until_power(uuid, power)
        shown = openstack.json(
            "baremetal", "node", "show", name,
            "--fields", "power_state", "target_power_state", "last_error",
        )  # fmt: skip
        assert shown["power_state"] == power, words
        assert shown["target_power_state"] is None, words
        assert shown["last_error"] is None, words


def test_several_nodes_are_switched_by_one_command(openstack: Shell, nodes: Nodes) -> None:
    made = [nodes.make("manageable") for _ in range(2)]
    openstack("baremetal", "node", "power", "on", *(node["name"] for node in made))
    for node in made:
        nodes.until_power(node["uuid"], "power on")


def test_where_the_power_is_going_is_shown_on_the_way_and_who_comes_second_is_told(
    openstack: Shell, nodes: Nodes, server: Server, connect: Connect
) -> None:
    node = nodes.make("manageable")
    server.script(f"node:{node['uuid']}", latency_s={"power": 600})
    openstack("baremetal", "node", "power", "on", node["name"])
    shown = openstack.json("baremetal", "node", "show", node["name"])
    assert shown["power_state"] == "power off"
    assert shown["target_power_state"] == "power on"
    api = connect("1.115")
    api.http_client.conflict_max_retries = 0  # it would retry for ten seconds
    with pytest.raises(exc.Conflict, match="retry after the current operation"):
        api.node.set_power_state(node["uuid"], "off")


def test_a_machine_that_refuses_to_be_switched_says_so(
    openstack: Shell, nodes: Nodes, server: Server
) -> None:
    node = nodes.make("manageable")
    server.script(f"node:{node['uuid']}", fail={"power": "the power supply is broken"})
    openstack("baremetal", "node", "power", "on", node["name"])
    failed = nodes.until_seen(node["uuid"], lambda now: bool(now["last_error"]), "has an error")
    assert "the power supply is broken" in failed["last_error"]
    assert (failed["power_state"], failed["target_power_state"]) == ("power off", None)
    assert failed["maintenance"] is False


def test_a_timeout_for_power_must_be_positive(openstack: Shell, nodes: Nodes) -> None:
    node = nodes.make("manageable")
    said = openstack.refused("baremetal", "node", "power", "on", node["name"], "--power-timeout=0")
    assert "timeout" in said.lower()


def test_maintenance_is_set_with_a_reason_and_unset(openstack: Shell, nodes: Nodes) -> None:
    node = nodes.make()
    shown = ("baremetal", "node", "show", node["name"], "--fields",
             "maintenance", "maintenance_reason", "fault")  # fmt: skip
    openstack("baremetal", "node", "maintenance", "set", node["uuid"], "--reason", "disk swap")
    now = openstack.json(*shown)
    assert (now["maintenance"], now["maintenance_reason"]) == (True, "disk swap")
    openstack("baremetal", "node", "maintenance", "set", node["name"])
    now = openstack.json(*shown)
    assert (now["maintenance"], now["maintenance_reason"]) == (True, None)
    openstack("baremetal", "node", "maintenance", "unset", node["name"])
    now = openstack.json(*shown)
    assert (now["maintenance"], now["maintenance_reason"], now["fault"]) == (False, None, None)
