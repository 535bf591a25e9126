"""Checking what clients send: small checks, put together per body. The sentences have the shape
that clients of this API know.
"""

import base64
import binascii
import ipaddress
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

import msgspec

from siderite.core import shape
from siderite.core.check import Check
from siderite.core.errors import Invalid
from siderite.core.errors import SideriteError
from siderite.core.http import Request
from siderite.core.ids import is_uuid
from siderite.core.json_body import parse_json

LATEST = 10**6
BODY_LIMIT = 114688
MAX_INT = 0x7FFFFFFF
_TRUE = (True, "True", "TRUE", "true", "1", "ON", "On", "on", "YES", "Yes", "yes", "t", "y", 1)
_FALSE = (False, "False", "FALSE", "false", "0", "OFF", "Off", "off", "NO", "No", "no", "f", "n", 0)


class BadMediaType(SideriteError):
    """This address takes application/json only."""

    code = "request.media_type"
    status = 415


async def document(request: Request, limit: int = BODY_LIMIT) -> dict[str, Any]:
    """The body, which must be a JSON object."""
    kind = (request.header(b"content-type") or "").split(";")[0].strip().lower()
    if kind not in ("", "application/json", "text/plain"):
        raise BadMediaType(f"Unsupported Content-Type {kind[:80]}; use application/json.")
    found = parse_json(await request.body(limit))
    if not isinstance(found, dict):
        raise Invalid("Malformed request body: it must be a JSON object.")
    return found


def wrong(name: str, value: Any, why: str) -> Invalid:
    """A field's value is not what it must be."""
    shown = repr(value) if not isinstance(value, str) else value
    return Invalid(f"Invalid input for field/attribute {name}. Value: {shown[:200]}. {why}")


def _not_of_type(kind: str, name: str, value: Any) -> Invalid:
    return wrong(name, value, f"{value!r} is not of type '{kind}'"[:200])


class Key(msgspec.Struct, frozen=True):
    """A key of a body: how it is checked, from which version to which it is there."""

    check: Check
    since: int = 1
    until: int = LATEST
    required: bool = False


Keys = Mapping[str, Key]


def take(found: Any, name: str, keys: Keys, version: int) -> dict[str, Any]:
    """The checked values of an object's keys; anything else in it is refused."""
    if not isinstance(found, dict):  # it is not shown: what belongs in it may be secret
        raise Invalid(f"Invalid input for field/attribute {name}. It is not of type 'object'")
    for key in found:
        known = keys.get(key)
        if known is None or not known.since <= version <= known.until:
            raise Invalid(
                f"Additional properties are not allowed ('{str(key)[:80]}' was unexpected)"
            )
    for key, rule in keys.items():
        if rule.required and rule.since <= version <= rule.until and key not in found:
            raise Invalid(
                f"Invalid input for field/attribute {name}. '{key}' is a required property"
            )
    return {key: keys[key].check(key, value) for key, value in found.items()}


async def only(request: Request, name: str, check: Check, limit: int = BODY_LIMIT) -> Any:
    """What is all that stands in the body, under its name."""
    found = take(await document(request, limit), "body", {name: Key(check, required=True)}, 1)
    return found[name]


async def under(request: Request, name: str, keys: Keys) -> dict[str, Any]:
    """The checked values of the object that is all that stands in the body, under its name."""
    return take(await only(request, name, anything), name, keys, request.version)


def form(keys: Keys) -> shape.Json:
    """The form of an object with these keys, in whichever version."""
    needed = [name for name, key in keys.items() if key.required and key.until == LATEST]
    return shape.record({name: shape.of(key.check) for name, key in keys.items()}, needed)


# Checks


def text(least: int = 0, most: int = 255, pattern: str | None = None) -> Check:
    """Text of so many characters."""
    form = None if pattern is None else re.compile(pattern)

    @shape.like(shape.text(least, most, pattern))
    def check(name: str, value: Any) -> str:
        if not isinstance(value, str):
            raise _not_of_type("string", name, value)
        if len(value) < least:
            raise wrong(name, value, f"{value!r} is too short")
        if len(value) > most:
            raise wrong(name, value, f"it is longer than {most} characters")
        if form is not None and not form.fullmatch(value):
            raise wrong(name, value, f"{value!r} does not match {pattern!r}"[:200])
        return value

    return check


def unshown(check: Check, needed: str) -> Check:
    """The same of what may be secret: a refusal says what is needed, not what was sent."""

    @shape.like(shape.of(check))
    def checked(name: str, value: Any) -> Any:
        try:
            return check(name, value)
        except Invalid:
            raise Invalid(
                f"Invalid input for field/attribute {name}. It must be {needed}"
            ) from None

    return checked


password = unshown(text(0, 255), "a text of up to 255 characters")


def is_printable(value: str) -> bool:
    """Whether a text can be shown on one line: with spaces of any script, but no controls."""
    return value.isprintable() or all(
        one.isprintable() or unicodedata.category(one) == "Zs" for one in value
    )


