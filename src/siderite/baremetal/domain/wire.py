"""What the outside sees of each resource, by API version. Its form is that of `Fields`."""

from siderite.baremetal.domain.allocation import Allocation
from siderite.baremetal.domain.chassis import Chassis
from siderite.baremetal.domain.deploy_template import DeployTemplate
from siderite.baremetal.domain.fields import Fields
from siderite.baremetal.domain.hook import Hook
from siderite.baremetal.domain.inspection_rule import InspectionRule
from siderite.baremetal.domain.node import INTERFACES
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.port import Port
from siderite.baremetal.domain.portgroup import Portgroup
from siderite.baremetal.domain.runbook import Runbook
from siderite.baremetal.domain.volume import Connector
from siderite.baremetal.domain.volume import Target
from siderite.core.microversion import OURS

_NODE = (
    # States come first: some versions spell them otherwise, and find them before free text.
    ("provision_state", 1), ("uuid", 1), ("power_state", 1), ("created_at", 1), ("updated_at", 1),
    ("chassis_uuid", 1), ("console_enabled", 1), ("driver", 1), ("driver_info", 1), ("extra", 1),
    ("instance_info", 1), ("instance_uuid", 1), ("last_error", 1), ("links", 1), ("maintenance", 1),
    ("maintenance_reason", 1), ("ports", 1), ("properties", 1),
    ("provision_updated_at", 1), ("reservation", 1), ("target_power_state", 1),
    ("target_provision_state", 1),
    ("driver_internal_info", 3),
    ("name", 5),
    ("inspection_started_at", 6), ("inspection_finished_at", 6),
    ("clean_step", 7),
    ("raid_config", 12), ("target_raid_config", 12),
    ("states", 14),
    ("network_interface", 20),
    ("resource_class", 21),
    ("portgroups", 24),
    ("boot_interface", 31), ("console_interface", 31), ("deploy_interface", 31),
    ("inspect_interface", 31), ("management_interface", 31), ("power_interface", 31),
    ("raid_interface", 31), ("vendor_interface", 31),
    ("volume", 32),
    ("storage_interface", 33),
    ("traits", 37),
    ("rescue_interface", 38),
    ("bios_interface", 40),
    ("fault", 42),
    ("deploy_step", 44),
    ("conductor_group", 46),
    ("automated_clean", 47),
    ("protected", 48), ("protected_reason", 48),
    ("conductor", 49),
    ("owner", 50),
    ("description", 51),
    ("allocation_uuid", 52),
    ("retired", 61), ("retired_reason", 61),
    ("lessee", 65),
    ("network_data", 66),
    ("boot_mode", 75), ("secure_boot", 75),
    ("shard", 82),
    ("parent_node", 83),
    ("firmware_interface", 86),
    ("service_step", 87),
    ("disable_power_off", 95),
    ("instance_name", 104),
    ("health", 109),
    ("wait_reason", OURS), ("deadline", OURS), ("power_policy", OURS),
    ("power_state_reason", OURS),
)  # fmt: skip
NODE_FIELDS: Fields[Node] = Fields(
    "nodes",
    _NODE,
    brief=("uuid", "name", "instance_uuid", "maintenance", "power_state", "provision_state"),
    links=("links", "ports", "states", "portgroups", "volume"),
    masked=("driver_info", "driver_internal_info", "instance_info"),
)
_HIDDEN = "** hidden: this is for the owner of the node **"
LENT = {
    **dict.fromkeys(("last_error", "reservation", "maintenance_reason", "wait_reason",
                     "power_state_reason"), f'"{_HIDDEN}"'),
    **dict.fromkeys(("driver_info", "driver_internal_info"), f'{{"content":"{_HIDDEN}"}}'),
}  # fmt: skip
"""What a lessee is shown in the place of what tells of the owner's BMCs and networks."""
LENT_IF = {"maintenance_reason": "fault"}
"""What is hidden only if another field says something: else it is a person's words."""

