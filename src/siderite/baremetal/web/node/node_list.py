"""The query of a list of nodes: what its filters mean."""

from siderite.baremetal.domain.node import FAULTS
from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.wire import NODE_FIELDS
from siderite.baremetal.web import forms
from siderite.baremetal.web import listing
from siderite.baremetal.web.listing import Listing
from siderite.baremetal.web.versions import FILTER_SINCE
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.store.table import Beside
from siderite.core.store.table import Where

_FEW = frozenset({"resource_class", "owner", "lessee", "instance_name"})
_MANY = frozenset({"driver", "conductor_group", "conductor"})
_UUIDS = frozenset({"instance_uuid", "chassis_uuid", "parent_node"})
_FLAGS = frozenset({"associated", "maintenance", "retired", "sharded", "include_children"})

RULES = listing.Rules(
    "node",
    NODE_FIELDS,
    FILTER_SINCE,
    frozenset({
        "links", "ports", "states", "portgroups", "volume", "driver_info", "driver_internal_info",
        "extra", "instance_info", "properties", "clean_step", "deploy_step", "service_step",
        "raid_config", "target_raid_config", "network_data", "traits", "wait_reason", "deadline",
        "power_policy", "power_state_reason",
    }),
)  # fmt: skip


def parse(request: Request, *, detail: bool, max_limit: int) -> Listing:
    """The query of a list of nodes; children are in it only if it asks for them."""
    ask = listing.parse(RULES, request, detail=detail, max_limit=max_limit)
    flags: dict[str, bool] = {}
    keys = set()
    for key, value in ask.filters:
        keys.add(key)
        if key in _FLAGS:
            flags[key] = listing.flag(key, value)
        elif key == "fault":
            ask.where.append(Where("fault = ?", (forms.one_of(*FAULTS)(key, value),)))
        elif key in _FEW:
            ask.where.append(Where(f"{key} = ?", (value,)))
        elif key in _MANY:
            found = value.lower() if key == "conductor_group" else value  # as it is stored
            ask.where.append(Where(f"{key} = ?", (found,), "many"))
        elif key in _UUIDS:
            ask.where.append(Where(f"{key} = ?", (listing.uuid(key, value),)))
        else:
            ask.where.append(_special(key, value))
    for key in ("maintenance", "retired"):
        if key in flags:
            # Spelt out: the index has only those of which it is true.
            is_so = flags[key]
            ask.where.append(Where(f"{key} = {int(is_so)}", (), "few" if is_so else "none"))
    for key, column in (("associated", "instance_uuid"), ("sharded", "shard")):
        if key in flags:
            is_so = flags[key]
            ask.where.append(Where(f"{column} IS {'NOT ' if is_so else ''}NULL", (), "many"))
    if "parent_node" not in keys and not flags.get("include_children"):
        ask.where.append(Where("parent_node IS NULL", (), "all"))
    return ask


def _special(key: str, value: str) -> Where:
    if key == "provision_state":
        return _provision_state(value)
    if key == "shard":
        return listing.one_of("shard", key, value)
    if key == "project":
        return Where("(owner = ? OR lessee = ?)", (value, value))
    return listing.description_contains(value)


_STATES = Beside("node_states", "node", "state = ?")


def _provision_state(value: str) -> Where:
    if value in ("None", "none", "null"):
        value = "available"
    if value not in NODE.states:
        raise Invalid(
            f'Provision state "{value[:40]}" is not valid; the states are:'
            f" {', '.join(NODE.states)}."
        )
    return Where("provision_state = ?", (value,), "many", beside=_STATES)
