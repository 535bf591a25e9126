"""What callers may write of an image: at its creation, and by patches."""

from collections.abc import Mapping
from typing import Any

from siderite.core import jsonpatch
from siderite.core import shape
from siderite.core.check import Check
from siderite.core.check import short
from siderite.core.errors import Conflict
from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.ids import is_uuid
from siderite.core.jsonpatch import Patch
from siderite.image.domain.image import CONTAINER_FORMATS
from siderite.image.domain.image import DISK_FORMATS
from siderite.image.domain.image import MADE
from siderite.image.domain.image import SHOWN
from siderite.image.domain.image import Image
from siderite.image.domain.image import Visibility
from siderite.image.domain.image import view
from siderite.image.usecases.change import MAX_TAGS
from siderite.image.usecases.data import IMPORT_ERROR

MAX_TEXT = 255
MAX_PROPERTIES = 128
MAX_PROPERTY = 65535
MAX_ALL_PROPERTIES = 256 * 1024
_LARGEST = 2**31 - 1


@shape.like(shape.or_null(shape.text(0, MAX_TEXT)))
def _text(name: str, value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise Invalid(f"{name} must be a text of up to {MAX_TEXT} characters, or null.")
    return value


def _choice(values: tuple[str, ...], *, null: bool) -> Check:
    form = shape.words(values)

    @shape.like(shape.or_null(form) if null else form)
    def check(name: str, value: Any) -> str | None:
        if value is None and null:
            return None
        if not isinstance(value, str) or value not in values:
            raise Invalid(f"{name} must be one of {', '.join(values)}; not {short(value)}.")
        return str(value)

    return check


@shape.like({"type": "boolean"})
def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise Invalid(f"{name} must be true or false, not {short(value)}.")
    return value


@shape.like({"type": "integer", "minimum": 0, "maximum": _LARGEST})
def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
        raise Invalid(f"{name} must be a whole number from 0 on, not {short(value)}.")
    return value


@shape.like(shape.text(1, MAX_TEXT))
def tag(name: str, value: Any) -> str:
    """A tag."""
    if not isinstance(value, str) or not value or len(value) > MAX_TEXT:
        raise Invalid(f"{name} must be a text of 1 to {MAX_TEXT} characters.")
    return value


@shape.like({"type": "array", "items": shape.of(tag), "maxItems": MAX_TAGS})
def _tags(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Invalid(f"{name} must be a list of texts.")
    tags = tuple(dict.fromkeys(tag(f"each of {name}", one) for one in value))
    if len(tags) > MAX_TAGS:
        raise Invalid(f"{name} must not be over {MAX_TAGS}.")
    return tags


FIELDS: dict[str, Check] = {
    "name": _text,
    "visibility": _choice(tuple(Visibility), null=False),
    "protected": _flag,
    "os_hidden": _flag,
    "owner": _text,
    "container_format": _choice(CONTAINER_FORMATS, null=True),
    "disk_format": _choice(DISK_FORMATS, null=True),
    "min_disk": _whole,
    "min_ram": _whole,
    "tags": _tags,
}
_READ_ONLY = frozenset({*SHOWN, *MADE, "direct_url", "locations"}) - set(FIELDS)
_RESERVED = "os_glance_"
"""How the names begin that image services keep for themselves: what reads them trusts them."""


def new() -> shape.Json:
    """The form of the body that makes an image; what is none of its fields is a property."""
    fields = {"id": shape.UUID} | {name: shape.of(check) for name, check in FIELDS.items()}
    return shape.record(fields, others=shape.text(0, MAX_PROPERTY))


def patch() -> shape.Json:
    """The form of a patch."""
    return shape.patches([*FIELDS, "[A-Za-z0-9_]+"], deep=False)


def shown() -> shape.Json:
    """The form of an image on the wire."""
    return shape.seen(*(view(image) for image in shape.both(Image)))


def page() -> shape.Json:
    """The form of a list."""
    return shape.listed("images", shown(), "schema", "first", "next")


def created(document: Any) -> dict[str, Any]:
    """The fields of a new image."""
    if not isinstance(document, dict):
        raise Invalid('The body must be an object such as {"name": "…", "disk_format": "qcow2"}.')
    made: dict[str, Any] = {}
    properties: dict[str, str] = {}
    for name, value in document.items():
        if name == "id":
            if not isinstance(value, str) or not is_uuid(value):
                raise Invalid(f"id must be a UUID, not {short(value)}.")
            made["uuid"] = value.lower()
        elif name in FIELDS:
            made[name] = FIELDS[name](name, value)
        elif name in _READ_ONLY:
            raise _read_only(name)
        elif name.startswith(_RESERVED):
            raise _reserved(name)
        else:
            properties[name] = _property(name, value)
    made["properties"] = _few(properties)
    return made


def patches(document: Any, content_type: str) -> list[Patch]:
    """A patch in either of the forms that the media types name."""
    if "v2.0" in content_type:
        document = [_newer(item) for item in document] if isinstance(document, list) else document
    if document == []:
        return []
    found = jsonpatch.parse(document)
    for one in found:
        if len(one.path) != 1:
            raise Invalid(f"Patch path {one.text!r} must name one attribute, such as /name.")
        if one.field in _READ_ONLY:
            raise _read_only(one.field)
        if one.field.startswith(_RESERVED) and one.op != "remove":
            raise _reserved(one.field)
        if one.field in FIELDS and one.op == "remove":
            raise Forbidden(f"Property {one.field} may not be removed; replace it instead.")
    return found


def _newer(item: Any) -> Any:
    """An operation of the elder form, `{"add": "/name", "value": …}`, in today's."""
    if not isinstance(item, dict):
        return item
    ops = [name for name in ("add", "replace", "remove") if name in item]
    if len(ops) != 1:
        raise Invalid('Each operation names one of "add", "replace" and "remove" with its path.')
    rest = {name: value for name, value in item.items() if name != ops[0]}
    return {"op": ops[0], "path": item[ops[0]], **rest}


def patched(image: Image, found: list[Patch]) -> dict[str, Any]:
    """The fields that a patch changes, with their new values."""
    made: dict[str, Any] = {}
    properties = dict(image.properties)
    for one in found:
        name = one.field
        if name in FIELDS:
            made[name] = FIELDS[name](name, one.value)
            continue
        if one.op != "add" and name not in properties:
            raise Conflict(f"Property {name[:80]} does not exist; add it, or look at the image.")
        if one.op == "remove":
            del properties[name]
        else:
            properties[name] = _property(name, one.value)
    return {**made, "properties": _few(properties, image.properties)}


def _property(name: str, value: Any) -> str:
    if not name or len(name) > MAX_TEXT:
        raise Invalid(f"A property's name must have 1 to {MAX_TEXT} characters.")
    if not isinstance(value, str) or len(value) > MAX_PROPERTY:
        raise Invalid(
            f"Property {name[:80]!r} must be a text of up to {MAX_PROPERTY} characters, not"
            f" {short(value)}."
        )
    return value


def _few(properties: dict[str, str], before: Mapping[str, str] | None = None) -> dict[str, str]:
    """Refuse too many; what we wrote there ourselves takes no place of the owner's. An image that
    has more already, as a snapshot may with those of its server's image, gets none besides.
    """
    count, size = _extent(properties)
    had_count, had_size = _extent(before or {})
    if count > max(MAX_PROPERTIES, had_count):
        raise Invalid(f"An image has at most {MAX_PROPERTIES} properties; remove some.")
    if size > max(MAX_ALL_PROPERTIES, had_size):
        raise Invalid(
            f"An image's properties have at most {MAX_ALL_PROPERTIES} characters together; remove"
            " some."
        )
    return properties


def _extent(properties: Mapping[str, str]) -> tuple[int, int]:
    """How many are the owner's, and how many characters they have."""
    own = [len(value) for name, value in properties.items() if name != IMPORT_ERROR]
    return len(own), sum(own)


def _read_only(name: str) -> Forbidden:
    return Forbidden(f"Attribute '{name}' is read-only; leave it out.")


def _reserved(name: str) -> Forbidden:
    return Forbidden(
        f"Attribute '{name[:80]}' is reserved: names that begin with {_RESERVED} are not for"
        " owners; choose another."
    )
