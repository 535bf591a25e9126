"""The addresses of flavors."""

import re
from typing import TYPE_CHECKING
from typing import Any

from siderite.compute.domain import flavor_wire
from siderite.compute.domain.flavor import Flavor
from siderite.compute.domain.lines import cut
from siderite.compute.usecases.project import flavors
from siderite.compute.web import forms
from siderite.compute.web import queries
from siderite.compute.web import views
from siderite.compute.web.forms import Key
from siderite.compute.web.versions import RANGE
from siderite.core import shape
from siderite.core.check import is_whole
from siderite.core.check import or_null
from siderite.core.check import truth
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import raw
from siderite.core.ids import new_uuid
from siderite.core.json_body import parse_json
from siderite.core.store.table import Where

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

_STRICT, _DESCRIPTION, _NAME_FILTER = 75, 55, 102
_SORT = {
    "created_at": "created_at", "description": "name", "disabled": "id", "ephemeral_gb": "id",
    "flavorid": "flavorid", "id": "id", "is_public": "is_public", "memory_mb": "ram_mib",
    "name": "name", "root_gb": "disk_gib", "rxtx_factor": "id", "swap": "id",
    "updated_at": "COALESCE(updated_at, '')", "vcpu_weight": "id", "vcpus": "vcpus",
}  # fmt: skip
_DECIMAL = re.compile(r"[0-9]{1,39}(\.[0-9]{1,39})?")
_MOST_FACTOR = 3.4e38
_QUERY = frozenset({"limit", "marker", "is_public", "minRam", "minDisk", "sort_key", "sort_dir"})


def _item(service: "Service", request: Request, flavor: Flavor) -> Response:
    text = views.flavor(service, request, flavor_wire.render(flavor))
    return raw(f'{{"flavor":{text}}}'.encode())


async def show(service: "Service", request: Request) -> Response:
    """GET /v2.1/flavors/{id}"""
    return _item(
        service, request, await flavors.flavor(service.ctx, request.params[0], request.who)
    )


async def index(service: "Service", request: Request) -> Response:
    """GET /v2.1/flavors"""
    rows, link = await _page(service, request, "flavors")
    shown = [views.flavor(service, request, str(row[2])) for row in rows]
    items = ",".join(
        f'{{"id":{_text(row[0])},"name":{_text(row[1])},"links":{_links(text)}'
        + (f',"description":{_member(text, "description")}' if _has(request) else "")
        + "}"
        for row, text in zip(rows, shown, strict=True)
    )
    return raw(views.page("flavors", items, link))


def _has(request: Request) -> bool:
    return request.version >= _DESCRIPTION


def _text(value: Any) -> str:
    return views.encode(str(value)).decode()


def _member(text: str, name: str) -> str:
    return views.encode(parse_json(text.encode())[name]).decode()


def _links(text: str) -> str:
    return _member(text, "links")


async def detail(service: "Service", request: Request) -> Response:
    """GET /v2.1/flavors/detail"""
    rows, link = await _page(service, request, "flavors/detail")
    items = ",".join(views.flavor(service, request, str(row[2])) for row in rows)
    return raw(views.page("flavors", items, link))


async def _page(service: "Service", request: Request, path: str) -> tuple[Any, str | None]:
    ctx, limit = service.ctx, queries.limit_of(request, service.ctx.settings.max_limit)
    query = dict(request.query)
    for key in query:
        allowed = key in _QUERY or (key == "name" and request.version >= _NAME_FILTER)
        if not allowed and request.version >= _STRICT:
            raise queries.unexpected(key)
    where = []
    for key, column in (("minRam", "ram_mib"), ("minDisk", "disk_gib")):
        if key in query:
            if not is_whole(query[key]):
                raise Invalid(f"Invalid {key} filter [{query[key][:40]}]")
            where.append(Where(f"{column} >= ?", (int(query[key]),)))
    if "name" in query and request.version >= _NAME_FILTER:
        where.append(Where("name = ?", (query["name"],)))
    key = query.get("sort_key", "flavorid")
    way = query.get("sort_dir", "asc")
    if key not in _SORT or way not in ("asc", "desc"):
        raise Invalid(f"Invalid input for query parameters sort_key. Value: {key[:40]} {way[:10]}.")
    if "marker" in query:
        where.append(await _beyond(service, request, _SORT[key], way, query["marker"]))
    order = f"{_SORT[key]} {way}, id {way}"
    if limit == 0:
        return (), None
    rows = await flavors.page(
        ctx, where, order=order, limit=limit, who=request.who, is_public=_public(query)
    )
    last = views.following(service, request, path, str(rows[-1][0])) if rows else None
    return rows, last if len(rows) == limit else None


async def _beyond(
    service: "Service", request: Request, column: str, way: str, marker: str
) -> Where:
    try:
        found = await flavors.flavor(service.ctx, marker, request.who)
    except NotFound as why:
        raise Invalid(f"marker [{marker[:80]}] not found. Ask from the start.") from why
    sign = ">" if way == "asc" else "<"
    at = "FROM flavors WHERE uuid = ?"
    return Where(
        f"({column}, id) {sign} ((SELECT {column} {at}), (SELECT id {at}))",
        (found.uuid, found.uuid),
    )


