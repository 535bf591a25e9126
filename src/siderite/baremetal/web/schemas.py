"""What clients may write: each field with its form, and the sentence when it has another.

The same checks serve creation and patching. A field newer than the request's version is refused
with 406.
"""

import re
from collections.abc import Callable
from typing import Any

from siderite.baremetal.domain.node import INTERFACES
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.wire import SINCE
from siderite.core.errors import Invalid
from siderite.core.errors import NotAcceptable
from siderite.core.ids import is_uuid
from siderite.core.jsonpatch import Patch
from siderite.core.jsonpatch import apply

Check = Callable[[str, Any], Any]

_HOSTNAME = re.compile(
    r"[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*\Z"
)
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]+\Z")
RESERVED_NAMES = frozenset(
    {"maintenance", "management", "states", "vendor_passthru", "detail", "validate"}
)
_CONDUCTOR_GROUP = re.compile(r"[a-zA-Z0-9_.-]*\Z")


def text(most: int, *, least: int = 0, null: bool = True) -> Check:
    """Text of a limited length, or null."""

    def check(name: str, value: Any) -> str | None:
        if value is None and null:
            return None
        if not isinstance(value, str):
            raise Invalid(f"Schema error for node: {name} must be text, not {_kind(value)}.")
        if not least <= len(value) <= most:
            raise Invalid(f"Schema error for node: {name} must have {least} to {most} characters.")
        return value

    return check


def flag(name: str, value: Any) -> bool:
    """True or false, also as the words that command lines send; null is false."""
    if value is None:
        return False
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "yes", "on", "1", "t", "y"):
        return True
    if isinstance(value, str) and value.strip().lower() in ("false", "no", "off", "0", "f", "n"):
        return False
    raise Invalid(f"Schema error for node: {name} must be true or false, not {_short(value)}.")


def optional_flag(name: str, value: Any) -> bool | None:
    """True, false or null."""
    return None if value is None else flag(name, value)


def uuid(name: str, value: Any) -> str | None:
    """A UUID, or null."""
    if value is None:
        return None
    if not isinstance(value, str) or not is_uuid(value):
        raise Invalid(f"Schema error for node: {name} must be a UUID, not {_short(value)}.")
    return value.lower()


def obj(name: str, value: Any) -> dict[str, Any]:
    """A JSON object; null is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Invalid(f"Schema error for node: {name} must be an object, not {_kind(value)}.")
    return value


def _conductor_group(name: str, value: Any) -> str:
    group = text(255)(name, value) or ""
    if not _CONDUCTOR_GROUP.match(group):
        raise Invalid("conductor_group may hold letters, digits, _ - and . only.")
    return group.lower()


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
    "network_data": obj,
    "owner": text(255),
    "parent_node": uuid,
    "properties": obj,
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


def name(value: str | None, version: int) -> str | None:
    """A node's name, by the rules of the version."""
    if value is None or value == "":
        return None
    allowed = _UNRESERVED if version >= 10 else _HOSTNAME  # noqa: PLR2004
    if is_uuid(value) or not allowed.match(value) or value.lower() in RESERVED_NAMES:
        raise Invalid(
            f"{_short(value)} cannot be a node's name: letters, digits and - . _ ~ only,"
            f" not a UUID and none of {', '.join(sorted(RESERVED_NAMES))}."
        )
    return value


def too_new(field: str, version: int) -> None:
    """Refuse a field that the version does not know."""
    since = SINCE.get(field, 1)
    if since > version:
        raise NotAcceptable(f"{field} needs API version 1.{since}; this request has 1.{version}.")


def creation(document: Any, version: int) -> dict[str, Any]:
    """The fields of a new node."""
    if not isinstance(document, dict):
        raise Invalid(f"Schema error for node: the body must be an object, not {_kind(document)}.")
    fields = {}
    for key, value in document.items():
        check = FIELDS.get(key) or _ONLY_AT_CREATION.get(key)
        if check is None:
            raise Invalid(
                f"Schema error for node: there is no field {_short(key)} that can be set"
                f" at creation."
            )
        too_new(key, version)
        fields[key] = check(key, value)
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
    return {key: value for key, value in fields.items() if key != "uuid" or value is not None}


_DEFAULTS: dict[str, Any] = {
    **{name: {} for name, check in FIELDS.items() if check is obj},
    **{name: False for name, check in FIELDS.items() if check is flag},
    "conductor_group": "",
}


def patched(node: Node, patches: list[Patch], version: int) -> dict[str, Any]:
    """The fields that a patch changes, with their new values."""
    fields: dict[str, Any] = {}
    for patch in patches:
        field = patch.field
        before = fields.get(field, getattr(node, field))
        if len(patch.path) > 1:
            if FIELDS[field] is not obj:
                raise Invalid(f"Cannot {patch.op} {patch.text}: {field} is not an object.")
            after = apply(before, patch.path[1:], patch)
        elif patch.op == "remove":
            if field == "driver":
                raise Invalid("driver can not be removed; replace it with another one.")
            after = _DEFAULTS.get(field)
        else:
            after = patch.value
        fields[field] = FIELDS[field](field, after)
    if "name" in fields:
        fields["name"] = name(fields["name"], version)
    return fields


def _kind(value: Any) -> str:
    names = {
        dict: "an object",
        list: "a list",
        str: "text",
        bool: "true or false",
        type(None): "null",
    }
    return names.get(type(value), "a number")


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "…"  # noqa: PLR2004
