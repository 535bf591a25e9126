"""The addresses of servers: parse, command, call, view."""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

from siderite.compute.domain import wire
from siderite.compute.domain.network import DEFAULT_GROUP
from siderite.compute.domain.network import is_group
from siderite.compute.domain.server import Server
from siderite.compute.usecases.project import server_groups
from siderite.compute.usecases.server import acting
from siderite.compute.usecases.server import create
from siderite.compute.usecases.server import delete
from siderite.compute.usecases.server import find
from siderite.compute.usecases.server import update
from siderite.compute.usecases.server.create import Create
from siderite.compute.web import forms
from siderite.compute.web import policy
from siderite.compute.web import views
from siderite.compute.web.server import server_forms
from siderite.compute.web.server import server_list
from siderite.compute.web.server import server_parts
from siderite.compute.web.server import server_schema
from siderite.compute.web.server.named_images import check_booted
from siderite.compute.web.server.named_images import named
from siderite.compute.web.server.server_list import Ask
from siderite.core.errors import Conflict
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import raw
from siderite.core.http import reply
from siderite.core.ids import new_secret
from siderite.core.json_body import parse_json
from siderite.core.store import Line

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

FULL_REPLIES = 75
LONGEST_NAME = 255
MOST_AT_ONCE = 1000
"""So many servers one request makes, also where no quota ends it."""
_DESCRIPTION, _GROUPS = 19, 71
_GROUPED = '"server_groups":['


async def statuses(service: "Service", request: Request) -> dict[str, str]:
    """How hosts are, for those who are told."""
    return await service.host_statuses() if views.shows_hosts(request) else {}


async def _text(service: "Service", request: Request, body: str) -> str:
    """One server as JSON; without its group if that is gone."""
    text = views.server(service, request, body, await statuses(service, request))
    at = text.rfind(_GROUPED)  # the hints, which come before it, may say the same
    begin = at + len(_GROUPED)
    end = text.find("]", begin)
    if request.version < _GROUPS or at < 0 or begin == end:
        return text
    if await server_groups.get(service.ctx, text[begin:end].strip('"')) is not None:
        return text
    return f"{text[:begin]}{text[end:]}"


async def show(service: "Service", request: Request) -> Response:
    """GET /v2.1/servers/{id}"""
    body = await find.body_of(service.ctx, request.params[0], request.who)
    text = await _text(service, request, body)
    return raw(f'{{"server":{text}}}'.encode())


async def index(service: "Service", request: Request) -> Response:
    """GET /v2.1/servers"""
    ask = server_list.parse(service.ctx, request)
    rows = await server_list.rows(service.ctx, ask, "uuid, name")
    items = views.linked(views.brief("servers", rows), service, request)
    return raw(views.page("servers", items, _next(service, request, ask, rows, "servers")))


async def detail(service: "Service", request: Request) -> Response:
    """GET /v2.1/servers/detail"""
    ask = server_list.parse(service.ctx, request)
    who, told = views.reader(service, request), await statuses(service, request)
    rows, items = await service.pages.of(service.ctx, ask, who, told)
    following = _next(service, request, ask, rows, "servers/detail")
    return raw(views.page("servers", ",".join(items), following))


def _next(
    service: "Service", request: Request, ask: Ask, rows: Sequence[Line], path: str
) -> str | None:
    if not rows or len(rows) < ask.limit:
        return None
    return views.following(service, request, path, str(rows[-1][0]))


async def make(service: "Service", request: Request) -> Response:
    """POST /v2.1/servers"""
    policy.check_project("servers:create", request.who)
    version = request.version
    server, hints = server_schema.creation(await forms.document(request), version)
    least, most = _counts(server)
    for group in server.get("security_groups", ()):
        if not is_group(request.who.project_id or "", group):
            raise Invalid(
                f"Security group {group} not found for project {request.who.project_id}: each"
                f" project has one here, {DEFAULT_GROUP}, and nothing is filtered."
            )
    fields = _fields(server, version)
    if hints.get("group"):
        fields["group"] = hints["group"]
    forced = _place(request, server, fields)
    image_id = server_schema.image_of(server)
    image = None
    if image_id is not None:
        image = await named(service, request, image_id)
        await check_booted(service, request, image, request.who.project_id)
    password = server.get("adminPass") or new_secret(9)
    server["adminPass"] = password
    wish = Create(
        flavor=server["flavorRef"],
        image=image,
        fields=fields,
        request=server_schema.kept(server, hints, most, **forced),
        min_count=least,
        max_count=most,
        ports=_ports(server.get("networks", "auto")),
    )
    made = await create.create(service.ctx, wish, who=request.who, cause=service.cause(request))
    return _made(service, request, made[0], server, password)


def _made(
    service: "Service", request: Request, first: Server, asked: dict[str, Any], password: str
) -> Response:
    if asked.get("return_reservation_id"):
        return reply({"reservation_id": first.reservation_id}, 202)
    where = views.address(service, request, f"servers/{first.uuid}")
    shown = server_forms.made(first, where, password)
    return reply({"server": shown}, 202, [(b"location", where.encode())])


def _fields(server: dict[str, Any], version: int) -> dict[str, Any]:
    """The fields of the record that are as they were sent."""
    fields: dict[str, Any] = {"name": server["name"]}
    for key, field in (
        ("metadata", "metadata"), ("key_name", "key_name"), ("tags", "tags"),
        ("description", "description"), ("accessIPv4", "access_ip_v4"),
        ("accessIPv6", "access_ip_v6"), ("OS-DCF:diskConfig", "disk_config"),
        ("hostname", "hostname"), ("trusted_image_certificates", "trusted_certificates"),
    ):  # fmt: skip
        if key in server:
            fields[field] = server[key]
    fields["config_drive"] = bool(server.get("config_drive"))
    if version < _DESCRIPTION:
        fields["description"] = server["name"]
    return fields


