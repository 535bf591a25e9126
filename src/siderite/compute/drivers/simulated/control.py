"""Scripting the simulated hosts over HTTP, for demonstrations and for people's own tests:
administrators only.

GET  /simulated-hosts/v1/scripts              every script, by its scope
PUT  /simulated-hosts/v1/scripts/{scope}      all, host:NAME or server:UUID (also DELETE)
POST /simulated-hosts/v1/guests/{server}/power   {"power": "running|shutdown|crashed|paused"}
"""

from siderite.compute.domain.power import Power
from siderite.compute.drivers.simulated.guests import Guests
from siderite.compute.drivers.simulated.scripts import Script
from siderite.compute.drivers.simulated.scripts import parse
from siderite.core import shape
from siderite.core.auth import identify
from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.errors import SideriteError
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import Routes
from siderite.core.http import reply
from siderite.core.who import Authenticator


def _scripts_form() -> shape.Json:
    """The form of the scripts by their scopes."""
    return shape.under("scripts", shape.record({}, others=shape.typed(Script)))


def _script_form() -> shape.Json:
    """The form of one that was set."""
    told = {"scope": shape.text(), "script": shape.typed(Script)}
    return shape.record(told, list(told))


class SimulatedHostsService:
    """The service at `/simulated-hosts`."""

    name = "simulated-hosts"

    def __init__(self, guests: Guests, who: Authenticator) -> None:
        self._guests = guests
        self._who = who
        self.routes = Routes(
            [
                Route("GET", "/v1/scripts", SimulatedHostsService.show, gives=_scripts_form),
                Route("PUT", "/v1/scripts/{scope}", SimulatedHostsService.put, gives=_script_form),
                Route("DELETE", "/v1/scripts/{scope}", SimulatedHostsService.remove),
                Route("POST", "/v1/guests/{server}/power", SimulatedHostsService.power),
            ]
        )

    async def prepare(self, request: Request, route: Route) -> None:
        request.who = await identify(request, self._who)
        if not request.who.is_admin:
            raise Forbidden("Only administrators script the simulated hosts.")

    def finish(self, request: Request, response: Response) -> None:
        response.headers.append((b"x-openstack-request-id", request.request_id.encode()))

    def error(self, request: Request, error: SideriteError) -> Response:
        return reply({"error": {"code": error.code, "message": error.sentence}}, error.status)

    async def show(self, request: Request) -> Response:
        return reply({"scripts": self._guests.scripts.every()})

    async def put(self, request: Request) -> Response:
        scope = _scope(request.params[0])
        script = parse(await request.json())
        self._guests.scripts.set(scope, script)
        return reply({"scope": scope, "script": script})

    async def remove(self, request: Request) -> Response:
        self._guests.scripts.set(_scope(request.params[0]), None)
        return Response(status=204)

    async def power(self, request: Request) -> Response:
        document = await request.json()
        word = document.get("power") if isinstance(document, dict) else None
        known = {power.name.lower(): power for power in Power if power is not Power.NOSTATE}
        if word not in known:
            raise Invalid(f"power must be one of {', '.join(known)}.")
        if not self._guests.by_itself(request.params[0], known[word]):
            raise NotFound(f"There is no simulated guest of server {request.params[0][:80]}.")
        return Response(status=204)


def _scope(text: str) -> str:
    kind, _, name = text.partition(":")
    if text == "all" or (kind in ("host", "server") and name):
        return text
    raise Invalid(f"A script is for all, host:NAME or server:UUID, not {text[:80]!r}.")
