"""POST /v2.1/os-server-external-events: what other services tell of a server."""

from typing import TYPE_CHECKING
from typing import Any

from siderite.compute.usecases.server import external_events
from siderite.compute.web import forms
from siderite.compute.web.forms import Key
from siderite.core import shape
from siderite.core.errors import Invalid
from siderite.core.http import MIB
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

SINCE = {
    "network-changed": 1, "network-vif-plugged": 1, "network-vif-unplugged": 1,
    "network-vif-deleted": 1, "volume-extended": 51, "power-update": 76,
    "accelerator-request-bound": 82, "volume-reimaged": 93,
}  # fmt: skip
_ALL_WELL, _NOT_ALL = 200, 207


def _keys(version: int) -> forms.Keys:
    names = [name for name, since in SINCE.items() if since <= version]
    return {
        "name": Key(forms.one_of(*names), required=True),
        "server_uuid": Key(forms.uuid, required=True),
        "status": Key(forms.one_of("failed", "completed", "in-progress")),
        "tag": Key(forms.text(0, 255)),
    }


def _event(value: Any, version: int) -> dict[str, Any]:
    """An event as it was sent: the answer has the same words."""
    forms.take(value, "events", _keys(version), version)
    return dict(value)


def form() -> shape.Json:
    """The form of the body."""
    events = {"type": "array", "items": forms.form(_keys(forms.LATEST)), "minItems": 1}
    return shape.under("events", events)


def answer_form() -> shape.Json:
    """The form of the answer: each event, and what became of it."""
    event = forms.form(_keys(forms.LATEST))
    code = {"type": "integer"}
    return shape.listed("events", {**event, "properties": {**event["properties"], "code": code}})


async def take(service: "Service", request: Request) -> Response:
    """POST /v2.1/os-server-external-events"""
    found = await forms.only(request, "events", forms.anything, MIB)
    if not isinstance(found, list) or not found:
        raise Invalid("Invalid input for field/attribute events. It must be a list of events.")
    events = [_event(value, request.version) for value in found]
    codes = await external_events.take(service.ctx, events, cause=service.cause(request))
    shown = [
        {**event, "status": "completed" if code == _ALL_WELL else "failed", "code": code}
        for event, code in zip(events, codes, strict=True)
    ]
    status = _ALL_WELL if all(code == _ALL_WELL for code in codes) else _NOT_ALL
    return reply({"events": shown}, status)


ROUTES = (
    Route(
        "POST",
        "/v2.1/os-server-external-events",
        take,
        "servers:external_events",
        takes=form,
        gives=answer_form,
    ),
)
