"""Scripting the simulated hosts over HTTP (`core.scripting`), and changing their guests' power.

Scripts are for all, host:NAME or server:UUID.
POST /simulated-hosts/v1/guests/{server}/power   {"power": "running|shutdown|crashed|paused"}
"""

from siderite.compute.domain.power import Power
from siderite.compute.drivers.simulated.guests import Guests
from siderite.compute.drivers.simulated.scripts import Script
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.scripting import ScriptService
from siderite.core.who import Authenticator


def simulated_hosts_service(guests: Guests, who: Authenticator) -> ScriptService[Script]:
    """The service at `/simulated-hosts`."""

    async def power(service: object, request: Request) -> Response:
        document = await request.json()
        word = document.get("power") if isinstance(document, dict) else None
        known = {power.name.lower(): power for power in Power if power is not Power.NOSTATE}
        if word not in known:
            raise Invalid(f"power must be one of {', '.join(known)}.")
        if not guests.by_itself(request.params[0], known[word]):
            raise NotFound(f"There is no simulated guest of server {request.params[0][:80]}.")
        return Response(status=204)

    return ScriptService(
        "simulated-hosts", guests.scripts, who, of="hosts", scopes=("host:NAME", "server:UUID"),
        also=[Route("POST", "/v1/guests/{server}/power", power)],
    )  # fmt: skip