@shape.like(shape.or_null(shape.text(0, 255)))
def description(what: str, value: Any) -> str | None:
    """What a server is for, in one line, or null."""
    if value is None:
        return None
    found = str(text(0, 255)(what, value))
    if not is_printable(found):
        raise wrong(what, found, "it must be printable, and one line")
    return found


@shape.like(shape.text(1, 255))
def name(what: str, value: Any) -> str:
    """A display name: printable, and no space at its ends."""
    found = text(1, 255)(what, value)
    if found != found.strip() or not is_printable(found):
        raise wrong(what, found, "it must be printable, and have no leading or trailing spaces")
    return str(found)


def whole(least: int = 0, most: int = MAX_INT) -> Check:
    """A whole number, also as text."""

    @shape.like({"type": ["integer", "string"], "minimum": least, "maximum": most})
    def check(what: str, value: Any) -> int:
        number = value
        if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,18}", value):
            number = int(value)
        if isinstance(number, bool) or not isinstance(number, int):
            raise _not_of_type("integer", what, value)
        if number < least:
            raise wrong(what, value, f"{number} is less than the minimum of {least}")
        if number > most:
            raise wrong(what, value, f"{number} is greater than the maximum of {most}")
        return number

    return check


@shape.like({"type": ["boolean", "string", "integer"]})
def flag(what: str, value: Any) -> bool:
    """Yes or no, in the many spellings that this API takes."""
    if isinstance(value, bool | str | int):
        if value in _TRUE:
            return True
        if value in _FALSE:
            return False
    raise wrong(what, value, f"{value!r} is not a boolean"[:200])


def one_of(*words: str) -> Check:
    """One of these."""

    @shape.like(shape.words(words))
    def check(what: str, value: Any) -> Any:
        if value not in words:
            raise wrong(what, value, f"{value!r} is not one of {list(words)}"[:300])
        return value

    return check


@shape.like(shape.UUID)
def uuid(what: str, value: Any) -> str:
    """A UUID."""
    if not isinstance(value, str) or not is_uuid(value):
        raise wrong(what, value, f"{value!r} is not a 'uuid'"[:200])
    return value.lower()


def items(what: str, value: Any) -> list[Any]:
    """A list of whatever there is."""
    if not isinstance(value, list):
        raise _not_of_type("array", what, value)
    return value


def anything(what: str, value: Any) -> Any:
    """Whatever it is."""
    return value


_META_KEY = re.compile(r"[a-zA-Z0-9-_:. ]{1,255}\Z")


@shape.like(shape.record({}, others=shape.text(0, 255)))
def metadata(what: str, value: Any) -> dict[str, str]:
    """Keys and values that are short texts."""
    if not isinstance(value, dict):
        raise _not_of_type("object", what, value)
    for key, item in value.items():
        if not _META_KEY.match(key):
            raise Invalid(
                f"Metadata key {key[:80]!r} must be 1 to 255 of a-z A-Z 0-9 - _ : . space."
            )
        text(0, 255)(key, item)
    return value


def base64_text(most: int) -> Check:
    """Base64 of so many characters."""

    @shape.like({**shape.text(0, most), "contentEncoding": "base64"})
    def check(what: str, value: Any) -> str:
        found = text(0, most)(what, value)
        try:
            base64.b64decode("".join(found.split()), validate=True)
        except (binascii.Error, ValueError) as why:
            raise Invalid from why
        return str(found)

    return unshown(check, f"base64 of up to {most} characters")


_TAG = re.compile(r"[^,/]{1,60}\Z")


@shape.like(shape.text(1, 60, "[^,/]*"))
def tag(what: str, value: Any) -> str:
    """One tag of a server."""
    if not isinstance(value, str) or not _TAG.match(value):
        raise wrong(what, value, "a tag has 1 to 60 characters, and neither ',' nor '/' in it")
    return value


@shape.like({"type": "array", "items": shape.of(tag), "maxItems": 50, "uniqueItems": True})
def tags(what: str, value: Any) -> list[str]:
    """The tags of a server."""
    if len(items(what, value)) > 50:  # noqa: PLR2004
        raise wrong(what, "…", "a server has at most 50 tags")
    found = [tag(what, item) for item in value]
    if len(set(found)) != len(found):
        raise wrong(what, value, "has non-unique elements")
    return found


def ip(version: int) -> Check:
    """An IP address, or nothing."""
    form = {"type": "string", "format": f"ipv{version}"}
    kind = ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address  # noqa: PLR2004

    @shape.like({"anyOf": [form, {"type": ["string", "null"], "maxLength": 0}]})
    def check(what: str, value: Any) -> str | None:
        if value in (None, ""):
            return None
        try:
            return str(kind(text(1, 45)(what, value)))
        except ValueError as why:
            raise wrong(what, value, f"{value!r} is not a 'ipv{version}'") from why

    return check
