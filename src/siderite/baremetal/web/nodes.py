"""The addresses of nodes: parse, command, call, view."""

from typing import TYPE_CHECKING
from typing import Any

import msgspec

from siderite.baremetal.domain.wire import BRIEF
from siderite.baremetal.domain.wire import links
from siderite.baremetal.domain.wire import render
from siderite.baremetal.usecases import enrol
from siderite.baremetal.usecases import find
from siderite.baremetal.usecases import maintenance
from siderite.baremetal.usecases import update
from siderite.baremetal.usecases import validate
from siderite.baremetal.web import listing
from siderite.baremetal.web import policy
from siderite.baremetal.web import schemas
from siderite.baremetal.web import views
from siderite.core import jsonpatch
from siderite.core.errors import Invalid
from siderite.core.errors import NotAcceptable
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import parse_json
from siderite.core.http import raw
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

_BRIEF_COLUMNS = "uuid, name, instance_uuid, maintenance, power_state, provision_state"
_encode = msgspec.json.Encoder().encode
START_ENROLLED = 11
NAMES = 5


def ident(request: Request) -> str:
    """The node that the path names."""
    name = request.params[0]
    if request.version < 91 and name.endswith(".json"):  # noqa: PLR2004
        return name.removesuffix(".json")
    return name


async def create(service: "Service", request: Request) -> Response:
    """POST /v1/nodes"""
    fields = schemas.creation(await request.json(), request.version)
    available = request.version < START_ENROLLED
    node = await enrol.create(
        service.ctx, fields, available=available, cause=service.cause(request)
    )
    location = f"{service.base(request)}v1/nodes/{node.uuid}".encode()
    return raw(
        views.node(render(node), request.version, service.base(request)),
        201,
        [(b"location", location)],
    )


async def show(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{ident}"""
    fields = None
    if request.scope["query_string"]:
        fields = _only_fields(request)
    body = await find.body_of(service.ctx, ident(request), request.who)
    return raw(views.node(body, request.version, service.base(request), fields))


def _only_fields(request: Request) -> list[str] | None:
    chosen, version = None, request.version
    for key, value in request.query:
        if key != "fields":
            raise Invalid(f"Unexpected arguments: {key[:80]}. One node takes: fields.")
        if version < 8:  # noqa: PLR2004
            raise NotAcceptable(f"fields needs API version 1.8; this request has 1.{version}.")
        chosen = listing.fields(value, version)
    return chosen


async def index(service: "Service", request: Request) -> Response:
    """GET /v1/nodes"""
    return await _list(service, request, detail=False)


async def detail(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/detail"""
    return await _list(service, request, detail=True)


async def _list(service: "Service", request: Request, *, detail: bool) -> Response:
    ask = listing.parse(request, detail=detail, max_limit=service.ctx.settings.max_limit)
    brief = not ask.detail and ask.fields is None
    what = _BRIEF_COLUMNS if brief else "uuid, body"
    rows = await find.page(service.ctx, what, ask.where, ask.page, request.who)
    base = service.base(request)
    last = str(rows[-1][0]) if rows else None
    following = ask.following(f"{base}v1/nodes{'/detail' if detail else ''}", len(rows), last)
    if brief:
        return raw(_brief(rows, request.version, base, following))
    bodies = [str(row[1]) for row in rows]
    return raw(views.nodes(bodies, request.version, base, ask.fields, following))


def _brief(rows: Any, version: int, base: str, following: str | None) -> bytes:
    items = []
    for uuid, name, instance, maintained, power, state in rows:
        item = {
            "uuid": uuid,
            "name": name,
            "instance_uuid": instance,
            "maintenance": bool(maintained),
            "power_state": power,
            "provision_state": views.state(state, version),
            "links": links("nodes", uuid),
        }
        if version < NAMES:
            del item["name"]
        items.append(_encode(item))
    text = b",".join(items).replace(b"\r", base.encode())
    return views.collection(b"nodes", text, following)


async def patch(service: "Service", request: Request) -> Response:
    """PATCH /v1/nodes/{ident}"""
    reset = _reset_interfaces(request)
    patches = jsonpatch.parse(await request.json())
    for item in patches:
        if item.field not in schemas.FIELDS:
            only = ", ".join(sorted(schemas.FIELDS))
            raise Invalid(
                f"Cannot patch {item.text[:200]}. Only the following can be updated: {only}"
            )
        schemas.too_new(item.field, request.version)
    version = request.version
    ask = update.Update(
        changes=lambda node: schemas.patched(node, patches, version),
        reset_interfaces=reset,
        refuse_inspecting=version >= 39,  # noqa: PLR2004
        only_removes_instance=[(p.op, p.path) for p in patches] == [("remove", ("instance_uuid",))],
    )
    node = await update.update(
        service.ctx,
        ident(request),
        ask,
        who=request.who,
        cause=service.cause(request),
        guard=policy.guard("node:update", request.who),
    )
    return raw(views.node(render(node), version, service.base(request)))


def _reset_interfaces(request: Request) -> bool:
    reset = False
    for key, value in request.query:
        if key != "reset_interfaces":
            raise Invalid(f"Unexpected arguments: {key[:80]}. A patch takes: reset_interfaces.")
        if request.version < 45:  # noqa: PLR2004
            raise NotAcceptable("reset_interfaces needs API version 1.45; ask for a newer one.")
        reset = schemas.flag(key, value)
    return reset


async def remove(service: "Service", request: Request) -> Response:
    """DELETE /v1/nodes/{ident}"""
    await enrol.remove(service.ctx, ident(request), request.who, service.cause(request))
    return Response(status=204)


async def validation(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{ident}/validate"""
    node = await find.node(service.ctx, ident(request), request.who)
    return reply(validate.interfaces(service.ctx, node))


async def maintenance_on(service: "Service", request: Request) -> Response:
    """PUT /v1/nodes/{ident}/maintenance"""
    text = await request.body()
    document = {} if not text else _object(text)
    extra = sorted(set(document) - {"reason"})
    if extra:
        raise Invalid(f"Unexpected arguments: {extra[0][:80]}. Maintenance takes: reason.")
    reason = document.get("reason")
    if reason is not None and not isinstance(reason, str):
        raise Invalid("reason must be text.")
    await _set_maintenance(service, request, on=True, reason=reason)
    return Response(status=202)


def _object(text: bytes) -> dict[str, Any]:
    document = parse_json(text)
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise Invalid('The body must be an object such as {"reason": "disk swap"}.')
    return document


async def maintenance_off(service: "Service", request: Request) -> Response:
    """DELETE /v1/nodes/{ident}/maintenance"""
    await _set_maintenance(service, request, on=False, reason=None)
    return Response(status=202)


async def _set_maintenance(
    service: "Service", request: Request, *, on: bool, reason: str | None
) -> None:
    await maintenance.set_maintenance(
        service.ctx,
        ident(request),
        on=on,
        reason=reason,
        who=request.who,
        cause=service.cause(request),
        guard=policy.guard("node:maintenance", request.who),
    )


assert set(BRIEF) == {name.strip() for name in _BRIEF_COLUMNS.split(",")}  # noqa: S101
