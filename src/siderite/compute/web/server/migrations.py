"""Migrations of servers: os-migrations, and those of one server."""

from typing import TYPE_CHECKING
from typing import Any

from siderite.compute.domain.server import Server
from siderite.compute.domain.talk import MigrationProgress
from siderite.compute.usecases.server import kinds
from siderite.compute.usecases.server import migrations
from siderite.compute.web import forms
from siderite.compute.web import queries
from siderite.compute.web import views
from siderite.compute.web.forms import Key
from siderite.core import shape
from siderite.core.check import is_whole
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.errors import SideriteError
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply
from siderite.core.store import Line
from siderite.core.times import without_offset

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

_TYPES, _PAGED, _BEFORE, _OWNERS = 23, 59, 66, 80
_EQUAL = {
    "status": "status", "instance_uuid": "server",
    "migration_type": "kind", "source_compute": "source_host", "user_id": "user_id",
    "project_id": "project_id",
}  # fmt: skip
_RUNNING = ("migrating", "running", "queued", "preparing", "accepted")


def _shown(row: Line, version: int) -> dict[str, Any]:
    found = dict(zip(migrations.COLUMNS.split(", "), row, strict=True))
    shown: dict[str, Any] = {
        "id": found["id"],
        "instance_uuid": found["server"],
        "status": found["status"],
        "source_compute": found["source_host"],
        "source_node": found["source_node"],
        "dest_compute": found["target_host"],
        "dest_node": found["target_node"],
        "dest_host": None,
        "old_instance_type_id": _number(found["old_flavor"]),
        "new_instance_type_id": _number(found["new_flavor"]),
        "created_at": without_offset(str(found["created_at"])),
        "updated_at": without_offset(str(found["updated_at"])),
    }
    if version >= _TYPES:
        shown["migration_type"] = found["kind"]
    if version >= _PAGED:
        shown["uuid"] = found["uuid"]
    if version >= _OWNERS:
        shown["user_id"] = found["user_id"]
        shown["project_id"] = found["project_id"]
    return shown


def _listed(service: "Service", request: Request, row: Line) -> dict[str, Any]:
    """One of the list: a live one that is under way has an address of its own from 2.23 on."""
    shown = _shown(row, request.version)
    if request.version >= _TYPES and _is_under_way(row):
        path = f"servers/{shown['instance_uuid']}/migrations/{shown['id']}"
        shown["links"] = views.links(views.address(service, request, path))
    return shown


def _is_under_way(row: Line) -> bool:
    return _field(row, "kind") == "live-migration" and _field(row, "status") in _RUNNING


def _rows() -> list[Line]:
    """Rows made up: with everything, and with as little as they may have."""
    names = migrations.COLUMNS.split(", ")
    always = {"id": 1, "uuid": "", "server": "", "kind": "", "status": "", "created_at": "",
              "updated_at": ""}  # fmt: skip
    full: dict[str, Any] = {**dict.fromkeys(names, "1"), **always}
    bare: dict[str, Any] = {**dict.fromkeys(names), **always}
    return [tuple(row[name] for name in names) for row in (full, bare)]


def page_form() -> shape.Json:
    """The form of the list."""
    item = shape.across(_shown, _rows(), (1, _TYPES, _PAGED, _OWNERS))
    item["properties"]["links"] = shape.wire(views.links(""))
    return shape.listed("migrations", item, "migrations_links")


def _of_server_form() -> shape.Json:
    how_far = (None, MigrationProgress((1, 1, 1)))
    shown = [
        _of_server(row, version, far)
        for row in _rows() for version in (_TYPES, _PAGED, _OWNERS) for far in how_far
    ]  # fmt: skip
    return shape.wire(*shown)


def _number(flavor: Any) -> int | None:
    return int(flavor) if isinstance(flavor, str) and is_whole(flavor) else None


async def index(service: "Service", request: Request) -> Response:
    """GET /v2.1/os-migrations"""
    version = request.version
    most = service.ctx.settings.max_limit
    limit = queries.limit_of(request, most) if version >= _PAGED else most
    where, args = ["1 = 1"], list[Any]()
    since = before = None
    for key, value in request.query:
        if key == "instance_uuid" and version >= _PAGED:
            forms.uuid(key, value)
        if key in _EQUAL and (key not in ("user_id", "project_id") or version >= _OWNERS):
            where.append(f"{_EQUAL[key]} = ?")
            args.append(value)
        elif key == "host":
            where.append("(source_host = ? OR target_host = ?)")
            args += [value, value]
        elif key == "changes-since" and version >= _PAGED:
            where.append("updated_at >= ?")
            args.append(since := queries.moment(key, value))
        elif key == "changes-before" and version >= _BEFORE:
            where.append("updated_at <= ?")
            args.append(before := queries.moment(key, value))
        elif key == "marker" and version >= _PAGED:
            where.append("id < (SELECT id FROM server_migrations WHERE uuid = ?)")
            args.append(value)
            if not await migrations.page(service.ctx, "uuid = ?", [value], limit=1):
                raise Invalid(f"marker [{value[:80]}] not found. Ask from the start.")
        elif key not in ("limit", "hidden") and version >= _PAGED:
            raise queries.unexpected(key)
    queries.check_span(since, before)
    rows = await migrations.page(service.ctx, " AND ".join(where), args, limit=limit)
    body: dict[str, Any] = {"migrations": [_listed(service, request, row) for row in rows]}
    if version >= _PAGED and rows and len(rows) == limit:
        link = views.following(service, request, "os-migrations", str(rows[-1][1]))
        body["migrations_links"] = [{"rel": "next", "href": link}]
    return reply(body)


