"""The addresses of imports: how they are asked for, and how they go."""

from typing import TYPE_CHECKING
from typing import Any

from siderite.core import shape
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply
from siderite.image.domain.task import Task
from siderite.image.usecases import data
from siderite.image.usecases import find
from siderite.image.usecases import imports

if TYPE_CHECKING:
    from siderite.image.web.service import ImageService as Service

METHODS = ("glance-direct", "web-download")


def asked() -> shape.Json:
    """The form of the body that asks for one; of the stores there is only one here."""
    method = shape.record(
        {"name": shape.words(METHODS), "uri": shape.text(1)}, ["name"], others=True
    )
    return shape.record({"method": method}, ["method"], others=True)


def shown() -> shape.Json:
    """The form of a task on the wire."""
    done = shape.made_up(Task, status="success")
    return shape.wire(*(one.view() for one in (done, *shape.both(Task))))


def listed() -> shape.Json:
    """The form of an image's tasks."""
    return shape.listed("tasks", shown())


async def begin(service: "Service", request: Request) -> Response:
    """POST /v2/images/{image_id}/import"""
    body: Any = await request.json()
    method = body.get("method") if isinstance(body, dict) else None
    method = method if isinstance(method, dict) else {}
    name = method.get("name")
    ways = service.ctx.import_methods
    if not isinstance(name, str) or name not in ways:
        raise Invalid(
            'The body must be {"method": {"name": NAME}}, with a name of:'
            f" {', '.join(ways) or 'none, since imports are switched off here'}."
        )
    uuid, cause = request.params[0], service.cause(request)
    if name == "glance-direct":
        await data.import_staged(service.ctx, uuid, who=request.who, cause=cause)
    else:
        await find.own(service.ctx, uuid, request.who)  # nobody else has names looked up
        uri = await service.guard.check_url("method.uri", method.get("uri"))
        await imports.begin(service.ctx, uuid, uri, who=request.who, cause=cause)
    return Response(status=202)


async def index(service: "Service", request: Request) -> Response:
    """GET /v2/images/{image_id}/tasks"""
    found = await imports.tasks(service.ctx, request.params[0], request.who)
    return reply({"tasks": [one.view() for one in found]})


async def show(service: "Service", request: Request) -> Response:
    """GET /v2/tasks/{task_id}"""
    return reply((await imports.task(service.ctx, request.params[0], request.who)).view())
