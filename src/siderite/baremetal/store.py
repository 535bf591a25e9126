"""Rows of the bare metal service and the values they stand for."""

from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.wire import render
from siderite.core.store.table import Table

COLUMNS = (
    "name", "driver", "provision_state", "target_provision_state", "power_state", "instance_uuid",
    "instance_name", "maintenance", "resource_class", "fault", "conductor_group", "conductor",
    "owner", "lessee", "retired", "shard", "parent_node", "chassis_uuid", "description",
    "updated_at", "created_at", "provision_updated_at",
)  # fmt: skip
_FLAGS = ("maintenance", "retired")

NODES: Table[Node] = Table("nodes", Node, COLUMNS, render, numbers=_FLAGS)
