"""What bodies of what stands beside servers and flavors may hold, and a sentence about all else.

`body` applies a table of checks. Fields come and go with versions: the caller says which there are.
Servers, flavors and own hosts have the checks in `forms`, which refuse in other words.
"""

import re
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from siderite.compute.web.forms import MAX_INT
from siderite.core import shape
from siderite.core.check import Check
from siderite.core.check import short
from siderite.core.check import truth
from siderite.core.errors import Invalid
from siderite.core.ids import is_uuid

_MOST = 255
_PRINTABLE = re.compile(r"[^\x00-\x1f\x7f]*\Z")
_WHOLE = re.compile(r"-?[0-9]{1,15}\Z")


def wrong(name: str, value: Any, why: str) -> Invalid:
    """A value that does not fit."""
    return Invalid(f"Invalid input for field/attribute {name}. Value: {short(value)}. {why}")


def text(pattern: str | None = None) -> Check:
    """A text of 1 to 255 printable characters, without blanks around it."""
    form = re.compile(pattern + r"\Z") if pattern else _PRINTABLE

    @shape.like(shape.text(1, _MOST, pattern))
    def check(name: str, value: Any) -> str:
        if not isinstance(value, str):
            raise wrong(name, value, "It is not of type 'string'.")
        if not 1 <= len(value) <= _MOST:
            raise wrong(name, value, f"It must have 1 to {_MOST} characters.")
        if not form.match(value) or value != value.strip():
            raise wrong(name, value, "It has characters or blanks that are not allowed here.")
        return value

    return check


def free_text(most: int = _MOST) -> Check:
    """Any text up to a length."""

    @shape.like(shape.text(0, most))
    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or len(value) > most:
            raise wrong(name, value, f"It must be a text of up to {most} characters.")
        return value

    return check


def choice(*values: str) -> Check:
    """One of these texts."""

    @shape.like(shape.words(values))
    def check(name: str, value: Any) -> str:
        if value not in values:
            raise wrong(name, value, f"It must be one of: {', '.join(values)}.")
        return str(value)

    return check


@shape.like(shape.FLAG)
def flag(name: str, value: Any) -> bool:
    """True or false, also as the words for them."""
    found = truth(value)
    if found is None:
        raise wrong(name, value, "It is not true or false.")
    return found


def whole(least: int) -> Check:
    """A whole number, also as text."""

    @shape.like({"type": ["integer", "string"], "minimum": least, "maximum": MAX_INT})
    def check(name: str, value: Any) -> int:
        if isinstance(value, str) and _WHOLE.match(value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise wrong(name, value, "It is not a whole number.")
        if not least <= value <= MAX_INT:
            raise wrong(name, value, f"It must be from {least} to {MAX_INT}.")
        return value

    return check


def body(
    document: Any, wrapper: str | None, fields: Mapping[str, Check], required: Iterable[str] = ()
) -> dict[str, Any]:
    """The fields of a body, which stand under one key; nothing else may be there."""
    if wrapper is not None:
        if not isinstance(document, dict) or wrapper not in document:
            raise Invalid(f"'{wrapper}' is a required property")
        _nothing_else(document, {wrapper})
        document = document[wrapper]
    if not isinstance(document, dict):
        raise wrong(wrapper or "body", document, "It is not of type 'object'.")
    _nothing_else(document, fields)
    for name in required:
        if name not in document:
            raise Invalid(f"'{name}' is a required property")
    return {name: fields[name](name, value) for name, value in document.items()}


def _nothing_else(document: Mapping[str, Any], known: Iterable[str]) -> None:
    extra = sorted(set(document) - set(known))
    if extra:
        raise Invalid(f"Additional properties are not allowed ({extra[0][:80]!r} was unexpected)")


def ident(value: str, *, by_uuid: bool) -> None:
    """Refuse what cannot be the id of a service or hypervisor where those are UUIDs."""
    if by_uuid and not is_uuid(value):
        raise Invalid(f"Invalid uuid {value[:80]}")
