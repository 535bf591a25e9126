"""The addresses of aggregates and availability zones."""

from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

from siderite.compute.domain.aggregate import Aggregate
from siderite.compute.usecases.fleet import aggregates
from siderite.compute.usecases.fleet import inventory
from siderite.compute.web import checks
from siderite.compute.web import forms
from siderite.compute.web.versions import RANGE
from siderite.core import shape
from siderite.core.check import or_null
from siderite.core.check import record
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply
from siderite.core.times import iso
from siderite.core.times import without_offset

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

UUIDS = 41
_NAME = checks.text()
_ZONE = checks.text(r"[^:\x00-\x1f]+")
_MOST_METADATA = 128


def _shown(number: int, one: Aggregate, version: int, *, whole: bool = True) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": number,
        "name": one.name,
        "availability_zone": one.zone,
        "created_at": without_offset(one.created_at),
        "updated_at": without_offset(one.updated_at),
        "deleted": False,
        "deleted_at": None,
    }
    if whole:
        shown |= {"hosts": one.hosts, "metadata": one.metadata}
    if version >= UUIDS:
        shown["uuid"] = one.uuid
    return shown


_FIELDS = {"name": _NAME, "availability_zone": or_null(_ZONE)}


_ZONED = {"availability_zone": "zone"}


def _form() -> shape.Json:
    shown = [
        _shown(1, one, version, whole=whole)
        for one in (*shape.both(Aggregate), shape.made_up(Aggregate, metadata=_ZONED))
        for version in RANGE.every
        for whole in (True, False)
    ]
    return shape.seen(*shown)


def shown_form() -> shape.Json:
    """The form of one on the wire."""
    return shape.under("aggregate", _form())


def new() -> shape.Json:
    """The form of the body that makes one."""
    return shape.under("aggregate", record(_FIELDS, ["name"]))


def _reply(found: tuple[int, Aggregate], request: Request, *, whole: bool = True) -> Response:
    return reply({"aggregate": _shown(*found, request.version, whole=whole)})


async def index(service: "Service", request: Request) -> Response:
    """GET /os-aggregates"""
    found = await aggregates.every(service.ctx)
    return reply({"aggregates": [_shown(*one, request.version) for one in found]})


async def show(service: "Service", request: Request) -> Response:
    """GET /os-aggregates/{id}"""
    return _reply(await aggregates.one(service.ctx, request.params[0]), request)


async def create(service: "Service", request: Request) -> Response:
    """POST /os-aggregates"""
    asked = checks.body(await forms.document(request), "aggregate", _FIELDS, ["name"])
    zone, cause = asked.get("availability_zone"), service.cause(request)
    made = await aggregates.create(service.ctx, asked["name"], zone, cause=cause)
    return _reply(made, request, whole=False)


async def update(service: "Service", request: Request) -> Response:
    """PUT /os-aggregates/{id}"""
    asked = checks.body(await forms.document(request), "aggregate", _FIELDS)
    if not asked:
        raise Invalid("aggregate is empty; give it a name or an availability_zone.")
    cause = service.cause(request)
    changed = await aggregates.update(service.ctx, request.params[0], asked, cause=cause)
    return _reply(changed, request)


async def remove(service: "Service", request: Request) -> Response:
    """DELETE /os-aggregates/{id}"""
    await aggregates.remove(service.ctx, request.params[0], cause=service.cause(request))
    return Response()


_HOST = {"host": _NAME}


async def _add_host(service: "Service", request: Request, asked: Any) -> tuple[int, Aggregate]:
    host = checks.body(asked, None, _HOST, ["host"])["host"]
    cause = service.cause(request)
    return await aggregates.add_host(service.ctx, request.params[0], host, cause=cause)


async def _remove_host(service: "Service", request: Request, asked: Any) -> tuple[int, Aggregate]:
    host = checks.body(asked, None, _HOST, ["host"])["host"]
    cause = service.cause(request)
    return await aggregates.remove_host(service.ctx, request.params[0], host, cause=cause)


async def _set_metadata(service: "Service", request: Request, asked: Any) -> tuple[int, Aggregate]:
    metadata = checks.body(asked, None, _METADATA, ["metadata"])["metadata"]
    cause = service.cause(request)
    return await aggregates.set_metadata(service.ctx, request.params[0], metadata, cause=cause)


