"""The addresses of a node's history."""

from typing import TYPE_CHECKING
from typing import Any

from siderite.baremetal.usecases import history
from siderite.baremetal.usecases.history import Happened
from siderite.baremetal.web import forms
from siderite.baremetal.web import policy
from siderite.baremetal.web.address import ident
from siderite.baremetal.web.bodies import no_query
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

PROJECT_SINCE = 113
STATES_SINCE = 115
_SHORT = 255


def _guard(request: Request) -> Any:
    return policy.guard("node:management:read", request.who)


async def index(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/history"""
    detail = False
    for key, value in request.query:
        if key != "detail":
            raise Invalid(f"Unexpected arguments: {key[:80]}. History takes: detail.")
        detail = forms.flag(key, value)
    node, found = await history.entries(service.ctx, ident(request), request.who, _guard(request))
    base = f"{service.base(request)}v1/nodes/{node.uuid}/history/"
    version = request.version
    return reply({"history": [_shown(item, base, version, detail=detail) for item in found]})


async def show(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/history/{entry}"""
    no_query(request)
    node, found = await history.entry(
        service.ctx, ident(request), request.params[1].lower(), request.who, _guard(request)
    )
    base = f"{service.base(request)}v1/nodes/{node.uuid}/history/"
    return reply(_shown(found, base, request.version, detail=True))


def _shown(item: Happened, base: str, version: int, *, detail: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "uuid": item.uuid,
        "created_at": item.created_at,
        "severity": item.severity,
        "event": item.event if detail else item.event[:_SHORT],
        "links": [{"href": base + item.uuid, "rel": "self"}],
    }
    if detail:
        shown |= {"event_type": item.event_type, "conductor": item.conductor, "user": None}
        if version >= PROJECT_SINCE:
            shown["project"] = None
        if version >= STATES_SINCE:
            shown |= {
                "state": item.state,
                "target_provision_state": item.target,
                "duration_seconds": item.duration_seconds,
            }
    return shown