def _of_server(row: Line, version: int, far: MigrationProgress | None) -> dict[str, Any]:
    shown = _shown(row, version)
    for key in ("instance_uuid", "old_instance_type_id", "new_instance_type_id", "migration_type"):
        shown.pop(key, None)
    shown["server_uuid"] = row[2]
    for what in ("memory", "disk"):
        told = (None,) * 3 if far is None else getattr(far, what)
        for how, count in zip(("total", "processed", "remaining"), told, strict=True):
            shown[f"{what}_{how}_bytes"] = count
    return shown


async def _progress(service: "Service", server: Server) -> MigrationProgress | None:
    """What its host says; a host that says nothing now keeps nobody from seeing the rest."""
    try:
        return await service.talk.migration(server)
    except SideriteError:
        return None


async def of_server(service: "Service", request: Request) -> Response:
    """GET /v2.1/servers/{id}/migrations: live ones under way"""
    server = await service.server(request)
    rows = await migrations.page(
        service.ctx, "server = ? AND kind = 'live-migration' AND status IN (?, ?, ?, ?, ?)",
        [server.uuid, *_RUNNING], limit=service.ctx.settings.max_limit,
    )  # fmt: skip
    far = await _progress(service, server) if rows else None
    return reply({"migrations": [_of_server(row, request.version, far) for row in rows]})


async def one_of_server(service: "Service", request: Request) -> Response:
    """GET /v2.1/servers/{id}/migrations/{migration}"""
    server = await service.server(request)
    ident = request.params[1]
    row = await migrations.of_server(service.ctx, server, _ident(ident))
    if row is None or _field(row, "status") not in _RUNNING:
        raise NotFound(f"Live migration {ident[:40]} for server {server.uuid} is not in progress.")
    if _field(row, "kind") != "live-migration":
        raise NotFound(f"Migration {ident[:40]} for server {server.uuid} is no live migration.")
    far = await _progress(service, server)
    return reply({"migration": _of_server(row, request.version, far)})


def _field(row: Line, name: str) -> Any:
    return row[migrations.COLUMNS.split(", ").index(name)]


def _ident(text: str) -> int:
    """A migration's number; what is none is that of no migration."""
    return int(text) if is_whole(text) else -1


@shape.like({"type": "null"})
def _nothing(what: str, value: Any) -> None:
    if value is not None:
        raise forms.wrong(what, value, f"{value!r} is not None")


async def abort(service: "Service", request: Request) -> Response:
    """DELETE /v2.1/servers/{id}/migrations/{migration}"""
    return await _tell(service, request, kinds.ABORT)


_ACTION = {"force_complete": Key(_nothing, required=True)}


async def act(service: "Service", request: Request) -> Response:
    """POST /v2.1/servers/{id}/migrations/{migration}/action"""
    found = await forms.document(request)
    forms.take(found, "body", _ACTION, 1)
    return await _tell(service, request, kinds.FORCE)


async def _tell(service: "Service", request: Request, what: str) -> Response:
    uuid, ident = request.params
    await migrations.tell(
        service.ctx, uuid, _ident(ident), what, who=request.who, cause=service.cause(request)
    )
    return Response(status=202)


ROUTES = (
    Route("GET", "/v2.1/os-migrations", index, "migrations:read", gives=page_form),
    Route("GET", "/v2.1/servers/{id}/migrations", of_server, "server_migrations:read", 23,
          gives=lambda: shape.listed("migrations", _of_server_form())),
    Route(
        "GET", "/v2.1/servers/{id}/migrations/{migration}", one_of_server,
        "server_migrations:read", 23, gives=lambda: shape.under("migration", _of_server_form()),
    ),
    Route(
        "DELETE", "/v2.1/servers/{id}/migrations/{migration}", abort,
        "server_migrations:manage", 24,
    ),
    Route(
        "POST", "/v2.1/servers/{id}/migrations/{migration}/action", act,
        "server_migrations:manage", 22, lambda: forms.form(_ACTION),
    ),
)  # fmt: skip