@shape.like(shape.record({}, others=shape.or_null(shape.text(0, 255))))
def _metadata(name: str, value: Any) -> dict[str, str | None]:
    if not isinstance(value, dict) or len(value) > _MOST_METADATA:
        raise checks.wrong(name, value, f"It must be an object of up to {_MOST_METADATA} texts.")
    check = or_null(checks.free_text())
    key = checks.text(r"[a-zA-Z0-9_:. -]+")
    made = {key("metadata", k): check(k, v) for k, v in value.items()}
    if made.get("availability_zone") is not None:
        _ZONE("availability_zone", made["availability_zone"])
    return made


_METADATA = {"metadata": _metadata}
_Action = Callable[["Service", Request, Any], Awaitable[tuple[int, Aggregate]]]
_ACTIONS: dict[str, _Action] = {
    "add_host": _add_host,
    "remove_host": _remove_host,
    "set_metadata": _set_metadata,
}


def _action_form() -> shape.Json:
    host = record(_HOST, ["host"])
    values = {**dict.fromkeys(_ACTIONS, host), "set_metadata": record(_METADATA, ["metadata"])}
    return {**shape.record(values), "minProperties": 1, "maxProperties": 1}


async def action(service: "Service", request: Request) -> Response:
    """POST /os-aggregates/{id}/action"""
    document = await forms.document(request)
    if len(document) != 1 or next(iter(document)) not in _ACTIONS:
        raise Invalid(f"The body must be one of the actions {', '.join(_ACTIONS)}.")
    ((name, asked),) = document.items()
    return _reply(await _ACTIONS[name](service, request, asked), request)


async def zones(service: "Service", request: Request) -> Response:
    """GET /os-availability-zone"""
    return await _zones(service, request, detail=False)


async def zones_detail(service: "Service", request: Request) -> Response:
    """GET /os-availability-zone/detail"""
    return await _zones(service, request, detail=True)


async def _zones(service: "Service", request: Request, *, detail: bool) -> Response:
    if not detail:
        zones = sorted((await inventory.zones(service.ctx)).items())
        return reply({"availabilityZoneInfo": [_brief_zone(*zone) for zone in zones]})
    found: dict[str, list[inventory.Service]] = {}
    for one in await inventory.services(service.ctx):
        found.setdefault(one.zone, []).append(one)
    shown = [_zone(zone, found[zone]) for zone in sorted(found)]
    return reply({"availabilityZoneInfo": shown})


def _brief_zone(zone: str, available: bool) -> dict[str, Any]:
    return {"zoneName": zone, "zoneState": {"available": available}, "hosts": None}


def _zone(zone: str, found: Sequence[inventory.Service]) -> dict[str, Any]:
    enabled = [one for one in found if not one.host.disabled]
    hosts = {one.host.name: {"nova-compute": _condition(one)} for one in found}
    return {**_brief_zone(zone, bool(enabled)), "hosts": hosts}


def zones_form() -> shape.Json:
    """The form of the list of zones, with hosts in it if it is detailed."""
    found = shape.both(inventory.Service)
    return shape.listed(
        "availabilityZoneInfo",
        shape.wire(*(_zone("", [one]) for one in found), _brief_zone("", True)),
    )


def _condition(one: inventory.Service) -> dict[str, Any]:
    seen = without_offset(iso(one.seen_at)) if one.seen_at else None
    return {"active": not one.host.disabled, "available": one.is_up, "updated_at": seen}


_ONE = "/v2.1/os-aggregates/{id}"
_ZONES = "/v2.1/os-availability-zone"
ROUTES = (
    Route(
        "GET",
        "/v2.1/os-aggregates",
        index,
        "aggregates:manage",
        gives=lambda: shape.listed("aggregates", _form()),
    ),
    Route("POST", "/v2.1/os-aggregates", create, "aggregates:manage", takes=new, gives=shown_form),
    Route("GET", _ONE, show, "aggregates:manage", gives=shown_form),
    Route(
        "PUT",
        _ONE,
        update,
        "aggregates:manage",
        takes=lambda: shape.under("aggregate", record(_FIELDS)),
        gives=shown_form,
    ),
    Route("DELETE", _ONE, remove, "aggregates:manage"),
    Route(
        "POST", _ONE + "/action", action, "aggregates:manage", takes=_action_form, gives=shown_form
    ),
    Route("GET", _ZONES, zones, "zones:read", gives=zones_form),
    Route("GET", _ZONES + "/detail", zones_detail, "zones:detail", gives=zones_form),
)
