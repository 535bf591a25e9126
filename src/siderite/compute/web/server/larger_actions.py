"""Actions of a server whose bodies say more than their name."""

from contextlib import suppress
from typing import TYPE_CHECKING
from typing import Any

from siderite.compute.domain.image import check_reserved
from siderite.compute.domain.image import usable
from siderite.compute.domain.image import whole
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import V
from siderite.compute.usecases.server import acting
from siderite.compute.usecases.server import create
from siderite.compute.usecases.server import evacuating
from siderite.compute.usecases.server import migrations
from siderite.compute.usecases.server import rebuilding
from siderite.compute.usecases.server import resizing
from siderite.compute.usecases.server import update
from siderite.compute.usecases.server.acting import Ask
from siderite.compute.usecases.server.kinds import KINDS
from siderite.compute.web import forms
from siderite.compute.web import policy
from siderite.compute.web import views
from siderite.compute.web.server import action_keys
from siderite.compute.web.server import servers
from siderite.compute.web.server import shutdown_type
from siderite.compute.web.server.named_images import check_booted
from siderite.compute.web.server.named_images import named
from siderite.core.errors import Conflict
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.errors import SideriteError
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply
from siderite.core.ids import new_secret

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

_IMAGE_ID, _HOST_MIGRATE, _PASSWORD_UNTIL, _STOPPED = 45, 56, 13, 95
_ZONE = 77
_CHECKED_LATER = 34
"""From here on whether a live migration can be is found out after the answer."""
_IMAGE_METADATA = 128


async def _ask(service: "Service", request: Request, wish: Ask) -> Server:
    return await acting.ask(
        service.ctx, request.params[0], wish, who=request.who, cause=service.cause(request)
    )


async def rescue(service: "Service", request: Request, value: Any) -> Response:
    """rescue"""
    asked = forms.take(
        {} if value is None else value, "rescue", action_keys.RESCUE, request.version
    )
    ref = asked.get("rescue_image_ref")
    if ref is not None:
        whole(await named(service, request, ref))
    password = asked.get("adminPass") or new_secret(9)
    wish = Ask("rescue", {"image": ref, "password": password},
               is_hard=asked.get("shutdown_type", False))  # fmt: skip
    await _ask(service, request, wish)
    return reply({"adminPass": password})


async def rebuild(service: "Service", request: Request, value: Any) -> Response:
    """rebuild"""
    version = request.version
    asked = forms.take(value, "rebuild", action_keys.rebuild(version), version)
    image = await named(service, request, asked["imageRef"])
    await check_booted(service, request, image, (await service.server(request)).project_id)
    password = asked.get("adminPass") or new_secret(9)
    changes: dict[str, Any] = {"image": image}
    for key, field in (
        ("name", "name"), ("metadata", "metadata"), ("OS-DCF:diskConfig", "disk_config"),
        ("accessIPv4", "access_ip_v4"), ("accessIPv6", "access_ip_v6"),
        ("description", "description"), ("hostname", "hostname"),
        ("trusted_image_certificates", "trusted_certificates"),
    ):  # fmt: skip
        if key in asked:
            changes[field] = asked[key]
    kept: dict[str, Any] = {"admin_password": password}
    if "user_data" in asked:
        kept["user_data"] = asked["user_data"]
    if "personality" in asked:
        kept["personality"] = asked["personality"]
    wish = rebuilding.Rebuild(
        changes, kept, "key_name" in asked, asked.get("key_name"),
        sets_password=bool(asked.get("adminPass")),
        is_hard=asked.get("shutdown_type", False),
        keeps_ephemeral=asked.get("preserve_ephemeral", False),
    )  # fmt: skip

    def check(server: Server) -> None:
        usable(image, server.flavor.ram_mib, server.flavor.disk_gib)

    server = await rebuilding.rebuild(
        service.ctx, request.params[0], wish, check, who=request.who, cause=service.cause(request)
    )
    # That of one that waited to be made is its owner's: whoever has it made is not told.
    is_new = server.request.admin_password == password
    more: dict[str, Any] = {"adminPass": password} if is_new else {}
    if version >= 54:  # noqa: PLR2004
        more["key_name"] = server.key_name
    if version >= 57:  # noqa: PLR2004
        more["user_data"] = server.request.user_data
    response = await servers.shown(service, request, server, status=202, **more)
    where = views.address(service, request, f"servers/{server.uuid}")
    response.headers.append((b"location", where.encode()))
    return response


