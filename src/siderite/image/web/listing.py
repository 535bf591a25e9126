"""The query of a list of images: filters, order and page."""

import re
from urllib.parse import urlencode

import msgspec

from siderite.core.check import is_whole
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.store.table import Where
from siderite.image.domain.image import MEMBER_STATUSES
from siderite.image.usecases.context import Context
from siderite.image.usecases.find import seen_by
from siderite.image.usecases.find import tagged
from siderite.image.usecases.find import with_property

USUAL_LIMIT = 25
Order = tuple[str, bool]
"""A key, and whether the largest come first."""
SORT_KEYS = (
    "name", "status", "container_format", "disk_format", "size", "id", "created_at", "updated_at",
    "min_disk", "min_ram", "visibility", "owner", "protected",
)  # fmt: skip
_EQUAL = ("checksum", "os_hash_value", "owner")
_LISTS = {
    "id": "uuid", "name": "name", "status": "status", "container_format": "container_format",
    "disk_format": "disk_format",
}  # fmt: skip
"""Filters that also take `in:a,b`, and the column behind each."""
_SIZES = {"size_min": "size >= ?", "size_max": "size <= ?"}
_NUMBERS = ("min_disk", "min_ram", "size")
_FLAGS = ("protected", "os_hidden")
_MOMENTS = ("created_at", "updated_at")
_OPERATORS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "eq": "=", "neq": "<>"}
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|\+00:00)?)?\Z")
_QUOTED = re.compile(r'"([^"]*)"|([^,"]+)')
_MOST = 100


class Ask(msgspec.Struct):
    """What a list request asks for; `kept` is the query of the next page."""

    where: list[Where] = msgspec.field(default_factory=list)
    order: list[Order] = msgspec.field(default_factory=list)
    limit: int = USUAL_LIMIT
    marker: str | None = None
    kept: list[tuple[str, str]] = msgspec.field(default_factory=list)

    def link(self, marker: str | None = None) -> str:
        """The address of the first page, or of that after the marker."""
        pairs = [*self.kept, *([] if marker is None else [("marker", marker)])]
        return "/v2/images" + (f"?{urlencode(pairs)}" if pairs else "")


def parse(ctx: Context, request: Request) -> Ask:
    """The query, or a sentence about what is wrong with it."""
    ask = Ask()
    keys: list[str] = []
    ways: list[str] = []
    visibility: str | None = None
    member_status = "accepted"
    hidden = 0
    for name, value in request.query:
        if name != "marker":
            ask.kept.append((name, value))
        match name:
            case "marker":
                ask.marker = value
            case "limit":
                ask.limit = min(whole(name, value), ctx.max_limit)
            case "sort_key":
                keys.append(_key(value))
            case "sort_dir":
                ways.append(_way(value))
            case "sort":
                ask.order += [_order(part) for part in value.split(",") if part]
            case "visibility":
                visibility = value
            case "member_status":
                member_status = _member_status(value)
            case "os_hidden":
                hidden = _flag(name, value)
            case "tag":
                ask.where.append(tagged(ctx, value))
            case _:
                ask.where.append(_filter(ctx, name, value))
    ask.where += [Where("os_hidden = ?", (hidden,))]
    ask.where += seen_by(request.who, visibility, member_status)
    ask.order = _ordered(ask.order, keys, ways)
    return ask


def _filter(ctx: Context, name: str, value: str) -> Where:
    if name in _LISTS:
        if value.startswith("in:"):
            values = [one or other for one, other in _QUOTED.findall(value[3:])]
            if not values or len(values) > _MOST:
                raise Invalid(f"{name}=in: takes 1 to {_MOST} values, separated by commas.")
            return Where(f"{_LISTS[name]} IN ({', '.join('?' * len(values))})", tuple(values))
        return Where(f"{_LISTS[name]} = ?", (value,))
    if name in _EQUAL:
        return Where(f"{name} = ?", (value,))
    if name in _SIZES:
        return Where(_SIZES[name], (whole(name, value),))
    if name in _NUMBERS:
        return Where(f"{name} = ?", (whole(name, value),))
    if name in _FLAGS:
        return Where(f"{name} = ?", (_flag(name, value),))
    if name in _MOMENTS:
        return _moment(name, value)
    return with_property(ctx, name, value)


def _moment(name: str, value: str) -> Where:
    operator, colon, moment = value.partition(":")
    if not colon or operator not in _OPERATORS:
        operator, moment = "eq", value
    if not _MOMENT.match(moment):
        raise Invalid(
            f"{name} must be a time such as gte:2026-01-01T00:00:00Z; the operators are"
            f" {', '.join(_OPERATORS)}."
        )
    # What clients see has whole seconds, so that is what is compared.
    text = f"{moment[:10]}T{moment[11:19] or '00:00:00'}"
    if len(text) < 19:  # noqa: PLR2004
        text += ":00"
    return Where(f"substr({name}, 1, 19) {_OPERATORS[operator]} ?", (text,))


def _ordered(sorts: list[Order], keys: list[str], ways: list[str]) -> list[Order]:
    if sorts and (keys or ways):
        raise Invalid("Give either sort, or sort_key and sort_dir, not both.")
    if sorts:
        return _once(sorts)
    keys = keys or ["created_at"]
    if len(ways) > 1 and len(ways) != len(keys):
        raise Invalid("Give one sort_dir, or one for each sort_key.")
    if len(ways) <= 1:
        ways = (ways or ["desc"]) * len(keys)
    return _once([(key, way == "desc") for key, way in zip(keys, ways, strict=True)])


def _once(orders: list[Order]) -> list[Order]:
    """Each key where it first stands: again it orders nothing, and databases take only so many."""
    found: dict[str, bool] = {}
    for key, is_descending in orders:
        found.setdefault(key, is_descending)
    return list(found.items())


def _order(part: str) -> Order:
    key, _, way = part.partition(":")
    return _key(key), _way(way or "desc") == "desc"


def _key(value: str) -> str:
    if value not in SORT_KEYS:
        raise Invalid(f"sort key {value[:40]!r} is not one of {', '.join(SORT_KEYS)}.")
    return value


def _way(value: str) -> str:
    if value not in ("asc", "desc"):
        raise Invalid(f"sort direction {value[:40]!r} must be asc or desc.")
    return value


def _member_status(value: str) -> str:
    if value not in (*MEMBER_STATUSES, "all"):
        raise Invalid(f"member_status must be one of {', '.join(MEMBER_STATUSES)}, all.")
    return value


def whole(name: str, value: str) -> int:
    """A whole number in a query."""
    if not is_whole(value):
        raise Invalid(f"{name} must be a whole number from 0 on, not {value[:40]!r}.")
    return int(value)


def _flag(name: str, value: str) -> int:
    word = value.lower()
    if word not in ("true", "false"):
        raise Invalid(f"{name} must be true or false, not {value[:40]!r}.")
    return int(word == "true")
