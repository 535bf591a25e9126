"""The addresses of nodes: parse, command, call, view."""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

from siderite.baremetal.domain.node import INTERFACES
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.domain.wire import NODE_FIELDS
from siderite.baremetal.usecases.node import enrol
from siderite.baremetal.usecases.node import find
from siderite.baremetal.usecases.node import maintenance
from siderite.baremetal.usecases.node import update
from siderite.baremetal.usecases.node import validate
from siderite.baremetal.web import forms
from siderite.baremetal.web import policy
from siderite.baremetal.web import views
from siderite.baremetal.web.address import ident
from siderite.baremetal.web.node import node_list
from siderite.baremetal.web.node import schemas
from siderite.core import shape
from siderite.core.errors import Invalid
from siderite.core.errors import NotAcceptable
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import raw
from siderite.core.http import reply
from siderite.core.json_body import parse_json
from siderite.core.store.table import Where

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

START_ENROLLED = 11
_OF_INSTANCES = frozenset({"extra", "instance_info", "instance_name"})
"""Fields that say what is to run on a node: who has it on loan says so, too."""


def shown() -> shape.Json:
    """The form of a node on the wire."""
    return views.NODE.form(Node, *shape.both(Node, provision_state=P.AVAILABLE))


def partly() -> shape.Json:
    """The form of a node of which some fields may be shown."""
    return shape.whole(shown())


def page_form() -> shape.Json:
    """The form of a list of nodes."""
    return shape.listed("nodes", partly(), "next")


def maintenance_form() -> shape.Json:
    """The form of the body that sets maintenance."""
    return shape.or_null(shape.record({"reason": shape.or_null(shape.text())}))


async def create(service: "Service", request: Request) -> Response:
    """POST /v1/nodes"""
    fields = schemas.creation(await request.json(), request.version)
    available = request.version < START_ENROLLED
    node = await enrol.create(
        service.ctx, fields, available=available, cause=service.cause(request)
    )
    location = f"{service.base(request)}v1/nodes/{node.uuid}".encode()
    return raw(
        views.NODE.one(NODE_FIELDS.render(node), request.version, service.base(request)),
        201,
        [(b"location", location)],
    )


async def show(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{ident}"""
    fields = None
    if request.scope["query_string"]:
        fields = node_list.RULES.only_fields(request)
    body = await find.body_of(service.ctx, ident(request), request.who)
    return raw(views.NODE.one(body, request.version, service.base(request), fields))


async def index(service: "Service", request: Request) -> Response:
    """GET /v1/nodes"""
    return await listed(service, request, "nodes", detail=False)


async def detail(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/detail"""
    return await listed(service, request, "nodes/detail", detail=True)


async def listed(
    service: "Service", request: Request, path: str, *, detail: bool, where: Sequence[Where] = ()
) -> Response:
    """The list of nodes at this path, of those that also meet the conditions."""
    ask = node_list.parse(request, detail=detail, max_limit=service.ctx.settings.max_limit)
    what = views.NODE.columns(ask)
    rows = await find.page(service.ctx, what, [*ask.where, *where], ask.page, request.who)
    base = service.base(request)
    return raw(views.NODE.page(ask, rows, version=request.version, base=base, path=path))


async def patch(service: "Service", request: Request) -> Response:
    """PATCH /v1/nodes/{ident}"""
    reset = _reset_interfaces(request)
    patches = schemas.FORM.patches(await request.json(), request.version)
    if reset and "driver" not in [patch.field for patch in patches]:
        raise Invalid("reset_interfaces is only for a change of /driver.")
    version = request.version
    is_of_instance = {patch.field for patch in patches} <= _OF_INSTANCES
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
        guard=policy.guard(
            "node:update:instance" if is_of_instance else "node:update", request.who
        ),
    )
    return raw(views.NODE.one(find.shown(node, request.who), version, service.base(request)))


def _reset_interfaces(request: Request) -> bool:
    reset = False
    for key, value in request.query:
        if key != "reset_interfaces":
            raise Invalid(f"Unexpected arguments: {key[:80]}. A patch takes: reset_interfaces.")
        if request.version < 45:  # noqa: PLR2004
            raise NotAcceptable("reset_interfaces needs API version 1.45; ask for a newer one.")
        reset = forms.flag(key, value)
    return reset


async def remove(service: "Service", request: Request) -> Response:
    """DELETE /v1/nodes/{ident}"""
    await enrol.remove(service.ctx, ident(request), request.who, service.cause(request))
    return Response(status=204)


async def validation(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{ident}/validate"""
    node = await find.node(service.ctx, ident(request), request.who)
    return reply(await validate.interfaces(service.ctx, node))


def validation_form() -> shape.Json:
    """The form of a validation: whether each interface can be used, and if not, why."""
    found = shape.seen({"result": True}, {"result": False, "reason": ""})
    kinds = [kind for kind in INTERFACES if kind != "vendor"]
    return shape.record(dict.fromkeys(kinds, found), kinds)


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
