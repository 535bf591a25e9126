"""Interfaces and volumes of a server, and what else only other services could give: answered
honestly where there is no such service.
"""

from typing import TYPE_CHECKING
from typing import Any

from siderite.compute.domain.network import DEFAULT_GROUP
from siderite.compute.domain.network import Network
from siderite.compute.domain.network import Port
from siderite.compute.domain.network import group_id
from siderite.compute.usecases.server import interfaces
from siderite.compute.web import forms
from siderite.compute.web import queries
from siderite.compute.web.forms import Key
from siderite.core import shape
from siderite.core.check import or_null
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

_TAG = 70


# Interfaces


def _shown(service: "Service", port: Port, version: int) -> dict[str, Any]:
    return _view(port, service.ctx.network(port.network), version)


def _view(port: Port, network: Network | None, version: int) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "port_id": port.id,
        "net_id": None if network is None else network.uuid,
        "mac_addr": port.mac,
        "port_state": "ACTIVE",
        "fixed_ips": [
            {
                "ip_address": port.address,
                "subnet_id": None if network is None else network.subnet,
            }
        ],
    }
    if version >= _TAG:
        shown["tag"] = port.tag
    return shown


def _form() -> shape.Json:
    network = Network("", "", "", "")
    places = [(port, one) for port in shape.both(Port) for one in (network, None)]
    return shape.wire(*(_view(*place, version) for place in places for version in (1, _TAG)))


async def interface_list(service: "Service", request: Request) -> Response:
    """GET /v2.1/servers/{id}/os-interface"""
    server = await service.server(request)
    shown = [_shown(service, port, request.version) for port in server.ports]
    return reply({"interfaceAttachments": shown})


async def interface(service: "Service", request: Request) -> Response:
    """GET /v2.1/servers/{id}/os-interface/{port}"""
    server = await service.server(request)
    port = interfaces.port_of(server, request.params[1])
    return reply({"interfaceAttachment": _shown(service, port, request.version)})


_FIXED = {"ip_address": Key(forms.text(1, 45), required=True)}


@shape.like({"type": "array", "items": forms.form(_FIXED), "maxItems": 1})
def _fixed(name: str, value: Any) -> str:
    if not isinstance(value, list) or len(value) != 1:
        raise forms.wrong(name, value, "it must be a list with one address")
    return str(forms.take(value[0], name, _FIXED, 1)["ip_address"])


_INTERFACE_KEYS = {
    "net_id": Key(forms.text(1, 255)),
    "port_id": Key(forms.uuid),
    "fixed_ips": Key(_fixed),
    "tag": Key(forms.tag, since=49),
}


def interface_form() -> shape.Json:
    """The form of the body that attaches one."""
    return shape.record({"interfaceAttachment": shape.or_null(forms.form(_INTERFACE_KEYS))})


async def attach_interface(service: "Service", request: Request) -> Response:
    """POST /v2.1/servers/{id}/os-interface"""
    found = await forms.document(request)
    inner = forms.take(found, "body", {"interfaceAttachment": Key(forms.anything)}, 1)
    asked = forms.take(
        inner.get("interfaceAttachment") or {}, "interfaceAttachment", _INTERFACE_KEYS,
        request.version,
    )  # fmt: skip
    if "port_id" in asked:
        raise NotFound(f"Port {asked['port_id']} could not be found; name a network instead.")
    if "fixed_ips" in asked and "net_id" not in asked:
        raise Invalid("Must input network_id when request IP address")
    wish = interfaces.Attach(asked.get("net_id"), asked.get("fixed_ips"), asked.get("tag"))
    port = await interfaces.attach(
        service.ctx, request.params[0], wish, service.talk, who=request.who,
        cause=service.cause(request),
    )  # fmt: skip
    return reply({"interfaceAttachment": _shown(service, port, request.version)})


async def detach_interface(service: "Service", request: Request) -> Response:
    """DELETE /v2.1/servers/{id}/os-interface/{port}"""
    await interfaces.detach(
        service.ctx, request.params[0], request.params[1], service.talk, who=request.who,
        cause=service.cause(request),
    )  # fmt: skip
    return Response(status=202)


# Volumes


async def volumes(service: "Service", request: Request) -> Response:
    """GET /v2.1/servers/{id}/os-volume_attachments"""
    queries.take(request, {"limit": queries.limit, "offset": queries.limit})
    await service.server(request)
    return reply({"volumeAttachments": []})


