"""The keys in the bodies of a server's actions: which there are, since when, what they must be."""

from typing import Any

from siderite.compute.web import forms
from siderite.compute.web.forms import Key
from siderite.compute.web.forms import Keys
from siderite.compute.web.server import server_schema
from siderite.compute.web.server import shutdown_type
from siderite.compute.web.versions import SHUTDOWN_TYPE
from siderite.core import shape
from siderite.core.check import or_null

UNSHELVE_HOST = 91
_AUTO_BLOCK = 25
_FLAVOR = forms.text(1, 500)
_ZONE = forms.text(1, 255)


@shape.like(shape.text(1, 500))
def _image(name: str, value: Any) -> str:
    """An image by its id, or by a URL that ends in it."""
    return forms.uuid(name, str(value).rstrip("/").rpartition("/")[2])


@shape.like({"type": ["string", "integer"]})
def _flavor(name: str, value: Any) -> Any:
    return _FLAVOR(name, str(value) if isinstance(value, int) else value)


REBOOT: Keys = {
    "type": Key(forms.one_of("HARD", "Hard", "hard", "SOFT", "Soft", "soft"), required=True)
}
LOCK: Keys = {"locked_reason": Key(forms.text(1, 255))}
RESET_STATE: Keys = {"state": Key(forms.one_of("active", "error"), required=True)}
CLAIM_PENDING: Keys = {
    "keeper": Key(forms.text(1, 255), required=True),
    "seconds": Key(forms.whole(1, 3600), required=True),
    "making_room": Key(forms.flag, since=SHUTDOWN_TYPE),
    "node": Key(forms.text(1, 255), since=SHUTDOWN_TYPE),
}
CHANGE_PASSWORD: Keys = {"adminPass": Key(forms.password, required=True)}
SECURITY_GROUP: Keys = {"name": Key(forms.text(1, 255), required=True)}
RESCUE: Keys = {
    "adminPass": Key(forms.password),
    "rescue_image_ref": Key(forms.uuid),
    "shutdown_type": shutdown_type.KEY,
}
RESIZE: Keys = {
    "flavorRef": Key(_flavor),
    "flavor_id": Key(_flavor, since=SHUTDOWN_TYPE),
    "OS-DCF:diskConfig": Key(server_schema.DISK_CONFIG),
    "shutdown_type": shutdown_type.KEY,
}
MIGRATE: Keys = {
    "host": Key(or_null(forms.text(1, 255))),
    "shutdown_type": shutdown_type.KEY,
}
EVACUATE: Keys = {
    "host": Key(or_null(forms.text(1, 255))),
    "adminPass": Key(forms.password),
    "onSharedStorage": Key(forms.flag, until=13, required=True),
    "force": Key(forms.flag, since=29, until=67),
}
CREATE_IMAGE: Keys = {"name": Key(forms.name, required=True), "metadata": Key(forms.metadata)}
CREATE_BACKUP: Keys = {
    "name": Key(forms.name, required=True),
    "backup_type": Key(forms.text(0, 255), required=True),
    "rotation": Key(forms.whole(0), required=True),
    "metadata": Key(forms.metadata),
}
CONSOLE_OUTPUT: Keys = {"length": Key(or_null(forms.whole(-1)))}
CONSOLE: Keys = {"type": Key(forms.text(1, 40), required=True)}


def rebuild(version: int) -> Keys:
    """Of a rebuild."""
    return {
        "imageRef": Key(_image, required=True),
        "name": Key(forms.name),
        "adminPass": Key(forms.password),
        "metadata": Key(forms.metadata),
        "preserve_ephemeral": Key(forms.flag),
        "OS-DCF:diskConfig": Key(server_schema.DISK_CONFIG),
        "accessIPv4": Key(forms.ip(4)),
        "accessIPv6": Key(forms.ip(6)),
        "personality": Key(server_schema.personality, until=56),
        "description": Key(forms.description, since=19),
        "key_name": Key(or_null(forms.text(1, 255)), since=54),
        "user_data": Key(or_null(forms.base64_text(65535)), since=57),
        "trusted_image_certificates": Key(server_schema.certificates, since=63),
        "hostname": Key(server_schema.hostname(version), since=90),
        "shutdown_type": shutdown_type.KEY,
    }


def migrate_live(version: int) -> Keys:
    """Of a live migration."""

    @shape.like(shape.FLAG)
    def block(name: str, value: Any) -> Any:
        return value if version >= _AUTO_BLOCK and value == "auto" else forms.flag(name, value)

    return {
        "host": Key(or_null(forms.text(1, 255)), required=True),
        "block_migration": Key(block, required=True),
        "disk_over_commit": Key(forms.flag, until=24, required=True),
        "force": Key(forms.flag, since=30, until=67),
    }


def unshelve(version: int) -> Keys:
    """Of unshelving to a place."""
    is_free = version >= UNSHELVE_HOST
    zone = or_null(_ZONE) if is_free else _ZONE
    return {
        "availability_zone": Key(zone, required=not is_free),
        "host": Key(forms.text(1, 255), since=UNSHELVE_HOST),
    }
