"""What of a node matters for servers: what it offers, and what it is told of the one it carries."""

import base64
import re
from typing import Any

from siderite.compute.domain.host import carries
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.contract import Inventory
from siderite.compute.drivers.metadata import meta_data
from siderite.compute.drivers.metadata import network_data
from siderite.compute.drivers.metadata import user_data

Node = dict[str, Any]

_TOO_LARGE = 2**31
"""Clients of the compute API take no larger numbers."""


def offer(node: Node) -> Inventory:
    """A node as the scheduler sees it."""
    properties = node.get("properties") or {}
    state = node["provision_state"]
    why = None
    if node.get("maintenance"):
        why = "in maintenance"
    elif node["instance_uuid"]:
        why = carries(node["instance_uuid"])
    elif state != "available":
        why = f"is {state}, not available"
    return Inventory(
        node=node["uuid"],
        hypervisor_type="ironic",
        hypervisor_version=1,
        vcpus=_whole(properties.get("cpus")),
        ram_mib=_whole(properties.get("memory_mb")),
        disk_gib=_whole(properties.get("local_gb")),
        resource_class=custom(node["resource_class"]),
        traits=frozenset(node.get("traits") or ()),
        is_available=why is None,
        why_not=why,
    )


def custom(resource_class: str) -> str:
    """A node's class as flavors ask for it: `baremetal.gold` is CUSTOM_BAREMETAL_GOLD."""
    return "CUSTOM_" + re.sub(r"[^A-Z0-9_]", "_", resource_class.upper().removeprefix("CUSTOM_"))


def config_drive(guest: Guest) -> dict[str, Any]:
    """The config drive as an object; the bare metal service makes the image."""
    drive: dict[str, Any] = {
        "meta_data": meta_data(guest),
        "network_data": network_data(guest.nics),
    }
    own = user_data(guest)
    if own is not None:
        try:
            drive["user_data"] = own.decode()
        except UnicodeDecodeError:
            drive["user_data"] = base64.b64encode(own).decode()
    return drive


def reservation(node: Node, guest: Guest) -> list[tuple[str, str, Any]]:
    """The changes by which a node becomes a server's."""
    root_gib = guest.disk_gib or _whole((node.get("properties") or {}).get("local_gb"))
    info = {
        **image_words(guest),
        "root_gb": str(root_gib),
        "display_name": guest.display_name,
        "memory_mb": str(guest.ram_mib),
        "vcpus": str(guest.vcpus),
    }
    return [("add", "/instance_uuid", guest.uuid), ("add", "/instance_info", info)]


_ADDRESSES = ("image_source", "kernel", "ramdisk")
_CHECKSUMS = ("image_checksum", "image_os_hash_algo", "image_os_hash_value")


def image_words(guest: Guest) -> dict[str, Any]:
    """The image by its id, or as its own properties say where nodes find it: at addresses. The id
    of another image is none: the bare metal side may have it, though the server's project may not.
    """
    properties = guest.image_properties
    addresses = {
        name: properties[name]
        for name in _ADDRESSES
        if properties.get(name, "").lower().startswith(("http://", "https://"))
    }
    checksums = {name: properties[name] for name in _CHECKSUMS if name in properties}
    return {"image_source": guest.image, **addresses, **checksums}


def _whole(value: Any) -> int:
    """A size; 0 for what is none. Whoever owns a node may write anything there, and what cannot be
    written down of one would keep the host from being heard of at all.
    """
    try:
        size = int(value)
    except (TypeError, ValueError, OverflowError):
        return 0
    return size if 0 < size < _TOO_LARGE else 0
