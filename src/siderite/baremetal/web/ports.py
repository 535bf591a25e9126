"""The addresses of ports: parse, command, call, view."""

from typing import TYPE_CHECKING

from siderite.baremetal.domain.wire import PORT_FIELDS
from siderite.baremetal.usecases import find
from siderite.baremetal.usecases import ports
from siderite.baremetal.web import listing
from siderite.baremetal.web import policy
from siderite.baremetal.web import port_schema
from siderite.baremetal.web import views
from siderite.baremetal.web.address import ident
from siderite.baremetal.web.versions import PORT_FILTER_SINCE
from siderite.core.errors import NotAcceptable
from siderite.core.errors import NotFound
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import raw
from siderite.core.ids import is_uuid
from siderite.core.store.table import Where

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

RULES = listing.Rules(
    "port",
    PORT_FIELDS,
    PORT_FILTER_SINCE,
    frozenset({"links", "extra", "internal_info", "local_link_connection"}),
)
REFUSE_INSPECTING = 39
NAMES_OF_NODES = 5
NAMES_OF_PORTS = 88
_OF_NODES = {"shard": "shard", "conductor_groups": "conductor_group"}


def _port(request: Request) -> str:
    """The port that the path names."""
    name = ident(request)
    if request.version < NAMES_OF_PORTS and not is_uuid(name):
        raise NotFound(
            f"Port {name[:200]} could not be found; ports have names from API version"
            f" 1.{NAMES_OF_PORTS} on."
        )
    return name


async def create(service: "Service", request: Request) -> Response:
    """POST /v1/ports"""
    fields = port_schema.creation(await request.json(), request.version)
    guard = policy.guard("port:create", request.who)
    port = await ports.create(
        service.ctx, fields, who=request.who, cause=service.cause(request), guard=guard
    )
    base = service.base(request)
    body = views.PORT.one(PORT_FIELDS.render(port), request.version, base)
    return raw(body, 201, [(b"location", f"{base}v1/ports/{port.uuid}".encode())])


async def show(service: "Service", request: Request) -> Response:
    """GET /v1/ports/{port}"""
    fields = RULES.only_fields(request)
    body = await ports.body_of(service.ctx, _port(request), request.who)
    return raw(views.PORT.one(body, request.version, service.base(request), fields))


async def patch(service: "Service", request: Request) -> Response:
    """PATCH /v1/ports/{port}"""
    version = request.version
    patches = port_schema.FORM.patches(await request.json(), version)
    port = await ports.update(
        service.ctx,
        _port(request),
        lambda port: port_schema.patched(port, patches, version),
        refuse_inspecting=version >= REFUSE_INSPECTING,
        who=request.who,
        cause=service.cause(request),
        guard=policy.guard("port:update", request.who),
    )
    return raw(views.PORT.one(PORT_FIELDS.render(port), version, service.base(request)))


async def remove(service: "Service", request: Request) -> Response:
    """DELETE /v1/ports/{port}"""
    guard = policy.guard("port:delete", request.who)
    cause = service.cause(request)
    await ports.remove(service.ctx, _port(request), who=request.who, cause=cause, guard=guard)
    return Response(status=204)


async def index(service: "Service", request: Request) -> Response:
    """GET /v1/ports"""
    return await _listed(service, request, "ports", detail=False)


async def detail(service: "Service", request: Request) -> Response:
    """GET /v1/ports/detail"""
    return await _listed(service, request, "ports/detail", detail=True)


async def of_node(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/ports"""
    node = ident(request)
    return await _listed(service, request, f"nodes/{node}/ports", detail=False, node=node)


async def of_node_detail(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/ports/detail"""
    node = ident(request)
    return await _listed(service, request, f"nodes/{node}/ports/detail", detail=True, node=node)


async def _listed(
    service: "Service", request: Request, path: str, *, detail: bool, node: str | None = None
) -> Response:
    ask = listing.parse(RULES, request, detail=detail, max_limit=service.ctx.settings.max_limit)
    nodes = [] if node is None else [node]
    for key, value in ask.filters:
        if key in ("node", "node_uuid"):
            nodes.append(_node(key, value, request.version))
        else:
            ask.where.append(_where(key, value))
    for name in nodes:
        found = await find.node(service.ctx, name, request.who)
        ask.where.append(Where("node_uuid = ?", (found.uuid,)))
    what = views.PORT.columns(ask)
    rows = await ports.page(service.ctx, what, ask.where, ask.page, request.who)
    base = service.base(request)
    return raw(views.PORT.page(ask, rows, version=request.version, base=base, path=path))


def _node(key: str, value: str, version: int) -> str:
    if key == "node_uuid":
        return listing.uuid(key, value)
    if version < NAMES_OF_NODES and not is_uuid(value):
        raise NotAcceptable(
            f"Nodes have names from API version 1.{NAMES_OF_NODES} on; this request has"
            f" 1.{version}."
        )
    return value


def _where(key: str, value: str) -> Where:
    if key == "address":
        return Where("address = ?", (port_schema.mac(key, value),))
    if key == "portgroup":
        raise NotFound(
            f"Portgroup {value[:80]!r} could not be found: there are no portgroups here yet."
        )
    if key in _OF_NODES:
        condition = listing.one_of(_OF_NODES[key], key, value)
        nodes = f"SELECT uuid FROM nodes WHERE {condition.sql}"  # noqa: S608 - a column's name
        return Where(f"node_uuid IN ({nodes})", condition.args)
    return listing.description_contains(value)