def _public(query: dict[str, str]) -> bool | None:
    text = query.get("is_public", "true").strip().lower()
    if text in ("none", "null"):
        return None
    found = truth(text)
    if found is None:
        raise Invalid(f"Invalid is_public filter [{text[:40]}]")
    return found


@shape.like({"type": ["string", "integer", "null"], "maxLength": 255})
def _flavor_id(name: str, value: Any) -> str | None:
    if value is None:
        return None
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    found = str(forms.text(1, 255, r"[a-zA-Z0-9. _-]*")(name, text))
    if found != found.strip():
        raise forms.wrong(name, found, "it must have no spaces at its ends")
    return found


@shape.like({"type": ["number", "string"]})
def _factor(name: str, value: Any) -> float:
    is_text = isinstance(value, str) and _DECIMAL.fullmatch(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # Compared before it is converted: not every whole number can be.
    if not (is_text or is_number) or not 0 < (float(value) if is_text else value) < _MOST_FACTOR:
        raise forms.wrong(name, value, f"it must be a number above 0, and below {_MOST_FACTOR}")
    return float(value)


@shape.like({"type": ["integer", "string"], "minimum": 0})
def _swap(name: str, value: Any) -> Any:
    return 0 if value == "" else forms.whole(0)(name, value)


_CREATE = {
    "name": Key(forms.name, required=True),
    "id": Key(_flavor_id),
    "ram": Key(forms.whole(1), required=True),
    "vcpus": Key(forms.whole(1), required=True),
    "disk": Key(forms.whole(0), required=True),
    "OS-FLV-EXT-DATA:ephemeral": Key(forms.whole(0)),
    "swap": Key(_swap),
    "rxtx_factor": Key(_factor, until=101),
    "os-flavor-access:is_public": Key(forms.flag),
    "description": Key(or_null(forms.text(0, 65535)), since=55),
}


_CHANGE = {"description": Key(or_null(forms.text(0, 65535)), required=True)}


def new() -> shape.Json:
    """The form of the body that makes a flavor."""
    return shape.under("flavor", forms.form(_CREATE))


def changed() -> shape.Json:
    """The form of the body that changes one."""
    return shape.under("flavor", forms.form(_CHANGE))


def _form() -> shape.Json:
    def view(flavor: Flavor, version: int) -> Any:
        text = cut(flavor_wire.render(flavor), flavor_wire.chosen(version))
        return parse_json(text.replace(flavor_wire.URL, "").encode())

    idle = shape.made_up(Flavor, swap_mib=0)
    return shape.across(view, [*shape.both(Flavor), idle], RANGE.every)


def shown() -> shape.Json:
    """The form of a flavor on the wire."""
    return shape.under("flavor", _form())


def page_form() -> shape.Json:
    """The form of a list of flavors, whole or in short."""
    return shape.listed("flavors", shape.whole(_form()), "flavors_links")


async def create(service: "Service", request: Request) -> Response:
    """POST /v2.1/flavors"""
    asked = await forms.under(request, "flavor", _CREATE)
    ident = asked.get("id")
    fields = {
        "flavorid": new_uuid() if ident in (None, "auto") else ident,
        "name": asked["name"],
        "ram_mib": asked["ram"],
        "vcpus": asked["vcpus"],
        "disk_gib": asked["disk"],
        "ephemeral_gib": asked.get("OS-FLV-EXT-DATA:ephemeral", 0),
        "swap_mib": asked.get("swap", 0),
        "rxtx_factor": asked.get("rxtx_factor", 1.0),
        "is_public": asked.get("os-flavor-access:is_public", True),
        "description": asked.get("description"),
    }
    return _item(
        service, request, await flavors.create(service.ctx, fields, service.cause(request))
    )


async def put(service: "Service", request: Request) -> Response:
    """PUT /v2.1/flavors/{id}, from 2.55"""
    asked = await forms.under(request, "flavor", _CHANGE)
    flavor = await flavors.change(
        service.ctx, request.params[0], lambda _: asked, who=request.who,
        cause=service.cause(request),
    )  # fmt: skip
    return _item(service, request, flavor)


async def remove(service: "Service", request: Request) -> Response:
    """DELETE /v2.1/flavors/{id}"""
    await flavors.remove(
        service.ctx, request.params[0], who=request.who, cause=service.cause(request)
    )
    return Response(status=202)


ROUTES = (
    Route("GET", "/v2.1/flavors", index, "flavors:read", gives=page_form),
    Route("GET", "/v2.1/flavors/detail", detail, "flavors:read", gives=page_form),
    Route("POST", "/v2.1/flavors", create, "flavors:manage", takes=new, gives=shown),
    Route("GET", "/v2.1/flavors/{id}", show, "flavors:read", gives=shown),
    Route("PUT", "/v2.1/flavors/{id}", put, "flavors:manage", since=55, takes=changed, gives=shown),
    Route("DELETE", "/v2.1/flavors/{id}", remove, "flavors:manage"),
)
