"""The addresses of imports: how they are asked for, and how they go."""

from typing import TYPE_CHECKING
from typing import Any
from urllib.parse import urlencode

from siderite.core import shape
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply
from siderite.image.domain.task import Progress
from siderite.image.domain.task import Task
from siderite.image.usecases import data
from siderite.image.usecases import find
from siderite.image.usecases import imports
from siderite.image.web.listing import USUAL_LIMIT
from siderite.image.web.listing import whole

if TYPE_CHECKING:
    from siderite.image.web.service import ImageService as Service

METHODS = ("glance-direct", "web-download")
_TYPE = "api_image_import"
_CHOICES = {
    "status": tuple(Progress), "type": (_TYPE, "import", "location_import"),
    "sort_key": ("created_at",), "sort_dir": ("asc", "desc"),
}  # fmt: skip


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


def _asked(service: "Service", request: Request) -> dict[str, Any]:
    """What a list of all tasks is to be: `kept` is the query of its next page."""
    asked: dict[str, Any] = {"limit": USUAL_LIMIT, "kept": []}
    for name, value in request.query:
        if name != "marker":
            asked["kept"].append((name, value))
        if name == "limit":
            asked[name] = min(whole(name, value), service.ctx.max_limit)
        elif name in _CHOICES:
            if value not in _CHOICES[name]:
                raise Invalid(f"{name} must be one of {', '.join(_CHOICES[name])}.")
            asked[name] = value
        elif name == "marker":
            asked[name] = value
    return asked


async def every(service: "Service", request: Request) -> Response:
    """GET /v2/tasks"""
    asked = _asked(service, request)
    found: list[Task] = []
    if asked["limit"] and asked.get("type", _TYPE) == _TYPE:
        found = await imports.every(
            service.ctx, request.who, asked.get("status"), limit=asked["limit"],
            marker=asked.get("marker"), oldest_first=asked.get("sort_dir") == "asc",
        )  # fmt: skip
    body: dict[str, Any] = {
        "tasks": [one.brief() for one in found],
        "first": _link(asked["kept"]),
        "schema": "/v2/schemas/tasks",
    }
    if found and len(found) == asked["limit"]:
        body["next"] = _link([*asked["kept"], ("marker", found[-1].uuid)])
    return reply(body)


def _link(pairs: list[tuple[str, str]]) -> str:
    return "/v2/tasks" + (f"?{urlencode(pairs)}" if pairs else "")


def every_form() -> shape.Json:
    """The form of the list of all."""
    item = shape.wire(*(one.brief() for one in shape.both(Task)))
    return shape.listed("tasks", item, "first", "next", "schema")


async def show(service: "Service", request: Request) -> Response:
    """GET /v2/tasks/{task_id}"""
    return reply((await imports.task(service.ctx, request.params[0], request.who)).view())
