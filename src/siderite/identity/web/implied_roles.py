"""Which roles bring which others, over HTTP. These are the program's own: none is added so."""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

from siderite.core import shape
from siderite.core.errors import NotFound
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply
from siderite.identity.domain import ROLES
from siderite.identity.domain import Role
from siderite.identity.web import query
from siderite.identity.web import views

if TYPE_CHECKING:
    from siderite.identity.web.service import IdentityService


async def index(service: "IdentityService", _request: Request) -> Response:
    """GET /v3/role_inferences"""
    return reply(_all(service.v3, await service.identity.roles.every()))


async def of_role(service: "IdentityService", request: Request) -> Response:
    """GET /v3/roles/{role_id}/implies"""
    role = await service.identity.roles.get(query.path_id(request))
    return reply(_of(service.v3, role, await service.identity.roles.every()))


async def show(service: "IdentityService", request: Request) -> Response:
    """GET /v3/roles/{role_id}/implies/{implied_id}"""
    role = await service.identity.roles.get(query.path_id(request))
    implied = await service.identity.roles.get(query.path_id(request, 1))
    if implied.name not in role.implies:
        raise NotFound(
            f"The role {role.name} does not imply {implied.name} directly; see /v3/role_inferences."
        )
    return reply(_one(service.v3, role, implied))


def _brief(v3: str, role: Role) -> dict[str, Any]:
    shown = views.role(v3, role)
    return {name: shown[name] for name in ("id", "name", "links")}


def _rule(v3: str, role: Role, every: Sequence[Role]) -> dict[str, Any]:
    implied = [_brief(v3, one) for one in every if one.name in role.implies]
    return {"prior_role": _brief(v3, role), "implies": implied}


def _all(v3: str, every: Sequence[Role]) -> dict[str, Any]:
    rules = [_rule(v3, role, every) for role in every if role.implies]
    return {"role_inferences": rules, "links": {"self": f"{v3}/role_inferences"}}


def _of(v3: str, role: Role, every: Sequence[Role]) -> dict[str, Any]:
    links = {"self": f"{v3}/roles/{role.id}/implies"}
    return {"role_inference": _rule(v3, role, every), "links": links}


def _one(v3: str, role: Role, implied: Role) -> dict[str, Any]:
    links = {"self": f"{v3}/roles/{role.id}/implies/{implied.id}"}
    rule = {"prior_role": _brief(v3, role), "implies": _brief(v3, implied)}
    return {"role_inference": rule, "links": links}


def form() -> shape.Json:
    """The form of all of them."""
    return shape.wire(_all("", ROLES))


def role_form() -> shape.Json:
    """The form of those of one role."""
    return shape.wire(_of("", ROLES[0], ROLES))


def one_form() -> shape.Json:
    """The form of one."""
    return shape.wire(_one("", ROLES[0], ROLES[1]))
