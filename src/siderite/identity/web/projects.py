"""Projects over HTTP."""

from collections.abc import Iterable
from typing import TYPE_CHECKING
from typing import Any

from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply
from siderite.identity.domain import DEFAULT
from siderite.identity.domain import Project
from siderite.identity.web import query
from siderite.identity.web import schemas
from siderite.identity.web import views

if TYPE_CHECKING:
    from siderite.identity.web.service import IdentityService


_KIN: dict[str, dict[str, Any]] = {
    "parents_as_ids": {"parents": {DEFAULT.id: None}},
    "parents_as_list": {"parents": []},
    "subtree_as_ids": {"subtree": None},
    "subtree_as_list": {"subtree": []},
}
"""Whom a project is told to stand among, if that is asked for: only the domain is above it."""


async def list_all(service: "IdentityService", request: Request) -> Response:
    """GET /v3/projects"""
    found = await service.identity.projects.find(
        name=query.text(request, "name"), enabled=query.choice(request, "enabled")
    )
    parents = (query.text(request, "domain_id"), query.text(request, "parent_id"))
    if any(one not in (None, DEFAULT.id) for one in parents) or query.flag(request, "is_domain"):
        found = []
    kept = [
        one for one in found if query.fits(request, "name", one.name) and _is_tagged(request, one)
    ]
    return _list(service, "/projects", *query.page(request, kept, lambda one: one.uuid))


async def list_mine(service: "IdentityService", request: Request) -> Response:
    """GET /v3/auth/projects"""
    found = await service.identity.projects.of_user(request.who.user_id)
    return _list(service, "/auth/projects", found)


async def list_of_user(service: "IdentityService", request: Request) -> Response:
    """GET /v3/users/{user_id}/projects"""
    user = await service.identity.users.get(query.path_id(request))
    found = await service.identity.projects.of_user(user.uuid)
    name, enabled = query.text(request, "name"), query.choice(request, "enabled")
    is_here = query.text(request, "domain_id") in (None, DEFAULT.id)
    kept = [
        one
        for one in found
        if is_here
        and name in (None, one.name)
        and enabled is not False
        and query.fits(request, "name", one.name)
    ]
    return _list(service, f"/users/{user.uuid}/projects", kept)


async def show(service: "IdentityService", request: Request) -> Response:
    """GET /v3/projects/{project_id}"""
    shown = views.project(service.v3, await service.identity.projects.get(query.path_id(request)))
    for name, kin in _KIN.items():
        if query.flag(request, name):
            shown |= kin
    return reply({"project": shown})


async def create(service: "IdentityService", request: Request) -> Response:
    """POST /v3/projects"""
    fields, extra = schemas.new_project(await request.json())
    return _one(service, await service.identity.projects.create(fields, extra), 201)


async def update(service: "IdentityService", request: Request) -> Response:
    """PATCH /v3/projects/{project_id}"""
    ident = query.path_id(request)
    fields, extra = schemas.project_change(await request.json(), ident)
    changed = await service.identity.projects.update(ident, fields, extra)
    return _one(service, changed)


async def delete(service: "IdentityService", request: Request) -> Response:
    """DELETE /v3/projects/{project_id}"""
    await service.identity.projects.delete(query.path_id(request))
    return Response(status=204)


def _is_tagged(request: Request, project: Project) -> bool:
    """Whether the four filters by tags leave it."""
    has = set(project.extra.get("tags", ()))
    wanted = (
        ("tags", lambda given: given <= has),
        ("tags-any", lambda given: bool(given & has)),
        ("not-tags", lambda given: not given <= has),
        ("not-tags-any", lambda given: not given & has),
    )
    asked = ((query.text(request, name), fits) for name, fits in wanted)
    return all(text is None or fits(set(text.split(","))) for text, fits in asked)


def _one(service: "IdentityService", project: Project, status: int = 200) -> Response:
    return reply({"project": views.project(service.v3, project)}, status)


def _list(
    service: "IdentityService", path: str, found: Iterable[Project], following: str | None = None
) -> Response:
    shown = (views.project(service.v3, one) for one in found)
    return reply(views.listing(service.v3, path, "projects", shown, following))
