"""The verbs of provisioning, asked with the `openstack baremetal` commands."""

import json
import re
from pathlib import Path

import pytest

from tests.clients.nodes import Nodes
from tests.clients.shell import Shell
from tests.support.server import Server

ERASE = {"interface": "deploy", "step": "erase_devices"}
RAID = {"interface": "raid", "step": "create_configuration", "args": {"create_root_volume": True}}
RESET_BMC = {"interface": "management", "step": "reset_bmc"}
HOLD = {"interface": "deploy", "step": "hold"}
SLOW_RAMDISK = {"ramdisk": True, "latency_s": {"*": 600}}


def test_a_node_is_enrolled_deployed_rescued_and_given_back(openstack: Shell, nodes: Nodes) -> None:
    name = nodes.name()
    made = openstack.json(
        "baremetal", "node", "create", "--driver", "fake-hardware", "--name", name
    )
    uuid = made["uuid"]
    assert (made["name"], made["provision_state"], made["power_state"]) == (name, "enroll", None)

    for words, state, power in (
        (["manage", name], "manageable", "power off"),
        (["provide", uuid], "available", "power off"),
        (["deploy", name], "active", "power on"),
        (["rebuild", uuid], "active", "power on"),
        (["rescue", name, "--rescue-password", "a rescue pass phrase"], "rescue", "power on"),
        (["unrescue", uuid], "active", "power on"),
        (["undeploy", name], "available", "power off"),
    ):
        before = nodes.show(uuid)["provision_updated_at"]
        assert openstack("baremetal", "node", *words) == ""
        nodes.until_seen(
            uuid, lambda now, old=before: now["provision_updated_at"] != old, "has moved"
        )
        nodes.until(uuid, state)
        shown = openstack.json("baremetal", "node", "show", name)
        assert shown["provision_state"] == state, words
        assert shown["power_state"] == power, words
        assert shown["target_provision_state"] is None
        assert shown["last_error"] is None
        assert "a rescue pass phrase" not in json.dumps(shown)

    assert f"Deleted node {uuid}" in openstack("baremetal", "node", "delete", uuid)
    assert "could not be found" in openstack.refused("baremetal", "node", "show", name)


def test_a_deploy_takes_steps_and_a_config_drive_of_the_users(
    openstack: Shell, nodes: Nodes, server: Server
) -> None:
    node = nodes.make("available")
    server.script(f"node:{node['uuid']}", latency_s={"management.reset_bmc": 600})
    steps = [{**RESET_BMC, "args": {}, "priority": 90}]
    openstack(
        "baremetal", "node", "deploy", node["name"],
        "--deploy-steps", json.dumps(steps), "--config-drive", '{"meta_data": {"name": "web-1"}}',
    )  # fmt: skip
    step = nodes.until_seen(
        node["uuid"],
        lambda now: now["deploy_step"].get("step") == "reset_bmc",
        "does the step",
    )["deploy_step"]
    assert step["priority"] == 90


def test_cleaning_runs_the_steps_that_were_asked_for(
    openstack: Shell, nodes: Nodes, tmp_path: Path
) -> None:
    node = nodes.make("manageable")
    steps = tmp_path / "steps.json"
    steps.write_text(json.dumps([ERASE, RAID]))
    for form in (json.dumps([ERASE, RAID]), str(steps)):
        openstack("baremetal", "node", "clean", node["name"], "--clean-steps", form)
        assert nodes.until(node["uuid"], "manageable")["clean_step"] == {}


def test_the_step_that_runs_is_shown_with_its_arguments(
    openstack: Shell, nodes: Nodes, server: Server
) -> None:
    node = nodes.make("manageable")
    server.script(f"node:{node['uuid']}", latency_s={"raid.create_configuration": 600})
    openstack(
        "baremetal", "node", "clean", node["name"], "--clean-steps", json.dumps([ERASE, RAID])
    )
    nodes.until_seen(
        node["uuid"],
        lambda now: now["clean_step"].get("step") == "create_configuration",
        "makes a RAID",
    )
    shown = openstack.json(
        "baremetal", "node", "show", node["name"],
        "--fields", "clean_step", "provision_state", "target_provision_state",
    )  # fmt: skip
    assert shown["clean_step"]["interface"] == "raid"
    assert shown["clean_step"]["args"] == {"create_root_volume": True}
    assert shown["provision_state"] == "cleaning"
    assert shown["target_provision_state"] == "manageable"