async def resize(service: "Service", request: Request, value: Any) -> Response:
    """resize"""
    asked = forms.take(value, "resize", action_keys.RESIZE, request.version)
    ref = asked.get("flavorRef") or asked.get("flavor_id")
    if ref is None:
        raise Invalid(
            "Invalid input for field/attribute resize. 'flavorRef' is a required property"
        )
    if asked.get("flavor_id", ref) != ref:
        raise forms.wrong("flavor_id", asked["flavor_id"], "it is not the one of flavorRef")
    fields = {"disk_config": asked["OS-DCF:diskConfig"]} if "OS-DCF:diskConfig" in asked else {}
    await resizing.resize(
        service.ctx, request.params[0], ref.rstrip("/").rpartition("/")[2], who=request.who,
        cause=service.cause(request), is_hard=asked.get("shutdown_type", False), fields=fields,
    )  # fmt: skip
    return Response(status=202)


async def migrate(service: "Service", request: Request, value: Any) -> Response:
    """migrate"""
    host, is_hard = None, False
    if request.version >= _HOST_MIGRATE and value is not None:
        asked = forms.take(value, "migrate", action_keys.MIGRATE, request.version)
        host, is_hard = asked.get("host"), asked.get("shutdown_type", False)
    await resizing.check_host(service.ctx, host)
    args = {} if host is None else {"host": host}

    def check(server: Server) -> None:
        if host is not None and host == server.host:
            raise Invalid(
                f"Cannot migrate to the host where the server is: {host}. Name another, or none."
            )

    await _ask(service, request, Ask("migrate", args, is_hard=is_hard, check=check))
    return Response(status=202)


async def migrate_live(service: "Service", request: Request, value: Any) -> Response:
    """os-migrateLive"""
    version = request.version
    asked = forms.take(value, "os-migrateLive", action_keys.migrate_live(version), version)
    await resizing.check_host(service.ctx, asked["host"])
    if version < _CHECKED_LATER:
        await migrations.check_live(service.ctx, request.params[0], asked["host"], who=request.who)
    args = {} if asked["host"] is None else {"host": asked["host"]}
    await _ask(service, request, Ask("live_migrate", args))
    return Response(status=202)


async def evacuate(service: "Service", request: Request, value: Any) -> Response:
    """evacuate"""
    version = request.version
    asked = forms.take({} if value is None else value, "evacuate", action_keys.EVACUATE, version)
    host = asked.get("host")
    await resizing.check_host(service.ctx, host, missing=NotFound)
    password = asked.get("adminPass")
    if not password and version <= _PASSWORD_UNTIL:
        password = new_secret(9)

    wish = evacuating.Evacuate(host, version >= _STOPPED, password)
    await evacuating.evacuate(
        service.ctx, request.params[0], wish, who=request.who, cause=service.cause(request)
    )
    if version > _PASSWORD_UNTIL:
        return Response(status=200)
    return reply({"adminPass": password})


async def _snapshot(
    service: "Service",
    request: Request,
    kind: str,
    asked: dict[str, Any],
    more: dict[str, str] | None = None,
) -> Response:
    """An image is made that waits for its contents, then the server is asked for them."""
    ctx = service.ctx
    if len(asked.get("metadata", {})) > _IMAGE_METADATA:
        raise Invalid(f"An image has at most {_IMAGE_METADATA} items of metadata; give fewer.")
    check_reserved(asked.get("metadata", {}))
    server = await service.server(request)
    acting.check_state(server, kind, KINDS[kind].action)
    acting.check_place(ctx, server, KINDS[kind])
    base = {} if server.image is None else server.image.properties
    properties = {
        **base, "base_image_ref": server.image_id or "", "instance_uuid": server.uuid,
        "user_id": request.who.user_id, "image_type": "snapshot", **(more or {}),
        **asked.get("metadata", {}),
    }  # fmt: skip
    image = await service.images.make(
        asked["name"], properties, token=request.header(b"x-auth-token"),
        project=server.project_id, needs=_needs(server),
    )  # fmt: skip
    try:
        await _ask(service, request, Ask(kind, {**asked, "image": image}))
    except SideriteError:  # another may have been faster, to delete it for one
        await _discard(service, image)
        raise
    if request.version < _IMAGE_ID:
        where = service.images.address(image, request.base)
        return Response(status=202, headers=[(b"location", where.encode())])
    return reply({"image_id": image}, 202)


