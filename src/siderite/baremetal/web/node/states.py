"""The addresses of a node's states: provision, power."""

from typing import TYPE_CHECKING

from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.usecases.life import provision
from siderite.baremetal.usecases.node import find
from siderite.baremetal.usecases.power import power
from siderite.baremetal.web import policy
from siderite.baremetal.web import views
from siderite.baremetal.web.address import ident
from siderite.baremetal.web.node import provision_body
from siderite.baremetal.web.versions import ABORT_SINCE
from siderite.core import shape
from siderite.core.errors import Invalid
from siderite.core.errors import NotAcceptable
from siderite.core.http import MIB
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import raw

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

SOFT_POWER = 27
_LONGEST_S = 86400


async def show(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{ident}/states"""
    body = await find.body_of(service.ctx, ident(request), request.who)
    return raw(views.states(body, request.version, service.base(request)))


async def set_provision(service: "Service", request: Request) -> Response:
    """PUT /v1/nodes/{ident}/states/provision"""
    document = await request.json(64 * MIB)
    wish = provision_body.parse(document, request.version)

    def guard(node: Node) -> None:
        policy.check_owner("node:provision", request.who, node)
        since = ABORT_SINCE.get(node.provision_state, 0) if wish.verb == "abort" else 0
        if since > request.version:
            raise NotAcceptable(f"abort from {node.provision_state} needs API version 1.{since}.")

    node = await provision.ask(
        service.ctx,
        ident(request),
        wish,
        who=request.who,
        cause=service.cause(request),
        guards=provision.Guards(
            verb=guard,
            steps=policy.guard("node:provision:steps", request.who),
            hold=policy.guard("hold:answer", request.who),
        ),
    )
    await service.ctx.door.wait_a_moment(node.uuid)
    return accepted(service, request)


def power_form() -> shape.Json:
    """The form of the body that changes the power."""
    timeout = {"type": ["integer", "null"], "minimum": 1, "maximum": _LONGEST_S}
    return shape.record({"target": shape.words(PowerTarget), "timeout": timeout}, ["target"])


async def set_power(service: "Service", request: Request) -> Response:
    """PUT /v1/nodes/{ident}/states/power"""
    document = await request.json()
    if not isinstance(document, dict) or not isinstance(document.get("target"), str):
        raise Invalid('The body must be an object such as {"target": "power on"}.')
    extra = sorted(set(document) - {"target", "timeout"})
    if extra:
        raise Invalid(f"Unexpected arguments: {extra[0][:80]}. Power takes: target, timeout.")
    try:
        target = PowerTarget(document["target"])
    except ValueError:
        node = await find.node(service.ctx, ident(request), request.who)
        raise Invalid(
            f'The requested action "{document["target"][:80]}" can not be performed on node'
            f' "{node.uuid}" while it is in state "{node.power_state}".'
            f" The targets are: {', '.join(PowerTarget)}."
        ) from None
    timeout = document.get("timeout")
    if (target.is_soft or timeout is not None) and request.version < SOFT_POWER:
        raise NotAcceptable(f"{target} with a timeout or softly needs API version 1.{SOFT_POWER}.")
    if timeout is not None and (type(timeout) is not int or not 1 <= timeout <= _LONGEST_S):
        raise Invalid(f"timeout must be a whole number of seconds from 1 to {_LONGEST_S}.")
    node = await power.ask(
        service.ctx,
        ident(request),
        target,
        timeout_s=timeout,
        who=request.who,
        cause=service.cause(request),
        guard=policy.guard("node:power", request.who),
    )
    await service.ctx.door.wait_a_moment(node.uuid)
    return accepted(service, request)


def accepted(service: "Service", request: Request) -> Response:
    """It was asked for; the states tell how it is going."""
    location = f"{service.base(request)}v1/nodes/{ident(request)}/states"
    return Response(b"", 202, [(b"location", location.encode())])
