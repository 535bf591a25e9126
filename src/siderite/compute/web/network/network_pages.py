"""Lists in Neutron's manner: filters, pages, chosen fields."""

from typing import Any
from urllib.parse import urlencode

from siderite.core.check import is_whole
from siderite.core.errors import Invalid
from siderite.core.http import Request

View = dict[str, Any]
_PAGE = frozenset({"limit", "marker", "page_reverse", "sort_key", "sort_dir", "fields"})


def chosen(found: list[View], request: Request) -> list[View]:
    """What the filters leave: one argument given again is an or."""
    wanted: dict[str, set[str]] = {}
    for name, value in request.query:
        if name not in _PAGE:
            wanted.setdefault(name, set()).add(value)
    for name, values in wanted.items():
        found = [one for one in found if _meets(one, name, values)]
    return found


def _meets(one: View, name: str, values: set[str]) -> bool:
    if name == "fixed_ips":
        texts = {f"{key}={fixed[key]}" for fixed in one.get(name, ()) for key in fixed}
        return bool(texts & values)
    if name not in one:
        return True  # as Neutron does with what it does not know
    held = one[name]
    if isinstance(held, bool):
        return str(held).lower() in {value.lower() for value in values}
    return str(held) in values


def limit_of(request: Request) -> int | None:
    """The page's size, if one is asked for; 0 is as good as none."""
    limit = dict(request.query).get("limit")
    if limit is None:
        return None
    if not is_whole(limit, 9):
        raise Invalid("limit must be a whole number from 0 on.")
    return int(limit) or None


def paged(found: list[View], request: Request) -> tuple[list[View], bool]:
    """The page that is asked for, and whether there is more."""
    marker, limit = dict(request.query).get("marker"), limit_of(request)
    if marker is not None:
        places = [at for at, one in enumerate(found) if one["id"] == marker]
        if not places:
            raise Invalid(f"marker {marker[:80]} is not in the list. Ask from the start.")
        found = found[places[0] + 1 :]
    if limit is None:
        return found, False
    return found[:limit], len(found) > limit


def listed(request: Request, path: str, key: str, page: list[View], following: str | None) -> View:
    """The body of a list; `following` is the marker of the next page, if there is one."""
    body: View = {key: [fields(one, request) for one in page]}
    if following is not None:
        pairs = [pair for pair in request.query if pair[0] != "marker"]
        query = urlencode([*pairs, ("marker", following)])
        href = f"{request.base}/network/v2.0/{path}?{query}"
        body[f"{key}_links"] = [{"rel": "next", "href": href}]
    return body


def fields(one: View, request: Request) -> View:
    """Only the fields that are asked for, if some are."""
    wanted = {value for name, value in request.query if name == "fields"}
    return {name: value for name, value in one.items() if name in wanted} if wanted else one
