"""The bodies of server requests: which keys there are, since when, and what they must be."""

import re
from typing import Any

from siderite.compute.domain.server import Request as Kept
from siderite.compute.web import forms
from siderite.compute.web.forms import Key
from siderite.compute.web.forms import wrong
from siderite.core import shape
from siderite.core.check import Check
from siderite.core.check import or_null
from siderite.core.errors import Invalid

DISK_CONFIG = forms.one_of("AUTO", "MANUAL")
_FQDN = r"[a-zA-Z0-9-._]{1,255}"
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_HINTS = ("os:scheduler_hints", "OS-SCH-HNT:scheduler_hints")
_NETWORKS_REQUIRED = 37
FQDN_SINCE = 94


@shape.like({"type": ["string", "integer"]})
def _reference(name: str, value: Any) -> str:
    """A flavor or image by its id, or by a URL that ends in it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    found: str = forms.text(1, 500)(name, value)
    return found.rstrip("/").rpartition("/")[2]


@shape.like(shape.text(0, 500))
def _image(name: str, value: Any) -> str | None:
    if value == "":
        return None
    found = _reference(name, value)
    return forms.uuid(name, found)


@shape.like({"type": "array", "items": shape.under("name", shape.text(1, 255))})
def _groups(name: str, value: Any) -> list[str]:
    found = []
    for item in forms.items(name, value):
        if not isinstance(item, dict) or set(item) != {"name"}:
            raise wrong(name, item, 'a security group is written {"name": …}')
        found.append(forms.text(1, 255)("name", item["name"]))
    return found


@shape.like({"type": ["array", "null"], "items": shape.text(1, 255), "maxItems": 50})
def certificates(name: str, value: Any) -> list[str] | None:
    """The ids of certificates that an image must be signed with, or null."""
    if value is None:
        return None
    found = [forms.text(1, 255)(name, item) for item in forms.items(name, value)]
    if not 1 <= len(found) <= 50 or len(set(found)) != len(found):  # noqa: PLR2004
        raise wrong(name, value, "it must be 1 to 50 ids, each once")
    return found


_NETWORK = {
    "uuid": Key(forms.text(1, 255)),
    "port": Key(or_null(forms.uuid)),
    "fixed_ip": Key(forms.text(1, 45)),
    "tag": Key(forms.tag, since=32),
}
_NETWORKS = {"type": "array", "items": forms.form(_NETWORK)}
_DEVICE = {
    "source_type": Key(forms.one_of("volume", "image", "snapshot", "blank")),
    "destination_type": Key(forms.one_of("local", "volume")),
    "uuid": Key(forms.text(1, 255, r"[a-zA-Z0-9._-]+")),
    "image_id": Key(forms.uuid),
    "volume_id": Key(forms.uuid),
    "snapshot_id": Key(forms.uuid),
    "volume_size": Key(or_null(forms.whole(1))),
    "boot_index": Key(or_null(forms.whole(-1))),
    "device_name": Key(or_null(forms.text(1, 255, r"[a-zA-Z0-9._/-]+"))),
    "delete_on_termination": Key(forms.flag),
    "virtual_name": Key(forms.text(0, 255)),
    "guest_format": Key(or_null(forms.text(0, 255))),
    "device_type": Key(or_null(forms.text(0, 255))),
    "disk_bus": Key(or_null(forms.text(0, 255))),
    "no_device": Key(forms.anything),
    "connection_info": Key(forms.anything),
    "tag": Key(forms.tag, since=32),
    "volume_type": Key(or_null(forms.text(0, 255)), since=67),
}


def _without_tag(keys: forms.Keys, version: int, gone: range) -> forms.Keys:
    """Tags came with 2.32, were lost with another change, and came back with 2.42."""
    if version not in gone:
        return keys
    return {name: key for name, key in keys.items() if name != "tag"}


def _networks(version: int) -> Check:
    keys = _without_tag(_NETWORK, version, range(37, 42))

    @shape.like({"anyOf": [shape.words(["none", "auto"]), _NETWORKS]})
    def check(name: str, value: Any) -> str | list[dict[str, Any]]:
        if version >= _NETWORKS_REQUIRED and value in ("none", "auto"):
            return str(value)
        found = []
        for item in forms.items(name, value):
            one = forms.take(item, name, keys, version)
            if one.get("port") is not None:
                raise Invalid(f"Port {one['port']} could not be found; name a network instead.")
            if "uuid" not in one:
                raise Invalid("Bad networks format: network uuid is missing, or a port.")
            found.append(one)
        return found

    return check


def hostname(version: int) -> Check:
    """A host name: one label of two characters or more, or from 2.94 a whole domain name."""
    label = re.compile(_LABEL)
    least, most = (2, 63) if version < FQDN_SINCE else (1, 255)

    @shape.like(shape.text(least, most))
    def check(name: str, value: Any) -> str:
        found: str = forms.text(least, most)(name, value)
        parts = found.split(".") if version >= FQDN_SINCE else [found]
        if not all(label.fullmatch(part.lower()) for part in parts):
            raise wrong(name, value, f"{value!r} is not a host name")
        return found

    return check


_FILE = {
    "path": Key(forms.text(1, 255), required=True),
    "contents": Key(forms.base64_text(65536), required=True),
}


@shape.like({"type": "array", "items": forms.form(_FILE)})
def personality(name: str, value: Any) -> list[dict[str, str]]:
    """Files to be put into a guest."""
    return [forms.take(item, name, _FILE, 1) for item in forms.items(name, value)]


def _devices(version: int) -> Check:
    keys = _without_tag(_DEVICE, version, range(33, 42))

    @shape.like({"type": "array", "items": forms.form(_DEVICE)})
    def check(name: str, value: Any) -> list[dict[str, Any]]:
        return [forms.take(item, name, keys, version) for item in forms.items(name, value)]

    return check


def _create_keys(version: int) -> dict[str, Key]:
    return {
        "name": Key(forms.name, required=True),
        "flavorRef": Key(_reference, required=True),
        "imageRef": Key(_image),
        "networks": Key(_networks(version), required=version >= _NETWORKS_REQUIRED),
        "metadata": Key(forms.metadata),
        "key_name": Key(or_null(forms.text(1, 255))),
        "user_data": Key(or_null(forms.base64_text(65535))),
        "config_drive": Key(or_null(forms.flag)),
        "availability_zone": Key(forms.text(1, 255)),
        "security_groups": Key(_groups),
        "min_count": Key(forms.whole(1)),
        "max_count": Key(forms.whole(1)),
        "return_reservation_id": Key(forms.flag),
        "block_device_mapping_v2": Key(_devices(version)),
        "block_device_mapping": Key(_devices(version)),
        "OS-DCF:diskConfig": Key(DISK_CONFIG),
        "accessIPv4": Key(forms.ip(4)),
        "accessIPv6": Key(forms.ip(6)),
        "adminPass": Key(forms.password),
        "personality": Key(personality, until=56),
        "description": Key(forms.description, since=19),
        "tags": Key(forms.tags, since=52),
        "trusted_image_certificates": Key(certificates, since=63),
        "host": Key(forms.text(1, 255, _FQDN), since=74),
        "hypervisor_hostname": Key(forms.text(1, 255, _FQDN), since=74),
        "hostname": Key(hostname(version), since=90),
    }


def changes(version: int) -> dict[str, Key]:
    """What may be changed of a server by PUT."""
    return {
        "name": Key(forms.name),
        "OS-DCF:diskConfig": Key(DISK_CONFIG),
        "accessIPv4": Key(forms.ip(4)),
        "accessIPv6": Key(forms.ip(6)),
        "description": Key(forms.description, since=19),
        "hostname": Key(hostname(version), since=90),
        "pinned_availability_zone": Key(or_null(forms.text(1, 255)), since=104),
    }


_CREATE: dict[int, dict[str, Key]] = {}


def new() -> shape.Json:
    """The form of a create request."""
    server = forms.form(_create_keys(forms.LATEST))
    hints = {key: {"type": ["object", "null"]} for key in _HINTS}
    return shape.record({"server": server, **hints}, ["server"])


def changed() -> shape.Json:
    """The form of the body of PUT."""
    return shape.under("server", forms.form(changes(forms.LATEST)))


def creation(found: dict[str, Any], version: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The checked `server` of a create request, and its scheduler hints."""
    for key in found:
        if key not in ("server", *_HINTS):
            raise Invalid(f"Additional properties are not allowed ('{key[:80]}' was unexpected)")
    if "server" not in found:
        raise Invalid("'server' is a required property")
    keys = _CREATE.get(version)
    if keys is None:
        keys = _CREATE[version] = _create_keys(version)
    server = forms.take(found["server"], "server", keys, version)
    hints: Any = {}
    for key in reversed(_HINTS):
        hints = found.get(key, hints)
    return server, _hints(hints)


