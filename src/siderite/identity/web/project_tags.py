"""The tags of a project, by addresses of their own; they are also among its attributes."""

from typing import TYPE_CHECKING
from urllib.parse import quote

from siderite.core import shape
from siderite.core.errors import NotFound
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply
from siderite.identity.web import query
from siderite.identity.web import schemas
from siderite.identity.web import views

if TYPE_CHECKING:
    from siderite.identity.web.service import IdentityService


def form() -> shape.Json:
    """The form of all of them on the wire."""
    return schemas.items("tags", "")


def _all(service: "IdentityService", project: str, tags: list[str]) -> Response:
    return reply({**views.listing(service.v3, f"/projects/{project}/tags", "tags", []),
                  "tags": tags})  # fmt: skip


async def index(service: "IdentityService", request: Request) -> Response:
    """GET /v3/projects/{project_id}/tags"""
    found = await service.identity.projects.get(query.path_id(request))
    return _all(service, found.uuid, list(found.extra.get("tags", ())))


async def replace(service: "IdentityService", request: Request) -> Response:
    """PUT /v3/projects/{project_id}/tags"""
    new = schemas.tags(await request.json())
    project = query.path_id(request)
    return _all(service, project, await service.identity.projects.retag(project, lambda _: new))


async def clear(service: "IdentityService", request: Request) -> Response:
    """DELETE /v3/projects/{project_id}/tags"""
    await service.identity.projects.retag(query.path_id(request), lambda _: [])
    return Response(status=204)


async def check(service: "IdentityService", request: Request) -> Response:
    """GET /v3/projects/{project_id}/tags/{tag}"""
    found = await service.identity.projects.get(query.path_id(request))
    if request.params[1] not in found.extra.get("tags", ()):
        raise _missing(request)
    return Response(status=204)


async def add(service: "IdentityService", request: Request) -> Response:
    """PUT /v3/projects/{project_id}/tags/{tag}"""
    project, tag = query.path_id(request), request.params[1]
    await service.identity.projects.retag(project, lambda had: schemas.with_tag(tag, had))
    where = f"{service.v3}/projects/{project}/tags/{quote(tag, safe='')}"
    return Response(status=201, headers=[(b"location", where.encode())])


async def remove(service: "IdentityService", request: Request) -> Response:
    """DELETE /v3/projects/{project_id}/tags/{tag}"""
    tag = request.params[1]

    def without(had: list[str]) -> list[str]:
        if tag not in had:
            raise _missing(request)
        return [one for one in had if one != tag]

    await service.identity.projects.retag(query.path_id(request), without)
    return Response(status=204)


def _missing(request: Request) -> NotFound:
    return NotFound(f"The project has no tag {request.params[1][:80]!r}; list them at …/tags.")
