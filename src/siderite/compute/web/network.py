"""A Neutron-shaped view of the networks that hosts offer: read-only, as far as clients need it to
choose a network by its name and to show addresses.

Nothing is filtered on these networks, so each project has one security group that says so.
"""

from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode
from uuid import UUID
from uuid import uuid5

from siderite.compute.domain.network import Network
from siderite.compute.usecases import networks
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.networks import Plugged
from siderite.compute.web import policy
from siderite.core.auth import identify
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.errors import SideriteError
from siderite.core.http import Authenticator
from siderite.core.http import Handler
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import Routes
from siderite.core.http import reply

View = dict[str, Any]
_GROUPS = UUID("0e7bd0c4-95a5-5c9d-9f7b-6a8f6d2b8f61")
_PAGE = frozenset({"limit", "marker", "page_reverse", "sort_key", "sort_dir", "fields"})
_MTU = 1500


class NetworkService:
    """The API at `/network`."""

    name = "network"

    def __init__(self, ctx: Context, who: Authenticator) -> None:
        self.ctx = ctx
        self._who = who
        self.routes = _ROUTES

    async def prepare(self, request: Request, route: Route) -> None:
        """Find out who asks, and refuse what the route's rule refuses."""
        if route.policy == "public":
            return
        request.who = await identify(request, self._who, basic=True)
        policy.check(route.policy, request.who)

    def finish(self, request: Request, response: Response) -> None:
        """The headers that every answer carries."""
        response.headers.append((b"x-openstack-request-id", request.request_id.encode()))

    def error(self, request: Request, error: SideriteError) -> Response:
        """Neutron's form of an error."""
        phrase = HTTPStatus(error.status).phrase.replace(" ", "")
        body = {"type": phrase, "message": error.sentence, "detail": ""}
        return reply({"NeutronError": body}, error.status)


def _network(network: Network, *, is_first: bool) -> View:
    return {
        "id": network.uuid,
        "name": network.name,
        "description": f"{network.kind} {network.target}".strip(),
        "status": "ACTIVE",
        "admin_state_up": True,
        "shared": True,
        "is_default": is_first,
        # A bridge reaches beyond its host: clients take such an address for the one to talk to.
        "router:external": network.kind == "bridge",
        "subnets": [network.subnet],
        "mtu": _MTU,
        "port_security_enabled": False,
        "availability_zones": [],
        "availability_zone_hints": [],
        "tags": [],
        "tenant_id": "",
        "project_id": "",
    }


def _subnet(network: Network) -> View:
    last = network.range.num_addresses - 3
    return {
        "id": network.subnet,
        "name": network.name,
        "description": "",
        "network_id": network.uuid,
        "cidr": network.cidr,
        "ip_version": network.range.version,
        "gateway_ip": network.gateway,
        "enable_dhcp": True,
        "allocation_pools": [{"start": str(network.range[16]), "end": str(network.range[last])}],
        "dns_nameservers": [],
        "host_routes": [],
        "ipv6_address_mode": None,
        "ipv6_ra_mode": None,
        "subnetpool_id": None,
        "service_types": [],
        "tags": [],
        "tenant_id": "",
        "project_id": "",
    }


def _port(found: Plugged) -> View:
    port, server, network = found.port, found.server, found.network
    return {
        "id": port.id,
        "name": "",
        "description": "",
        "network_id": network.uuid,
        "mac_address": port.mac,
        "fixed_ips": [{"subnet_id": network.subnet, "ip_address": port.address}],
        "device_id": server.uuid,
        "device_owner": f"compute:{server.availability_zone or 'nova'}",
        "status": "ACTIVE" if server.host else "DOWN",
        "admin_state_up": True,
        "security_groups": [_group_id(server.project_id)],
        "port_security_enabled": False,
        "binding:vnic_type": "normal",
        "allowed_address_pairs": [],
        "extra_dhcp_opts": [],
        "tags": [],
        "tenant_id": server.project_id,
        "project_id": server.project_id,
    }


def _group_id(project: str) -> str:
    return str(uuid5(_GROUPS, project))


def _rules(project: str) -> list[View]:
    group = _group_id(project)
    return [
        {
            "id": str(uuid5(_GROUPS, f"{project}/{direction}/{kind}")),
            "security_group_id": group,
            "direction": direction,
            "ethertype": kind,
            "protocol": None,
            "port_range_min": None,
            "port_range_max": None,
            "remote_ip_prefix": None,
            "remote_group_id": None,
            "description": "",
            "tenant_id": project,
            "project_id": project,
        }
        for direction in ("egress", "ingress")
        for kind in ("IPv4", "IPv6")
    ]


def _group(project: str) -> View:
    return {
        "id": _group_id(project),
        "name": "default",
        "description": "Nothing is filtered on these networks.",
        "stateful": True,
        "security_group_rules": _rules(project),
        "tags": [],
        "tenant_id": project,
        "project_id": project,
    }


async def _networks(service: NetworkService, _request: Request) -> list[View]:
    every = service.ctx.settings.networks
    return [_network(one, is_first=at == 0) for at, one in enumerate(every)]


async def _subnets(service: NetworkService, _request: Request) -> list[View]:
    return [_subnet(one) for one in service.ctx.settings.networks]