async def _discard(service: "Service", image: str) -> None:
    """Nobody knows of an image yet; why there will be none is what counts for its caller."""
    with suppress(SideriteError):
        await service.images.discard(image)


def _needs(server: Server) -> tuple[int, int]:
    """What its image will need: a disk as large as its own, and the memory that its base needed."""
    return server.flavor.disk_gib, 0 if server.image is None else server.image.min_ram_mib


async def create_image(service: "Service", request: Request, value: Any) -> Response:
    """createImage"""
    asked = forms.take(value, "createImage", action_keys.CREATE_IMAGE, request.version)
    return await _snapshot(service, request, "create_image", asked)


async def create_backup(service: "Service", request: Request, value: Any) -> Response:
    """createBackup"""
    asked = forms.take(value, "createBackup", action_keys.CREATE_BACKUP, request.version)
    more = {"image_type": "backup", "backup_type": asked["backup_type"]}
    return await _snapshot(service, request, "create_backup", asked, more)


async def shelve(service: "Service", request: Request, value: Any) -> Response:
    """shelve"""
    is_hard = shutdown_type.of_any("shelve", value, request.version)
    ctx = service.ctx
    server = await service.server(request)
    acting.check_lock(server, request.who)
    hurried = Ask("shelve", is_hard=is_hard, check=lambda now: _must_hurry(now, hurried))
    if acting.hurries(server, hurried):
        await _ask(service, request, hurried)  # there is an image already
        return Response(status=202)
    acting.check_state(server, "shelve", "shelve")
    acting.check_place(ctx, server, KINDS["shelve"])
    image = await service.images.make(
        f"{server.name}-shelved", {"instance_uuid": server.uuid, "image_type": "snapshot"},
        token=request.header(b"x-auth-token"), project=server.project_id, needs=_needs(server),
    )  # fmt: skip
    try:
        await _ask(service, request, Ask("shelve", {"image": image}, is_hard=is_hard))
    except SideriteError:  # another may have been faster, to delete it for one
        await _discard(service, image)
        raise
    return Response(status=202)


def _must_hurry(server: Server, wish: Ask) -> None:
    if not acting.hurries(server, wish):
        raise Conflict(f"Instance {server.uuid} changed meanwhile; ask again")


async def unshelve(service: "Service", request: Request, value: Any) -> Response:
    """unshelve"""
    version = request.version
    asked: dict[str, Any] = {}
    if version >= _ZONE and value is not None:
        asked = forms.take(value, "unshelve", action_keys.unshelve(version), version)
        if not asked:
            raise Invalid("Invalid input for field/attribute unshelve. {} is not valid")
    if "host" in asked:
        policy.check("servers:unshelve_to_host", request.who)
    await resizing.check_host(service.ctx, asked.get("host"))
    await create.check_zone(service.ctx, asked.get("availability_zone"))

    def prepare(server: Server, change: Any) -> tuple[dict[str, Any], dict[str, Any], list[Any]]:
        pinned = {"pinned_zone": asked["availability_zone"]} if "availability_zone" in asked else {}
        return pinned, {}, []

    def check(server: Server) -> None:
        if server.vm_state == V.ERROR and server.shelved_image is None:
            raise Conflict(
                f"Cannot 'unshelve' instance {server.uuid} while it is in vm_state error: it was"
                " not shelved. Rebuild it, or reboot it hard."
            )
        if asked and server.vm_state != V.SHELVED_OFFLOADED and server.host is not None:
            raise Conflict(
                f"Cannot 'unshelve' instance {server.uuid} to another place while it is in vm_state"
                f" {server.vm_state}"
            )

    args = {"host": asked["host"]} if "host" in asked else {}
    await _ask(service, request, Ask("unshelve", args, prepare, check=check))
    return Response(status=202)


async def crash_dump(service: "Service", request: Request, value: Any) -> Response:
    """trigger_crash_dump"""
    if value is not None:
        raise forms.wrong("trigger_crash_dump", value, "it must be null")
    server = await service.server(request)
    acting.check_lock(server, request.who)
    if server.task_state is not None:
        raise acting.busy(server, "trigger_crash_dump")
    if server.vm_state not in ("active", "paused", "rescued", "resized", "error"):
        raise acting.not_in_state(server, "trigger_crash_dump")
    await service.talk.crash_dump(server)
    await update.noted(
        service.ctx, server.uuid, "trigger_crash_dump", who=request.who,
        cause=service.cause(request),
    )  # fmt: skip
    return Response(status=202)
