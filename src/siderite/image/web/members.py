"""The addresses of those an image is shared with."""

from typing import TYPE_CHECKING
from typing import Any

from siderite.core import shape
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply
from siderite.image.domain.image import MEMBER_STATUSES
from siderite.image.domain.image import Member
from siderite.image.usecases import members
from siderite.image.web.forms import MAX_TEXT

if TYPE_CHECKING:
    from siderite.image.web.service import ImageService as Service


def shown() -> shape.Json:
    """The form of a member on the wire."""
    return shape.seen(*(one.view() for one in shape.both(Member)))


def listed() -> shape.Json:
    """The form of the list."""
    return shape.listed("members", shown(), "schema")


def new() -> shape.Json:
    """The form of the body that adds one."""
    return shape.record({"member": shape.text(1, MAX_TEXT)}, ["member"], others=True)


def decision() -> shape.Json:
    """The form of the body with which a member decides."""
    return shape.record({"status": shape.words(MEMBER_STATUSES)}, ["status"], others=True)


async def index(service: "Service", request: Request) -> Response:
    """GET /v2/images/{image_id}/members"""
    found = await members.members(service.ctx, request.params[0], request.who)
    return reply({"members": [one.view() for one in found], "schema": "/v2/schemas/members"})


async def show(service: "Service", request: Request) -> Response:
    """GET /v2/images/{image_id}/members/{member_id}"""
    uuid, member_id = request.params
    return reply((await members.member(service.ctx, uuid, member_id, request.who)).view())


async def add(service: "Service", request: Request) -> Response:
    """POST /v2/images/{image_id}/members"""
    member_id = _word(await request.json(), "member")
    if not member_id or len(member_id) > MAX_TEXT:
        raise Invalid(f"member must be a project's id, of up to {MAX_TEXT} characters.")
    made = await members.add(
        service.ctx, request.params[0], member_id, who=request.who, cause=service.cause(request)
    )
    return reply(made.view())


async def decide(service: "Service", request: Request) -> Response:
    """PUT /v2/images/{image_id}/members/{member_id}"""
    status = _word(await request.json(), "status")
    if status not in MEMBER_STATUSES:
        raise Invalid(f"status must be one of {', '.join(MEMBER_STATUSES)}.")
    uuid, member_id = request.params
    changed = await members.decide(
        service.ctx, uuid, member_id, status, who=request.who, cause=service.cause(request)
    )
    return reply(changed.view())


async def remove(service: "Service", request: Request) -> Response:
    """DELETE /v2/images/{image_id}/members/{member_id}"""
    uuid, member_id = request.params
    cause = service.cause(request)
    await members.remove(service.ctx, uuid, member_id, who=request.who, cause=cause)
    return Response(status=204)


def _word(body: Any, name: str) -> str:
    value = body.get(name) if isinstance(body, dict) else None
    if not isinstance(value, str):
        raise Invalid(f'The body must be {{"{name}": "…"}}.')
    return value
