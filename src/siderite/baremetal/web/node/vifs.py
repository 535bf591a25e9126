"""A node's virtual interfaces on the wire."""

from typing import TYPE_CHECKING

from siderite.baremetal.usecases.beside.records import By
from siderite.baremetal.usecases.node import vifs
from siderite.baremetal.web import address
from siderite.baremetal.web import forms
from siderite.baremetal.web import policy
from siderite.core import shape
from siderite.core.errors import Invalid
from siderite.core.errors import NotAcceptable
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

SINCE = 28
PLACE_SINCE = 67
_PLACES = ("port_uuid", "portgroup_uuid")


def form() -> shape.Json:
    """The form of the body that attaches one."""
    places = dict.fromkeys(_PLACES, shape.or_null(shape.UUID))
    return shape.record({"id": shape.text(1, 255), **places}, ["id"], others=True)


def shown() -> shape.Json:
    """The form of the list."""
    return shape.listed("vifs", shape.under("id", shape.text()))


def _by(service: "Service", request: Request) -> By:
    guard = policy.guard("vif:update", request.who)
    return By(request.who, service.cause(request), guard)


async def index(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/vifs"""
    by = By(request.who, service.cause(request))
    found = await vifs.listed(service.ctx, address.ident(request), by)
    return reply({"vifs": [{"id": vif} for vif in found]})


async def attach(service: "Service", request: Request) -> Response:
    """POST /v1/nodes/{node}/vifs"""
    document = await request.json()
    if not isinstance(document, dict) or "id" not in document:
        raise Invalid('The body must be an object such as {"id": "…"}: the interface to attach.')
    vif = forms.text(255, least=1, null=False)("id", document["id"])
    places = [place for place in _PLACES if document.get(place) is not None]
    if places and request.version < PLACE_SINCE:
        raise NotAcceptable(f"{places[0]} needs API version 1.{PLACE_SINCE}.")
    if len(places) > 1:
        raise Invalid("Name a port_uuid or a portgroup_uuid, not both.")
    only = forms.uuid(places[0], document[places[0]]) if places else None
    await vifs.attach(service.ctx, address.ident(request), vif, only, _by(service, request))
    return Response(status=204)


async def detach(service: "Service", request: Request) -> Response:
    """DELETE /v1/nodes/{node}/vifs/{vif}"""
    by = _by(service, request)
    await vifs.detach(service.ctx, address.ident(request), request.params[1], by)
    return Response(status=204)
