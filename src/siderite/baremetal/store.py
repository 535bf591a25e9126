"""Rows of the bare metal service and the values they stand for."""

from siderite.baremetal.domain import wire
from siderite.baremetal.domain.allocation import Allocation
from siderite.baremetal.domain.chassis import Chassis
from siderite.baremetal.domain.deploy_template import DeployTemplate
from siderite.baremetal.domain.hook import Hook
from siderite.baremetal.domain.inspection_rule import InspectionRule
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.port import Port
from siderite.baremetal.domain.portgroup import Portgroup
from siderite.baremetal.domain.runbook import Runbook
from siderite.baremetal.domain.volume import Connector
from siderite.baremetal.domain.volume import Target
from siderite.core.store import Op
from siderite.core.store.table import Table

COLUMNS = (
    "name", "driver", "provision_state", "target_provision_state", "power_state", "instance_uuid",
    "instance_name", "maintenance", "resource_class", "fault", "conductor_group", "conductor",
    "owner", "lessee", "retired", "shard", "parent_node", "chassis_uuid", "description",
    "updated_at", "created_at", "provision_updated_at",
)  # fmt: skip
_FLAGS = ("maintenance", "retired")

_ALWAYS = ("driver", "provision_state", "maintenance", "conductor_group", "retired", "created_at")

NODES: Table[Node] = Table(
    "nodes",
    Node,
    COLUMNS,
    wire.NODE_FIELDS.render,
    numbers=_FLAGS,
    required=_ALWAYS,
    slim=True,
    recalled=True,
)

_PORT_COLUMNS = (
    "node_uuid", "address", "name", "description", "physical_network", "pxe_enabled",
    "portgroup_uuid", "created_at", "updated_at",
)  # fmt: skip
PORTS: Table[Port] = Table(
    "ports", Port, _PORT_COLUMNS, wire.PORT_FIELDS.render, numbers=("pxe_enabled",)
)

_CHASSIS_COLUMNS = ("description", "created_at", "updated_at")
CHASSIS: Table[Chassis] = Table("chassis", Chassis, _CHASSIS_COLUMNS, wire.CHASSIS_FIELDS.render)

_TIMES = ("created_at", "updated_at")
PORTGROUPS: Table[Portgroup] = Table(
    "portgroups",
    Portgroup,
    ("node_uuid", "address", "name", *_TIMES),
    wire.PORTGROUP_FIELDS.render,
)
CONNECTORS: Table[Connector] = Table(
    "volume_connectors",
    Connector,
    ("node_uuid", "type", "connector_id", *_TIMES),
    wire.CONNECTOR_FIELDS.render,
)
TARGETS: Table[Target] = Table(
    "volume_targets",
    Target,
    ("node_uuid", "volume_type", "volume_id", "boot_index", *_TIMES),
    wire.TARGET_FIELDS.render,
    numbers=("boot_index",),
)
TEMPLATES: Table[DeployTemplate] = Table(
    "deploy_templates", DeployTemplate, ("name", *_TIMES), wire.TEMPLATE_FIELDS.render
)
RUNBOOKS: Table[Runbook] = Table(
    "runbooks",
    Runbook,
    ("name", "public", "owner", *_TIMES),
    wire.RUNBOOK_FIELDS.render,
    numbers=("public",),
)
HOOKS: Table[Hook] = Table(
    "hooks", Hook, ("name", "state", "step", *_TIMES), wire.HOOK_FIELDS.render, recalled=True
)
INSPECTION_RULES: Table[InspectionRule] = Table(
    "inspection_rules",
    InspectionRule,
    ("description", "priority", "phase", *_TIMES),
    lambda rule: wire.INSPECTION_RULE_FIELDS.render(rule.shown()),
    numbers=("priority",),
)
ALLOCATIONS: Table[Allocation] = Table(
    "allocations",
    Allocation,
    ("name", "node_uuid", "state", "resource_class", "owner", *_TIMES),
    wire.ALLOCATION_FIELDS.render,
)

CHASSIS_CONTENTS = (
    "SELECT taken, (SELECT count(*) FROM nodes WHERE chassis_uuid = chassis.uuid) FROM chassis"
    " WHERE uuid = ?"
)
"""How often a node was put into a chassis, and how many are in it now."""


def take_place(chassis: str) -> Op:
    """A node is put into a chassis, which must be there."""
    return Op("UPDATE chassis SET taken = taken + 1 WHERE uuid = ?", (chassis,), 1)


def remove_chassis(chassis: Chassis, taken: int) -> Op:
    """A chassis goes, if no node was put into it since they were counted."""
    return Op(
        "DELETE FROM chassis WHERE uuid = ? AND version = ? AND taken = ?",
        (chassis.uuid, chassis.version, taken),
        1,
    )
