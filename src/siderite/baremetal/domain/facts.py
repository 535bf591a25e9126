"""What the bare metal service announces: wire names, payloads, priorities. Once published, never
changed.

A payload is rendered when the fact is made, from the value as it is after the change it announces;
secrets are masked.
"""

from collections.abc import Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec

from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.node_machine import Event
from siderite.baremetal.domain.record import Record
from siderite.baremetal.domain.secrets import mask
from siderite.baremetal.domain.wire import NODE_FIELDS
from siderite.core.fact import Fact
from siderite.core.times import to_second

API = "ironic-api"
CONDUCTOR = "ironic-conductor"
OURS = "siderite"
"""The namespace of payloads that Ironic does not have."""

_PLAIN = (
    "bios_interface", "boot_interface", "boot_mode", "clean_step", "conductor_group",
    "console_enabled", "console_interface", "deploy_interface", "deploy_step", "description",
    "disable_power_off", "driver", "extra", "fault", "inspect_interface", "instance_uuid",
    "last_error", "lessee", "maintenance", "maintenance_reason", "management_interface", "name",
    "network_interface", "owner", "power_interface", "power_state", "properties", "protected",
    "protected_reason", "provision_state", "raid_interface", "rescue_interface", "resource_class",
    "retired", "retired_reason", "secure_boot", "storage_interface", "target_power_state",
    "target_provision_state", "traits", "uuid", "vendor_interface",
)  # fmt: skip
_TIMES = (
    "created_at", "inspection_finished_at", "inspection_started_at", "provision_updated_at",
    "updated_at",
)  # fmt: skip
_TIMES_AT = slice(len(_PLAIN), len(_PLAIN) + len(_TIMES))
_FREE_AT = tuple((_PLAIN.index(name), attrgetter(name)) for name in ("extra", "properties"))
"""Fields for anything: the API gives back what was written there, but nothing else shows it all."""
_encoder = msgspec.json.Encoder()
_encode, _encode_lines = _encoder.encode, _encoder.encode_lines


def _encoded_time(text: str) -> str:
    return text if text == "null" else text[:20] + 'Z"'


def _head(name: str, version: str, namespace: str = "ironic") -> str:
    """A payload's text up to its data; a bracket closes both."""
    names = {"name": name, "namespace": namespace, "version": version}
    head = "".join(f'"ironic_object.{key}":"{value}",' for key, value in names.items())
    return f'{{{head}"ironic_object.data":'


class _Form:
    """How a payload about a node is written: the fields of `NodePayload`, other `fields` of the
    node, and more. The node's are taken from where they are encoded for its row.
    """

    def __init__(
        self,
        name: str,
        version: str,
        *more: str,
        fields: tuple[str, ...] = (),
        namespace: str = "ironic",
    ) -> None:
        names = (*_PLAIN, *_TIMES, *fields)
        self._pick = NODE_FIELDS.picker(names)
        begin = _head(name, version, namespace) + "{"
        frame = [text for name in (*names, *more) for text in (f',"{name}":', "")]
        # Each name with a place for its value, and the end with one for nothing.
        self._frame = [begin + frame[0][1:], *frame[1:], "}}", ""]

    def payload(self, node: Node, *more: Any) -> str:
        """The text, with what else it tells in the order of its names."""
        texts = list(self._pick(NODE_FIELDS.encoded(node)))
        texts[_TIMES_AT] = map(_encoded_time, texts[_TIMES_AT])
        for at, value in _FREE_AT:
            free = value(node)
            if free and (masked := mask(free)) is not free:
                texts[at] = _encode(masked).decode()
        # A list: of anything else msgspec 0.22 leaves 48 bytes behind at each call.
        texts += _encode_lines(list(more)).decode().split("\n")
        text = list(self._frame)
        text[1::2] = texts
        return "".join(text)


def of_nodes() -> tuple[str, ...]:
    """The names of all fields of a node that facts tell."""
    more = ("chassis_uuid", "driver_info", "driver_internal_info", "instance_info")
    return (*_PLAIN, *_TIMES, *more)


_NODE = _Form("NodePayload", "1.17")
_CRUD = _Form(
    "NodeCRUDPayload", "1.15", fields=("chassis_uuid", "instance_info", "driver_info")
)  # fmt: skip
_PROVISION = _Form(
    "NodeSetProvisionStatePayload", "1.18", "event", "previous_provision_state",
    "previous_target_provision_state", fields=("instance_info", "driver_internal_info"),
)  # fmt: skip
_POWER = _Form("NodeSetPowerStatePayload", "1.17", "to_power")
_CORRECTED = _Form("NodeCorrectedPowerStatePayload", "1.17", "from_power")


@lru_cache(64)
def _own(name: str, more: tuple[str, ...]) -> _Form:
    return _Form(name, "1.0", *more, namespace=OURS)


def _fact(action: str, status: str, node: Node, payload: str, publisher: str) -> Fact:
    return Fact(
        event_type=f"baremetal.node.{action}.{status}",
        publisher=publisher,
        resource_type="node",
        resource=node.uuid,
        payload=payload,
        priority=_priority(status),
        project=node.owner,
    )


def _priority(status: str) -> str:
    return "ERROR" if status == "error" else "INFO"


def node_crud(action: str, status: str, node: Node) -> Fact:
    """create, update or delete of a node: start, end or error."""
    return _fact(action, status, node, _crud_payload(node), API)


def node_crud_pair(action: str, node: Node) -> tuple[Fact, Fact]:
    """Start and end of something that changes nothing of the payload in between."""
    payload = _crud_payload(node)
    return (
        _fact(action, "start", node, payload, API),
        _fact(action, "end", node, payload, API),
    )


