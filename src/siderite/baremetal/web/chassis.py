"""The addresses of chassis: parse, command, call, view."""

from typing import TYPE_CHECKING

from siderite.baremetal.domain.wire import CHASSIS_FIELDS
from siderite.baremetal.usecases import chassis
from siderite.baremetal.web import address
from siderite.baremetal.web import forms
from siderite.baremetal.web import listing
from siderite.baremetal.web import nodes
from siderite.baremetal.web import views
from siderite.baremetal.web.versions import CHASSIS_FILTER_SINCE
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import raw
from siderite.core.store.table import Where

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

RULES = listing.Rules(
    "chassis", CHASSIS_FIELDS, CHASSIS_FILTER_SINCE, frozenset({"links", "nodes", "extra"})
)
FORM = forms.Form(
    "chassis",
    CHASSIS_FIELDS.since,
    # A patch may name the uuid, as upstream's may; changing it is refused, and announced.
    {"description": forms.text(255), "extra": forms.obj, "uuid": forms.uuid},
    required=frozenset({"uuid"}),
)


def _uuid(request: Request) -> str:
    return address.uuid(request, "chassis")


async def create(service: "Service", request: Request) -> Response:
    """POST /v1/chassis"""
    fields = FORM.created(await request.json(), request.version)
    made = await chassis.create(service.ctx, fields, cause=service.cause(request))
    base = service.base(request)
    body = views.CHASSIS.one(CHASSIS_FIELDS.render(made), request.version, base)
    return raw(body, 201, [(b"location", f"{base}v1/chassis/{made.uuid}".encode())])


async def show(service: "Service", request: Request) -> Response:
    """GET /v1/chassis/{chassis}"""
    fields = RULES.only_fields(request)
    body = await chassis.body_of(service.ctx, _uuid(request))
    return raw(views.CHASSIS.one(body, request.version, service.base(request), fields))


async def patch(service: "Service", request: Request) -> Response:
    """PATCH /v1/chassis/{chassis}"""
    patches = FORM.patches(await request.json(), request.version)
    changed = await chassis.update(
        service.ctx,
        _uuid(request),
        lambda value: FORM.patched(value, patches),
        cause=service.cause(request),
    )
    body = CHASSIS_FIELDS.render(changed)
    return raw(views.CHASSIS.one(body, request.version, service.base(request)))


async def remove(service: "Service", request: Request) -> Response:
    """DELETE /v1/chassis/{chassis}"""
    await chassis.remove(service.ctx, _uuid(request), cause=service.cause(request))
    return Response(status=204)


async def index(service: "Service", request: Request) -> Response:
    """GET /v1/chassis"""
    return await _listed(service, request, "chassis", detail=False)


async def detail(service: "Service", request: Request) -> Response:
    """GET /v1/chassis/detail"""
    return await _listed(service, request, "chassis/detail", detail=True)


async def _listed(service: "Service", request: Request, path: str, *, detail: bool) -> Response:
    ask = listing.parse(RULES, request, detail=detail, max_limit=service.ctx.settings.max_limit)
    rows = await chassis.page(service.ctx, views.CHASSIS.columns(ask), ask.where, ask.page)
    base = service.base(request)
    return raw(views.CHASSIS.page(ask, rows, version=request.version, base=base, path=path))


async def nodes_of(service: "Service", request: Request) -> Response:
    """GET /v1/chassis/{chassis}/nodes"""
    return await _nodes(service, request, "nodes", detail=False)


async def nodes_of_detail(service: "Service", request: Request) -> Response:
    """GET /v1/chassis/{chassis}/nodes/detail"""
    return await _nodes(service, request, "nodes/detail", detail=True)


async def _nodes(service: "Service", request: Request, end: str, *, detail: bool) -> Response:
    found = await chassis.chassis(service.ctx, _uuid(request))
    where = [Where("chassis_uuid = ?", (found.uuid,))]
    path = f"chassis/{found.uuid}/{end}"
    return await nodes.listed(service, request, path, detail=detail, where=where)
