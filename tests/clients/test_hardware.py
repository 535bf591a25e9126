"""A machine's hardware with people's own tools: the `openstack` command, the SDK, ironicclient."""

import json
from pathlib import Path
from typing import Any

import pytest
from ironicclient import exc
from openstack import exceptions

from tests.clients.nodes import Connect
from tests.clients.nodes import Nodes
from tests.clients.shell import Shell
from tests.support.server import Server

# The SDK warns of its own future.
pytestmark = pytest.mark.filterwarnings(
    "ignore::PendingDeprecationWarning", "ignore::openstack.warnings.OpenStackDeprecationWarning"
)
RAID = {"logical_disks": [{"raid_level": "1", "size_gb": "MAX", "is_root_volume": True}]}


def test_the_command_sets_boot_device_mode_and_secure_boot(openstack: Shell, nodes: Nodes) -> None:
    node = nodes.make("manageable")["uuid"]
    device = ("baremetal", "node", "boot", "device")
    openstack(*device, "set", node, "pxe", "--persistent")
    assert openstack.json(*device, "show", node) == {"boot_device": "pxe", "persistent": True}
    supported = openstack.json(*device, "show", node, "--supported")
    assert supported["supported_boot_devices"] == "pxe, disk, cdrom, uefihttp"
    assert "can start from" in openstack.refused(*device, "set", node, "safe")
    openstack("baremetal", "node", "boot", "mode", "set", node, "bios")
    nodes.until_seen(node, lambda seen: seen["boot_mode"] == "bios", "boots by BIOS")
    openstack("baremetal", "node", "boot", "mode", "set", node, "uefi")
    nodes.until_seen(node, lambda seen: seen["boot_mode"] == "uefi", "boots by UEFI")
    openstack("baremetal", "node", "secure", "boot", "on", node)
    nodes.until_seen(node, lambda seen: seen["secure_boot"] is True, "boots securely")
    openstack("baremetal", "node", "secure", "boot", "off", node)
    nodes.until_seen(node, lambda seen: seen["secure_boot"] is False, "boots anything")
    openstack("baremetal", "node", "inject", "nmi", node)
    passthru = ("baremetal", "node", "passthru")
    assert openstack.json(*passthru, "list", node) == []
    assert "has no vendor method" in openstack.refused(*passthru, "call", node, "dance")


def test_the_command_switches_the_console(openstack: Shell, nodes: Nodes) -> None:
    node = nodes.make("manageable")["uuid"]
    console = ("baremetal", "node", "console")
    off = {"console_enabled": False, "console_info": None}
    assert openstack.json(*console, "show", node) == off
    openstack(*console, "enable", node)
    nodes.until_seen(node, lambda seen: seen["console_enabled"], "has a console")
    shown = openstack.json(*console, "show", node)
    assert shown["console_enabled"]
    assert shown["console_info"]["type"] == "socat"
    assert shown["console_info"]["url"].startswith("tcp://127.0.0.1:")
    openstack(*console, "disable", node)
    nodes.until_seen(node, lambda seen: not seen["console_enabled"], "has none")
    assert openstack.json(*console, "show", node) == off


def test_the_command_shows_settings_firmware_inventory_and_history(
    openstack: Shell, nodes: Nodes, tmp_path: Path
) -> None:
    node = nodes.make("manageable")["uuid"]
    words = ("baremetal", "node")
    rows = openstack.json(*words, "bios", "setting", "list", node)
    assert {row["name"]: row["value"] for row in rows}["NumLock"] == "On"
    long = openstack.json(*words, "bios", "setting", "list", node, "--long")
    assert long[0]["attribute_type"] == "Enumeration"
    one = openstack.json(*words, "bios", "setting", "show", node, "NumLock")
    assert (one["name"], one["value"]) == ("NumLock", "On")
    said = openstack.refused(*words, "bios", "setting", "show", node, "x")
    assert "BIOS setting" in said
    parts = openstack.json(*words, "firmware", "list", node)
    assert {row["component"] for row in parts} == {"bios", "bmc"}
    assert "inspect it first" in openstack.refused(*words, "inventory", "save", node)
    openstack(*words, "inspect", node)
    nodes.until(node, "manageable")
    openstack(*words, "inventory", "save", node, "--file", str(tmp_path / "found"))
    found = json.loads((tmp_path / "found").read_text())
    assert found["inventory"]["cpu"]["count"] == 8
    history = openstack.json(*words, "history", "list", node)
    assert {"Enrolled", "Moved from manageable to inspecting by inspect"} <= {
        row["event"] for row in history
    }
    got = openstack.json(*words, "history", "get", node, history[0]["uuid"])
    assert (got["severity"], got["event_type"]) == ("INFO", "enrolment")


