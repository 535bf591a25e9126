"""What clients may write of a node, at creation and by patches."""

import re
from typing import Any

from siderite.baremetal.domain.node import INTERFACES
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.power_truth import Policy
from siderite.baremetal.domain.wire import NODE_FIELDS
from siderite.baremetal.web.forms import Form
from siderite.baremetal.web.forms import flag
from siderite.baremetal.web.forms import obj
from siderite.baremetal.web.forms import one_of
from siderite.baremetal.web.forms import optional_flag
from siderite.baremetal.web.forms import text
from siderite.baremetal.web.forms import uuid
from siderite.core import shape
from siderite.core.check import Check
from siderite.core.check import or_null
from siderite.core.check import short
from siderite.core.errors import Invalid
from siderite.core.errors import NotAcceptable
from siderite.core.ids import is_uuid
from siderite.core.jsonpatch import Patch

_HOSTNAME = re.compile(
    r"[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*\Z"
)
# A client takes . and .. out of any URL: nothing could be found by such a name.
_UNRESERVED = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._~-]+\Z")
RESERVED_NAMES = frozenset(
    {"maintenance", "management", "states", "vendor_passthru", "detail", "validate"}
)
_CONDUCTOR_GROUP = re.compile(r"[a-zA-Z0-9_.-]*\Z")
UNSET_CHASSIS = 25


@shape.like(shape.or_null(shape.text(0, 255, "[a-zA-Z0-9_.-]*")))
def _conductor_group(name: str, value: Any) -> str:
    group = text(255)(name, value) or ""
    if not _CONDUCTOR_GROUP.match(group):
        raise Invalid("conductor_group may hold letters, digits, _ - and . only.")
    return group.lower()


_NETWORK_PARTS = {
    "links": ("id", "type"), "networks": ("id", "link", "type"), "services": ("type", "address"),
}  # fmt: skip


@shape.like(shape.or_null(shape.OBJECT))
def _network_data(name: str, value: Any) -> dict[str, Any]:
    """A network as a config drive describes it: what a ramdisk or an instance could not read is
    refused here.
    """
    found = obj(name, value)
    for key in found:
        if key not in _NETWORK_PARTS:
            raise Invalid(f"{name} has no {short(key)}; it has {', '.join(_NETWORK_PARTS)}.")
    for part, needs in _NETWORK_PARTS.items():
        entries = found.get(part, [])
        fine = isinstance(entries, list) and all(
            isinstance(entry, dict) and all(isinstance(entry.get(key), str) for key in needs)
            for entry in entries
        )
        if not fine:
            raise Invalid(f"{name}/{part} must be a list of objects with {', '.join(needs)}.")
    return found


_WHOLE = ("local_gb", "memory_mb")


@shape.like(shape.or_null(shape.OBJECT))
def _properties(name: str, value: Any) -> dict[str, Any]:
    """What is known of the machine: clients calculate with its sizes."""
    found = obj(name, value)
    for key in _WHOLE:
        size = found.get(key, 0)
        try:
            is_size = size is None or int(size) >= 0
        except (TypeError, ValueError):
            is_size = False
        if not is_size:
            raise Invalid(f"{name}/{key} must be a whole number from 0 on, not {short(size)}.")
    return found


_FREE_TEXT = 65535
FIELDS: dict[str, Check] = {
    "automated_clean": optional_flag,
    **{f"{kind}_interface": text(255) for kind in INTERFACES},
    "chassis_uuid": uuid,
    "conductor_group": _conductor_group,
    "description": text(4096),
    "disable_power_off": flag,
    "driver": text(255, least=1, null=False),
    "driver_info": obj,
    "extra": obj,
    "instance_info": obj,
    "instance_name": text(255, least=1),
    "instance_uuid": uuid,
    "lessee": text(255),
    "maintenance": flag,
    "name": text(255),
    "network_data": _network_data,
    "owner": text(255),
    "parent_node": uuid,
    "power_policy": or_null(one_of(*Policy)),
    "properties": _properties,
    "protected": flag,
    "protected_reason": text(_FREE_TEXT),
    "resource_class": text(80),
    "retired": flag,
    "retired_reason": text(_FREE_TEXT),
    "shard": text(255),
}
"""Fields that a client may patch."""

_ONLY_AT_CREATION: dict[str, Check] = {
    "uuid": uuid,
    "boot_mode": text(16),
    "secure_boot": optional_flag,
    "console_enabled": flag,
}


FORM = Form(
    "node",
    NODE_FIELDS.since,
    FIELDS,
    _ONLY_AT_CREATION,
    required=frozenset({"driver"}),
    objects=frozenset(
        name for name, check in FIELDS.items() if check in (obj, _network_data, _properties)
    ),
    masked=NODE_FIELDS.masked,
)


def new() -> shape.Json:
    """The form of the body that makes a node."""
    return {**FORM.new(), "required": ["driver"]}


def name(value: str | None, version: int, noun: str = "node") -> str | None:
    """The name of a node or a port, by the rules of the version."""
    if value is None or value == "":
        return None
    allowed = _UNRESERVED if version >= 10 else _HOSTNAME  # noqa: PLR2004
    if is_uuid(value) or not allowed.match(value) or value.lower() in RESERVED_NAMES:
        article = "an" if noun[0] in "aeiou" else "a"
        raise Invalid(
            f"{short(value)} cannot be {article} {noun}'s name: letters, digits and - . _ ~ only,"
            f" not a UUID and none of {', '.join(sorted(RESERVED_NAMES))}."
        )
    return value


def creation(document: Any, version: int) -> dict[str, Any]:
    """The fields of a new node."""
    fields = FORM.created(document, version)
    if not fields.get("driver"):
        raise Invalid(
            "Schema error for node: 'driver' is a required property, such as fake-hardware."
        )
    for flag_ in ("protected", "retired"):
        if fields.get(f"{flag_}_reason") is not None and not fields.get(flag_):
            raise Invalid(f"{flag_}_reason can only be set together with {flag_}.")
    if fields.get("protected"):
        raise Invalid("A new node has nothing to protect; set protected when it is active.")
    fields["name"] = name(fields.get("name"), version)
    return fields


def patched(node: Node, patches: list[Patch], version: int) -> dict[str, Any]:
    """The fields that a patch changes, with their new values."""
    fields = FORM.patched(node, patches)
    if "name" in fields:
        fields["name"] = name(fields["name"], version)
    if "chassis_uuid" in fields and fields["chassis_uuid"] is None and version < UNSET_CHASSIS:
        raise NotAcceptable(f"chassis_uuid can be unset from API version 1.{UNSET_CHASSIS} on.")
    return fields
