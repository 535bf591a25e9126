"""What the queries of lists may hold, and Nova's sentences about all else."""

from collections.abc import Mapping
from datetime import UTC
from datetime import datetime
from typing import Any

from siderite.compute.web.checks import whole
from siderite.core.check import Check
from siderite.core.check import is_whole
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.times import iso

STRICT_QUERIES = 75
"""From here on, most lists refuse arguments that they do not know; from 2.102, all do."""
ALL_STRICT = 102


def take(
    request: Request, fields: Mapping[str, Check], strict_since: int = STRICT_QUERIES
) -> dict[str, Any]:
    """The arguments of a query; from some version on, unknown ones are refused."""
    found: dict[str, Any] = {}
    for name, value in request.query:
        if name in fields:
            found[name] = fields[name](name, value)
        elif request.version >= strict_since:
            raise Invalid(f"Additional properties are not allowed ({name[:80]!r} was unexpected)")
    return found


def limit_of(request: Request, most: int) -> int:
    """The page's size."""
    for key, value in request.query:
        if key == "limit":
            if not is_whole(value):
                raise Invalid(
                    f"Invalid input for query parameters limit. Value: {value[:40]}. It must be a"
                    " whole number, 0 or more."
                )
            return min(int(value), most)
    return most


def moment(name: str, text: str) -> str:
    """A time in a query, as it stands in rows."""
    try:
        found = datetime.fromisoformat(text.replace(" ", "+") if "T" in text else text)
        if found.tzinfo is None:
            found = found.replace(tzinfo=UTC)
        return iso(found.timestamp())  # its year here may be before 1 or after 9999
    except (ValueError, OverflowError) as why:
        raise Invalid(
            f"Invalid input for query parameters {name}. Value: {text[:60]}. It is not a time such"
            " as 2026-11-16T03:04:05Z."
        ) from why


def check_span(since: str | None, before: str | None) -> None:
    """Refuse a time that ends before it begins."""
    if since is not None and before is not None and before < since:
        raise Invalid("The value of changes-since must be less than or equal to changes-before.")


def unexpected(key: str) -> Invalid:
    """The refusal of an argument that a list does not know."""
    return Invalid(
        "Invalid input for query parameters. Additional properties are not allowed"
        f" ('{key[:80]}' was unexpected)"
    )


limit = whole(0)


def marker(name: str, value: Any) -> str:
    """Where the last page ended."""
    return str(value)
