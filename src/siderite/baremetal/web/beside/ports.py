"""Ports and portgroups on the wire."""

from typing import TYPE_CHECKING
from typing import Any

from siderite.baremetal.usecases.beside import portgroups
from siderite.baremetal.usecases.beside import ports
from siderite.baremetal.usecases.beside.records import By
from siderite.baremetal.web import forms
from siderite.baremetal.web import views
from siderite.baremetal.web.beside import port_schema
from siderite.baremetal.web.beside.records import Resource
from siderite.baremetal.web.beside.records import name
from siderite.baremetal.web.beside.records import node_uuid
from siderite.baremetal.web.versions import PORT_FILTER_SINCE
from siderite.baremetal.web.versions import PORTGROUP_FILTER_SINCE
from siderite.core import shape
from siderite.core.check import or_null
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.store.table import Where

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service


async def _special(service: "Service", request: Request, key: str, value: str) -> Where | None:
    return await _in_portgroup(service, request, value) if key == "portgroup" else None


async def _in_portgroup(service: "Service", request: Request, value: str) -> Where:
    by = By(request.who, service.cause(request))
    found = await portgroups.RECORDS.find(service.ctx, value, by)
    return Where("portgroup_uuid = ?", (found.value.uuid,))


PORTS = Resource(
    noun="port",
    records=ports.RECORDS,
    view=views.PORT,
    form=port_schema.FORM,
    filters=PORT_FILTER_SINCE,
    unsortable=frozenset({"extra", "internal_info", "local_link_connection"}),
    named=88,
    details=True,
    still_when_inspecting=True,
    where=_special,
    created=port_schema.creation,
    patched=port_schema.patched,
)


@shape.like(shape.or_null(shape.text(0, 255)))
def _mode(key: str, value: Any) -> str:
    return forms.text(255)(key, value) or "active-backup"


PORTGROUP_FORM = forms.Form(
    "portgroup",
    views.PORTGROUP.fields.since,
    {
        "address": or_null(forms.mac),
        "category": forms.text(80),
        "extra": forms.obj,
        "mode": _mode,
        "name": name("portgroup"),
        "node_uuid": node_uuid,
        "physical_network": forms.text(64, least=1),
        "properties": forms.obj,
        "standalone_ports_supported": forms.flag_or_true,
    },
    {"uuid": forms.uuid},
    required=frozenset({"node_uuid", "mode"}),
    needed=("node_uuid",),
    objects=frozenset({"extra", "properties"}),
)
PORTGROUPS = Resource(
    noun="portgroup",
    records=portgroups.RECORDS,
    view=views.PORTGROUP,
    form=PORTGROUP_FORM,
    filters=PORTGROUP_FILTER_SINCE,
    unsortable=frozenset({"extra", "internal_info", "properties"}),
    since=23,
    named=23,
    details=True,
    still_when_inspecting=True,
)


async def of_portgroup(service: "Service", request: Request) -> Response:
    """GET /v1/portgroups/{portgroup}/ports"""
    return await _of_portgroup(service, request, "ports", detail=False)


async def of_portgroup_detail(service: "Service", request: Request) -> Response:
    """GET /v1/portgroups/{portgroup}/ports/detail"""
    return await _of_portgroup(service, request, "ports/detail", detail=True)


async def _of_portgroup(
    service: "Service", request: Request, end: str, *, detail: bool
) -> Response:
    group = PORTGROUPS.ident(request)
    where = await _in_portgroup(service, request, group)
    path = f"portgroups/{group}/{end}"
    return await PORTS.listed(service, request, path, where, detail=detail)