def test_a_hold_step_parks_cleaning_until_unhold(openstack: Shell, nodes: Nodes) -> None:
    node = nodes.make("manageable")
    openstack(
        "baremetal", "node", "clean", node["name"],
        "--clean-steps", json.dumps([ERASE, HOLD, RAID]),
    )  # fmt: skip
    held = nodes.until(node["uuid"], "clean hold")
    assert "unhold" in held["wait_reason"]
    said = openstack.refused("baremetal", "node", "manage", node["name"])
    assert 'in state "clean hold"' in said
    assert "Legal here: abort, unhold." in said
    openstack("baremetal", "node", "unhold", node["name"])
    assert nodes.until(node["uuid"], "manageable")["last_error"] is None


def test_a_hold_can_be_aborted(openstack: Shell, nodes: Nodes) -> None:
    node = nodes.make("manageable")
    openstack("baremetal", "node", "clean", node["uuid"], "--clean-steps", json.dumps([HOLD, RAID]))
    nodes.until(node["uuid"], "clean hold")
    openstack("baremetal", "node", "abort", node["uuid"])
    assert "by request" in nodes.until(node["uuid"], "clean failed")["last_error"]


def test_abort_ends_the_wait_for_a_cleaning_ramdisk(
    openstack: Shell, nodes: Nodes, server: Server
) -> None:
    node = nodes.make("manageable")
    server.script(f"node:{node['uuid']}", **SLOW_RAMDISK)
    openstack("baremetal", "node", "provide", node["name"])
    waiting = nodes.until(node["uuid"], "clean wait")
    assert waiting["clean_step"]["step"] == "erase_devices_metadata"
    assert waiting["wait_reason"]
    assert waiting["deadline"]

    said = openstack.refused("baremetal", "node", "power", "on", node["name"])
    assert 'in state "clean wait"' in said
    assert "abort" in said

    openstack("baremetal", "node", "abort", node["name"])
    failed = nodes.until(node["uuid"], "clean failed")
    assert "Aborted by request" in failed["last_error"]
    assert "erase_devices_metadata" in failed["last_error"]
    assert (failed["clean_step"], failed["maintenance"]) == ({}, False)

    server.unscript(f"node:{node['uuid']}")
    openstack("baremetal", "node", "manage", node["name"])
    openstack("baremetal", "node", "provide", node["name"])
    nodes.until(node["uuid"], "available")


def test_abort_ends_the_wait_for_a_ramdisk_that_inspects(
    openstack: Shell, nodes: Nodes, server: Server
) -> None:
    node = nodes.make("manageable")
    server.script(f"node:{node['uuid']}", **SLOW_RAMDISK)
    openstack("baremetal", "node", "inspect", node["name"])
    nodes.until(node["uuid"], "inspect wait")
    openstack("baremetal", "node", "abort", node["name"])
    assert "by request" in nodes.until(node["uuid"], "inspect failed")["last_error"]


def test_abort_ends_the_wait_for_a_rescue_ramdisk(
    openstack: Shell, nodes: Nodes, server: Server
) -> None:
    node = nodes.make("active")
    server.script(f"node:{node['uuid']}", **SLOW_RAMDISK)
    openstack("baremetal", "node", "rescue", node["name"], "--rescue-password", "a pass phrase")
    nodes.until(node["uuid"], "rescue wait")
    openstack("baremetal", "node", "abort", node["name"])
    nodes.until(node["uuid"], "rescue failed")
    server.unscript(f"node:{node['uuid']}")
    openstack("baremetal", "node", "unrescue", node["name"])
    nodes.until(node["uuid"], "active")


def test_abort_of_a_step_that_cannot_be_interrupted_waits_for_its_end(
    openstack: Shell, nodes: Nodes, server: Server
) -> None:
    node = nodes.make("available")
    server.script(f"node:{node['uuid']}", ramdisk=True, latency_s={"deploy": 3.0})
    openstack("baremetal", "node", "deploy", node["name"])
    nodes.until(node["uuid"], "wait call-back")
    openstack("baremetal", "node", "abort", node["name"])
    assert nodes.show(node["uuid"])["deploy_step"]["abort_after"] is True
    assert "aborted by request" in nodes.until(node["uuid"], "deploy failed")["last_error"]


