"""What was done to a server: os-instance-actions."""

from typing import TYPE_CHECKING
from typing import Any

import msgspec

from siderite.compute.domain.discreet import discreet
from siderite.compute.domain.job import ActionEvent
from siderite.compute.usecases.server import history
from siderite.compute.usecases.server.history import Recorded
from siderite.compute.web import queries
from siderite.compute.web import views
from siderite.compute.web.versions import RANGE
from siderite.core import shape
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply
from siderite.core.times import without_offset

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

_DELETED, _EVENTS, _PAGED, _HOSTS, _BEFORE, _DETAILS = 21, 51, 58, 62, 66, 84
_decode = msgspec.json.Decoder(list[ActionEvent]).decode
_QUERY = frozenset({"limit", "marker", "changes-since", "changes-before"})


def _action(one: Recorded, version: int) -> dict[str, Any]:
    shown = {
        "action": one.action,
        "instance_uuid": one.server,
        "request_id": one.request_id,
        "user_id": one.user_id,
        "project_id": one.project_id,
        "start_time": without_offset(one.started_at),
        "message": one.message,
    }
    if version >= _PAGED:
        shown["updated_at"] = without_offset(one.updated_at)
    return shown


def _event(event: ActionEvent, version: int, project: str, *, is_admin: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "event": event.event,
        "start_time": without_offset(event.start_time),
        "finish_time": without_offset(event.finish_time),
        "result": event.result,
    }
    if is_admin:
        shown["traceback"] = event.traceback or (event.details if event.result == "Error" else None)
    if version >= _HOSTS:
        shown["hostId"] = history.host_id(project, event.host)
        if is_admin:
            shown["host"] = event.host
    if version >= _DETAILS:
        told = event.details
        shown["details"] = told if is_admin or told is None else discreet(told)
    return shown


def page_form() -> shape.Json:
    """The form of the list of actions."""
    item = shape.across(_action, shape.both(Recorded), RANGE.every)
    return shape.listed("instanceActions", item, "links")


def form() -> shape.Json:
    """The form of one action: its lines are there for who may see them."""
    lines = [
        _event(event, version, "", is_admin=is_admin)
        for event in shape.both(ActionEvent)
        for version in (1, _HOSTS, _DETAILS)
        for is_admin in (True, False)
    ]
    action = shape.across(_action, shape.both(Recorded), RANGE.every)
    action["properties"]["events"] = {"type": "array", "items": shape.wire(*lines)}
    return shape.under("instanceAction", action)


async def index(service: "Service", request: Request) -> Response:
    """GET /v2.1/servers/{id}/os-instance-actions"""
    version = request.version
    server = await history.server(
        service.ctx, request.params[0], request.who, deleted=version >= _DELETED
    )
    most = service.ctx.settings.max_limit
    ask = history.Ask(server.uuid, most)
    if version >= _PAGED:
        ask = _paged(request, history.Ask(server.uuid, queries.limit_of(request, most)))
    found = [] if ask.limit == 0 else await history.page(service.ctx, ask)
    body: dict[str, Any] = {"instanceActions": [_action(one, version) for one in found]}
    if version >= _PAGED and found and len(found) == ask.limit:
        path = f"servers/{server.uuid}/os-instance-actions"
        link = views.following(service, request, path, found[-1].request_id)
        body["links"] = [{"rel": "next", "href": link}]
    return reply(body)


def _paged(request: Request, ask: history.Ask) -> history.Ask:
    for key, value in request.query:
        if key not in _QUERY or (key == "changes-before" and request.version < _BEFORE):
            raise queries.unexpected(key)
        if key == "marker":
            ask.marker = value
        elif key == "changes-since":
            ask.since = queries.moment(key, value)
        elif key == "changes-before":
            ask.before = queries.moment(key, value)
    queries.check_span(ask.since, ask.before)
    return ask


async def show(service: "Service", request: Request) -> Response:
    """GET /v2.1/servers/{id}/os-instance-actions/{request}"""
    version = request.version
    server = await history.server(
        service.ctx, request.params[0], request.who, deleted=version >= _DELETED
    )
    one = await history.action(service.ctx, server.uuid, request.params[1])
    shown = _action(one, version)
    if request.who.is_admin or version >= _EVENTS:
        events = _decode(one.events)
        project, is_admin = server.project_id, request.who.is_admin
        shown["events"] = [_event(one, version, project, is_admin=is_admin) for one in events]
    return reply({"instanceAction": shown})


ROUTES = (
    Route("GET", "/v2.1/servers/{id}/os-instance-actions", index, "actions:read", gives=page_form),
    Route(
        "GET", "/v2.1/servers/{id}/os-instance-actions/{request}", show, "actions:read", gives=form
    ),
)
