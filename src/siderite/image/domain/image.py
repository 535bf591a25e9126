"""An image as a value, and what the wire shows of it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from siderite.core.times import iso
from siderite.core.times import to_second


class Status(StrEnum):
    """Where an image is in its life."""

    QUEUED = "queued"
    SAVING = "saving"
    UPLOADING = "uploading"
    IMPORTING = "importing"
    ACTIVE = "active"
    DEACTIVATED = "deactivated"


class Visibility(StrEnum):
    """Who else may use an image."""

    PRIVATE = "private"
    SHARED = "shared"
    COMMUNITY = "community"
    PUBLIC = "public"


READY = (Status.ACTIVE, Status.DEACTIVATED)
"""Where an image's data is there to be used; a staged image's is not yet."""

DISK_FORMATS = (
    "ami", "ari", "aki", "vhd", "vhdx", "vmdk", "raw", "qcow2", "vdi", "ploop", "iso",
)  # fmt: skip
CONTAINER_FORMATS = ("ami", "ari", "aki", "bare", "ovf", "ova", "docker", "compressed")
HASH = "sha512"
"""What `os_hash_value` is made with."""


class Image(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that is recorded of an image. `file` is its data's name in the directory."""

    uuid: str
    version: int = 1
    created_at: str
    updated_at: str
    name: str | None = None
    status: str = Status.QUEUED
    visibility: str = Visibility.SHARED
    protected: bool = False
    owner: str | None = None
    container_format: str | None = None
    disk_format: str | None = None
    min_disk: int = 0
    min_ram: int = 0
    size: int | None = None
    virtual_size: int | None = None
    checksum: str | None = None
    os_hash_algo: str | None = None
    os_hash_value: str | None = None
    os_hidden: bool = False
    tags: tuple[str, ...] = ()
    properties: dict[str, str] = {}
    file: str | None = None

    def changed(self, now: float, changes: Mapping[str, Any]) -> "Image":
        """The image with these fields changed, one version on."""
        return msgspec.structs.replace(
            self, version=self.version + 1, updated_at=iso(now), **changes
        )


SHOWN = (
    "name", "status", "visibility", "protected", "owner", "container_format", "disk_format",
    "min_disk", "min_ram", "size", "virtual_size", "checksum", "os_hash_algo", "os_hash_value",
    "os_hidden", "tags",
)  # fmt: skip
"""Attributes that are shown as they are."""

MADE = ("id", "created_at", "updated_at", "self", "file", "schema")
"""Attributes that the service makes."""
FIELDS = frozenset({*SHOWN, *MADE})
"""All that an image has whatever its properties are."""


def view(image: Image) -> dict[str, Any]:
    """What clients read. Properties stand beside the attributes, as upstream has them."""
    shown: dict[str, Any] = dict(image.properties)
    shown |= {name: getattr(image, name) for name in SHOWN}
    shown |= {
        "id": image.uuid,
        "created_at": to_second(image.created_at),
        "updated_at": to_second(image.updated_at),
        "self": f"/v2/images/{image.uuid}",
        "file": f"/v2/images/{image.uuid}/file",
        "schema": "/v2/schemas/image",
    }
    return shown


def render(image: Image) -> str:
    """The same as text, for the row."""
    return msgspec.json.encode(view(image)).decode()


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A project that an image is shared with, and what it thinks of it."""

    image_id: str
    member_id: str
    status: str
    created_at: str
    updated_at: str

    def view(self) -> dict[str, Any]:
        """What clients read."""
        return {
            "image_id": self.image_id,
            "member_id": self.member_id,
            "status": self.status,
            "created_at": to_second(self.created_at),
            "updated_at": to_second(self.updated_at),
            "schema": "/v2/schemas/member",
        }


MEMBER_STATUSES = ("pending", "accepted", "rejected")
