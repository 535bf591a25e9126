"""Chassis on the wire, and the nodes in them."""

from typing import TYPE_CHECKING

from siderite.baremetal.usecases.beside import chassis
from siderite.baremetal.usecases.beside.records import By
from siderite.baremetal.web import forms
from siderite.baremetal.web import views
from siderite.baremetal.web.beside.records import Resource
from siderite.baremetal.web.node import nodes
from siderite.baremetal.web.versions import CHASSIS_FILTER_SINCE
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.store.table import Where

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

FORM = forms.Form(
    "chassis",
    views.CHASSIS.fields.since,
    # A patch may name the uuid, as upstream's may; changing it is refused, and announced.
    {"description": forms.text(255), "extra": forms.obj, "uuid": forms.uuid},
    required=frozenset({"uuid"}),
)
RESOURCE = Resource(
    noun="chassis",
    records=chassis.RECORDS,
    view=views.CHASSIS,
    form=FORM,
    filters=CHASSIS_FILTER_SINCE,
    unsortable=frozenset({"extra"}),
    details=True,
)


async def nodes_of(service: "Service", request: Request) -> Response:
    """GET /v1/chassis/{chassis}/nodes"""
    return await _nodes(service, request, "nodes", detail=False)


async def nodes_of_detail(service: "Service", request: Request) -> Response:
    """GET /v1/chassis/{chassis}/nodes/detail"""
    return await _nodes(service, request, "nodes/detail", detail=True)


async def _nodes(service: "Service", request: Request, end: str, *, detail: bool) -> Response:
    by = By(request.who, service.cause(request))
    uuid = (await chassis.RECORDS.find(service.ctx, RESOURCE.ident(request), by)).value.uuid
    where = [Where("chassis_uuid = ?", (uuid,))]
    path = f"chassis/{uuid}/{end}"
    return await nodes.listed(service, request, path, detail=detail, where=where)
