"""The addresses of server groups."""

from typing import TYPE_CHECKING
from typing import Any

from siderite.compute.domain.server_group import HARD
from siderite.compute.domain.server_group import SOFT
from siderite.compute.domain.server_group import ServerGroup
from siderite.compute.usecases.project import server_groups
from siderite.compute.web import checks
from siderite.compute.web import forms
from siderite.compute.web import queries
from siderite.compute.web.policy import check_project
from siderite.compute.web.policy import refusal
from siderite.compute.web.versions import RANGE
from siderite.core import shape
from siderite.core.check import Check
from siderite.core.check import record
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

OWNERS = 13
SOFT_SINCE = 15
RULES = 64
_NAME = checks.text()


def _shown(found: server_groups.Shown, version: int) -> dict[str, Any]:
    group, members = found
    shown: dict[str, Any] = {"id": group.uuid, "name": group.name, "members": members}
    if version >= OWNERS:
        shown |= {"project_id": group.project_id, "user_id": group.user_id}
    if version >= RULES:
        return shown | {"policy": group.policy, "rules": group.rules}
    return shown | {"policies": [group.policy], "metadata": {}}


async def index(service: "Service", request: Request) -> Response:
    """GET /os-server-groups"""
    fields = {
        "all_projects": checks.free_text(), "limit": queries.limit, "offset": queries.limit,
    }  # fmt: skip
    asked = queries.take(request, fields)
    project = request.who.project_id or ""
    if "all_projects" in asked and not request.who.is_admin:
        raise refusal("os_compute_api:os-server-groups:index:all_projects")
    most = service.ctx.settings.max_limit
    found = await server_groups.page(
        service.ctx,
        None if "all_projects" in asked else project,
        limit=min(asked.get("limit", most), most),
        offset=asked.get("offset", 0),
    )
    return reply({"server_groups": [_shown(one, request.version) for one in found]})


async def show(service: "Service", request: Request) -> Response:
    """GET /os-server-groups/{id}"""
    found = await server_groups.one(service.ctx, request.params[0], request.who)
    return reply({"server_group": _shown(found, request.version)})


async def create(service: "Service", request: Request) -> Response:
    """POST /os-server-groups"""
    check_project("server_groups:manage", request.who)
    version = request.version
    known = HARD + (SOFT if version >= SOFT_SINCE else ())
    document = await forms.document(request)
    rules: dict[str, int] = {}
    if version >= RULES:
        fields: dict[str, Check] = {
            "name": _NAME, "policy": checks.choice(*known), "rules": _rules,
        }  # fmt: skip
        asked = checks.body(document, "server_group", fields, ["name", "policy"])
        policy, rules = asked["policy"], asked.get("rules", {})
        if rules and policy != "anti-affinity":
            raise checks.wrong("rules", rules, "Only anti-affinity policy supports rules.")
    else:
        fields = {"name": _NAME, "policies": _policies(known)}
        asked = checks.body(document, "server_group", fields, ["name", "policies"])
        policy = asked["policies"]
    made = await server_groups.create(
        service.ctx, asked["name"], policy, rules, who=request.who, cause=service.cause(request)
    )
    return reply({"server_group": _shown(made, version)})


def new() -> shape.Json:
    """The form of the body that makes one, by either name of the policy."""
    known = HARD + SOFT
    fields = {
        "name": _NAME, "policy": checks.choice(*known), "rules": _rules,
        "policies": _policies(known),
    }  # fmt: skip
    return shape.under("server_group", record(fields, ["name"]))


def _form() -> shape.Json:
    groups = [(group, members) for group in shape.both(ServerGroup) for members in ([], [""])]
    return shape.across(_shown, groups, RANGE.every)


def shown_form() -> shape.Json:
    """The form of one on the wire."""
    return shape.under("server_group", _form())


def _policies(known: tuple[str, ...]) -> Check:
    @shape.like({"type": "array", "items": shape.words(known), "minItems": 1, "maxItems": 1})
    def check(name: str, value: Any) -> str:
        if not isinstance(value, list) or len(value) != 1:
            raise checks.wrong(name, value, "It must be a list with one policy.")
        return str(checks.choice(*known)(name, value[0]))

    return check


_RULES = {"max_server_per_host": checks.whole(1)}


@shape.like(record(_RULES))
def _rules(name: str, value: Any) -> dict[str, int]:
    return checks.body(value, None, _RULES)


async def remove(service: "Service", request: Request) -> Response:
    """DELETE /os-server-groups/{id}"""
    cause = service.cause(request)
    await server_groups.remove(service.ctx, request.params[0], who=request.who, cause=cause)
    return Response(status=204)


_ONE = "/v2.1/os-server-groups/{id}"
ROUTES = (
    Route(
        "GET",
        "/v2.1/os-server-groups",
        index,
        "server_groups:read",
        gives=lambda: shape.listed("server_groups", _form()),
    ),
    Route(
        "POST",
        "/v2.1/os-server-groups",
        create,
        "server_groups:manage",
        takes=new,
        gives=shown_form,
    ),
    Route("GET", _ONE, show, "server_groups:read", gives=shown_form),
    Route("DELETE", _ONE, remove, "server_groups:manage"),
)
