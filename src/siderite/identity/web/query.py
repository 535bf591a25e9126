"""Reading a query string and path ids: filters as clients spell them."""

from collections.abc import Callable
from typing import TypeVar
from urllib.parse import urlencode

from siderite.core.check import is_whole
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.http import Request

T = TypeVar("T")

_MAX_ID = 255
_COMPARISONS: dict[str, Callable[[str, str], bool]] = {
    "contains": str.__contains__, "startswith": str.startswith, "endswith": str.endswith,
}  # fmt: skip


def text(request: Request, name: str) -> str | None:
    """The value of a filter; None if it is not given."""
    for key, value in request.query:
        if key == name:
            if "\0" in value:
                raise Invalid(f"The query's {name} has a NUL character; no name or id has one.")
            return value
    return None


def flag(request: Request, name: str) -> bool:
    """A switch: on if it is there, unless it says otherwise."""
    value = text(request, name)
    return value is not None and value.lower() not in ("0", "false", "no", "off")


def choice(request: Request, name: str) -> bool | None:
    """A yes-or-no filter; None if it is not given."""
    return None if text(request, name) is None else flag(request, name)


def fits(request: Request, name: str, value: str) -> bool:
    """Whether a text is as the query's inexact filters of it want it, such as `name__contains`; an
    `i` before the comparison leaves out case.
    """
    for key, wanted in request.query:
        field, _, how = key.partition("__")
        if field != name or not wanted:
            continue
        any_case = how.startswith("i")
        has = _COMPARISONS.get(how.removeprefix("i"))
        if has is None:  # also where the filter is an exact one
            continue
        if not (has(value.lower(), wanted.lower()) if any_case else has(value, wanted)):
            return False
    return True


def page(request: Request, found: list[T], ident: Callable[[T], str]) -> tuple[list[T], str | None]:
    """So many of a list as `limit` says, after the one that `marker` names; and the query that goes
    on behind them, if there are more. Without either it is all of them.
    """
    limit, marker = text(request, "limit"), text(request, "marker")
    if limit is not None and (not is_whole(limit) or int(limit) == 0):
        raise Invalid(f"limit must be a whole number from 1 on, not {limit[:40]!r}.")
    if marker is not None:
        before = [ident(one) for one in found]
        if marker not in before:
            raise Invalid(f"marker {marker[:80]!r} is not in this list; ask from the start.")
        found = found[before.index(marker) + 1 :]
    if limit is None or len(found) <= int(limit):
        return found, None
    found = found[: int(limit)]
    pairs = [(name, value) for name, value in request.query if name != "marker"]
    return found, urlencode([*pairs, ("marker", ident(found[-1]))])


def path_id(request: Request, position: int = 0) -> str:
    """An id out of the path."""
    given = request.params[position]
    if "\0" in given or len(given) > _MAX_ID:
        raise NotFound("There is nothing of that id: ids have no NUL and at most 255 characters.")
    return given