def _hints(found: Any) -> dict[str, Any]:
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise wrong("scheduler_hints", found, "it must be an object")
    if "group" in found:
        forms.uuid("group", found["group"])
    for key in ("same_host", "different_host"):
        if key in found:
            named = found[key]
            for item in named if isinstance(named, list) else [named]:
                forms.uuid(key, item)
    return found


def image_of(server: dict[str, Any]) -> str | None:
    """The image that a server is to be made from; block devices may name it."""
    if "block_device_mapping" in server and "block_device_mapping_v2" in server:
        raise Invalid("Using different block_device_mapping syntaxes is not allowed together.")
    if server.get("block_device_mapping"):
        raise Invalid("There is no volume service here; boot from an image.")
    image: str | None = server.get("imageRef")
    for device in server.get("block_device_mapping_v2", []):
        source = device.get("source_type")
        if source == "blank" and device.get("destination_type", "local") == "local":
            continue
        if source != "image" or device.get("destination_type", "local") != "local":
            raise Invalid(
                "Block Device Mapping is Invalid: there is no volume service here; use an image"
                " as the local root disk."
            )
        named = forms.uuid("uuid", device.get("uuid"))
        if str(device.get("boot_index")) != "0":
            raise Invalid("Block Device Mapping is Invalid: only the root disk can be an image.")
        if image is not None and image != named:
            raise Invalid("Block Device Mapping is Invalid: two images are named.")
        image = named
    if image is None:
        raise Invalid("Invalid imageRef provided: name an image to boot from.")
    return image


def kept(server: dict[str, Any], hints: dict[str, Any], count: int, **forced: Any) -> Kept:
    """What the server remembers of its request."""
    return Kept(
        networks=server.get("networks", "auto"),
        hints=hints,
        user_data=server.get("user_data"),
        block_devices=server.get("block_device_mapping_v2", []),
        security_groups=server.get("security_groups", []),
        personality=server.get("personality", []),
        admin_password=server.get("adminPass"),
        count=count,
        **forced,
    )