def _counts(server: dict[str, Any]) -> tuple[int, int]:
    """How many servers are asked for, at least and at most. Each of several is numbered."""
    least = server.get("min_count", 1)
    most = server.get("max_count", least)
    if least > most:
        raise Invalid("min_count must be <= max_count")
    if least > MOST_AT_ONCE:
        raise Invalid(f"One request makes {MOST_AT_ONCE} servers at the most; send several.")
    most = min(most, MOST_AT_ONCE)
    if most > 1 and "hostname" in server:
        raise Invalid("hostname cannot be given for several servers at once")
    if most > 1 and len(f"{server['name']}-{most}") > LONGEST_NAME:
        raise Invalid(
            f"The name is too long to be numbered from 1 to {most}: with its number, that of a"
            f" server has {LONGEST_NAME} characters at the most."
        )
    return least, most


def _place(request: Request, server: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """Zone, host and node that are asked for; hosts by administrators only."""
    asked = server.get("availability_zone", "")
    zone, _, rest = asked.partition(":")
    host, _, node = rest.partition(":")
    if ":" in node:
        raise Invalid(f"Unable to parse availability_zone {asked!r}; write it as ZONE:HOST:NODE.")
    fields["pinned_zone"] = zone or None
    wanted, wanted_node = server.get("host"), server.get("hypervisor_hostname")
    if (host or node) and (wanted or wanted_node):
        raise Invalid("One can not specify host and/or hypervisor_hostname with a zone's host.")
    if (host or node or wanted or wanted_node) and not policy.allows(
        "servers:create:forced_host", request.who
    ):
        raise policy.refusal("servers:create:forced_host")
    if host or node:
        return {"forced_host": host or None, "forced_node": node or None}
    return {"wanted_host": wanted, "wanted_node": wanted_node}


def _ports(
    networks: str | list[dict[str, Any]],
) -> tuple[tuple[str, str | None, str | None], ...] | None:
    if networks in ("auto", []):
        return None
    if isinstance(networks, str):
        return ()
    return tuple((item["uuid"], item.get("fixed_ip"), item.get("tag")) for item in networks)


async def put(service: "Service", request: Request) -> Response:
    """PUT /v2.1/servers/{id}"""
    asked = await forms.under(request, "server", server_schema.changes(request.version))
    names = {
        "OS-DCF:diskConfig": "disk_config", "accessIPv4": "access_ip_v4",
        "accessIPv6": "access_ip_v6", "pinned_availability_zone": "pinned_zone",
    }  # fmt: skip
    changes = {names.get(key, key): value for key, value in asked.items()}

    def check(server: Server) -> None:
        zone = changes.get("pinned_zone")
        if zone in (None, server.pinned_zone):
            return
        if server.task_state is not None:
            raise acting.busy(server, "pin")
        if server.move is not None:
            raise Conflict(
                f"Instance {server.uuid} may go back to the zone it came from: confirm or revert"
                " its resize before it is pinned."
            )
        if zone != server.availability_zone:
            raise Conflict(
                f"Instance {server.uuid} can only be pinned to the zone it is in:"
                f" {server.availability_zone}."
            )

    server = await update.change(
        service.ctx, request.params[0], lambda server: changes, who=request.who,
        cause=service.cause(request), check=check,
    )  # fmt: skip
    return await shown(service, request, server)


_PLAIN_REPLY = frozenset({
    "id", "name", "status", "tenant_id", "user_id", "created", "updated", "hostId", "accessIPv4",
    "accessIPv6", "addresses", "flavor", "image", "links", "metadata", "progress", "fault",
    "OS-DCF:diskConfig", "locked", "description", "tags", "trusted_image_certificates",
    "server_groups", "locked_reason",
})  # fmt: skip


async def shown(
    service: "Service", request: Request, server: Server, *, status: int = 200, **more: Any
) -> Response:
    """A server that was changed: whole from 2.75 on, before without the extensions' fields."""
    text = await _text(service, request, wire.render(server))
    fields = parse_json(text.encode())
    if request.version < FULL_REPLIES:
        fields = {key: value for key, value in fields.items() if key in _PLAIN_REPLY}
        fields["addresses"] = server_parts.addresses(server)
    if "user_data" in more:  # a rebuild told of it before the whole server was shown, in this word
        fields.pop("OS-EXT-SRV-ATTR:user_data", None)
    return reply({"server": {**fields, **more}}, status)


async def remove(service: "Service", request: Request) -> Response:
    """DELETE /v2.1/servers/{id}"""
    await delete.ask(service.ctx, request.params[0], who=request.who, cause=service.cause(request))
    return Response(status=204)


ROUTES = (
    Route("GET", "/v2.1/servers", index, "servers:read", gives=server_forms.page),
    Route("GET", "/v2.1/servers/detail", detail, "servers:read", gives=server_forms.page),
    Route(
        "POST",
        "/v2.1/servers",
        make,
        "servers:create",
        takes=server_schema.new,
        gives=server_forms.made_form,
    ),
    Route("GET", "/v2.1/servers/{id}", show, "servers:read", gives=server_forms.one),
    Route(
        "PUT",
        "/v2.1/servers/{id}",
        put,
        "servers:update",
        takes=server_schema.changed,
        gives=server_forms.changed,
    ),
    Route("DELETE", "/v2.1/servers/{id}", remove, "servers:delete"),
)