def test_a_deploy_that_waits_for_its_ramdisk_can_be_undeployed(
    openstack: Shell, nodes: Nodes, server: Server
) -> None:
    node = nodes.make("available")
    server.script(f"node:{node['uuid']}", ramdisk=True, latency_s={"deploy": 600})
    openstack("baremetal", "node", "deploy", node["name"])
    nodes.until(node["uuid"], "wait call-back")
    server.unscript(f"node:{node['uuid']}")
    openstack("baremetal", "node", "undeploy", node["name"])
    nodes.until(node["uuid"], "available")


def test_a_hold_step_parks_the_service_of_a_node_in_use(openstack: Shell, nodes: Nodes) -> None:
    node = nodes.make("active")
    steps = json.dumps([HOLD, RESET_BMC])
    openstack("baremetal", "node", "service", node["name"], "--service-steps", steps)
    nodes.until(node["uuid"], "service hold")
    openstack("baremetal", "node", "unhold", node["name"])
    assert nodes.until(node["uuid"], "active")["power_state"] == "power on"


def test_a_hold_step_parks_a_deploy(openstack: Shell, nodes: Nodes) -> None:
    node = nodes.make("available")
    steps = json.dumps([{**HOLD, "args": {}, "priority": 50}])
    openstack("baremetal", "node", "deploy", node["name"], "--deploy-steps", steps)
    nodes.until(node["uuid"], "deploy hold")
    openstack("baremetal", "node", "unhold", node["name"])
    nodes.until(node["uuid"], "active")


@pytest.mark.parametrize(
    ("state", "words", "legal"),
    [
        ("enroll", ["provide"], "manage"),
        ("manageable", ["deploy"], "provide, inspect, clean, adopt"),
        ("available", ["rescue", "--rescue-password", "secret words"], "active, manage"),
        ("active", ["provide"], "rebuild, deleted, rescue, service"),
    ],
)
def test_an_illegal_verb_is_answered_with_the_legal_ones(
    openstack: Shell, nodes: Nodes, state: str, words: list[str], legal: str
) -> None:
    node = nodes.make(state)
    said = openstack.refused("baremetal", "node", *words, node["name"])
    assert f'can not be performed on node "{node["uuid"]}" while it is in state "{state}"' in said
    assert f"Legal here: {legal}." in said
    assert re.search(r"\(HTTP 400\) \(Request-ID: req-", said)
    assert nodes.show(node["uuid"])["provision_state"] == state


def test_nothing_is_deployed_on_a_node_in_maintenance(openstack: Shell, nodes: Nodes) -> None:
    node = nodes.make("available")
    openstack("baremetal", "node", "maintenance", "set", node["name"], "--reason", "disk swap")
    said = openstack.refused("baremetal", "node", "deploy", node["name"])
    assert "maintenance mode. Clear maintenance first." in said
    openstack("baremetal", "node", "maintenance", "unset", node["name"])
    openstack("baremetal", "node", "deploy", node["name"])
    nodes.until(node["uuid"], "active")


def test_inspection_finds_the_hardware_and_keeps_what_was_said_of_it(
    openstack: Shell, nodes: Nodes
) -> None:
    node = nodes.make("manageable", properties={"cpus": "96", "colour": "grey"})
    openstack("baremetal", "node", "inspect", node["name"])
    nodes.until(node["uuid"], "manageable")
    shown = openstack.json("baremetal", "node", "show", node["name"])
    assert shown["properties"]["memory_mb"] == "16384"
    assert shown["properties"]["cpus"] == "96"
    assert shown["properties"]["colour"] == "grey"
    assert shown["inspection_finished_at"] > shown["inspection_started_at"]


def test_a_running_machine_is_adopted(openstack: Shell, nodes: Nodes) -> None:
    node = nodes.make("manageable")
    openstack("baremetal", "node", "adopt", node["name"])
    assert nodes.until(node["uuid"], "active")["power_state"] == "power on"


def test_a_machine_whose_power_cannot_be_read_says_why_it_waits(
    openstack: Shell, nodes: Nodes, server: Server
) -> None:
    node = nodes.make()
    server.script(f"node:{node['uuid']}", unreachable=True)
    openstack("baremetal", "node", "manage", node["name"])
    waiting = nodes.until_seen(node["uuid"], lambda now: bool(now["wait_reason"]), "waits")
    assert "check its address, credentials and network" in waiting["wait_reason"]
    server.unscript(f"node:{node['uuid']}")
    nodes.until(node["uuid"], "manageable")
