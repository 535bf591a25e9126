"""Users over HTTP."""

from typing import TYPE_CHECKING

from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply
from siderite.identity.domain import DEFAULT
from siderite.identity.domain import User
from siderite.identity.web import query
from siderite.identity.web import schemas
from siderite.identity.web import views

if TYPE_CHECKING:
    from siderite.identity.web.service import IdentityService


async def list_all(service: "IdentityService", request: Request) -> Response:
    """GET /v3/users"""
    found = await service.identity.users.find(
        name=query.text(request, "name"), enabled=query.choice(request, "enabled")
    )
    if query.text(request, "domain_id") not in (None, DEFAULT.id):
        found = []
    kept = [one for one in found if query.fits(request, "name", one.name)]
    kept, following = query.page(request, kept, lambda one: one.uuid)
    shown = (views.user(service.v3, one) for one in kept)
    return reply(views.listing(service.v3, "/users", "users", shown, following))


async def show(service: "IdentityService", request: Request) -> Response:
    """GET /v3/users/{user_id}"""
    return _one(service, await service.identity.users.get(query.path_id(request)))


async def create(service: "IdentityService", request: Request) -> Response:
    """POST /v3/users"""
    fields, extra = schemas.new_user(await request.json())
    return _one(service, await service.identity.users.create(fields, extra), 201)


async def update(service: "IdentityService", request: Request) -> Response:
    """PATCH /v3/users/{user_id}"""
    ident = query.path_id(request)
    fields, extra = schemas.user_change(await request.json(), ident)
    changed = await service.identity.users.update(ident, fields, extra)
    return _one(service, changed)


async def delete(service: "IdentityService", request: Request) -> Response:
    """DELETE /v3/users/{user_id}"""
    await service.identity.users.delete(query.path_id(request))
    return Response(status=204)


async def change_password(service: "IdentityService", request: Request) -> Response:
    """POST /v3/users/{user_id}/password"""
    original, new = schemas.password_change(await request.json())
    await service.identity.users.change_password(query.path_id(request), original, new)
    return Response(status=204)


def _one(service: "IdentityService", user: User, status: int = 200) -> Response:
    return reply({"user": views.user(service.v3, user)}, status)
