"""The query of a list: filters, order, page and fields, each since its version.

What all lists have in common is here; each resource says by its `Rules` what else it takes.
"""

import re
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec

from siderite.baremetal.domain.fields import Fields
from siderite.core.check import truth
from siderite.core.errors import Invalid
from siderite.core.errors import NotAcceptable
from siderite.core.http import Request
from siderite.core.ids import is_uuid
from siderite.core.store.table import Page
from siderite.core.store.table import Where

_WHOLE = re.compile(r"[0-9]+\Z")
_MANY_DIGITS = 9
_MOST_NAMES = 1000
_MOST_TEXT = 4096
_NOT_REPEATED = frozenset({"marker"})
FIELDS_SINCE = 8


class Rules(msgspec.Struct, frozen=True):
    """What a list of this resource takes: its query arguments since their versions."""

    noun: str
    fields: Fields[Any]
    since: Mapping[str, int]
    unsortable: frozenset[str]

    def chosen(self, value: str, version: int) -> list[str]:
        """The fields that a request wants to see."""
        names = [name for name in value.split(",") if name]
        known = self.fields.since
        for name in names:
            if name not in known:
                raise Invalid(
                    f"Field(s) {name[:80]!r} are not valid; a {self.noun} has: {', '.join(known)}."
                )
            if known[name] > version:
                raise NotAcceptable(
                    f"The field {name} needs API version 1.{known[name]}; this request has"
                    f" 1.{version}."
                )
        if not names:
            raise Invalid("fields is empty; name the fields, separated by commas.")
        return names

    def only_fields(self, request: Request) -> list[str] | None:
        """The query of a single resource, which can only choose fields."""
        chosen: list[str] | None = None
        version = request.version
        for key, value in request.query:
            if key != "fields":
                raise Invalid(f"Unexpected arguments: {key[:80]}. One {self.noun} takes: fields.")
            if version < FIELDS_SINCE:
                raise NotAcceptable(f"fields needs API version 1.8; this request has 1.{version}.")
            chosen = [*(chosen or ()), *self.chosen(value, version)]
        return chosen

    def sort_key(self, value: str, version: int) -> str:
        """The field to sort by."""
        if value == "id":
            return value
        known = self.fields.since
        if value not in known or value in self.unsortable:
            possible = ", ".join(name for name in known if name not in self.unsortable)
            raise Invalid(
                f"The sort_key value {value[:80]!r} is invalid for sorting; use one of: {possible}."
            )
        if known[value] > version:
            raise NotAcceptable(f"sort_key {value} needs API version 1.{known[value]}.")
        return value


class Listing(msgspec.Struct):
    """What a list request asks for; `filters` are the arguments that only its resource knows."""

    filters: list[tuple[str, str]] = msgspec.field(default_factory=list)
    where: list[Where] = msgspec.field(default_factory=list)
    limit: int = 0
    marker: str | None = None
    sort: str = "id"
    descending: bool = False
    fields: Sequence[str] | None = None
    detail: bool = False
    kept: list[tuple[str, str]] = msgspec.field(default_factory=list)

    @property
    def page(self) -> Page:
        """The part of the list to fetch."""
        return Page(self.limit, self.marker, self.sort, self.descending)

    @property
    def is_brief(self) -> bool:
        """Whether it asks for neither all fields nor for certain ones."""
        return not self.detail and self.fields is None

    def following(self, url: str, count: int, last: str | None) -> str | None:
        """Where the list goes on, if this page is full; with every filter that this one had."""
        if last is None or count < self.limit:
            return None
        return f"{url}?{urlencode([*self.kept, ('marker', last)])}"


def parse(rules: Rules, request: Request, *, detail: bool, max_limit: int) -> Listing:
    """The query of a list, but for what the filters mean."""
    listing = Listing(limit=max_limit, detail=detail)
    for key, value in request.query:
        since = rules.since.get(key)
        if since is None:
            raise Invalid(
                f"Unexpected arguments: {key[:80]}. A list of {rules.fields.kind} takes:"
                f" {', '.join(rules.since)}."
            )
        if since > request.version:
            raise NotAcceptable(
                f"{key} needs API version 1.{since}; this request has 1.{request.version}."
            )
        if key not in _NOT_REPEATED:
            listing.kept.append((key, value))
        if key == "limit":
            listing.limit = limit(value, max_limit)
        elif key == "marker":
            listing.marker = uuid(key, value)
        elif key == "sort_dir":
            listing.descending = is_descending(value)
        elif key == "sort_key":
            listing.sort = rules.sort_key(value, request.version)
        elif key == "fields":
            listing.fields = [*(listing.fields or ()), *rules.chosen(value, request.version)]
        elif key == "detail":
            listing.detail = flag(key, value) or listing.detail
        else:
            listing.filters.append((key, value))
    if listing.detail and listing.fields is not None:
        raise Invalid("Can't fetch a subset of fields with 'detail' set.")
    return listing


def is_descending(value: str) -> bool:
    """Which way a list goes."""
    if value not in ("asc", "desc"):
        raise Invalid(
            f"Invalid sort direction: {value[:40]}. Acceptable values are 'asc' or 'desc'."
        )
    return value == "desc"


def limit(value: str, most: int) -> int:
    """How long a page may be."""
    if not _WHOLE.match(value) or not value.strip("0"):
        raise Invalid(f"limit must be a positive whole number, not {value[:40]!r}.")
    return most if len(value) > _MANY_DIGITS else min(int(value), most)


def flag(key: str, value: str) -> bool:
    """True or false, as the words that clients send."""
    found = truth(value)
    if found is None:
        raise Invalid(f"{key} must be true or false, not {value[:40]!r}.")
    return found


def uuid(key: str, value: str) -> str:
    """A UUID, in lower case."""
    if not is_uuid(value):
        raise Invalid(f"{key} must be a UUID, not {value[:80]!r}.")
    return value.lower()


def one_of(column: str, key: str, value: str) -> Where:
    """The condition that a column is one of several names, separated by commas."""
    names = value.split(",")
    if len(names) > _MOST_NAMES:
        raise Invalid(f"{key} takes at most {_MOST_NAMES} names; ask in several lists.")
    return Where(f"{column} IN ({', '.join('?' * len(names))})", tuple(names))


def description_contains(value: str) -> Where:
    """The condition that the description has a text in it, in whichever case."""
    if len(value) > _MOST_TEXT:
        raise Invalid(f"description_contains takes at most {_MOST_TEXT} characters.")
    literal = value.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return Where("lower(description) LIKE lower(?) ESCAPE '\\'", (f"%{literal}%",), "none")
