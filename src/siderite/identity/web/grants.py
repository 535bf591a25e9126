"""Role assignments over HTTP: all of them, and each on a project, a domain or the system."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from msgspec.structs import replace

from siderite.core import shape
from siderite.core.errors import Invalid
from siderite.core.http import Handler
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply
from siderite.identity.domain import DEFAULT
from siderite.identity.domain import SYSTEM
from siderite.identity.domain import Grant
from siderite.identity.domain import Role
from siderite.identity.domain import Scope
from siderite.identity.domain import ScopeKind
from siderite.identity.domain import effective
from siderite.identity.domain import on_domain
from siderite.identity.domain import on_project
from siderite.identity.usecases.grants import not_held
from siderite.identity.web import query
from siderite.identity.web import views
from siderite.identity.web.schemas import items

if TYPE_CHECKING:
    from siderite.identity.web.service import IdentityService


_NEVER = ("group.id", "scope.OS-INHERIT:inherited_to")


async def list_all(service: "IdentityService", request: Request) -> Response:
    """GET /v3/role_assignments"""
    role_id = query.text(request, "role.id")
    role = None if role_id is None else await service.identity.roles.find(role_id)
    is_effective = query.flag(request, "effective")
    found: list[Grant] = []
    is_known = role_id is None or role is not None
    # There are no groups, and nothing is inherited.
    if is_known and all(query.text(request, name) is None for name in _NEVER):
        found = await service.identity.grants.find(
            user_id=query.text(request, "user.id"),
            scope=_wanted(request),
            role=None if is_effective else role,
        )
    if is_effective:
        found = _effective(found, await service.identity.roles.added())
        found = [one for one in found if role is None or role.name == one.role]
    has_names = query.flag(request, "include_names")
    shown = (views.grant(service.v3, one, has_names=has_names) for one in found)
    return reply(views.listing(service.v3, "/role_assignments", "role_assignments", shown))


async def list_my_domains(service: "IdentityService", request: Request) -> Response:
    """GET /v3/auth/domains"""
    held = await service.identity.grants.of_user(request.who.user_id, on_domain(DEFAULT.id))
    shown = [views.domain(service.v3, DEFAULT)] if held else []
    return reply(views.listing(service.v3, "/auth/domains", "domains", shown))


async def list_my_system(service: "IdentityService", request: Request) -> Response:
    """GET /v3/auth/system"""
    held = await service.identity.grants.of_user(request.who.user_id, SYSTEM)
    return reply(
        views.listing(service.v3, "/auth/system", "system", [{"all": True}] if held else [])
    )


async def _target(
    service: "IdentityService", kind: ScopeKind, request: Request
) -> tuple[Scope, str, Role | None]:
    """Scope, user and role out of the path; on the system there is no id of the scope in it."""
    at = 0
    scope = SYSTEM
    if kind is not ScopeKind.SYSTEM:
        scope = Scope(kind, query.path_id(request, 0))
        at = 1
    user_id = query.path_id(request, at)
    if len(request.params) == at + 1:
        return scope, user_id, None
    return scope, user_id, await service.identity.roles.get(query.path_id(request, at + 1))


def _list(kind: ScopeKind) -> Handler:
    async def handler(service: "IdentityService", request: Request) -> Response:
        scope, user_id, _ = await _target(service, kind, request)
        held = await service.identity.grants.of_user(user_id, scope)
        every = await service.identity.roles.every()
        shown = (views.role(service.v3, one) for one in every if one.name in held)
        return reply(views.listing(service.v3, request.path.removeprefix("v3"), "roles", shown))

    return handler


def _check(kind: ScopeKind) -> Handler:
    async def handler(service: "IdentityService", request: Request) -> Response:
        scope, user_id, role = await _target(service, kind, request)
        assert role is not None  # noqa: S101 - the route has a role in its path
        if role.name not in await service.identity.grants.of_user(user_id, scope):
            raise not_held(role)
        return Response(status=204)

    return handler


def _give(kind: ScopeKind) -> Handler:
    async def handler(service: "IdentityService", request: Request) -> Response:
        scope, user_id, role = await _target(service, kind, request)
        assert role is not None  # noqa: S101
        await service.identity.grants.give(user_id, scope, role)
        return Response(status=204)

    return handler


def _take(kind: ScopeKind) -> Handler:
    async def handler(service: "IdentityService", request: Request) -> Response:
        scope, user_id, role = await _target(service, kind, request)
        assert role is not None  # noqa: S101
        await service.identity.grants.take(user_id, scope, role)
        return Response(status=204)

    return handler


list_on_project, list_on_domain, list_on_system = map(
    _list, (ScopeKind.PROJECT, ScopeKind.DOMAIN, ScopeKind.SYSTEM)
)
check_on_project, check_on_domain, check_on_system = map(
    _check, (ScopeKind.PROJECT, ScopeKind.DOMAIN, ScopeKind.SYSTEM)
)
give_on_project, give_on_domain, give_on_system = map(
    _give, (ScopeKind.PROJECT, ScopeKind.DOMAIN, ScopeKind.SYSTEM)
)
take_on_project, take_on_domain, take_on_system = map(
    _take, (ScopeKind.PROJECT, ScopeKind.DOMAIN, ScopeKind.SYSTEM)
)


def _wanted(request: Request) -> Scope | None:
    """The scope that a list is cut to."""
    project_id = query.text(request, "scope.project.id")
    domain_id = query.text(request, "scope.domain.id")
    wanted = []
    if project_id is not None:
        wanted.append(on_project(project_id))
    if domain_id is not None:
        wanted.append(on_domain(domain_id))
    if query.text(request, "scope.system") is not None:
        wanted.append(SYSTEM)
    if len(wanted) > 1:
        raise Invalid(
            "Give one of scope.project.id, scope.domain.id and scope.system, not several."
        )
    return wanted[0] if wanted else None


def _effective(found: list[Grant], added: Collection[str]) -> list[Grant]:
    """The grants with those that they imply, each once."""
    every = {
        replace(one, role=role): None
        for one in found
        for role in sorted(effective([one.role], added))
    }
    return list(every)


def form() -> shape.Json:
    """The form of all role assignments."""
    shown = [
        views.grant("", shape.made_up(Grant, bare=bare, scope=Scope(kind, "")), has_names=named)
        for kind in ScopeKind for bare in (True, False) for named in (True, False)
    ]  # fmt: skip
    return items("role_assignments", *shown)
