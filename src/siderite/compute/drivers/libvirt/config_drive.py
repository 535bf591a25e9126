"""What a guest's first boot reads: OpenStack's metadata as a config drive, for cloud-init. Pure.

Written as ISO 9660 with Joliet names (iso.py), labelled `config-2`, attached as a CD.
"""

import base64
import json
from typing import Any

from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.libvirt.iso import iso
from siderite.compute.drivers.metadata import content_path
from siderite.compute.drivers.metadata import meta_data
from siderite.compute.drivers.metadata import network_data
from siderite.compute.drivers.metadata import user_data

LABEL = "config-2"
_FOLDER = "openstack/latest"


def config_drive(guest: Guest) -> bytes:
    """The image of a guest's config drive."""
    files = {
        "meta_data.json": _json(meta_data(guest)),
        "network_data.json": _json(network_data(guest.nics)),
        "vendor_data.json": b"{}",
    }
    own = user_data(guest)
    if own is not None:
        files["user_data"] = own
    drive = {f"{_FOLDER}/{name}": data for name, data in files.items()}
    for at, (_, contents) in enumerate(guest.files):
        drive[f"openstack/{content_path(at)}"] = base64.b64decode(contents)
    return iso(LABEL, dict(sorted(drive.items())))


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
