"""What hangs below a server: metadata, tags, addresses."""

from collections.abc import Mapping
from typing import TYPE_CHECKING
from typing import Any
from urllib.parse import quote

from siderite.compute.domain import wire
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import V
from siderite.compute.usecases.project import quota
from siderite.compute.usecases.project.quotas import limits_of
from siderite.compute.usecases.server import acting
from siderite.compute.usecases.server import update
from siderite.compute.web import forms
from siderite.compute.web import metadata as items
from siderite.compute.web import views
from siderite.core import shape
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

_MOST_TAGS = 50
_TAGS = 26
_WRITABLE = (V.ACTIVE, V.PAUSED, V.SUSPENDED, V.STOPPED)


async def _meta(
    service: "Service", request: Request, changed: Any, *, action: str = "update metadata"
) -> Mapping[str, str]:
    def check(server: Server) -> None:
        if server.vm_state not in _WRITABLE:
            raise acting.not_in_state(server, action, _WRITABLE)

    limits = await limits_of(service.ctx, request.who.project_id or "")

    def changes(server: Server) -> dict[str, Any]:
        after = changed(server.metadata)
        if len(after) > len(server.metadata):
            quota.check_items(limits, after)
        return {"metadata": after}

    server = await update.change(
        service.ctx, request.params[0], changes, who=request.who, cause=service.cause(request),
        check=check, honours_lock=True,
    )  # fmt: skip
    return server.metadata


def tags_form() -> shape.Json:
    """The form of all tags."""
    return shape.under("tags", shape.of(forms.tags))


async def metadata(service: "Service", request: Request) -> Response:
    """GET /v2.1/servers/{id}/metadata"""
    return reply({"metadata": (await service.server(request)).metadata})


async def add_metadata(service: "Service", request: Request) -> Response:
    """POST /v2.1/servers/{id}/metadata"""
    new = await items.asked(request)
    return reply({"metadata": await _meta(service, request, lambda old: {**old, **new})})


async def put_metadata(service: "Service", request: Request) -> Response:
    """PUT /v2.1/servers/{id}/metadata"""
    new = await items.asked(request)
    return reply({"metadata": await _meta(service, request, lambda old: new)})


async def meta(service: "Service", request: Request) -> Response:
    """GET /v2.1/servers/{id}/metadata/{key}"""
    found = (await service.server(request)).metadata
    return reply({"meta": items.item(found, request.params[1])})


async def put_meta(service: "Service", request: Request) -> Response:
    """PUT /v2.1/servers/{id}/metadata/{key}"""
    asked = await items.asked_item(request)
    await _meta(service, request, lambda old: {**old, **asked})
    return reply({"meta": asked})


async def remove_meta(service: "Service", request: Request) -> Response:
    """DELETE /v2.1/servers/{id}/metadata/{key}"""
    await _meta(
        service,
        request,
        lambda old: items.without(old, request.params[1]),
        action="delete metadata",
    )
    return Response(status=204)


# Tags


def _check(server: Server, action: str) -> None:
    """Tags are changed where metadata are, and of what waits for a host; whoever locked it."""
    states = (*_WRITABLE, V.PENDING)
    if server.vm_state not in states:
        raise acting.not_in_state(server, action, states)


async def _set_tags(service: "Service", request: Request, action: str, changed: Any) -> Server:
    return await update.change(
        service.ctx, request.params[0], lambda server: {"tags": changed(server.tags)},
        who=request.who, cause=service.cause(request), check=lambda server: _check(server, action),
    )  # fmt: skip


async def tags(service: "Service", request: Request) -> Response:
    """GET /v2.1/servers/{id}/tags"""
    return reply({"tags": (await service.server(request)).tags})


async def put_tags(service: "Service", request: Request) -> Response:
    """PUT /v2.1/servers/{id}/tags"""
    new = await forms.only(request, "tags", forms.tags)
    server = await _set_tags(service, request, "update tags", lambda _: new)
    return reply({"tags": server.tags})


async def remove_tags(service: "Service", request: Request) -> Response:
    """DELETE /v2.1/servers/{id}/tags"""
    await _set_tags(service, request, "delete tags", lambda _: [])
    return Response(status=204)


def _no_tag(uuid: str, tag: str) -> NotFound:
    return NotFound(f"Server {uuid} has no tag '{tag[:60]}'")


