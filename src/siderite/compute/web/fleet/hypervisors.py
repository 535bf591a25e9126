"""The addresses of hypervisors."""

from collections.abc import Callable
from typing import TYPE_CHECKING
from typing import Any

import msgspec

from siderite.compute.domain.host import Amount
from siderite.compute.domain.host import Hypervisor
from siderite.compute.usecases.fleet import inventory
from siderite.compute.usecases.fleet.inventory import Shown
from siderite.compute.usecases.placement.kept_room import Kept
from siderite.compute.usecases.server.acting import Unsupported
from siderite.compute.web import checks
from siderite.compute.web import queries
from siderite.compute.web import views
from siderite.compute.web.versions import RANGE
from siderite.core import shape
from siderite.core.check import Check
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

CPU_OBJECT = 28
PAGES = 33
UUIDS = 53
ALWAYS_SERVERS = 75
NO_STATISTICS = 88
OURS = 900
KEPT = 901


def _key(found: Shown, version: int) -> int | str:
    return found.hypervisor.uuid if version >= UUIDS else found.hypervisor.id


def _brief(found: Shown, version: int) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": _key(found, version),
        "hypervisor_hostname": found.hypervisor.node,
        "state": "up" if found.service.is_up else "down",
        "status": "disabled" if found.service.host.disabled else "enabled",
    }
    if found.servers is not None and (found.servers or version >= ALWAYS_SERVERS):
        shown["servers"] = [{"uuid": row[1], "name": _name(row)} for row in found.servers]
    return shown


def _name(row: Any) -> str:
    """What the host calls a server."""
    return f"instance-{row[1][:8]}"


def _full(found: Shown, version: int) -> dict[str, Any]:
    one, service = found.hypervisor, found.service
    shown = _brief(found, version) | {
        "hypervisor_type": one.type,
        "hypervisor_version": one.version,
        "host_ip": one.address,
        "service": {
            "id": service.host.uuid if version >= UUIDS else service.number,
            "host": service.host.name,
            "disabled_reason": service.host.disabled_reason,
        },
    }
    if version >= KEPT:
        shown["kept"] = [_kept(some) for some in found.kept]
        shown |= {"is_available": one.is_available, "why_not": one.why_not}
    if version >= OURS:
        return shown | {"uptime": None, "room": _how_much(found)}
    if version >= NO_STATISTICS:
        return shown | {"uptime": None}
    info: Any = one.cpu_info
    if version >= CPU_OBJECT:
        info = msgspec.json.decode(one.cpu_info) if one.cpu_info else {}
    return shown | {"cpu_info": info} | _statistics(found)


def _how_much(found: Shown) -> dict[str, dict[str, int]]:
    """What can be claimed of it, overcommitment included, and what has been."""
    limits, used = found.hypervisor.limits, found.hypervisor.used
    return {
        "vcpus": {"limit": limits.vcpus, "used": used.vcpus},
        "ram_mib": {"limit": limits.ram_mib, "used": used.ram_mib},
        "disk_gib": {"limit": limits.disk_gib, "used": used.disk_gib},
    }


def _kept(some: Kept) -> dict[str, Any]:
    """What is kept for a server that waits."""
    amount = some.amount
    return {
        "server": some.server,
        "vcpus": amount.vcpus,
        "ram_mib": amount.ram_mib,
        "disk_gib": amount.disk_gib,
    }


def _statistics(found: Shown) -> dict[str, int]:
    one = found.hypervisor
    return _amounts(Amount(one.vcpus, one.ram_mib, one.disk_gib), one.used, one.servers)


def _amounts(there: Amount, used: Amount, servers: int) -> dict[str, int]:
    return {
        "vcpus": there.vcpus,
        "vcpus_used": used.vcpus,
        "memory_mb": there.ram_mib,
        "memory_mb_used": used.ram_mib,
        "free_ram_mb": there.ram_mib - used.ram_mib,
        "local_gb": there.disk_gib,
        "local_gb_used": used.disk_gib,
        "free_disk_gb": there.disk_gib - used.disk_gib,
        "disk_available_least": there.disk_gib - used.disk_gib,
        "running_vms": servers,
        "current_workload": 0,
    }


def _form(view: Callable[[Shown, int], dict[str, Any]]) -> shape.Json:
    found = [
        shape.made_up(Shown, bare=bare, servers=servers, hypervisor=_made_up(bare=bare), kept=kept)
        for bare in (True, False)
        for servers in (None, [], [(1, "x")])
        for kept in ([], [Kept("x", "x", Amount(1, 1, 1))])
    ]
    return shape.across(view, found, RANGE.every)


def _made_up(*, bare: bool) -> Hypervisor:
    made: Hypervisor = shape.made_up(Hypervisor, bare=bare, cpu_info="" if bare else "{}")
    return made


def page_form() -> shape.Json:
    """The form of a list in short."""
    return shape.listed("hypervisors", _form(_brief), "hypervisors_links")


def detail_form() -> shape.Json:
    """The form of a whole list."""
    return shape.listed("hypervisors", _form(_full), "hypervisors_links")


async def index(service: "Service", request: Request) -> Response:
    """GET /os-hypervisors"""
    return await _listed(service, request, "os-hypervisors", detail=False)


