"""The compute API's table of contents."""

from dataclasses import replace
from typing import TYPE_CHECKING
from typing import Any

from siderite.compute.web import actions
from siderite.compute.web import aggregates
from siderite.compute.web import attachments
from siderite.compute.web import consoles
from siderite.compute.web import diagnostics
from siderite.compute.web import extensions
from siderite.compute.web import external_events
from siderite.compute.web import flavor_extras
from siderite.compute.web import flavors
from siderite.compute.web import hosts
from siderite.compute.web import hypervisors
from siderite.compute.web import instance_actions
from siderite.compute.web import keypairs
from siderite.compute.web import migrations
from siderite.compute.web import quotas
from siderite.compute.web import server_groups
from siderite.compute.web import server_parts
from siderite.compute.web import servers
from siderite.compute.web import services
from siderite.compute.web import usage
from siderite.compute.web.versions import RANGE
from siderite.core import shape
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service


def _version(base: str) -> dict[str, Any]:
    return {
        "id": "v2.1",
        "status": "CURRENT",
        "version": RANGE.text(RANGE.high),
        "min_version": RANGE.text(RANGE.low),
        "updated": "2013-07-23T11:33:21Z",
        "links": [{"rel": "self", "href": base + "v2.1/"}],
    }


async def root(service: "Service", request: Request) -> Response:
    """GET /"""
    return reply({"versions": [_version(service.base(request))]})


def root_form() -> shape.Json:
    """The form of the root."""
    return shape.wire({"versions": [_version("")]})


async def v21(service: "Service", request: Request) -> Response:
    """GET /v2.1"""
    return reply(_about(service.base(request)))


def _about(base: str) -> dict[str, Any]:
    kind = "application/vnd.openstack.compute+json;version=2.1"
    media = [{"base": "application/json", "type": kind}]
    return {"version": {**_version(base), "media-types": media}}


def v21_form() -> shape.Json:
    """The form of what the API says of itself."""
    return shape.wire(_about(""))


def in_project(route: Route) -> Route:
    """The same route with the project in its path, as old clients write it."""
    return replace(route, path=route.path.replace("/v2.1", "/v2.1/{project_id}", 1))


_SHELL = (
    Route("GET", "/", root, gives=root_form),
    Route("GET", "/v2.1", v21, gives=v21_form),
    Route("GET", "/v2.1/versions/{id}", v21, gives=v21_form),
)

ROUTES: tuple[Route, ...] = (
    *_SHELL,
    *extensions.ROUTES,
    *keypairs.ROUTES,
    *quotas.ROUTES,
    *server_groups.ROUTES,
    *aggregates.ROUTES,
    *hypervisors.ROUTES,
    *services.ROUTES,
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
    *instance_actions.ROUTES,
    *flavors.ROUTES,
    *flavor_extras.ROUTES,
)
"""Each module of the web has its own ROUTES; they are put together here."""
