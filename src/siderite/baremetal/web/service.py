"""The bare metal API as a service: its versions, who may ask, its headers and its errors."""

from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec

from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.node import find
from siderite.baremetal.web import address
from siderite.baremetal.web import policy
from siderite.baremetal.web.bodies import no_query
from siderite.baremetal.web.routes import ROUTES
from siderite.baremetal.web.routes import takes_query
from siderite.baremetal.web.versions import RANGE
from siderite.core import same_site
from siderite.core.auth import identify
from siderite.core.errors import Forbidden
from siderite.core.errors import MethodNotAllowed
from siderite.core.errors import NotAcceptable
from siderite.core.errors import NotFound
from siderite.core.errors import SideriteError
from siderite.core.http import Authenticator
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import Routes
from siderite.core.http import reply
from siderite.core.microversion import Reader
from siderite.core.transition import Cause
from siderite.core.who import Who

_LOW = RANGE.text(RANGE.low).encode()
_HIGH = RANGE.text(RANGE.high).encode()
_STANDARD = b"openstack-api-version"
_ELDER = b"x-openstack-ironic-api-version"
_NOT_READ: dict[str, type[SideriteError]] = dict.fromkeys(
    ("POST", "PUT", "PATCH", "DELETE"), MethodNotAllowed
)
TOO_OLD: dict[str, dict[str, type[SideriteError]]] = {
    **dict.fromkeys(("allocation", "deploy_template", "runbook", "inspection_rule"), _NOT_READ),
    "trait": {"GET": NotAcceptable, "PUT": MethodNotAllowed},
}
"""How an address that is newer than the request's version is refused, if not as not there."""
ANYONE = Who("", "anyone", None, None, frozenset({"admin"}), system=True)
"""Who asks when authentication is switched off (loopback only)."""


_ROUTES = Routes(ROUTES)


class BaremetalService:
    """The service at `/baremetal`. `who` is None when authentication is switched off."""

    name = "baremetal"

    def __init__(self, ctx: Context, who: Authenticator | None) -> None:
        self.ctx = ctx
        self._who = who
        self.routes = _ROUTES
        self._version = Reader((_STANDARD, _ELDER), lambda said: RANGE.parse(_asked(said)))

    def base(self, request: Request) -> str:
        """The URL that links begin with."""
        return request.base + "/baremetal/"

    def cause(self, request: Request) -> Cause:
        """The request as the cause of what follows from it."""
        return Cause(request.request_id, request.who.user or None, request.who.project_id)

    async def prepare(self, request: Request, route: Route) -> None:
        request.version = self._version.read(request.scope["headers"])
        if route.policy == "public":
            _refuse_before(route, request)
            return
        if self._who is None:
            same_site.check_name(request)
            same_site.check(request)
            request.who = ANYONE
        else:
            request.who = await identify(request, self._who, basic=True)
        try:
            policy.check(route.policy, request.who)
        except Forbidden:
            if route.path.startswith("/v1/nodes/{"):  # one that they may not see is not there
                await find.node(self.ctx, address.ident(request), request.who)
            raise
        policy.check_project(route.policy, request.who)
        if route.since > request.version:
            refusals = TOO_OLD.get(_noun(route), {})
            error = refusals.get(route.method, NotFound)
            raise error(f"This address is there from API version 1.{route.since} on.")
        if request.scope["query_string"] and not takes_query(route):
            no_query(request)  # what nobody reads was meant to change the answer

    def finish(self, request: Request, response: Response) -> None:
        used = request.version or RANGE.low
        request_id = request.request_id.encode()
        response.headers += (
            (b"x-openstack-ironic-api-minimum-version", _LOW),
            (b"x-openstack-ironic-api-maximum-version", _HIGH),
            (b"x-openstack-ironic-api-version", b"1.%d" % used),
            (b"openstack-request-id", request_id),
            (b"x-openstack-request-id", request_id),
            (b"vary", b"X-OpenStack-Ironic-API-Version, X-Auth-Token"),
        )

    def _unrouted(self, request: Request, error: SideriteError) -> SideriteError:
        """Why there is no route: a version that is not spoken comes before that, and an address
        that is newer than the version is not there for any method.
        """
        try:
            request.version = self._version.read(request.scope["headers"])
        except NotAcceptable as odd:
            return odd
        there = list(_at(request.path)) if isinstance(error, MethodNotAllowed) else []
        since = min((route.since for route in there), default=0)
        if since > request.version and not any(_noun(route) in TOO_OLD for route in there):
            return NotFound(f"This address is there from API version 1.{since} on.")
        return error

    def error(self, request: Request, error: SideriteError) -> Response:
        """The API's double-encoded body: clients unwrap it."""
        if not request.version:
            error = self._unrouted(request, error)
        inner: dict[str, Any]
        if isinstance(error, NotAcceptable) or error.code.startswith("request.method"):
            title = {404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable"}[
                error.status
            ]
            inner = {"code": error.status, "title": title, "description": error.sentence}
        else:
            fault = "Server" if error.status >= 500 else "Client"  # noqa: PLR2004
            inner = {"faultcode": fault, "faultstring": error.sentence, "debuginfo": None}
        response = reply({"error_message": msgspec.json.encode(inner).decode()}, error.status)
        if error.status == 401:  # noqa: PLR2004
            response.headers.append((b"www-authenticate", b'Basic realm="Siderite bare metal"'))
        return response


def _noun(route: Route) -> str:
    return route.policy.partition(":")[0]


def _at(path: str) -> Iterator[Route]:
    """What is at an address, whatever the method."""
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        with suppress(SideriteError):
            yield _ROUTES.find(method, path)[0]


def _refuse_before(route: Route, request: Request) -> None:
    if route.since > request.version:
        raise NotFound(f"This address is there from API version 1.{route.since} on.")


def _asked(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The version that the headers ask for, as Ironic reads them: the last word for bare metal in
    the standard header, else the elder one, which must not be there twice.
    """
    texts: dict[bytes, list[str]] = {_STANDARD: [], _ELDER: []}
    for name, value in headers:
        texts[name].append(value.decode("latin-1"))
    for item in reversed(",".join(texts[_STANDARD]).split(",")):
        service, _, number = item.strip().partition(" ")
        if service.lower() == "baremetal" and number:
            return number
    return ",".join(texts[_ELDER])
