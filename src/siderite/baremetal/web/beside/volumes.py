"""Volume connectors and targets on the wire."""

from typing import TYPE_CHECKING
from typing import Any

from siderite.baremetal.domain.fields import links
from siderite.baremetal.domain.volume import CONNECTOR_TYPES
from siderite.baremetal.usecases.beside import volumes
from siderite.baremetal.usecases.node import find
from siderite.baremetal.web import address
from siderite.baremetal.web import forms
from siderite.baremetal.web import views
from siderite.baremetal.web.beside.records import Resource
from siderite.baremetal.web.beside.records import node_uuid
from siderite.baremetal.web.versions import VOLUME_FILTER_SINCE
from siderite.core import shape
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import raw

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

SINCE = 32
_MOST_INDEX = 2**31 - 1
_OF_CONNECTOR = ("node_uuid", "type", "connector_id")
_OF_TARGET = ("node_uuid", "volume_type", "boot_index", "volume_id")
CONNECTORS = Resource(
    noun="volume",
    records=volumes.CONNECTOR_RECORDS,
    view=views.CONNECTOR,
    form=forms.Form(
        "volume connector",
        views.CONNECTOR.fields.since,
        {
            "connector_id": forms.text(255, least=1, null=False),
            "extra": forms.obj,
            "node_uuid": node_uuid,
            "type": forms.one_of(*CONNECTOR_TYPES),
        },
        {"uuid": forms.uuid},
        required=frozenset(_OF_CONNECTOR),
        needed=_OF_CONNECTOR,
    ),
    filters=VOLUME_FILTER_SINCE,
    unsortable=frozenset({"extra"}),
    since=SINCE,
)
TARGETS = Resource(
    noun="volume",
    records=volumes.TARGET_RECORDS,
    view=views.TARGET,
    form=forms.Form(
        "volume target",
        views.TARGET.fields.since,
        {
            "boot_index": forms.whole(0, _MOST_INDEX),
            "extra": forms.obj,
            "node_uuid": node_uuid,
            "properties": forms.obj,
            "volume_id": forms.text(36, least=1, null=False),
            "volume_type": forms.text(64, least=1, null=False),
        },
        {"uuid": forms.uuid},
        required=frozenset(_OF_TARGET),
        needed=_OF_TARGET,
        objects=frozenset({"extra", "properties"}),
        masked=views.TARGET.fields.masked,
    ),
    filters=VOLUME_FILTER_SINCE,
    unsortable=frozenset({"extra", "properties"}),
    since=SINCE,
)


def _parts(root: str) -> dict[str, Any]:
    """Where the connectors and targets below `root` are."""
    above, _, end = root.rpartition("/")
    parts = {"links": links(above, end) if above else links(end, "")}
    return parts | {kind: links(root, kind) for kind in ("connectors", "targets")}


def form() -> shape.Json:
    """The form of that."""
    return views.linked(_parts("volume"))


def _contents(service: "Service", request: Request, root: str) -> Response:
    return raw(views.with_links(_parts(root), service.base(request)))


async def index(service: "Service", request: Request) -> Response:
    """GET /v1/volume"""
    return _contents(service, request, "volume")


async def of_node(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/volume"""
    node = await find.node(service.ctx, address.ident(request), request.who)
    return _contents(service, request, f"nodes/{node.uuid}/volume")
