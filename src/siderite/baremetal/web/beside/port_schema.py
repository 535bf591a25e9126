"""What clients may write of a port, at creation and by patches."""

import re
from typing import Any

from siderite.baremetal.domain.port import Port
from siderite.baremetal.domain.wire import PORT_FIELDS
from siderite.baremetal.web.beside.records import name
from siderite.baremetal.web.beside.records import node_uuid
from siderite.baremetal.web.forms import MAC
from siderite.baremetal.web.forms import Form
from siderite.baremetal.web.forms import flag
from siderite.baremetal.web.forms import flag_or_true
from siderite.baremetal.web.forms import mac
from siderite.baremetal.web.forms import obj
from siderite.baremetal.web.forms import text
from siderite.baremetal.web.forms import uuid
from siderite.core import shape
from siderite.core.check import short
from siderite.core.errors import Invalid
from siderite.core.errors import NotAcceptable
from siderite.core.who import Who

_DATAPATH = re.compile(r"0x[0-9a-f]{16}\Z")
_VTEP = ("vtep-logical-switch", "vtep-physical-switch")
LINK_SINCE = {
    "port_id": 19, "switch_id": 19, "switch_info": 19, "hostname": 19, "network_type": 64,
    **dict.fromkeys(_VTEP, 90),
}  # fmt: skip
"""The keys of a local link, with the version that brought each."""
LINK_UNTIL = dict.fromkeys(_VTEP, 105)
"""Those that a version took away again. What older ones have written stays, and is shown."""
_LINK_FORMS = (
    ("port_id", "switch_id"), ("port_id", "hostname"), ("network_type",), ("port_id", *_VTEP),
)  # fmt: skip


@shape.like(shape.or_null(shape.record(dict.fromkeys(LINK_SINCE, shape.text()))))
def _local_link(name: str, value: Any) -> dict[str, Any]:
    link = dict(obj(name, value))
    for key, inner in link.items():
        if key not in LINK_SINCE:
            raise Invalid(f"{name} has no key {short(key)}; it has {', '.join(LINK_SINCE)}.")
        if not isinstance(inner, str):
            raise Invalid(f"{name}/{key} must be text.")
    kind = link.get("network_type", "managed")
    if kind not in ("managed", "unmanaged"):
        raise Invalid(f"{name}/network_type must be managed or unmanaged, not {short(kind)}.")
    if len([key for key in _VTEP if key in link]) == 1:
        raise Invalid(f"{name} needs both of {' and '.join(_VTEP)}, or neither.")
    forms = [form for form in _LINK_FORMS if kind == "unmanaged" or "network_type" not in form]
    if link and not any(set(form) <= set(link) for form in forms):
        raise Invalid(
            f"{name} must be empty or have port_id and switch_id; or port_id and hostname (smart"
            " NIC); or network_type unmanaged; or port_id and both vtep keys."
        )
    if "switch_id" in link:
        link["switch_id"] = _switch(f"{name}/switch_id", link["switch_id"])
    return link


def _switch(name: str, value: str) -> str:
    if MAC.match(value.lower()) or _DATAPATH.match(value.lower()):
        return value.lower()
    raise Invalid(f"{name} must be a MAC address or an OpenFlow datapath, not {short(value)}.")


FORM = Form(
    "port",
    {**PORT_FIELDS.since, "node_ident": 94},
    {
        "address": mac,
        "available_for_dynamic_portgroup": flag_or_true,
        "category": text(80),
        "description": text(255),
        "extra": obj,
        "is_smartnic": flag,
        "local_link_connection": _local_link,
        "name": name("port"),
        "node_uuid": node_uuid,
        "physical_network": text(64, least=1),
        "portgroup_uuid": uuid,
        "pxe_enabled": flag_or_true,
        "vendor": text(32),
    },
    {"uuid": uuid, "node_ident": text(255, least=1, null=False)},
    required=frozenset({"address", "node_uuid"}),
    needed=("address",),
    objects=frozenset({"extra", "local_link_connection"}),
)


def creation(fields: dict[str, Any], version: int, who: Who) -> dict[str, Any]:
    """The fields of a new port; its node, by UUID or name, is `node_uuid`."""
    if ("node_uuid" in fields) == ("node_ident" in fields):
        raise Invalid(
            "Schema error for port: one of 'node_uuid' and, from 1.94 on, 'node_ident' is required:"
            " the node that the port belongs to."
        )
    fields["node_uuid"] = fields.pop("node_ident", None) or fields["node_uuid"]
    _check_link(fields.get("local_link_connection", {}), version)
    _check_smart_nic(fields.get("is_smartnic", False), fields.get("local_link_connection", {}))
    return fields


def patched(port: Port, fields: dict[str, Any], version: int, who: Who) -> dict[str, Any]:
    """The fields that a patch changes, with their new values."""
    link = fields.get("local_link_connection")
    if link is not None:
        _check_link(link, version)
    if "is_smartnic" in fields or link is not None:
        smart = fields.get("is_smartnic", port.is_smartnic)
        _check_smart_nic(smart, port.local_link_connection if link is None else link)
    return fields


def _check_link(link: dict[str, Any], version: int) -> None:
    for key in link:
        if LINK_SINCE[key] > version:
            raise NotAcceptable(
                f"local_link_connection/{key} needs API version 1.{LINK_SINCE[key]}; this request"
                f" has 1.{version}."
            )
        if version >= LINK_UNTIL.get(key, version + 1):
            raise NotAcceptable(
                f"local_link_connection/{key} is gone since API version 1.{LINK_UNTIL[key]}; this"
                f" request has 1.{version}: ask with an older one, or leave it out."
            )


def _check_smart_nic(smart: bool, link: dict[str, Any]) -> None:
    if smart and not {"port_id", "hostname"} <= set(link):
        raise Invalid("Smart NIC port must have port_id and hostname in local_link_connection.")
