"""Every version at which a client gets to see something new, with each of the real clients."""

import itertools
import time
from collections.abc import Callable
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from ironicclient import exc

from tests.clients.nodes import Connect
from tests.clients.nodes import Nodes
from tests.clients.shell import Shell
from tests.support import shown
from tests.support.shown import Shown

# The SDK warns of its own future.
pytestmark = pytest.mark.filterwarnings(
    "ignore::PendingDeprecationWarning", "ignore::openstack.warnings.OpenStackDeprecationWarning"
)

Call = Callable[[Any, str], Any]
STEP = {"interface": "bios", "step": "factory_reset", "args": {}}
HIDDEN = {"links", "ports", "portgroups", "states", "volume", "nodes"}
"""Links, which the command does not show to people."""
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of resource, and what clients call it."""

    shown: Shown
    ironic: str
    sdk: str
    command: str
    fields: Callable[[str, int], dict[str, Any]]
    """What makes one on a node, with a number of its own."""


KINDS = [
    Kind(shown.PORT, "port", "get_port", "port",
         lambda node, n: {"node_uuid": node, "address": f"52:54:0e:00:00:{n:02x}"}),
    Kind(shown.PORTGROUP, "portgroup", "get_port_group", "port group",
         lambda node, n: {"node_uuid": node, "name": f"edge-{n}"}),
    Kind(shown.CHASSIS, "chassis", "get_chassis", "chassis", lambda node, n: {"description": "c"}),
    Kind(shown.CONNECTOR, "volume_connector", "get_volume_connector", "volume connector",
         lambda node, n: {"node_uuid": node, "type": "iqn", "connector_id": f"iqn.test:{n}"}),
    Kind(shown.TARGET, "volume_target", "get_volume_target", "volume target",
         lambda node, n: {"node_uuid": node, "volume_type": "iscsi", "volume_id": "v",
                          "boot_index": n}),
    Kind(shown.ALLOCATION, "allocation", "get_allocation", "allocation",
         lambda node, n: {"resource_class": "none-has-it", "owner": "o"}),
    Kind(shown.TEMPLATE, "deploy_template", "get_deploy_template", "deploy template",
         lambda node, n: {"name": f"CUSTOM_ET{n}", "steps": [{**STEP, "priority": 10}]}),
    Kind(shown.RUNBOOK, "runbook", "get_runbook", "runbook",
         lambda node, n: {"name": f"CUSTOM_ER{n}", "steps": [{**STEP, "order": 1}]}),
    Kind(shown.RULE, "inspection_rule", "get_inspection_rule", "inspection rule",
         lambda node, n: {"actions": [{"op": "fail", "args": {"msg": "no"}}], "priority": 0}),
]  # fmt: skip
NODE = Kind(shown.NODE, "node", "get_node", "node", lambda node, n: {})


@pytest.fixture(params=[NODE, *KINDS], ids=lambda kind: kind.ironic)
def thing(
    request: pytest.FixtureRequest, connect: Connect, nodes: Nodes
) -> Iterator[tuple[Kind, str]]:
    """One of each kind in turn, with most of its fields filled."""
    kind: Kind = request.param
    if kind is NODE:
        node = nodes.make(
            "available", resource_class="gold", owner="o", lessee="l", description="A node.",
            shard="s1", instance_name="i", automated_clean=True,
        )["uuid"]  # fmt: skip
        connect("1.115").node.add_trait(node, "CUSTOM_A")
        yield kind, node
        return
    node = nodes.make("manageable")["uuid"]
    nodes._ask("PUT", f"/{node}/states/power", {"target": "power off"})
    nodes.until_power(node, "power off")
    manager = getattr(connect("1.115"), kind.ironic)
    made = manager.create(**kind.fields(node, next(_numbers)))
    # An allocation is looked after by durable work: what is compared must not change meanwhile.
    while getattr(manager.get(made.uuid), "state", None) == "allocating":
        time.sleep(0.05)
    yield kind, made.uuid
    manager.delete(made.uuid)


def test_ironics_client_sees_each_field_from_its_version_on(
    connect: Connect, thing: tuple[Kind, str]
) -> None:
    kind, uuid = thing
    for version in shown.edges(kind.shown):
        got = getattr(connect(f"1.{version}"), kind.ironic).get(uuid).to_dict()
        assert set(got) == shown.at(kind.shown, version), version


def test_the_sdk_sees_each_field_from_its_version_on(
    baremetal: Any, connect: Connect, thing: tuple[Kind, str]
) -> None:
    kind, uuid = thing
    whole = getattr(connect("1.115"), kind.ironic).get(uuid).to_dict()
    filled = {name for name, value in whole.items() if value is not None}
    for version in shown.edges(kind.shown):
        baremetal.default_microversion = f"1.{version}"
        seen = getattr(baremetal, kind.sdk)(uuid)
        known = type(seen)._body_mapping()
        got = {key for key, name in known.items() if getattr(seen, name) is not None}
        wanted = shown.at(kind.shown, version) & filled & set(known)
        assert got == wanted, version
    baremetal.default_microversion = None


@pytest.mark.sampled
def test_the_command_shows_each_field_from_its_version_on(
    openstack: Shell, thing: tuple[Kind, str]
) -> None:
    kind, uuid = thing
    for version in sorted(kind.shown):
        words = ("baremetal", *kind.command.split(), "show", uuid)
        got = openstack.json("--os-baremetal-api-version", f"1.{version}", *words)
        assert set(got) - HIDDEN == shown.at(kind.shown, version) - HIDDEN, version


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
