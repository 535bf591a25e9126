"""Ports in Neutron's manner. There may be many: what narrows a list is sought in the database, and
a list without a limit comes in pages too, with a link to the next.
"""

from typing import TYPE_CHECKING

from siderite.compute.domain.network import Network
from siderite.compute.domain.network import group_id
from siderite.compute.usecases.fleet import networks
from siderite.compute.usecases.fleet.networks import Plugged
from siderite.compute.web.network import network_pages as pages
from siderite.compute.web.network.network_pages import View
from siderite.core import shape
from siderite.core.errors import NotFound
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply
from siderite.core.store.table import Where

if TYPE_CHECKING:
    from siderite.compute.web.network.networks import NetworkService

_PATH = "ports"
_SOUGHT = {
    "id": "a.port", "device_id": "a.server", "project_id": "s.project_id",
    "tenant_id": "s.project_id",
}  # fmt: skip


def _view(port: Plugged) -> View:
    return {
        "id": port.id,
        "name": "",
        "description": "",
        "network_id": port.network.uuid,
        "mac_address": port.mac,
        "fixed_ips": [{"subnet_id": port.network.subnet, "ip_address": port.address}],
        "device_id": port.server,
        "device_owner": f"compute:{port.zone or 'nova'}",
        "status": "ACTIVE" if port.host else "DOWN",
        "admin_state_up": True,
        "security_groups": [group_id(port.project)],
        "port_security_enabled": False,
        "binding:vnic_type": "normal",
        "allowed_address_pairs": [],
        "extra_dhcp_opts": [],
        "tags": [],
        "tenant_id": port.project,
        "project_id": port.project,
    }


def _form() -> shape.Json:
    network = Network("", "bridge", "", "10.0.0.0/24")
    ports = shape.both(Plugged, network=network)
    return shape.whole(shape.wire(*(_view(port) for port in ports)))


def form() -> shape.Json:
    """The form of a port, of which some fields may be shown."""
    return shape.under("port", _form())


def page_form() -> shape.Json:
    """The form of a list of them."""
    return shape.listed("ports", _form(), "ports_links")


def _sought(service: "NetworkService", request: Request) -> list[Where]:
    """The filters that the database can follow; the others are left to `pages.chosen`."""
    wanted: dict[str, list[str]] = {}
    for name, value in request.query:
        if name in _SOUGHT:
            wanted.setdefault(_SOUGHT[name], []).append(value)
        elif name == "fixed_ips" and value.startswith("ip_address="):
            wanted.setdefault("a.address", []).append(value.removeprefix("ip_address="))
    others = any(
        name == "fixed_ips" and not value.startswith("ip_address=") for name, value in request.query
    )
    if others:
        wanted.pop("a.address", None)  # it is an or, of which this is one half
    if "a.address" in wanted:  # the index has the network first
        wanted["a.network"] = [network.name for network in service.ctx.settings.networks]
    return [
        Where(f"{column} IN ({', '.join('?' * len(values)) or 'NULL'})", tuple(values))
        for column, values in wanted.items()
    ]


async def index(service: "NetworkService", request: Request) -> Response:
    """GET /v2.0/ports"""
    most = service.ctx.settings.max_limit
    limit = min(pages.limit_of(request) or most, most)
    marker = dict(request.query).get("marker", "")
    found, following = await networks.ports(
        service.ctx, request.who, _sought(service, request), after=marker, limit=limit
    )
    page = pages.chosen([_view(port) for port in found], request)
    return reply(pages.listed(request, _PATH, "ports", page, following))


async def show(service: "NetworkService", request: Request) -> Response:
    """GET /v2.0/ports/{id}"""
    ident = request.params[0]
    found, _ = await networks.ports(
        service.ctx, request.who, [Where("a.port = ?", (ident,))], limit=1
    )
    if not found:
        raise NotFound(f"Port {ident[:80]} could not be found. `port list` shows yours.")
    return reply({"port": pages.fields(_view(found[0]), request)})