_PORT = (
    ("uuid", 1), ("address", 1), ("created_at", 1), ("updated_at", 1), ("extra", 1), ("links", 1),
    ("node_uuid", 1),
    ("internal_info", 18),
    ("local_link_connection", 19), ("pxe_enabled", 19),
    ("portgroup_uuid", 24),
    ("physical_network", 34),
    ("is_smartnic", 53),
    ("name", 88),
    ("description", 97),
    ("vendor", 100),
    ("category", 101),
    ("available_for_dynamic_portgroup", 111),
)  # fmt: skip
PORT_FIELDS: Fields[Port] = Fields("ports", _PORT, brief=("uuid", "address"))

_CHASSIS = (
    ("uuid", 1), ("description", 1), ("created_at", 1), ("updated_at", 1), ("extra", 1),
    ("links", 1), ("nodes", 1),
)  # fmt: skip
CHASSIS_FIELDS: Fields[Chassis] = Fields(
    "chassis",
    _CHASSIS,
    brief=("uuid", "description"),
    links=("links", "nodes"),
    wrapped=("nodes",),  # the upstream API has a list in a list here, and clients expect it
)

_ALWAYS = ("uuid", "created_at", "updated_at", "links")


def _since(version: int, *names: str) -> tuple[tuple[str, int], ...]:
    """The fields that a kind of record has had from its first version on."""
    return tuple((name, version) for name in (*_ALWAYS, *names))


PORTGROUP_FIELDS: Fields[Portgroup] = Fields(
    "portgroups",
    (
        *_since(23, "name", "address", "node_uuid", "extra", "internal_info",
                "standalone_ports_supported", "ports"),
        ("mode", 26), ("properties", 26), ("physical_network", 102), ("category", 103),
        ("dynamic_portgroup", 111),
    ),
    brief=("uuid", "address", "name"),
    links=("links", "ports"),
)  # fmt: skip
CONNECTOR_FIELDS: Fields[Connector] = Fields(
    "volume/connectors",
    _since(32, "node_uuid", "type", "connector_id", "extra"),
    brief=("uuid", "node_uuid", "type", "connector_id"),
)
TARGET_FIELDS: Fields[Target] = Fields(
    "volume/targets",
    _since(32, "node_uuid", "volume_type", "volume_id", "boot_index", "properties", "extra"),
    brief=("uuid", "node_uuid", "volume_type", "boot_index", "volume_id"),
    masked=("properties",),
)
ALLOCATION_FIELDS: Fields[Allocation] = Fields(
    "allocations",
    (
        *_since(52, "name", "node_uuid", "state", "last_error", "resource_class", "traits",
                "candidate_nodes", "extra"),
        ("owner", 60),
    ),
    brief=(),
)  # fmt: skip
TEMPLATE_FIELDS: Fields[DeployTemplate] = Fields(
    "deploy_templates",
    _since(55, "name", "steps", "extra"),
    brief=("uuid", "name"),
    masked=("steps",),
)
RUNBOOK_FIELDS: Fields[Runbook] = Fields(
    "runbooks",
    (
        *_since(92, "name", "steps", "disable_ramdisk", "extra", "public", "owner"),
        ("description", 112), ("traits", 112),
    ),
    brief=("uuid", "name"),
    masked=("steps",),
)  # fmt: skip
HOOK_FIELDS: Fields[Hook] = Fields(
    "hooks",
    _since(OURS, "name", "description", "machine", "state", "step", "selector", "deadline_s",
           "on_deadline", "enabled"),
    brief=("uuid", "name", "state", "step"),
)  # fmt: skip
INSPECTION_RULE_FIELDS: Fields[InspectionRule] = Fields(
    "inspection_rules",
    _since(96, "description", "priority", "phase", "scope", "sensitive", "conditions", "actions"),
    brief=("uuid", "priority", "phase", "description"),
    masked=("conditions", "actions"),
)

assert {f"{kind}_interface" for kind in INTERFACES} <= set(NODE_FIELDS.since)  # noqa: S101
