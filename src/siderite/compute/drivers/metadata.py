"""What a guest is told at its first boot, in OpenStack's words: who it is, where, whose. Pure."""

import base64
import binascii
from typing import Any

from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.contract import Nic


def meta_data(guest: Guest) -> dict[str, Any]:
    """meta_data.json."""
    data: dict[str, Any] = {
        "uuid": guest.uuid,
        "name": guest.display_name,
        "hostname": guest.hostname,
        "project_id": guest.project,
        "availability_zone": guest.availability_zone,
        "launch_index": guest.launch_index,
        "devices": [
            {"type": "nic", "mac": nic.mac, "tags": [nic.tag]} for nic in guest.nics if nic.tag
        ],
    }
    if guest.files:
        data["files"] = [
            {"path": path, "content_path": f"/{content_path(at)}"}
            for at, (path, _) in enumerate(guest.files)
        ]
    if guest.metadata:
        data["meta"] = dict(guest.metadata)
    if guest.public_key is not None:
        name = guest.key_name or "key"
        data["public_keys"] = {name: guest.public_key}
        data["keys"] = [{"name": name, "type": "ssh", "data": guest.public_key}]
    if guest.admin_password is not None:
        data["admin_pass"] = guest.admin_password
    return data


def content_path(at: int) -> str:
    """Where in a config drive a file is that is to be put elsewhere."""
    return f"content/{at:04}"


def network_data(nics: tuple[Nic, ...]) -> dict[str, Any]:
    """network_data.json. QEMU's user network gives its guest an address by DHCP."""
    links = [
        {"id": f"nic{n}", "type": "phy", "ethernet_mac_address": nic.mac, "vif_id": nic.port}
        for n, nic in enumerate(nics)
    ]
    networks = [_network(f"nic{n}", nic) for n, nic in enumerate(nics)]
    return {"links": links, "networks": networks, "services": []}


def _network(link: str, nic: Nic) -> dict[str, Any]:
    known = {"id": nic.network, "network_id": nic.network, "link": link}
    family = "ipv6" if ":" in nic.address else "ipv4"
    if nic.kind == "user" or not nic.address:
        return {**known, "type": "ipv4_dhcp"}
    routes = []
    if nic.gateway:
        anywhere = "::" if family == "ipv6" else "0.0.0.0"  # noqa: S104
        routes = [{"network": anywhere, "netmask": anywhere, "gateway": nic.gateway}]
    address = f"{nic.address}/{nic.prefix}"
    return {**known, "type": family, "ip_address": address, "routes": routes}


def user_data(guest: Guest) -> bytes | None:
    """user_data, as it was before it was sent."""
    if not guest.user_data:
        return None
    try:
        return base64.b64decode(guest.user_data, validate=False)
    except binascii.Error:
        return guest.user_data.encode()