async def _ports(service: NetworkService, request: Request) -> list[View]:
    server = next((value for name, value in request.query if name == "device_id"), None)
    found = await networks.ports(service.ctx, request.who, server=server)
    return [_port(one) for one in found]


async def _groups(_service: NetworkService, request: Request) -> list[View]:
    return [_group(request.who.project_id)] if request.who.project_id else []


async def _group_rules(_service: NetworkService, request: Request) -> list[View]:
    return _rules(request.who.project_id) if request.who.project_id else []


async def _nothing(_service: NetworkService, _request: Request) -> list[View]:
    return []


_NOUNS = {
    "networks": ("network", _networks),
    "subnets": ("subnet", _subnets),
    "ports": ("port", _ports),
    "security-groups": ("security_group", _groups),
    "security-group-rules": ("security_group_rule", _group_rules),
    "floatingips": ("floatingip", _nothing),
    "routers": ("router", _nothing),
    "agents": ("agent", _nothing),
    "availability_zones": ("availability_zone", _nothing),
    "extensions": ("extension", _nothing),
}
"""By the last word of its address: what one is called, and where all come from."""


def _index(path: str) -> Handler:
    noun, every = _NOUNS[path]

    async def handler(service: NetworkService, request: Request) -> Response:
        found = _chosen(await every(service, request), request)
        page, more = _paged(found, request)
        key = f"{noun}s"
        body: View = {key: [_fields(one, request) for one in page]}
        if more:
            pairs = [pair for pair in request.query if pair[0] != "marker"]
            query = urlencode([*pairs, ("marker", page[-1]["id"])])
            href = f"{request.base}/network/v2.0/{path}?{query}"
            body[f"{key}_links"] = [{"rel": "next", "href": href}]
        return reply(body)

    return handler


def _show(path: str) -> Handler:
    noun, every = _NOUNS[path]

    async def handler(service: NetworkService, request: Request) -> Response:
        for one in await every(service, request):
            if one["id"] == request.params[0]:
                return reply({noun: _fields(one, request)})
        raise NotFound(f"{noun.replace('_', ' ').capitalize()} {request.params[0][:80]} could not"
                       " be found.")  # fmt: skip

    return handler


def _chosen(found: list[View], request: Request) -> list[View]:
    """What the filters leave: one argument given again is an or."""
    wanted: dict[str, set[str]] = {}
    for name, value in request.query:
        if name not in _PAGE:
            wanted.setdefault(name, set()).add(value)
    for name, values in wanted.items():
        found = [one for one in found if _meets(one, name, values)]
    return found


def _meets(one: View, name: str, values: set[str]) -> bool:
    if name == "fixed_ips":
        texts = {f"{key}={fixed[key]}" for fixed in one.get(name, ()) for key in fixed}
        return bool(texts & values)
    if name not in one:
        return True  # as Neutron does with what it does not know
    held = one[name]
    if isinstance(held, bool):
        return str(held).lower() in {value.lower() for value in values}
    return str(held) in values


def _paged(found: list[View], request: Request) -> tuple[list[View], bool]:
    asked = dict(request.query)
    marker, limit = asked.get("marker"), asked.get("limit")
    if marker is not None:
        places = [at for at, one in enumerate(found) if one["id"] == marker]
        if not places:
            raise Invalid(f"marker {marker[:80]} is not in the list.")
        found = found[places[0] + 1 :]
    if limit is None:
        return found, False
    if not limit.isascii() or not limit.isdigit() or len(limit) > 9:  # noqa: PLR2004
        raise Invalid("limit must be a whole number from 0 on.")
    most = int(limit)
    return (found[:most], len(found) > most) if most else (found, False)


def _fields(one: View, request: Request) -> View:
    chosen = {value for name, value in request.query if name == "fields"}
    return {name: value for name, value in one.items() if name in chosen} if chosen else one


async def _versions(_service: NetworkService, request: Request) -> Response:
    href = f"{request.base}/network/v2.0/"
    version = {"id": "v2.0", "status": "CURRENT", "links": [{"rel": "self", "href": href}]}
    return reply({"versions": [version]})


async def _resources(_service: NetworkService, request: Request) -> Response:
    base = f"{request.base}/network/v2.0"
    shown = [
        {"name": noun, "collection": path, "links": [{"rel": "self", "href": f"{base}/{path}"}]}
        for path, (noun, _) in _NOUNS.items()
    ]
    return reply({"resources": shown})


async def _quota(_service: NetworkService, _request: Request) -> Response:
    names = ("network", "subnet", "port", "router", "floatingip", "security_group",
             "security_group_rule", "subnetpool", "rbac_policy")  # fmt: skip
    return reply({"quota": dict.fromkeys(names, -1)})


_READ = "networks:read"
ROUTES = (
    Route("GET", "/", _versions),
    Route("GET", "/v2.0", _resources),
    *(Route("GET", f"/v2.0/{path}", _index(path), _READ) for path in _NOUNS),
    *(Route("GET", f"/v2.0/{path}/{{id}}", _show(path), _READ) for path in _NOUNS),
    Route("GET", "/v2.0/quotas/{project}", _quota, _READ),
    Route("GET", "/v2.0/quotas/{project}/default", _quota, _READ),
)
_ROUTES = Routes(ROUTES)
