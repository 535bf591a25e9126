"""Hosts as clients asked for them before 2.43; os-services and os-hypervisors say the same."""

from collections.abc import Iterable
from typing import TYPE_CHECKING
from typing import Any

from siderite.compute.usecases.fleet import inventory
from siderite.compute.usecases.fleet.inventory import NOTHING
from siderite.compute.usecases.fleet.inventory import Amounts
from siderite.compute.usecases.fleet.inventory import Service as Found
from siderite.compute.usecases.server import find
from siderite.compute.usecases.server.acting import Unsupported
from siderite.compute.web import checks
from siderite.compute.web import forms
from siderite.compute.web import queries
from siderite.core import shape
from siderite.core.check import record
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

_LAST = 42
_WORDS = ("enable", "disable")


@shape.like(shape.words(_WORDS))
def _word(name: str, value: Any) -> str:
    word = value.strip().lower() if isinstance(value, str) else value
    return str(checks.choice(*_WORDS)(name, word))


_CHANGES = {"status": _word, "maintenance_mode": _word}


async def _host(service: "Service", request: Request) -> Found:
    try:
        return await inventory.named(service.ctx, request.params[0])
    except NotFound as why:
        raise find.missing_host(request.params[0]) from why


def _brief(found: Found) -> dict[str, Any]:
    return {"host_name": found.host.name, "service": "compute", "zone": found.zone}


async def index(service: "Service", request: Request) -> Response:
    """GET /v2.1/os-hosts, below 2.43"""
    zone = queries.take(request, {"zone": checks.free_text()}).get("zone")
    every = await inventory.services(service.ctx)
    return reply({"hosts": [_brief(one) for one in every if not zone or zone == one.zone]})


def _resource(host: str, project: str, amounts: Amounts) -> dict[str, Any]:
    cpu, memory, disk = amounts
    return {"resource": {"host": host, "project": project, "cpu": cpu, "memory_mb": memory,
                         "disk_gb": disk}}  # fmt: skip


def _sum(every: Iterable[Amounts]) -> Amounts:
    total = NOTHING
    for one in every:
        total = inventory.added(total, one)
    return total


async def show(service: "Service", request: Request) -> Response:
    """GET /v2.1/os-hosts/{host}, below 2.43"""
    name = (await _host(service, request)).host.name
    offered = [one.hypervisor for one in await inventory.on_host(service.ctx, name)]
    used = [(one.used.vcpus, one.used.ram_mib, one.used.disk_gib) for one in offered]
    by_project = await inventory.claims(service.ctx, name)
    lines = {
        "(total)": _sum((one.vcpus, one.ram_mib, one.disk_gib) for one in offered),
        "(used_now)": _sum(used),
        "(used_max)": _sum(by_project.values()),
        **by_project,
    }
    return reply({"host": [_resource(name, *line) for line in lines.items()]})


async def update(service: "Service", request: Request) -> Response:
    """PUT /v2.1/os-hosts/{host}, below 2.43"""
    asked = checks.body(await forms.document(request), None, _CHANGES)
    if not asked:
        raise Invalid("Say status or maintenance_mode: enable or disable.")
    found = await _host(service, request)
    if "maintenance_mode" in asked:
        raise _unknown_here("A maintenance mode of hosts")
    changes = {"disabled": asked["status"] == "disable", "disabled_reason": None}
    cause = service.cause(request)
    await inventory.change(service.ctx, found.host.uuid, changes, cause=cause)
    return reply({"host": found.host.name, "status": asked["status"] + "d"})


async def power(service: "Service", request: Request) -> Response:
    """GET /v2.1/os-hosts/{host}/startup, …/shutdown, …/reboot, below 2.43"""
    await _host(service, request)
    raise _unknown_here("Power of hosts")


def _unknown_here(what: str) -> Unsupported:
    return Unsupported(f"{what} is not changed by way of this API; disable the service instead.")


def _one_form() -> shape.Json:
    return shape.wire({"host": [_resource("", "", NOTHING)]})


_ONE = "/v2.1/os-hosts/{host}"
_READ, _MANAGE = "hypervisors:read", "services:manage"
ROUTES = (
    Route("GET", "/v2.1/os-hosts", index, _READ, until=_LAST,
          gives=lambda: shape.wire({"hosts": [{"host_name": "", "service": "", "zone": ""}]})),
    Route("GET", _ONE, show, _READ, gives=_one_form, until=_LAST),
    Route("PUT", _ONE, update, _MANAGE, takes=lambda: record(_CHANGES),
          gives=lambda: shape.wire({"host": "", "status": ""}), until=_LAST),
    *(Route("GET", f"{_ONE}/{word}", power, _MANAGE, until=_LAST)
      for word in ("startup", "shutdown", "reboot")),
)  # fmt: skip
