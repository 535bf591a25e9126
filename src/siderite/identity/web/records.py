"""Nouns that are not rows: the domain, the region, and the catalogue's parts."""

from collections.abc import Callable
from collections.abc import Iterable
from typing import TYPE_CHECKING
from typing import TypeVar

from siderite.core.errors import NotFound
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply
from siderite.identity.domain import DEFAULT
from siderite.identity.web import query
from siderite.identity.web import views

if TYPE_CHECKING:
    from siderite.identity.web.service import IdentityService

T = TypeVar("T")


async def domains(service: "IdentityService", request: Request) -> Response:
    """GET /v3/domains"""
    is_shown = query.choice(request, "enabled") is not False
    found = _filtered(request, [DEFAULT] if is_shown else [], "name")
    return _list(service, "domains", found, views.domain)


async def domain(service: "IdentityService", request: Request) -> Response:
    """GET /v3/domains/{domain_id}"""
    return _one(service, request, "domain", {DEFAULT.id: DEFAULT}, views.domain)


async def regions(service: "IdentityService", _request: Request) -> Response:
    """GET /v3/regions"""
    return _list(service, "regions", [service.catalogue.region], views.region)


async def region(service: "IdentityService", request: Request) -> Response:
    """GET /v3/regions/{region_id}"""
    name = service.catalogue.region
    return _one(service, request, "region", {name: name}, views.region)


async def services(service: "IdentityService", request: Request) -> Response:
    """GET /v3/services"""
    found = _filtered(request, service.catalogue.services, "name", "type")
    return _list(service, "services", found, views.service)


async def service(service: "IdentityService", request: Request) -> Response:
    """GET /v3/services/{service_id}"""
    known = {one.id: one for one in service.catalogue.services}
    return _one(service, request, "service", known, views.service)


async def endpoints(service: "IdentityService", request: Request) -> Response:
    """GET /v3/endpoints"""
    found = _filtered(request, service.catalogue.endpoints, "interface", "service_id")
    if query.text(request, "region_id") not in (None, service.catalogue.region):
        found = []
    return _list(service, "endpoints", found, views.endpoint)


async def endpoint(service: "IdentityService", request: Request) -> Response:
    """GET /v3/endpoints/{endpoint_id}"""
    known = {one.id: one for one in service.catalogue.endpoints}
    return _one(service, request, "endpoint", known, views.endpoint)


async def no_groups(service: "IdentityService", request: Request) -> Response:
    """GET /v3/groups and /v3/users/{user_id}/groups: there are none."""
    if request.params:
        await service.identity.users.get(query.path_id(request))
    path = request.path.removeprefix("v3")
    return reply(views.listing(service.v3, path, "groups", ()))


async def no_group(_service: "IdentityService", request: Request) -> Response:
    """GET /v3/groups/{group_id}"""
    raise NotFound(f"There is no group {query.path_id(request)[:64]!r}; groups are not supported.")


async def access_rules(service: "IdentityService", request: Request) -> Response:
    """GET /v3/users/{user_id}/access_rules: there are none."""
    await service.identity.users.get(query.path_id(request))
    path = request.path.removeprefix("v3")
    return reply(views.listing(service.v3, path, "access_rules", ()))


def _filtered(request: Request, items: Iterable[T], *names: str) -> list[T]:
    wanted = {name: query.text(request, name) for name in names}
    return [
        item
        for item in items
        if all(value in (None, getattr(item, name)) for name, value in wanted.items())
    ]


def _list(
    service: "IdentityService",
    nouns: str,
    items: Iterable[T],
    view: Callable[[str, T], views.View],
) -> Response:
    shown = (view(service.v3, item) for item in items)
    return reply(views.listing(service.v3, f"/{nouns}", nouns, shown))


def _one(
    service: "IdentityService",
    request: Request,
    noun: str,
    known: dict[str, T],
    view: Callable[[str, T], views.View],
) -> Response:
    given = query.path_id(request)
    if given not in known:
        raise NotFound(f"There is no {noun} {given[:64]!r}; list them at /v3/{noun}s.")
    return reply({noun: view(service.v3, known[given])})
