"""What a request's address names."""

import re

from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.ids import is_uuid

SUFFIX_UNTIL = 91
NAME = re.compile(r"[A-Za-z0-9._~-]+")
"""What the name of anything can be made of."""


def ident(request: Request) -> str:
    """The UUID or name in the path; older versions may have `.json` behind it."""
    name = request.params[0]
    if request.version < SUFFIX_UNTIL and name.endswith(".json"):
        return name.removesuffix(".json")
    return name


def uuid(request: Request, noun: str) -> str:
    """The UUID in the path, for what has no names."""
    name = ident(request)
    if not is_uuid(name):
        raise Invalid(f"A {noun} is addressed by its UUID, which {name[:80]!r} is not.")
    return name.lower()