async def tag(service: "Service", request: Request) -> Response:
    """GET /v2.1/servers/{id}/tags/{tag}"""
    server, name = await service.server(request), request.params[1]
    if name not in server.tags:
        raise _no_tag(server.uuid, name)
    return Response(status=204)


async def put_tag(service: "Service", request: Request) -> Response:
    """PUT /v2.1/servers/{id}/tags/{tag}"""
    name = forms.tag("tag", request.params[1])
    server = await service.server(request)
    if name in server.tags:
        _check(server, "update tag")
        return Response(status=204)

    def added(old: list[str]) -> list[str]:
        if name in old:
            return old
        if len(old) >= _MOST_TAGS:
            raise Invalid(f"The number of tags exceeded the per-server limit {_MOST_TAGS}")
        return [*old, name]

    server = await _set_tags(service, request, "update tag", added)
    where = views.address(service, request, f"servers/{server.uuid}/tags/{quote(name, safe='')}")
    return Response(status=201, headers=[(b"location", where.encode())])


async def remove_tag(service: "Service", request: Request) -> Response:
    """DELETE /v2.1/servers/{id}/tags/{tag}"""
    name = request.params[1]

    def without(old: list[str]) -> list[str]:
        if name not in old:
            raise _no_tag(request.params[0], name)
        return [one for one in old if one != name]

    await _set_tags(service, request, "delete tag", without)
    return Response(status=204)


# Addresses


def addresses(server: Server) -> dict[str, list[dict[str, Any]]]:
    """By the network's name, without what extensions once added."""
    return {
        label: [{"version": one["version"], "addr": one["addr"]} for one in found]
        for label, found in wire.addresses(server).items()
    }


async def ips(service: "Service", request: Request) -> Response:
    """GET /v2.1/servers/{id}/ips"""
    return reply({"addresses": addresses(await service.server(request))})


async def ips_of(service: "Service", request: Request) -> Response:
    """GET /v2.1/servers/{id}/ips/{label}"""
    found, label = addresses(await service.server(request)), request.params[1]
    if label not in found:
        raise NotFound("Instance is not a member of specified network")
    return reply({label: found[label]})


_ADDRESSES = {"type": "array", "items": shape.seen({"version": 4, "addr": ""})}


def ips_of_form() -> shape.Json:
    """The form of a server's addresses, by the names of networks."""
    return shape.record({}, others=_ADDRESSES)


def ips_form() -> shape.Json:
    """The form of all of them."""
    return shape.under("addresses", ips_of_form())


ROUTES = (
    Route("GET", "/v2.1/servers/{id}/metadata", metadata, "servers:read", gives=items.form),
    Route(
        "POST",
        "/v2.1/servers/{id}/metadata",
        add_metadata,
        "servers:update",
        takes=items.form,
        gives=items.form,
    ),
    Route(
        "PUT",
        "/v2.1/servers/{id}/metadata",
        put_metadata,
        "servers:update",
        takes=items.form,
        gives=items.form,
    ),
    Route("GET", "/v2.1/servers/{id}/metadata/{key}", meta, "servers:read", gives=items.item_form),
    Route(
        "PUT",
        "/v2.1/servers/{id}/metadata/{key}",
        put_meta,
        "servers:update",
        takes=items.item_form,
        gives=items.item_form,
    ),
    Route("DELETE", "/v2.1/servers/{id}/metadata/{key}", remove_meta, "servers:update"),
    Route("GET", "/v2.1/servers/{id}/tags", tags, "servers:read", _TAGS, gives=tags_form),
    Route(
        "PUT",
        "/v2.1/servers/{id}/tags",
        put_tags,
        "servers:update",
        _TAGS,
        takes=tags_form,
        gives=tags_form,
    ),
    Route("DELETE", "/v2.1/servers/{id}/tags", remove_tags, "servers:update", _TAGS),
    Route("GET", "/v2.1/servers/{id}/tags/{tag}", tag, "servers:read", _TAGS),
    Route("PUT", "/v2.1/servers/{id}/tags/{tag}", put_tag, "servers:update", _TAGS),
    Route("DELETE", "/v2.1/servers/{id}/tags/{tag}", remove_tag, "servers:update", _TAGS),
    Route("GET", "/v2.1/servers/{id}/ips", ips, "servers:read", gives=ips_form),
    Route("GET", "/v2.1/servers/{id}/ips/{label}", ips_of, "servers:read", gives=ips_of_form),
)
