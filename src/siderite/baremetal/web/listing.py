"""The query of a node list: filters, order, page and fields, each since its version."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from urllib.parse import urlencode

from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.wire import NODE_FIELDS
from siderite.baremetal.domain.wire import SINCE
from siderite.baremetal.web.versions import FILTER_SINCE
from siderite.core.errors import Invalid
from siderite.core.errors import NotAcceptable
from siderite.core.http import Request
from siderite.core.ids import is_uuid
from siderite.core.store.table import Page
from siderite.core.store.table import Where

_EQUAL = frozenset({
    "driver", "resource_class", "fault", "conductor_group", "conductor", "owner", "lessee",
    "instance_name", "parent_node",
})  # fmt: skip
_UUIDS = frozenset({"instance_uuid", "chassis_uuid"})
_FLAGS = frozenset({
    "associated", "maintenance", "retired", "sharded", "include_children", "detail",
})  # fmt: skip
_UNSORTABLE = frozenset({
    "links", "ports", "states", "portgroups", "volume", "driver_info", "driver_internal_info",
    "extra", "instance_info", "properties", "clean_step", "deploy_step", "service_step",
    "raid_config", "target_raid_config", "network_data", "traits", "wait_reason", "deadline",
})  # fmt: skip
_TRUE = ("true", "1", "yes", "on", "t", "y")
_FALSE = ("false", "0", "no", "off", "f", "n")
_WHOLE = re.compile(r"[0-9]+\Z")
_MANY_DIGITS = 9
_MOST_SHARDS = 1000
_MOST_TEXT = 4096
_NOT_REPEATED = frozenset({"marker"})


@dataclass(slots=True)
class Listing:
    """What a list request asks for."""

    where: list[Where] = field(default_factory=list)
    limit: int = 0
    marker: str | None = None
    sort: str = "id"
    descending: bool = False
    fields: Sequence[str] | None = None
    detail: bool = False
    kept: list[tuple[str, str]] = field(default_factory=list)

    @property
    def page(self) -> Page:
        """The part of the list to fetch."""
        return Page(self.limit, self.marker, self.sort, self.descending)

    def following(self, url: str, count: int, last: str | None) -> str | None:
        """Where the list goes on, if this page is full; with every filter that this one had."""
        if last is None or count < self.limit:
            return None
        return f"{url}?{urlencode([*self.kept, ('marker', last)])}"


def parse(request: Request, *, detail: bool, max_limit: int) -> Listing:
    """The query of a list."""
    listing = Listing(limit=max_limit, detail=detail)
    children = False
    flags: dict[str, bool] = {}
    for key, value in request.query:
        since = FILTER_SINCE.get(key)
        if since is None:
            raise Invalid(
                f"Unexpected arguments: {key[:80]}. A list of nodes takes:"
                f" {', '.join(FILTER_SINCE)}."
            )
        if since > request.version:
            raise NotAcceptable(
                f"{key} needs API version 1.{since}; this request has 1.{request.version}."
            )
        if key not in _NOT_REPEATED:
            listing.kept.append((key, value))
        if key in _FLAGS:
            flags[key] = _flag(key, value)
        elif key == "parent_node":
            children = True
            listing.where.append(Where("parent_node = ?", (_uuid(key, value),)))
        elif key in _EQUAL:
            listing.where.append(Where(f"{key} = ?", (value,)))
        elif key in _UUIDS:
            listing.where.append(Where(f"{key} = ?", (_uuid(key, value),)))
        else:
            _special(listing, request.version, key, value, max_limit)
    _flags(listing, flags)
    if not children and not flags.get("include_children"):
        listing.where.append(Where("parent_node IS NULL"))
    if listing.detail and listing.fields is not None:
        raise Invalid("Can't fetch a subset of fields with 'detail' set.")
    return listing


def _flags(listing: Listing, flags: dict[str, bool]) -> None:
    if flags.get("detail"):
        listing.detail = True
    for key in ("maintenance", "retired"):
        if key in flags:
            listing.where.append(Where(f"{key} = ?", (int(flags[key]),)))
    for key, column in (("associated", "instance_uuid"), ("sharded", "shard")):
        if key in flags:
            listing.where.append(Where(f"{column} IS {'NOT ' if flags[key] else ''}NULL"))


def _special(listing: Listing, version: int, key: str, value: str, max_limit: int) -> None:
    if key == "limit":
        listing.limit = _limit(value, max_limit)
    elif key == "marker":
        listing.marker = _uuid(key, value)
    elif key == "sort_dir":
        if value not in ("asc", "desc"):
            raise Invalid(
                f"Invalid sort direction: {value[:40]}. Acceptable values are 'asc' or 'desc'."
            )
        listing.descending = value == "desc"
    elif key == "sort_key":
        listing.sort = _sort_key(value, version)
    elif key == "fields":
        listing.fields = fields(value, version)
    elif key == "provision_state":
        listing.where.append(_provision_state(value))
    elif key == "shard":
        names = value.split(",")
        if len(names) > _MOST_SHARDS:
            raise Invalid(f"shard takes at most {_MOST_SHARDS} names; ask in several lists.")
        listing.where.append(Where(f"shard IN ({', '.join('?' * len(names))})", tuple(names)))
    elif key == "project":
        listing.where.append(Where("(owner = ? OR lessee = ?)", (value, value)))
    elif key == "description_contains":
        if len(value) > _MOST_TEXT:
            raise Invalid(f"description_contains takes at most {_MOST_TEXT} characters.")
        literal = value.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        like = "lower(description) LIKE lower(?) ESCAPE '\\'"
        listing.where.append(Where(like, (f"%{literal}%",)))


def fields(value: str, version: int) -> list[str]:
    """The fields that a request wants to see."""
    names = [name for name in value.split(",") if name]
    for name in names:
        since = SINCE.get(name)
        if since is None:
            raise Invalid(f"Field(s) {name[:80]!r} are not valid; a node has: {', '.join(SINCE)}.")
        if since > version:
            raise NotAcceptable(
                f"The field {name} needs API version 1.{since}; this request has 1.{version}."
            )
    if not names:
        raise Invalid("fields is empty; name the fields, separated by commas.")
    return names


def _provision_state(value: str) -> Where:
    if value in ("None", "none", "null"):
        value = "available"
    if value not in NODE.states:
        raise Invalid(
            f'Provision state "{value[:40]}" is not valid; the states are:'
            f" {', '.join(NODE.states)}."
        )
    return Where("provision_state = ?", (value,))


def _sort_key(value: str, version: int) -> str:
    if value == "id":
        return value
    if value not in SINCE or value in _UNSORTABLE:
        possible = ", ".join(name for name, _ in NODE_FIELDS if name not in _UNSORTABLE)
        raise Invalid(
            f"The sort_key value {value[:80]!r} is invalid for sorting; use one of: {possible}."
        )
    if SINCE[value] > version:
        raise NotAcceptable(f"sort_key {value} needs API version 1.{SINCE[value]}.")
    return value


def _limit(value: str, most: int) -> int:
    if not _WHOLE.match(value) or not value.strip("0"):
        raise Invalid(f"limit must be a positive whole number, not {value[:40]!r}.")
    return most if len(value) > _MANY_DIGITS else min(int(value), most)


def _flag(key: str, value: str) -> bool:
    word = value.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise Invalid(f"{key} must be true or false, not {value[:40]!r}.")


def _uuid(key: str, value: str) -> str:
    if not is_uuid(value):
        raise Invalid(f"{key} must be a UUID, not {value[:80]!r}.")
    return value.lower()