async def detail(service: "Service", request: Request) -> Response:
    """GET /os-hypervisors/detail"""
    return await _listed(service, request, "os-hypervisors/detail", detail=True)


async def _listed(service: "Service", request: Request, path: str, *, detail: bool) -> Response:
    version = request.version
    fields: dict[str, Check] = {}
    if version >= PAGES:
        fields |= {"limit": queries.limit, "marker": queries.marker}
    if version >= UUIDS:
        fields |= {"hypervisor_hostname_pattern": checks.text(), "with_servers": checks.flag}
    asked = queries.take(request, fields, UUIDS)
    pattern = asked.get("hypervisor_hostname_pattern")
    if pattern is not None and ("limit" in asked or "marker" in asked):
        raise Invalid("Paging over hypervisors with the hypervisor_hostname_pattern query is not"
                      " supported.")  # fmt: skip
    with_servers = asked.get("with_servers", False)
    most = service.ctx.settings.max_limit
    limit = min(asked.get("limit", most), most) if version >= PAGES and pattern is None else None
    after = await _number(service, asked.get("marker"), version)
    found = await inventory.hypervisors(
        service.ctx, pattern=pattern, with_servers=with_servers, after=after,
        limit=None if limit is None else limit + 1,
    )  # fmt: skip
    if pattern is not None and not found:
        raise NotFound(f"No hypervisor matching '{pattern}' could be found.")
    show = _full if detail else _brief
    body: dict[str, Any] = {"hypervisors": [show(one, version) for one in found[:limit]]}
    if limit and len(found) > limit:
        href = views.following(service, request, path, str(_key(found[limit - 1], version)))
        body["hypervisors_links"] = [{"rel": "next", "href": href}]
    return reply(body)


async def _number(service: "Service", marker: str | None, version: int) -> int | None:
    """Where the last page ended."""
    if marker is None:
        return None
    try:
        by_uuid = version >= UUIDS
        return (await inventory.hypervisor(service.ctx, marker, by_uuid=by_uuid)).hypervisor.id
    except NotFound as why:
        raise Invalid(f"marker [{marker[:80]}] not found. Ask from the start.") from why


async def _one(service: "Service", request: Request, *, with_servers: bool = False) -> Shown:
    key, by_uuid = request.params[0], request.version >= UUIDS
    checks.ident(key, by_uuid=by_uuid)
    return await inventory.hypervisor(service.ctx, key, by_uuid=by_uuid, with_servers=with_servers)


async def show(service: "Service", request: Request) -> Response:
    """GET /os-hypervisors/{id}"""
    fields: dict[str, Check] = {}
    if request.version >= UUIDS:
        fields["with_servers"] = checks.flag
    asked = queries.take(request, fields, UUIDS)
    found = await _one(service, request, with_servers=asked.get("with_servers", False))
    return reply({"hypervisor": _full(found, request.version)})


async def uptime(service: "Service", request: Request) -> Response:
    """GET /os-hypervisors/{id}/uptime, below 2.88"""
    await _one(service, request)
    # Clients that show a hypervisor go on without it after a 501, and after that only.
    raise Unsupported("How long a host has been up is not known here; ask the host itself.")


def statistics_form() -> shape.Json:
    """The form of the sums over all that are up."""
    one = Amount(1, 1, 1)
    return shape.wire({"hypervisor_statistics": {"count": 1, **_amounts(one, one, 1)}})


async def statistics(service: "Service", request: Request) -> Response:
    """GET /os-hypervisors/statistics, below 2.88"""
    sums = await inventory.sums(service.ctx)
    total = _amounts(sums.there, sums.used, sums.servers)
    return reply({"hypervisor_statistics": {"count": sums.count, **total}})


async def search(service: "Service", request: Request) -> Response:
    """GET /os-hypervisors/{pattern}/search, below 2.53"""
    return await _matching(service, request, with_servers=False)


async def servers(service: "Service", request: Request) -> Response:
    """GET /os-hypervisors/{pattern}/servers, below 2.53"""
    return await _matching(service, request, with_servers=True)


async def _matching(service: "Service", request: Request, *, with_servers: bool) -> Response:
    pattern = request.params[0]
    found = await inventory.hypervisors(service.ctx, pattern=pattern, with_servers=with_servers)
    if not found:
        raise NotFound(f"No hypervisor matching '{pattern[:80]}' could be found.")
    return reply({"hypervisors": [_brief(one, request.version) for one in found]})


_ALL = "/v2.1/os-hypervisors"
_POLICY = "hypervisors:read"
ROUTES = (
    Route("GET", _ALL, index, _POLICY, gives=page_form),
    Route("GET", _ALL + "/detail", detail, _POLICY, gives=detail_form),
    Route(
        "GET",
        _ALL + "/statistics",
        statistics,
        _POLICY,
        gives=statistics_form,
        until=NO_STATISTICS - 1,
    ),
    Route(
        "GET", _ALL + "/{id}", show, _POLICY, gives=lambda: shape.under("hypervisor", _form(_full))
    ),
    Route("GET", _ALL + "/{id}/uptime", uptime, _POLICY, until=NO_STATISTICS - 1),
    Route("GET", _ALL + "/{id}/search", search, _POLICY, gives=page_form, until=UUIDS - 1),
    Route("GET", _ALL + "/{id}/servers", servers, _POLICY, gives=page_form, until=UUIDS - 1),
)
