"""Rows of the bare metal service and the values they stand for."""

from siderite.baremetal.domain.chassis import Chassis
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.port import Port
from siderite.baremetal.domain.wire import CHASSIS_FIELDS
from siderite.baremetal.domain.wire import NODE_FIELDS
from siderite.baremetal.domain.wire import PORT_FIELDS
from siderite.core.store import Op
from siderite.core.store.table import Table

COLUMNS = (
    "name", "driver", "provision_state", "target_provision_state", "power_state", "instance_uuid",
    "instance_name", "maintenance", "resource_class", "fault", "conductor_group", "conductor",
    "owner", "lessee", "retired", "shard", "parent_node", "chassis_uuid", "description",
    "updated_at", "created_at", "provision_updated_at",
)  # fmt: skip
_FLAGS = ("maintenance", "retired")

NODES: Table[Node] = Table("nodes", Node, COLUMNS, NODE_FIELDS.render, numbers=_FLAGS)

_PORT_COLUMNS = (
    "node_uuid", "address", "name", "description", "physical_network", "pxe_enabled", "created_at",
    "updated_at",
)  # fmt: skip
PORTS: Table[Port] = Table(
    "ports", Port, _PORT_COLUMNS, PORT_FIELDS.render, numbers=("pxe_enabled",)
)

_CHASSIS_COLUMNS = ("description", "created_at", "updated_at")
CHASSIS: Table[Chassis] = Table("chassis", Chassis, _CHASSIS_COLUMNS, CHASSIS_FIELDS.render)

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
