"""What describes the API itself: versions, import methods, schemas."""

from typing import TYPE_CHECKING
from typing import Any

from siderite.core import shape
from siderite.core.errors import NotFound
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply
from siderite.image.domain.image import CONTAINER_FORMATS
from siderite.image.domain.image import DISK_FORMATS
from siderite.image.domain.image import MEMBER_STATUSES
from siderite.image.domain.image import Status
from siderite.image.domain.image import Visibility
from siderite.image.domain.task import Progress

if TYPE_CHECKING:
    from siderite.image.web.service import ImageService as Service

_NEWEST = 9


def _document(base: str) -> dict[str, Any]:
    href = f"{base}/image/v2/"
    return {
        "versions": [
            {
                "id": f"v2.{minor}",
                "status": "CURRENT" if minor == _NEWEST else "SUPPORTED",
                "links": [{"rel": "self", "href": href}],
            }
            for minor in range(_NEWEST, -1, -1)
        ]
    }


async def choices(_service: "Service", request: Request) -> Response:
    """GET /: which versions there are; 300 Multiple Choices, as Glance says it."""
    return reply(_document(request.base), 300)


async def versions(_service: "Service", request: Request) -> Response:
    """GET /versions and GET /v2"""
    return reply(_document(request.base))


def versions_form() -> shape.Json:
    """The form of the list of versions."""
    return shape.wire(_document(""))


async def import_methods(service: "Service", _request: Request) -> Response:
    """GET /v2/info/import"""
    return reply(_methods(service.ctx.import_methods))


def _methods(names: tuple[str, ...]) -> dict[str, Any]:
    value = {"description": "Import methods available.", "type": "array", "value": names}
    return {"import-methods": value}


def import_form() -> shape.Json:
    """The form of that."""
    return shape.wire(_methods(("glance-direct",)))


def _text(limit: int = 255, *, null: bool = True, **more: Any) -> dict[str, Any]:
    return {"type": ["null", "string"] if null else "string", "maxLength": limit, **more}


def _choice(values: tuple[str, ...], *, null: bool = False) -> dict[str, Any]:
    kind = ["null", "string"] if null else "string"
    return {"type": kind, "enum": [None, *values] if null else list(values)}


_READ_ONLY = {"readOnly": True}
_WHOLE = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
_IMAGE = {
    "id": {"type": "string", "format": "uuid", "description": "An identifier for the image"},
    "name": _text(description="Descriptive name for the image"),
    "status": _choice(tuple(Status)) | _READ_ONLY,
    "visibility": _choice(tuple(Visibility)),
    "protected": {"type": "boolean"},
    "os_hidden": {"type": "boolean"},
    "checksum": _text(32) | _READ_ONLY,
    "os_hash_algo": _text(64) | _READ_ONLY,
    "os_hash_value": _text(128) | _READ_ONLY,
    "owner": _text(),
    "size": {"type": ["null", "integer"]} | _READ_ONLY,
    "virtual_size": {"type": ["null", "integer"]} | _READ_ONLY,
    "container_format": _choice(CONTAINER_FORMATS, null=True),
    "disk_format": _choice(DISK_FORMATS, null=True),
    "created_at": _text(null=False) | _READ_ONLY,
    "updated_at": _text(null=False) | _READ_ONLY,
    "tags": {"type": "array", "items": {"type": "string", "maxLength": 255}},
    "self": _text(null=False) | _READ_ONLY,
    "file": _text(null=False) | _READ_ONLY,
    "schema": _text(null=False) | _READ_ONLY,
    "min_ram": _WHOLE,
    "min_disk": _WHOLE,
}
_MEMBER = {
    "image_id": _text(null=False) | _READ_ONLY,
    "member_id": _text(null=False),
    "status": _choice(MEMBER_STATUSES),
    "created_at": _text(null=False) | _READ_ONLY,
    "updated_at": _text(null=False) | _READ_ONLY,
    "schema": _text(null=False) | _READ_ONLY,
}
_LINKS = [{"rel": "self", "href": "{self}"}, {"rel": "enclosure", "href": "{file}"}]
_ONE_IMAGE = {
    "name": "image",
    "properties": _IMAGE,
    "additionalProperties": {"type": "string"},
    "links": _LINKS,
}
_ONE_MEMBER = {"name": "member", "properties": _MEMBER}
_TASK = {
    **{
        name: _text() | _READ_ONLY
        for name in (
            "id", "type", "message", "image_id", "owner", "user_id", "request_id", "created_at",
            "updated_at", "expires_at", "self", "schema",
        )
    },
    "status": _choice(tuple(Progress)) | _READ_ONLY,
    "input": {"type": "object"} | _READ_ONLY,
    "result": {"type": ["null", "object"]} | _READ_ONLY,
}  # fmt: skip
_ONE_TASK = {"name": "task", "properties": _TASK}
_SCHEMAS = {
    "task": _ONE_TASK,
    "tasks": {
        "name": "tasks",
        "properties": {
            "tasks": {"type": "array", "items": _ONE_TASK},
            **{name: {"type": "string"} for name in ("schema", "first", "next")},
        },
    },
    "image": _ONE_IMAGE,
    "images": {
        "name": "images",
        "properties": {
            "images": {"type": "array", "items": _ONE_IMAGE},
            **{name: {"type": "string"} for name in ("schema", "first", "next")},
        },
    },
    "member": _ONE_MEMBER,
    "members": {
        "name": "members",
        "properties": {
            "members": {"type": "array", "items": _ONE_MEMBER},
            "schema": {"type": "string"},
        },
    },
}


async def schema(_service: "Service", request: Request) -> Response:
    """GET /v2/schemas/{name}"""
    name = request.params[0]
    if name not in _SCHEMAS:
        raise NotFound(f"There is no schema {name[:80]!r}; there are {', '.join(_SCHEMAS)}.")
    return reply(_SCHEMAS[name])


def schema_form() -> shape.Json:
    """The form of a schema: a name, properties, and perhaps more that schemas have."""
    more = {"additionalProperties": shape.OBJECT, "links": {"type": "array"}}
    found = {"name": shape.text(), "properties": shape.OBJECT}
    return shape.record({**found, **more}, list(found))
