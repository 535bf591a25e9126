"""What a client may say of a webhook, and a sentence about each thing that cannot be."""

import base64
import binascii
from collections.abc import Sequence
from typing import Any

from siderite.core import shape
from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.guard import LONGEST_URL
from siderite.core.guard import Guard
from siderite.core.who import Who
from siderite.events import query
from siderite.events.webhooks.webhook import PREFIX

CHANGEABLE = ("name", "url", "type", "resource", "project", "enabled", "secret")
MAKEABLE = (*CHANGEABLE, "after")
_LONGEST = 255
_SECRET_BYTES = range(24, 65)


_TEXT = shape.or_null(shape.text())
_FORMS = {
    "name": shape.or_null(shape.text(1, _LONGEST)), "url": shape.text(1, LONGEST_URL),
    "type": _TEXT, "resource": shape.or_null(shape.text(1, _LONGEST)), "project": _TEXT,
    "secret": _TEXT,
    "enabled": {"type": "boolean"}, "after": {"type": "integer", "minimum": 0},
}  # fmt: skip


def new() -> shape.Json:
    """The form of the body that makes a webhook."""
    return shape.record({name: _FORMS[name] for name in MAKEABLE}, ["url"])


def change() -> shape.Json:
    """The form of the body that changes one."""
    return shape.record({name: _FORMS[name] for name in CHANGEABLE})


def place() -> shape.Json:
    """The form of the body that says where to begin."""
    return shape.under("after", _FORMS["after"])


async def fields(
    body: Any, *, names: Sequence[str], known: Sequence[str], guard: Guard, who: Who
) -> dict[str, Any]:
    """The fields of a body, checked. The resource is as it was said: by an id or by a name."""
    if not isinstance(body, dict) or not body:
        raise Invalid(f"The body must be a JSON object with some of {', '.join(names)}.")
    for name in body:
        if name not in names:
            raise Invalid(f"There is no field {name[:40]!r}; there are {', '.join(names)}.")
    said = dict(body)
    for name in ("name", "type", "resource", "project", "url", "secret"):
        if not isinstance(said.get(name), str | None):
            raise Invalid(f"{name} must be a text.")
    if not isinstance(said.get("enabled", True), bool):
        raise Invalid("enabled must be true or false.")
    if said.get("name") is not None and not 1 <= len(said["name"]) <= _LONGEST:
        raise Invalid(f"name must have 1 to {_LONGEST} characters.")
    if "url" in said:
        await guard.check_url("url", said["url"])
    if "secret" in said:
        _check_secret(said["secret"])
    if "type" in said:
        said["type"] = query.event_type(said["type"], known)
    query.resource(said.get("resource"))
    if "project" in said:
        said["project"] = query.project(said["project"], who)
    return said


def number(body: Any) -> int:
    """The number to begin after."""
    after = body.get("after") if isinstance(body, dict) else None
    if isinstance(after, bool) or not isinstance(after, int) or not 0 <= after < 10**18:
        raise Invalid('The body must be {"after": N}, with N a number of the log, or 0.')
    return after


def may_change(who: Who) -> None:
    """Who only reads has no webhooks of their own."""
    if not who.roles & {"member", "admin", "service"}:
        raise Forbidden("Webhooks need the role member; ask an administrator for it.")


def _check_secret(secret: Any) -> None:
    said = secret if isinstance(secret, str) else ""
    try:
        key = base64.b64decode(said.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not said.startswith(PREFIX) or len(key) not in _SECRET_BYTES:
        raise Invalid(
            f"secret must be {PREFIX} and then base64 of 24 to 64 bytes; leave it out to get one."
        )
