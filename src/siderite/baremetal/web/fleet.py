"""What there is to know of the whole service: its hosts, shards, and which node is whose child."""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

import msgspec

from siderite.baremetal.domain.fields import URL
from siderite.baremetal.domain.fields import links
from siderite.baremetal.usecases import conductors
from siderite.baremetal.usecases.node import find
from siderite.baremetal.web import address
from siderite.baremetal.web import listing
from siderite.baremetal.web.views import linked
from siderite.baremetal.web.views import with_links
from siderite.core import shape
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import raw
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

CONDUCTORS_SINCE, SHARDS_SINCE, CHILDREN_SINCE = 49, 82, 83
_ARGUMENTS = ("limit", "marker", "sort_key", "sort_dir", "fields", "detail")
_FIELDS = (
    "hostname", "conductor_group", "alive", "drivers", "created_at", "updated_at", "links",
)  # fmt: skip
_BRIEF = ("hostname", "conductor_group", "alive")
_UNSORTABLE = ("alive", "drivers", "links")


def _fields(value: str) -> Sequence[str]:
    names = [name for name in value.split(",") if name]
    wrong = next((name for name in names if name not in _FIELDS), None)
    if wrong is not None or not names:
        raise Invalid(
            f"Field(s) {str(wrong)[:80]!r} are not valid; a conductor has: {', '.join(_FIELDS)}."
        )
    return names


def _shown(found: conductors.Conductor, fields: Sequence[str]) -> dict[str, Any]:
    whole = {
        "hostname": found.hostname, "conductor_group": found.conductor_group,
        "alive": found.alive, "drivers": found.drivers, "created_at": found.created_at,
        "updated_at": found.updated_at,
    }  # fmt: skip
    picked = {name: whole[name] for name in whole if name in fields}
    return {**picked, "links": links("conductors", found.hostname)}


def conductor_form() -> shape.Json:
    """The form of a host of which some fields may be shown."""
    hosts = shape.both(conductors.Conductor)
    return shape.whole(linked(*(_shown(host, _FIELDS) for host in hosts)))


def conductors_form() -> shape.Json:
    """The form of a list of hosts."""
    return shape.listed("conductors", conductor_form(), "next")


async def conductor_index(service: "Service", request: Request) -> Response:
    """GET /v1/conductors"""
    query = dict(request.query)
    extra = next((key for key in query if key not in _ARGUMENTS), None)
    if extra is not None:
        raise Invalid(
            f"Unexpected arguments: {extra[:80]}. A list of conductors takes:"
            f" {', '.join(_ARGUMENTS)}."
        )
    fields: Sequence[str] = _BRIEF
    if "fields" in query:
        fields = _fields(query["fields"])
    if "detail" in query and listing.flag("detail", query["detail"]):
        if "fields" in query:
            raise Invalid("Can't fetch a subset of fields with 'detail' set.")
        fields = _FIELDS
    found = await conductors.all_of_them(service.ctx)
    key = query.get("sort_key", "id")
    if key != "id" and (key not in _FIELDS or key in _UNSORTABLE):
        raise Invalid(f"The sort_key value {key[:80]!r} is invalid for sorting.")
    if key != "id":
        found.sort(key=lambda one: str(getattr(one, key)))
    if listing.is_descending(query.get("sort_dir", "asc")):
        found.reverse()
    page, following = _page(service, request, found, query)
    answer: dict[str, Any] = {"conductors": [_shown(one, fields) for one in page]}
    return raw(with_links(answer | following, service.base(request)))


def _page(
    service: "Service",
    request: Request,
    found: list[conductors.Conductor],
    query: dict[str, str],
) -> tuple[list[conductors.Conductor], dict[str, str]]:
    """The part that is asked for, and where it goes on."""
    most = service.ctx.settings.max_limit
    limit = listing.limit(query["limit"], most) if "limit" in query else most
    if "marker" in query:
        names = [one.hostname for one in found]
        if query["marker"] not in names:
            raise _missing(query["marker"])
        found = found[names.index(query["marker"]) + 1 :]
    page = found[:limit]
    if len(page) < limit:
        return page, {}
    ask = listing.Listing(limit=limit)
    ask.kept = [(key, value) for key, value in request.query if key != "marker"]
    url = f"{service.base(request)}v1/conductors"
    return page, {"next": str(ask.following(url, len(page), page[-1].hostname))}


def _missing(host: str) -> NotFound:
    return NotFound(
        f"Conductor {host[:200]} could not be found; `conductor list` shows those there are."
    )


async def conductor(service: "Service", request: Request) -> Response:
    """GET /v1/conductors/{hostname}"""
    fields: Sequence[str] = _FIELDS
    for key, value in request.query:
        if key != "fields":
            raise Invalid(f"Unexpected arguments: {key[:80]}. One conductor takes: fields.")
        fields = _fields(value)
    for found in await conductors.all_of_them(service.ctx):
        if found.hostname == request.params[0]:
            return raw(with_links(_shown(found, fields), service.base(request)))
    raise _missing(request.params[0])


async def shards(service: "Service", request: Request) -> Response:
    """GET /v1/shards"""
    if request.query:
        raise Invalid(f"Unexpected arguments: {request.query[0][0][:80]}. Shards take none.")
    counts = await find.shards(service.ctx)
    found = [{"name": str(name), "count": count} for name, count in counts]
    return reply({"shards": found})


def shards_form() -> shape.Json:
    """The form of the list of shards."""
    return shape.wire({"shards": [{"name": "", "count": 1}]})


async def children(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/children"""
    node = await find.node(service.ctx, address.ident(request), request.who)
    found = await find.children(service.ctx, node, request.who)
    return raw(with_links(_children(node.uuid, found), service.base(request)))


def _children(node: str, found: Sequence[str]) -> dict[str, Any]:
    link = f'{{"href":"{URL}v1/nodes/{node}/children","rel":"self"}}'
    return {"children": found, "links": msgspec.Raw(link.encode())}


def children_form() -> shape.Json:
    """The form of a node's children."""
    return linked(_children("", [""]))
