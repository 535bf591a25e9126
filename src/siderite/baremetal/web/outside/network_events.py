"""What a network service tells: taken, checked and logged; nothing here waits for it."""

from typing import TYPE_CHECKING
from typing import Any

from siderite.baremetal.web import forms
from siderite.baremetal.web.bodies import Body
from siderite.core import shape
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.log import get_logger

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

log = get_logger("network_events")

KINDS = ("network.bind_port", "network.unbind_port", "network.delete_port")
_REQUIRED = ("event", "port_id", "mac_address", "status")
_MAY = (*_REQUIRED, "device_id", "binding:host_id", "binding:vnic_type")
_UUIDS = ("port_id", "device_id", "binding:host_id")
_MOST = 1000
_EVENT = shape.record(
    {
        **dict.fromkeys(_MAY, shape.or_null(shape.text())),
        **dict.fromkeys(_UUIDS, shape.or_null(shape.UUID)),
        "event": shape.words(KINDS),
        "mac_address": shape.of(forms.mac),
    },
    _REQUIRED,
)
EVENTS = Body({"events": []}, forms={"events": {"type": "array", "items": _EVENT, "minItems": 1}})


async def post(service: "Service", request: Request) -> Response:
    """POST /v1/events"""
    events = (await EVENTS.of(request))["events"]
    if not isinstance(events, list) or not 1 <= len(events) <= _MOST:
        raise Invalid(f"events must be a list of 1 to {_MOST} events.")
    for event in events:
        _check(event)
    for event in events:
        log.info("told by the network", event=event["event"], port_id=event["port_id"],
                 status=event["status"][:80], request_id=request.request_id)  # fmt: skip
    return Response(status=204)


def _check(event: Any) -> None:
    if not isinstance(event, dict):
        raise Invalid(f"An event must be an object, not {forms.kind(event)}.")
    if event.get("event") not in KINDS:
        raise Invalid(f"event must be one of {', '.join(KINDS)}.")
    for key in _REQUIRED:
        if not isinstance(event.get(key), str):
            raise Invalid(f"An event needs {key}, as text.")
    for key, value in event.items():
        if key not in _MAY:
            raise Invalid(f"An event has no {key[:80]!r}; it has: {', '.join(_MAY)}.")
        if value is not None and not isinstance(value, str):
            raise Invalid(f"{key} must be text.")
        if key in _UUIDS:
            forms.uuid(key, value)
    forms.mac("mac_address", event["mac_address"])