async def no_volume(service: "Service", request: Request) -> Response:
    """GET, PUT, DELETE /v2.1/servers/{id}/os-volume_attachments/{volume}"""
    server = await service.server(request)
    raise NotFound(
        f"Volume {request.params[1][:80]} is not attached to instance {server.uuid}: there is no"
        " volume service here."
    )


_VOLUME_KEYS = {
    "volumeId": Key(forms.uuid, required=True),
    "device": Key(or_null(forms.text(1, 255, r"(/dev/)?[a-zA-Z]+[0-9]*"))),
    "tag": Key(forms.tag, since=49),
    "delete_on_termination": Key(forms.flag, since=79),
}


async def attach_volume(service: "Service", request: Request) -> Response:
    """POST /v2.1/servers/{id}/os-volume_attachments"""
    asked = await forms.under(request, "volumeAttachment", _VOLUME_KEYS)
    await service.server(request)
    raise NotFound(
        f"Volume {asked['volumeId']} could not be found: there is no volume service here."
    )


# Others


async def password(service: "Service", request: Request) -> Response:
    """GET /v2.1/servers/{id}/os-server-password"""
    await service.server(request)
    return reply({"password": ""})


async def clear_password(service: "Service", request: Request) -> Response:
    """DELETE /v2.1/servers/{id}/os-server-password"""
    await service.server(request)
    return Response(status=204)


async def security_groups(service: "Service", request: Request) -> Response:
    """GET /v2.1/servers/{id}/os-security-groups"""
    server = await service.server(request)
    groups = [_group(server.project_id)] if server.ports else []
    return reply({"security_groups": groups})


def _group(project: str) -> dict[str, Any]:
    """A project's one group: all may come in, by whichever protocol."""
    group = group_id(project)
    rules = [
        {
            "id": group_id(project, f"ingress/{kind}"),
            "parent_group_id": group,
            "ip_protocol": None,
            "from_port": None,
            "to_port": None,
            "ip_range": {"cidr": cidr},
            "group": {},
        }
        for kind, cidr in (("IPv4", "0.0.0.0/0"), ("IPv6", "::/0"))
    ]
    return {
        "id": group,
        "name": DEFAULT_GROUP,
        "description": "Nothing is filtered on these networks.",
        "tenant_id": project,
        "rules": rules,
    }


async def topology(service: "Service", request: Request) -> Response:
    """GET /v2.1/servers/{id}/topology"""
    await service.server(request)
    return reply({"nodes": [], "pagesize_kb": None})


def _one_form() -> shape.Json:
    return shape.under("interfaceAttachment", _form())


_INTERFACE = "/v2.1/servers/{id}/os-interface"
_VOLUME = "/v2.1/servers/{id}/os-volume_attachments"
ROUTES = (
    Route("GET", _INTERFACE, interface_list, "servers:read",
          gives=lambda: shape.listed("interfaceAttachments", _form())),
    Route("POST", _INTERFACE, attach_interface, "servers:update", takes=interface_form,
          gives=_one_form),
    Route("GET", _INTERFACE + "/{port}", interface, "servers:read", gives=_one_form),
    Route("DELETE", _INTERFACE + "/{port}", detach_interface, "servers:update"),
    Route("GET", _VOLUME, volumes, "servers:read",
          gives=lambda: shape.wire({"volumeAttachments": []})),
    Route("POST", _VOLUME, attach_volume, "servers:update"),
    Route("GET", _VOLUME + "/{volume}", no_volume, "servers:read"),
    Route("PUT", _VOLUME + "/{volume}", no_volume, "servers:update"),
    Route("DELETE", _VOLUME + "/{volume}", no_volume, "servers:update"),
    Route("GET", "/v2.1/servers/{id}/os-server-password", password, "servers:read",
          gives=lambda: shape.wire({"password": ""})),
    Route("DELETE", "/v2.1/servers/{id}/os-server-password", clear_password, "servers:update"),
    Route("GET", "/v2.1/servers/{id}/os-security-groups", security_groups, "servers:read",
          gives=lambda: shape.wire({"security_groups": [_group("")]})),
    Route("GET", "/v2.1/servers/{id}/topology", topology, "servers:read", 78,
          gives=lambda: shape.wire({"nodes": [], "pagesize_kb": None})),
)  # fmt: skip
