"""The addresses of what projects used."""

from collections.abc import Iterable
from datetime import UTC
from datetime import datetime
from typing import TYPE_CHECKING
from typing import Any

from siderite.compute.usecases.project import usage
from siderite.compute.usecases.project.usage import Used
from siderite.compute.web import checks
from siderite.compute.web import queries
from siderite.compute.web import views
from siderite.compute.web.policy import refusal
from siderite.core import shape
from siderite.core.check import Check
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply
from siderite.core.times import iso
from siderite.core.times import without_offset

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

PAGES = 40
_FORMS = ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d")
_DAY_S = 86400.0
_FIRST = datetime.min.replace(tzinfo=UTC).timestamp()
_EVERY = 10**6
_DETAILED = ("1", "True", "true")
"""The second is what `openstack usage list` says, which counts the servers in the answer."""


def _moment(name: str, value: Any) -> float:
    for form in _FORMS:
        try:
            return datetime.strptime(value, form).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    raise Invalid(f"Invalid {name} time: {value[:40]!r}; write it as 2026-01-31T00:00:00.")


def _asked(service: "Service", request: Request) -> dict[str, Any]:
    fields: dict[str, Check] = {
        "start": _moment, "end": _moment, "detailed": checks.free_text(),
    }  # fmt: skip
    if request.version >= PAGES:
        fields |= {"limit": queries.limit, "marker": queries.marker}
    asked = queries.take(request, fields)
    now = service.ctx.door.clock()
    asked.setdefault("end", now)
    asked.setdefault("start", max(asked["end"] - 28 * _DAY_S, _FIRST))
    if asked["start"] >= asked["end"]:
        raise Invalid("Invalid start time. The start time cannot occur after the end time.")
    return asked


async def _used(
    service: "Service", request: Request, asked: dict[str, Any], project: str | None
) -> tuple[list[Used], int]:
    most = service.ctx.settings.max_limit
    limit = min(asked.get("limit", most), most) if request.version >= PAGES else _EVERY
    found = await usage.between(
        service.ctx, asked["start"], asked["end"], project=project,
        marker=asked.get("marker"), limit=limit, who=request.who,
    )  # fmt: skip
    return found, limit


def _total(
    project: str, used: Iterable[Used], asked: dict[str, Any], *, detailed: bool
) -> dict[str, Any]:
    every = list(used)
    shown: dict[str, Any] = {
        "tenant_id": project,
        "total_hours": sum(one.hours for one in every),
        "total_vcpus_usage": sum(one.hours * one.server.flavor.vcpus for one in every),
        "total_memory_mb_usage": sum(one.hours * one.server.flavor.ram_mib for one in every),
        "total_local_gb_usage": sum(one.hours * _local(one) for one in every),
        "start": without_offset(iso(asked["start"])),
        "stop": without_offset(iso(asked["end"])),
    }
    if detailed:
        shown["server_usages"] = [_server(one) for one in every]
    return shown


def _local(one: Used) -> int:
    return one.server.flavor.disk_gib + one.server.flavor.ephemeral_gib


def _server(one: Used) -> dict[str, Any]:
    server = one.server
    return {
        "instance_id": server.uuid,
        "name": server.name,
        "hours": one.hours,
        "uptime": one.uptime_s,
        "flavor": server.flavor.name,
        "vcpus": server.flavor.vcpus,
        "memory_mb": server.flavor.ram_mib,
        "local_gb": _local(one),
        "tenant_id": server.project_id,
        "started_at": without_offset(server.launched_at),
        "ended_at": without_offset(server.terminated_at),
        "state": "terminated" if server.deleted else server.vm_state,
    }


def _next(
    service: "Service", request: Request, path: str, found: list[Used], limit: int
) -> list[dict[str, str]] | None:
    if request.version < PAGES or not found or len(found) < limit:
        return None
    href = views.following(service, request, path, found[-1].server.uuid)
    return [{"rel": "next", "href": href}]


async def index(service: "Service", request: Request) -> Response:
    """GET /os-simple-tenant-usage"""
    asked = _asked(service, request)
    found, limit = await _used(service, request, asked, None)
    projects: dict[str, list[Used]] = {}
    for one in found:
        projects.setdefault(one.server.project_id, []).append(one)
    detailed = asked.get("detailed") in _DETAILED
    body: dict[str, Any] = {
        "tenant_usages": [
            _total(project, used, asked, detailed=detailed) for project, used in projects.items()
        ]
    }
    links = _next(service, request, "os-simple-tenant-usage", found, limit)
    if links:
        body["tenant_usages_links"] = links
    return reply(body)


async def show(service: "Service", request: Request) -> Response:
    """GET /os-simple-tenant-usage/{project}"""
    project = request.params[0]
    if project != request.who.project_id and not request.who.is_admin:
        raise refusal("os_compute_api:os-simple-tenant-usage:show")
    asked = _asked(service, request)
    found, limit = await _used(service, request, asked, project)
    # Zeros where there is nothing: upstream's empty object makes `openstack usage show` crash.
    body: dict[str, Any] = {"tenant_usage": _total(project, found, asked, detailed=True)}
    links = _next(service, request, f"os-simple-tenant-usage/{project}", found, limit)
    if links:
        body["tenant_usage_links"] = links
    return reply(body)


def _form(*, lists_servers: bool) -> shape.Json:
    asked = {"start": 0.0, "end": 0.0}
    used = shape.both(Used)
    detail = (True,) if lists_servers else (True, False)
    return shape.wire(*(_total("", used, asked, detailed=one) for one in detail))


def form() -> shape.Json:
    """The form of what one project used."""
    links = {"tenant_usage_links": {"type": "array", "items": shape.OBJECT}}
    return shape.record({"tenant_usage": _form(lists_servers=True), **links}, ["tenant_usage"])


def page_form() -> shape.Json:
    """The form of what all projects used."""
    return shape.listed("tenant_usages", _form(lists_servers=False), "tenant_usages_links")


_ALL = "/v2.1/os-simple-tenant-usage"
ROUTES = (
    Route("GET", _ALL, index, "usage:read_all", gives=page_form),
    Route("GET", _ALL + "/{project}", show, "usage:read", gives=form),
)
