"""Scripting the simulated machines over HTTP, for demonstrations and for people's own tests:
administrators only.

GET  /simulator/v1/scripts              every script, by its scope
PUT  /simulator/v1/scripts/{scope}      all, rack:NAME or node:UUID (also DELETE)
POST /simulator/v1/racks/{rack}/power-cut
"""

from siderite.baremetal.drivers.simulated.machines import Machines
from siderite.baremetal.drivers.simulated.scripts import Script
from siderite.baremetal.drivers.simulated.scripts import parse
from siderite.core import shape
from siderite.core.auth import identify
from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
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


class SimulatorService:
    """The service at `/simulator`."""

    name = "simulator"

    def __init__(self, machines: Machines, who: Authenticator) -> None:
        self._machines = machines
        self._who = who
        self.routes = Routes(
            [
                Route("GET", "/v1/scripts", SimulatorService.show, gives=_scripts_form),
                Route("PUT", "/v1/scripts/{scope}", SimulatorService.put, gives=_script_form),
                Route("DELETE", "/v1/scripts/{scope}", SimulatorService.remove),
                Route("POST", "/v1/racks/{rack}/power-cut", SimulatorService.power_cut),
            ]
        )

    async def prepare(self, request: Request, route: Route) -> None:
        request.who = await identify(request, self._who)
        if not request.who.is_admin:
            raise Forbidden("Only administrators script the simulated machines.")

    def finish(self, request: Request, response: Response) -> None:
        response.headers.append((b"x-openstack-request-id", request.request_id.encode()))

    def error(self, request: Request, error: SideriteError) -> Response:
        return reply({"error": {"code": error.code, "message": error.sentence}}, error.status)

    async def show(self, request: Request) -> Response:
        return reply({"scripts": self._machines.scripts.every()})

    async def put(self, request: Request) -> Response:
        scope = _scope(request.params[0])
        script = parse(await request.json())
        self._machines.scripts.set(scope, script)
        return reply({"scope": scope, "script": script})

    async def remove(self, request: Request) -> Response:
        self._machines.scripts.set(_scope(request.params[0]), None)
        return Response(status=204)

    async def power_cut(self, request: Request) -> Response:
        self._machines.cut_power(request.params[0])
        return Response(status=204)


def _scope(text: str) -> str:
    kind, _, name = text.partition(":")
    if text == "all" or (kind in ("rack", "node") and name):
        return text
    raise Invalid(f"A script is for all, rack:NAME or node:UUID, not {text[:80]!r}.")
