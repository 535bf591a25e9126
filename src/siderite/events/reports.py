"""What the log comes to, over HTTP: the monitor, the search index, the state of the log itself."""

import re
from typing import Protocol

from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply
from siderite.events import monitor as counting
from siderite.events import query
from siderite.events import retention
from siderite.events import search as index
from siderite.events.monitor import Monitor
from siderite.events.retention import Retention
from siderite.events.search import Question
from siderite.events.search import Search

_WORD = re.compile(r"[a-z][a-z0-9_]{0,63}\Z")
_OPERATION = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)+\Z")
_FIELD = re.compile(r"[A-Za-z0-9_:-]{1,80}\Z")
_LONGEST = 400
_MOST_FIELDS = 20


class Home(Protocol):
    """The service whose handlers these are."""

    monitor: Monitor
    search: Search
    retention: Retention


async def monitor(home: Home, request: Request) -> Response:
    """GET /v1/monitor: per operation, how many began, ended, failed, are open."""
    _overseer(request)
    query.arguments(request, ())
    return reply(await home.monitor.report())


async def under_way(home: Home, request: Request) -> Response:
    """GET /v1/monitor/open: operations under way; `overdue=true` only those that are late."""
    _overseer(request)
    said = query.arguments(request, ("limit", "operation", "overdue"))
    overdue, operation = said.get("overdue", "false"), said.get("operation")
    if overdue not in ("true", "false"):
        raise Invalid("overdue must be true or false.")
    if operation is not None and not _OPERATION.match(operation):
        raise Invalid("operation must be such as baremetal.node.power_set.")
    limit = query.limit("limit", said.get("limit", str(query.USUAL_LIMIT)))
    found = await home.monitor.under_way(
        overdue=overdue == "true", operation=operation, limit=limit
    )
    return reply({"open": found})


async def state(home: Home, request: Request) -> Response:
    """GET /v1/log: what the log holds, and how far its readers are."""
    _overseer(request)
    query.arguments(request, ())
    return reply(await home.retention.report())


async def search(home: Home, request: Request) -> Response:
    """GET /v1/search: resources by words and by fields."""
    question = await _question(home, request)
    found, following, at = await home.search.find(question)
    return reply({"results": found, "current_to": at, "next": following})


async def rebuild(home: Home, request: Request) -> Response:
    """POST /v1/search/rebuild: read the log again from its beginning."""
    if not request.who.is_admin:
        raise Forbidden("Only administrators have the index built anew.")
    query.arguments(request, ())
    await home.search.rebuild()
    return Response(status=202)


async def _question(home: Home, request: Request) -> Question:
    own, fields = dict[str, str](), list[tuple[str, str]]()
    for name, text in request.query:
        if name not in ("q", "type", "project", "after", "limit"):
            fields.append((name, text))
        elif name in own:
            raise Invalid(f"{name} is given twice; give it once.")
        else:
            own[name] = text
    if len(own.get("q", "")) > _LONGEST:
        raise Invalid(f"q must have at most {_LONGEST} characters.")
    if not _WORD.match(own.get("type", "node")):
        raise Invalid("type must be a word such as node, port, chassis or server.")
    if fields:
        seen = None if request.who.sees_all else query.project(None, request.who)
        await _check_fields(home.search, fields, seen)
    return Question(
        text=own.get("q", ""),
        type=own.get("type"),
        fields=tuple(fields),
        project=query.project(own.get("project"), request.who),
        after=query.number("after", own.get("after", "0")),
        limit=query.limit("limit", own.get("limit", str(query.USUAL_LIMIT))),
        whole=request.who.sees_all,
    )


async def _check_fields(search: Search, fields: list[tuple[str, str]], seen: str | None) -> None:
    """A field that nothing has is a slip, and would otherwise just find nothing. What others call
    theirs is not to be learnt so: only what the caller's project has counts, if that is all `seen`.
    """
    if len(fields) > _MOST_FIELDS:
        raise Invalid(f"At most {_MOST_FIELDS} fields can be asked for.")
    for name, text in fields:
        if len(text) > _LONGEST:
            raise Invalid(f"The value of {name[:40]!r} is over {_LONGEST} characters long.")
        field = name.split(".", maxsplit=1)[0]
        if not (_FIELD.match(field) and await search.may_have(field, seen)):
            raise Invalid(
                f"Nothing has a field {name[:40]!r}; there are {', '.join(sorted(search.fields))},"
                " the properties of images, and the fields inside all of them with a dot"
                " (properties.cpu_arch)."
            )


def _overseer(request: Request) -> None:
    if not request.who.sees_all:
        raise Forbidden("This is about all projects: it needs the role admin or service.")


ROUTES = (
    Route("GET", "/v1/log", state, "admin", gives=retention.form),
    Route("GET", "/v1/monitor", monitor, "admin", gives=counting.form),
    Route("GET", "/v1/monitor/open", under_way, "admin", gives=counting.open_form),
    Route("GET", "/v1/search", search, "reader", gives=index.form),
    Route("POST", "/v1/search/rebuild", rebuild, "admin"),
)
