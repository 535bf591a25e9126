"""The compute API as a service: its versions, who may ask, its headers and its errors."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from siderite.compute.domain.discreet import discreet
from siderite.compute.domain.image import ImageSource
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import V
from siderite.compute.domain.talk import Consoles
from siderite.compute.domain.talk import Talk
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.server import find
from siderite.compute.usecases.server import listing
from siderite.compute.web import policy
from siderite.compute.web import versions
from siderite.compute.web.project.key_maker import KeyMaker
from siderite.compute.web.queries import ALL_STRICT
from siderite.compute.web.routes import ROUTES
from siderite.compute.web.routes import elder
from siderite.compute.web.routes import in_project
from siderite.compute.web.server.pages import Pages
from siderite.compute.web.versions import RANGE
from siderite.core.auth import identify
from siderite.core.errors import Invalid
from siderite.core.errors import SideriteError
from siderite.core.http import Authenticator
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import Routes
from siderite.core.http import reply
from siderite.core.microversion import Reader
from siderite.core.transition import Cause

_STANDARD = b"openstack-api-version"
_ELDER = b"x-openstack-nova-api-version"
_ELDER_TREE = "/v2/"
"""Where headers ask for no version: what is there is as old as the API."""
_WITHIN = ("/v2.1/{project_id}", "/v2/{project_id}")
_STATUSES_S = 0.5
_PROJECT = re.compile(r"[0-9a-f-]+\Z")
_NAMES = {
    400: "badRequest", 401: "unauthorized", 403: "forbidden", 404: "itemNotFound",
    405: "badMethod", 409: "conflictingRequest", 413: "overLimit", 415: "badMediaType",
    429: "overLimit", 501: "notImplemented", 503: "serviceUnavailable",
}  # fmt: skip
_UNAUTHORIZED, _NOT_FOUND, _METHOD = 401, 404, 405
_QUERIED = frozenset(
    "/v2.1/" + path
    for path in (
        "servers", "servers/detail", "servers/{id}/os-instance-actions",
        "servers/{id}/os-volume_attachments", "flavors", "flavors/detail", "limits", "os-keypairs",
        "os-keypairs/{name}", "os-quota-sets/{project}", "os-quota-sets/{project}/detail",
        "os-server-groups", "os-simple-tenant-usage", "os-simple-tenant-usage/{project}",
        "os-services", "os-hypervisors", "os-hypervisors/detail", "os-hypervisors/{id}",
        "os-migrations",
    )
)  # fmt: skip
"""Addresses that have arguments, and refuse all others by themselves."""


def _routes() -> Routes:
    """Every address, also as old clients write it."""
    own = [route for route in ROUTES if route.policy != "public"]
    within = [in_project(route) for route in own]
    return Routes([*ROUTES, *within, *map(elder, own), *map(elder, within)])


_ROUTES = _routes()


class ComputeService:
    """The service at `/compute`."""

    name = "compute"

    def __init__(
        self,
        ctx: Context,
        who: Authenticator,
        images: ImageSource,
        talk: Talk,
        consoles: Consoles,
    ) -> None:
        self.ctx = ctx
        self.images = images
        self.talk = talk
        self.consoles = consoles
        self._who = who
        self.routes = _ROUTES
        self.pages = Pages()
        self.key_maker = KeyMaker()
        self._statuses: dict[str, str] = {}
        self._statuses_at = 0.0
        self._version = Reader((_STANDARD, _ELDER), lambda said: versions.parse(_asked(said)))

    async def host_statuses(self) -> dict[str, str]:
        """How hosts are, as of a moment ago: asked for with every server that is shown."""
        now = self.ctx.door.clock()
        if not 0 <= now - self._statuses_at < _STATUSES_S:
            self._statuses = await listing.host_statuses(self.ctx)
            self._statuses_at = now
        return self._statuses

    def base(self, request: Request) -> str:
        """The URL that the API is at."""
        return request.base + "/compute/"

    async def server(self, request: Request) -> Server:
        """The server that a request's path names, as its caller may see it."""
        return await find.server(self.ctx, request.params[0], request.who)

    def cause(self, request: Request) -> Cause:
        """The request as the cause of what follows from it."""
        return Cause(request.request_id, request.who.user_id or None, request.who.project_id)

    async def prepare(self, request: Request, route: Route) -> None:
        if route.path.startswith(_ELDER_TREE):
            request.version = RANGE.low
        else:
            request.version = self._version.read(request.scope["headers"])
        if route.policy == "public":
            return
        request.who = await identify(request, self._who, basic=True)
        if route.path.startswith(_WITHIN):
            self._check_project(request)
        if not route.since <= request.version <= route.until:
            versions.check(request.version, route.since, route.until)
        policy.check(route.policy, request.who)
        if request.query and request.version >= ALL_STRICT:
            _refuse_query(request, route)

    def _check_project(self, request: Request) -> None:
        """The project in the URL must be the token's."""
        project, *rest = request.params
        if not _PROJECT.match(project):
            raise versions.not_there("A project's id is of 0 to 9, a to f and dashes.")
        if project != request.who.project_id:
            raise Invalid(
                f"Malformed request URL: URL's project_id '{project[:64]}' doesn't match Context's"
                f" project_id '{request.who.project_id}'."
            )
        request.params = tuple(rest)

    def finish(self, request: Request, response: Response) -> None:
        request_id = request.request_id.encode()
        response.headers += (
            (b"x-compute-request-id", request_id),
            (b"x-openstack-request-id", request_id),
        )
        if request.path.strip("/"):
            response.headers += _version_headers(request.version or RANGE.low)

    def error(self, request: Request, error: SideriteError) -> Response:
        """The API's own body: one key that names the kind of fault."""
        status = _NOT_FOUND if error.status == _METHOD else error.status
        if status == _UNAUTHORIZED:
            body: dict[str, Any] = {
                "error": {"code": status, "title": "Unauthorized", "message": error.sentence}
            }
            uri = f'Keystone uri="{request.base}/identity"'.encode()
            return reply(body, status, [(b"www-authenticate", uri)])
        sentence = error.sentence if request.who.is_admin else discreet(error.sentence)
        if request.version < versions.PENDING:
            sentence = sentence.replace(f"vm_state {V.PENDING}", f"vm_state {V.ERROR}")
        fault: dict[str, Any] = {"code": status, "message": sentence}
        if error.retry_after_s is not None:
            fault["retryAfter"] = str(error.retry_after_s)
        return reply({_NAMES.get(status, "computeFault"): fault}, status)


def _refuse_query(request: Request, route: Route) -> None:
    """Where no argument is known, none is taken."""
    if route.method == "GET" and route.path.replace("/{project_id}", "", 1) not in _QUERIED:
        name = request.query[0][0]
        raise Invalid(f"Additional properties are not allowed ({name[:80]!r} was unexpected)")


@lru_cache(256)
def _version_headers(version: int) -> tuple[tuple[bytes, bytes], ...]:
    used = b"2.%d" % version
    return (
        (b"openstack-api-version", b"compute " + used),
        (b"x-openstack-nova-api-version", used),
        (b"vary", b"OpenStack-API-Version, X-OpenStack-Nova-API-Version, X-Auth-Token"),
    )


def _asked(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The version that the headers ask for: the standard one's word for compute, else the elder."""
    elder = None
    for name, value in headers:
        text = value.decode("latin-1")
        if name == _ELDER:
            elder = elder or text
            continue
        for item in text.split(","):
            service, _, number = item.strip().partition(" ")
            if service.lower() in ("compute", "nova") and number:
                return number
    return elder