def node_updated(before: Node, after: Node, *, failed: bool = False) -> tuple[Fact, Fact]:
    """Start and end of a change of a node's fields, or its failure."""
    return (
        node_crud("update", "start", before),
        node_crud("update", "error" if failed else "end", after),
    )


class Kind(msgspec.Struct, frozen=True):
    """How a kind of record is announced: the word for it, its payload and the fields in that."""

    word: str
    payload: str
    version: str
    fields: tuple[str, ...]
    namespace: str = "ironic"


PORT = Kind("port", "PortCRUDPayload", "1.8", (
    "address", "available_for_dynamic_portgroup", "category", "description", "extra",
    "is_smartnic", "local_link_connection", "name", "node_uuid", "physical_network",
    "portgroup_uuid", "pxe_enabled", "uuid", "vendor",
))  # fmt: skip
CHASSIS = Kind("chassis", "ChassisCRUDPayload", "1.0", ("description", "extra", "uuid"))
PORTGROUP = Kind("portgroup", "PortgroupCRUDPayload", "1.3", (
    "address", "category", "dynamic_portgroup", "extra", "mode", "name", "node_uuid",
    "physical_network", "properties", "standalone_ports_supported", "uuid",
))  # fmt: skip
CONNECTOR = Kind("volumeconnector", "VolumeConnectorCRUDPayload", "1.0", (
    "connector_id", "extra", "node_uuid", "type", "uuid",
))  # fmt: skip
TARGET = Kind("volumetarget", "VolumeTargetCRUDPayload", "1.0", (
    "boot_index", "extra", "node_uuid", "properties", "uuid", "volume_id", "volume_type",
))  # fmt: skip
TEMPLATE = Kind(
    "deploytemplate", "DeployTemplateCRUDPayload", "1.0", ("extra", "name", "steps", "uuid"),
)  # fmt: skip
RUNBOOK = Kind("runbook", "RunbookCRUDPayload", "1.1", (
    "description", "disable_ramdisk", "extra", "name", "owner", "public", "steps", "traits", "uuid",
))  # fmt: skip
INSPECTION_RULE = Kind("inspectionrule", "InspectionRuleCRUDPayload", "1.0", (
    "actions", "conditions", "description", "phase", "priority", "scope", "sensitive", "uuid",
))  # fmt: skip
ALLOCATION = Kind("allocation", "AllocationCRUDPayload", "1.1", (
    "candidate_nodes", "extra", "last_error", "name", "node_uuid", "owner", "resource_class",
    "state", "traits", "uuid",
))  # fmt: skip
HOOK = Kind("hook", "HookCRUDPayload", "1.0", (
    "deadline_s", "description", "enabled", "machine", "name", "on_deadline", "selector", "state",
    "step", "uuid",
), namespace=OURS)  # fmt: skip
KINDS = (
    PORT, PORTGROUP, CHASSIS, CONNECTOR, TARGET, TEMPLATE, RUNBOOK, INSPECTION_RULE, ALLOCATION,
    HOOK,
)  # fmt: skip
"""Every kind of record that is announced."""


def record_crud(
    kind: Kind, action: str, status: str, record: Record, project: str | None, *, by: str = API
) -> Fact:
    """create, update or delete of a record: start, end or error, for its owner's project."""
    shown = record.shown()
    data: dict[str, Any] = {name: mask(getattr(shown, name)) for name in kind.fields}
    data["created_at"] = to_second(record.created_at)
    data["updated_at"] = to_second(record.updated_at)
    return Fact(
        event_type=f"baremetal.{kind.word}.{action}.{status}",
        publisher=by,
        resource_type=kind.word,
        resource=record.uuid,
        payload=f"{_head(kind.payload, kind.version, kind.namespace)}{_encode(data).decode()}}}",
        priority=_priority(status),
        project=project,
    )


def _crud_payload(node: Node) -> str:
    return _CRUD.payload(node)


def maintenance_set(status: str, node: Node) -> Fact:
    """A user sets or clears maintenance."""
    return _fact("maintenance_set", status, node, _NODE.payload(node), API)


@lru_cache(256)
def provision_status(before: str, after: str, event: str) -> str:
    """Which of start, end, error, success a move of the machine is announced as."""
    if event == Event.FAIL:
        return "error"
    moving, still_moving = (
        NODE.states[before].moves_by_itself,
        NODE.states[after].moves_by_itself,
    )
    if moving == still_moving:
        return "success"
    return "start" if still_moving else "end"


def provision_set(before: Node, after: Node, event: str) -> Fact:
    """The machine moved."""
    payload = _PROVISION.payload(
        after, event, before.provision_state, before.target_provision_state
    )
    status = provision_status(before.provision_state, after.provision_state, event)
    return _fact("provision_set", status, after, payload, CONDUCTOR)


def power_set(status: str, node: Node, to_power: str) -> Fact:
    """A power change begins, ended or failed."""
    return _fact("power_set", status, node, _POWER.payload(node, to_power), CONDUCTOR)


def of_our_own(action: str, status: str, node: Node, name: str, more: Mapping[str, Any]) -> Fact:
    """A fact that Ironic has no name for: a node's payload, and more beside it."""
    payload = _own(name, tuple(more)).payload(node, *more.values())
    return _fact(action, status, node, payload, CONDUCTOR)


def power_corrected(node: Node, from_power: str | None) -> Fact:
    """The record now follows what the hardware says."""
    payload = _CORRECTED.payload(node, from_power)
    return _fact("power_state_corrected", "success", node, payload, CONDUCTOR)


def console(action: str, status: str, node: Node) -> Fact:
    """console_set, console_restore or console_stop: start, end or error."""
    return _fact(action, status, node, _NODE.payload(node), CONDUCTOR)
