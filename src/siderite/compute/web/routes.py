"""The compute API's table of contents."""

from typing import TYPE_CHECKING
from typing import Any

from msgspec.structs import replace

from siderite.compute.web import extensions
from siderite.compute.web.catalogue import flavor_extras
from siderite.compute.web.catalogue import flavors
from siderite.compute.web.catalogue import images
from siderite.compute.web.fleet import aggregates
from siderite.compute.web.fleet import elder_hosts
from siderite.compute.web.fleet import external_events
from siderite.compute.web.fleet import hosts
from siderite.compute.web.fleet import hypervisors
from siderite.compute.web.fleet import image_cache
from siderite.compute.web.fleet import services
from siderite.compute.web.fleet import usage_audit
from siderite.compute.web.project import keypairs
from siderite.compute.web.project import quotas
from siderite.compute.web.project import server_groups
from siderite.compute.web.project import usage
from siderite.compute.web.server import actions
from siderite.compute.web.server import attachments
from siderite.compute.web.server import consoles
from siderite.compute.web.server import diagnostics
from siderite.compute.web.server import instance_actions
from siderite.compute.web.server import migrations
from siderite.compute.web.server import server_parts
from siderite.compute.web.server import servers
from siderite.compute.web.versions import RANGE
from siderite.compute.web.versions import not_there
from siderite.core import shape
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service


def _elder(base: str) -> dict[str, Any]:
    """The API before microversions: the same addresses, and always 2.1."""
    return {
        "id": "v2.0",
        "status": "SUPPORTED",
        "version": "",
        "min_version": "",
        "updated": "2011-01-21T11:33:21Z",
        "links": [{"rel": "self", "href": base + "v2/"}],
    }


def _version(base: str) -> dict[str, Any]:
    return {
        "id": "v2.1",
        "status": "CURRENT",
        "version": RANGE.text(RANGE.high),
        "min_version": RANGE.text(RANGE.low),
        "updated": "2013-07-23T11:33:21Z",
        "links": [{"rel": "self", "href": base + "v2.1/"}],
    }


def _all(base: str) -> dict[str, Any]:
    return {"versions": [_elder(base), _version(base)]}


async def root(service: "Service", request: Request) -> Response:
    """GET /"""
    return reply(_all(service.base(request)))


def root_form() -> shape.Json:
    """The form of the root."""
    return shape.wire(_all(""))


async def v2(service: "Service", request: Request) -> Response:
    """GET /v2"""
    return reply(_about(_elder(service.base(request))))


async def v21(service: "Service", request: Request) -> Response:
    """GET /v2.1"""
    return reply(_about(_version(service.base(request))))


async def one(service: "Service", request: Request) -> Response:
    """GET /v2.1/versions/{id}"""
    for version in _all(service.base(request))["versions"]:
        if version["id"] == request.params[0]:
            return reply(_about(version))
    raise not_there("GET / lists the versions that there are.")


def _about(version: dict[str, Any]) -> dict[str, Any]:
    number = version["id"].removeprefix("v").removesuffix(".0")
    kind = f"application/vnd.openstack.compute+json;version={number}"
    media = [{"base": "application/json", "type": kind}]
    return {"version": {**version, "media-types": media}}


def v21_form() -> shape.Json:
    """The form of what the API says of itself."""
    return shape.wire(_about(_version("")))


def in_project(route: Route) -> Route:
    """The same route with the project in its path, as old clients write it."""
    return replace(route, path=route.path.replace("/v2.1", "/v2.1/{project_id}", 1))


def elder(route: Route) -> Route:
    """The same route in the tree of before microversions."""
    return replace(route, path=route.path.replace("/v2.1", "/v2", 1))


_SHELL = (
    Route("GET", "/", root, gives=root_form),
    Route("GET", "/v2", v2, gives=v21_form),
    Route("GET", "/v2.1", v21, gives=v21_form),
    Route("GET", "/v2.1/versions/{id}", one, gives=v21_form),
)

ROUTES: tuple[Route, ...] = (
    *_SHELL,
    *extensions.ROUTES,
    *keypairs.ROUTES,
    *quotas.ROUTES,
    *server_groups.ROUTES,
    *aggregates.ROUTES,
    *image_cache.ROUTES,
    *hypervisors.ROUTES,
    *services.ROUTES,
    *usage_audit.ROUTES,
    *usage.ROUTES,
    *servers.ROUTES,
    *actions.ROUTES,
    *server_parts.ROUTES,
    *attachments.ROUTES,
    *consoles.ROUTES,
    *diagnostics.ROUTES,
    *migrations.ROUTES,
    *external_events.ROUTES,
    *hosts.ROUTES,
    *elder_hosts.ROUTES,
    *instance_actions.ROUTES,
    *flavors.ROUTES,
    *flavor_extras.ROUTES,
    *images.ROUTES,
)
"""Each module of the web has its own ROUTES; they are put together here."""