def test_the_command_sets_the_raid_that_a_clean_step_makes(openstack: Shell, nodes: Nodes) -> None:
    node = nodes.make("manageable")["uuid"]
    openstack("baremetal", "node", "set", node, "--target-raid-config", json.dumps(RAID))
    assert nodes.show(node)["target_raid_config"] == RAID
    steps = [{"interface": "raid", "step": "create_configuration"}]
    openstack("baremetal", "node", "clean", node, "--clean-steps", json.dumps(steps))
    nodes.until(node, "manageable")
    made = nodes.show(node)["raid_config"]["logical_disks"][0]
    assert made["raid_level"] == "1"
    openstack("baremetal", "node", "unset", node, "--target-raid-config")
    assert nodes.show(node)["target_raid_config"] == {}
    wrong = json.dumps({"logical_disks": [{"raid_level": "9", "size_gb": 1}]})
    said = openstack.refused("baremetal", "node", "set", node, "--target-raid-config", wrong)
    assert "raid_level must be one of" in said


def test_the_sdk_manages_the_hardware(baremetal: Any, nodes: Nodes) -> None:
    node = nodes.make("manageable")["uuid"]
    baremetal.set_node_boot_device(node, "cdrom", persistent=False)
    assert baremetal.get_node_boot_device(node) == {"boot_device": "cdrom", "persistent": False}
    assert "pxe" in baremetal.get_node_supported_boot_devices(node)["supported_boot_devices"]
    baremetal.inject_nmi_to_node(node)
    baremetal.set_node_boot_mode(node, "uefi")
    nodes.until_seen(node, lambda seen: seen["boot_mode"] == "uefi", "boots by UEFI")
    baremetal.set_node_secure_boot(node, True)
    nodes.until_seen(node, lambda seen: seen["secure_boot"] is True, "boots securely")
    baremetal.attach_vmedia_to_node(node, "cdrom", "http://images/x.iso")
    baremetal.detach_vmedia_from_node(node, device_types=["cdrom"])
    baremetal.enable_node_console(node)
    nodes.until_seen(node, lambda seen: seen["console_enabled"], "has a console")
    assert baremetal.get_node_console(node)["console_info"]["type"] == "socat"
    baremetal.disable_node_console(node)
    parts = baremetal.list_node_firmware(node)["firmware"]
    assert {part["component"] for part in parts} == {"bios", "bmc"}
    assert baremetal.list_node_vendor_passthru(node) == {}
    with pytest.raises(exceptions.NotFoundException, match="inspect it first"):
        baremetal.get_node_inventory(node)
    baremetal.set_node_provision_state(node, "inspect", wait=True)
    assert baremetal.get_node_inventory(node)["inventory"]["memory"]["physical_mb"] == 16384


def test_an_unreachable_bmc_reaches_people_in_words(
    server: Server, openstack: Shell, baremetal: Any, nodes: Nodes
) -> None:
    node = nodes.make("manageable")["uuid"]
    server.script(f"node:{node}", unreachable=True)
    said = openstack.refused("baremetal", "node", "boot", "device", "show", node)
    assert "could not be reached" in said
    assert "(HTTP 504)" in said
    with pytest.raises(exceptions.HttpException, match="could not be reached"):
        baremetal.get_node_boot_device(node)
    server.unscript(f"node:{node}")


EDGES = [
    ("inject_nmi", 29, lambda api, node: api.node.inject_nmi(node)),
    ("bios", 40, lambda api, node: api.node.list_bios_settings(node)),
    ("boot mode", 76, lambda api, node: api.node.set_boot_mode(node, "uefi")),
    ("history", 78, lambda api, node: api.node.get_history_list(node)),
    ("inventory", 81, lambda api, node: api.node.get_inventory(node)),
    ("firmware", 86, lambda api, node: api.node.list_firmware_components(node)),
]


@pytest.mark.parametrize(("name", "since", "call"), EDGES)
def test_a_client_of_each_time_gets_what_its_version_has(
    connect: Connect, nodes: Nodes, name: str, since: int, call: Any
) -> None:
    node = nodes.make("manageable")["uuid"]
    nodes._ask("PUT", f"/{node}/states/provision", {"target": "inspect"})
    nodes.until(node, "manageable")
    with pytest.raises(exc.NotFound, match=f"1.{since}"):
        call(connect(f"1.{since - 1}"), node)
    call(connect(f"1.{since}"), node)


def test_raid_before_its_version_is_not_acceptable(connect: Connect, nodes: Nodes) -> None:
    node = nodes.make("manageable")["uuid"]
    with pytest.raises(exc.UnsupportedVersion):
        connect("1.11").node.set_target_raid_config(node, RAID)
    connect("1.12").node.set_target_raid_config(node, RAID)
    assert nodes.show(node)["target_raid_config"] == RAID
