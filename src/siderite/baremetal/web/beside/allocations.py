"""Allocations on the wire."""

from typing import TYPE_CHECKING
from typing import Any

from siderite.baremetal.domain.allocation import State
from siderite.baremetal.usecases.beside import allocations
from siderite.baremetal.usecases.beside.records import By
from siderite.baremetal.usecases.node import find
from siderite.baremetal.web import address
from siderite.baremetal.web import forms
from siderite.baremetal.web import views
from siderite.baremetal.web.beside.records import Resource
from siderite.baremetal.web.beside.records import name
from siderite.baremetal.web.versions import ALLOCATION_FILTER_SINCE
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import raw
from siderite.core.store.table import Where
from siderite.core.who import Who

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

SINCE = 52
BACKFILL_SINCE = 58
_MOST = 1000


def _created(fields: dict[str, Any], version: int, who: Who) -> dict[str, Any]:
    if fields.get("node") is not None and version < BACKFILL_SINCE:
        raise Invalid(f"Cannot set node when creating an allocation before 1.{BACKFILL_SINCE}.")
    if not who.sees_all:
        if fields.get("owner") not in (None, who.project_id):
            raise Invalid("An allocation of your own has your own project as its owner.")
        fields["owner"] = who.project_id
    return fields


async def _special(service: "Service", request: Request, key: str, value: str) -> Where | None:
    if key == "node":
        try:
            node = await find.node(service.ctx, value, request.who)
        except NotFound as missing:
            raise Invalid(missing.sentence) from missing
        return Where("node_uuid = ?", (node.uuid,))
    if key == "state":
        forms.one_of(*State)(key, value)
    return None


ALLOCATIONS = Resource(
    noun="allocation",
    records=allocations.RECORDS,
    view=views.ALLOCATION,
    form=forms.Form(
        "allocation",
        views.ALLOCATION.fields.since,
        {"name": name("allocation"), "extra": forms.obj},
        {
            "candidate_nodes": forms.list_of(forms.text(255, least=1, null=False), most=_MOST),
            "node": forms.text(255),
            "owner": forms.text(255),
            "resource_class": forms.text(80),
            "traits": forms.list_of(forms.trait, most=_MOST),
            "uuid": forms.uuid,
        },
    ),
    filters=ALLOCATION_FILTER_SINCE,
    unsortable=frozenset({"extra", "candidate_nodes", "traits"}),
    since=SINCE,
    patch_since=57,
    named=SINCE,
    whole=True,
    where=_special,
    created=_created,
    make=allocations.create,
)


async def _of_node(service: "Service", request: Request) -> str:
    """The UUID of the allocation that has the node in the path."""
    node = await find.node(service.ctx, address.ident(request), request.who)
    if node.allocation_uuid is None:
        raise NotFound(f"Allocation for node {node.uuid} was not found; nobody allocated it.")
    return node.allocation_uuid


async def of_node(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/allocation"""
    fields = ALLOCATIONS.rules.only_fields(request)
    uuid = await _of_node(service, request)
    body = await allocations.RECORDS.body_of(service.ctx, uuid, request.who)
    return raw(ALLOCATIONS.view.one(body, request.version, service.base(request), fields))


async def free_node(service: "Service", request: Request) -> Response:
    """DELETE /v1/nodes/{node}/allocation"""
    uuid = await _of_node(service, request)
    by: By = ALLOCATIONS.by(service, request, "delete")
    await allocations.RECORDS.remove(service.ctx, uuid, by)
    return Response(status=204)
