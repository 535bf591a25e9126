"""The address of a node's console."""

from typing import TYPE_CHECKING
from typing import Any

from siderite.baremetal.domain.hardware import ConsoleInfo
from siderite.baremetal.usecases.machine import console
from siderite.baremetal.web import forms
from siderite.baremetal.web import policy
from siderite.baremetal.web.address import ident
from siderite.baremetal.web.bodies import Body
from siderite.core import shape
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

SWITCH = Body({"enabled": True}, forms={"enabled": shape.FLAG})


async def show(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/states/console"""
    guard = policy.guard("node:console", request.who)
    enabled, info = await console.info(service.ctx, ident(request), request.who, guard)
    return reply(_shown(enabled, info))


def _shown(enabled: bool, info: ConsoleInfo | None) -> dict[str, Any]:
    return {"console_enabled": enabled, "console_info": info}


def form() -> shape.Json:
    """The form of a console's state."""
    return shape.wire(_shown(False, None), _shown(True, shape.made_up(ConsoleInfo)))


async def switch(service: "Service", request: Request) -> Response:
    """PUT /v1/nodes/{node}/states/console"""
    wish = (await SWITCH.of(request))["enabled"]
    if wish is None:
        raise Invalid("enabled must be true or false.")
    await console.ask(
        service.ctx, ident(request), enabled=forms.flag("enabled", wish), who=request.who,
        cause=service.cause(request), guard=policy.guard("node:console", request.who),
    )  # fmt: skip
    place = f"{service.base(request)}v1/nodes/{ident(request)}/states/console"
    return Response(b"", 202, [(b"location", place.encode())])
