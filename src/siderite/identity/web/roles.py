"""Roles over HTTP."""

from typing import TYPE_CHECKING

import msgspec

from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply
from siderite.identity.domain import Role
from siderite.identity.web import query
from siderite.identity.web import views
from siderite.identity.web.schemas import MAX_DESCRIPTION
from siderite.identity.web.schemas import MAX_NAME
from siderite.identity.web.schemas import convert

if TYPE_CHECKING:
    from siderite.identity.web.service import IdentityService

_EXAMPLE = '{"role": {"name": "…"}}'


class _Given(msgspec.Struct):
    name: str | None = None
    description: str | None = None
    domain_id: str | None = None


class Body(msgspec.Struct):
    """The body that makes or changes a role."""

    role: _Given


async def list_all(service: "IdentityService", request: Request) -> Response:
    """GET /v3/roles"""
    name, domain = query.text(request, "name"), query.text(request, "domain_id")
    found = [] if domain is not None else await service.identity.roles.every()
    kept = [
        one for one in found if name in (None, one.name) and query.fits(request, "name", one.name)
    ]
    kept, following = query.page(request, kept, lambda one: one.id)
    shown = (views.role(service.v3, one) for one in kept)
    return reply(views.listing(service.v3, "/roles", "roles", shown, following))


async def show(service: "IdentityService", request: Request) -> Response:
    """GET /v3/roles/{role_id}"""
    return _one(service, await service.identity.roles.get(query.path_id(request)))


async def create(service: "IdentityService", request: Request) -> Response:
    """POST /v3/roles"""
    given = _given(await request.json())
    if given.name is None:
        raise Invalid("The role needs a name; add it to the body.")
    made = await service.identity.roles.create(given.name, given.description or "")
    return _one(service, made, 201)


async def update(service: "IdentityService", request: Request) -> Response:
    """PATCH /v3/roles/{role_id}"""
    given = _given(await request.json())
    role_id = query.path_id(request)
    return _one(
        service, await service.identity.roles.update(role_id, given.name, given.description)
    )


async def delete(service: "IdentityService", request: Request) -> Response:
    """DELETE /v3/roles/{role_id}"""
    await service.identity.roles.delete(query.path_id(request))
    return Response(status=204)


def _given(body: object) -> _Given:
    given = convert(body, Body, _EXAMPLE).role
    name = given.name
    if name is not None and (len(name) > MAX_NAME or name.split() != [name]):
        raise Invalid(f"A role's name has 1 to {MAX_NAME} characters and no blanks.")
    if given.description is not None and len(given.description) > MAX_DESCRIPTION:
        raise Invalid(f"The description must have at most {MAX_DESCRIPTION} characters.")
    if given.domain_id is not None:
        raise Invalid("Roles of a domain are not supported; leave domain_id out.")
    return given


def _one(service: "IdentityService", role: Role, status: int = 200) -> Response:
    return reply({"role": views.role(service.v3, role)}, status)
