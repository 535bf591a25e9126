"""Scripting the simulated machines over HTTP (`core.scripting`), and cutting their power.

Scripts are for all, rack:NAME or node:UUID.
POST /simulator/v1/racks/{rack}/power-cut
"""

from siderite.baremetal.drivers.simulated.machines import Machines
from siderite.baremetal.drivers.simulated.scripts import Script
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.scripting import ScriptService
from siderite.core.who import Authenticator


def simulator_service(machines: Machines, who: Authenticator) -> ScriptService[Script]:
    """The service at `/simulator`."""

    async def power_cut(service: object, request: Request) -> Response:
        machines.cut_power(request.params[0])
        return Response(status=204)

    return ScriptService(
        "simulator", machines.scripts, who, of="machines", scopes=("rack:NAME", "node:UUID"),
        also=[Route("POST", "/v1/racks/{rack}/power-cut", power_cut)],
    )  # fmt: skip
