"""A Neutron-shaped view of the networks that hosts offer: read-only, as far as clients need it to
choose a network by its name and to show addresses.

Nothing is filtered on these networks, so each project has one security group that says so.
"""

from http import HTTPStatus
from typing import Any

from siderite.compute.domain.network import DEFAULT_GROUP
from siderite.compute.domain.network import FIRST_GIVEN
from siderite.compute.domain.network import Network
from siderite.compute.domain.network import group_id
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.fleet.networks import count_ports
from siderite.compute.web import policy
from siderite.compute.web.network import network_pages as pages
from siderite.compute.web.network import network_ports
from siderite.compute.web.network.network_pages import View
from siderite.core import shape
from siderite.core.auth import identify
from siderite.core.errors import Forbidden
from siderite.core.errors import NotFound
from siderite.core.errors import SideriteError
from siderite.core.http import Authenticator
from siderite.core.http import Handler
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import Routes
from siderite.core.http import reply
from siderite.core.shape import Shape

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
        said = error.sentence
        if error.status == HTTPStatus.METHOD_NOT_ALLOWED:
            said += (
                " Networks are what hosts offer (option networks), and nothing is filtered on them:"
                " none of this is made or changed by way of this API."
            )
        body = {"type": phrase, "message": said, "detail": ""}
        return reply({"NeutronError": body}, error.status)


def _network(network: Network, *, is_first: bool) -> View:
    is_bridge = network.kind == "bridge"
    return {
        "id": network.uuid,
        "name": network.name,
        "description": f"{network.kind} {network.target}".strip(),
        "status": "ACTIVE",
        "admin_state_up": True,
        "shared": True,
        "is_default": is_first,
        # A bridge reaches beyond its host: clients take such an address for the one to talk to.
        # No network is external, lest they ask for a floating address there, of which we have none.
        "router:external": False,
        "provider:network_type": "flat" if is_bridge else "local",
        "provider:physical_network": network.target if is_bridge else None,
        "provider:segmentation_id": None,
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
        "allocation_pools": [
            {"start": str(network.range[FIRST_GIVEN]), "end": str(network.range[last])}
        ],
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


def _rules(project: str) -> list[View]:
    return [
        {
            "id": group_id(project, f"{direction}/{kind}"),
            "security_group_id": group_id(project),
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
        "id": group_id(project),
        "name": DEFAULT_GROUP,
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


async def _groups(_service: NetworkService, request: Request) -> list[View]:
    return [_group(request.who.project_id)] if request.who.project_id else []


async def _group_rules(_service: NetworkService, request: Request) -> list[View]:
    return _rules(request.who.project_id) if request.who.project_id else []


async def _nothing(_service: NetworkService, _request: Request) -> list[View]:
    return []


_NOUNS = {
    "networks": ("network", _networks),
    "subnets": ("subnet", _subnets),
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
        found = pages.chosen(await every(service, request), request)
        page, more = pages.paged(found, request)
        following = page[-1]["id"] if more else None
        return reply(pages.listed(request, path, f"{noun}s", page, following))

    return handler


def _show(path: str) -> Handler:
    noun, every = _NOUNS[path]

    async def handler(service: NetworkService, request: Request) -> Response:
        for one in await every(service, request):
            if one["id"] == request.params[0]:
                return reply({noun: pages.fields(one, request)})
        raise NotFound(f"{noun.replace('_', ' ').capitalize()} {request.params[0][:80]} could not"
                       " be found.")  # fmt: skip

    return handler


async def _versions(_service: NetworkService, request: Request) -> Response:
    return reply(_about(request.base))


def _about(base: str) -> View:
    href = f"{base}/network/v2.0/"
    version = {"id": "v2.0", "status": "CURRENT", "links": [{"rel": "self", "href": href}]}
    return {"versions": [version]}


async def _resources(_service: NetworkService, request: Request) -> Response:
    return reply(_contents(f"{request.base}/network/v2.0"))


def _contents(base: str) -> View:
    nouns = {"ports": "port"} | {path: noun for path, (noun, _) in _NOUNS.items()}
    shown = [
        {"name": noun, "collection": path, "links": [{"rel": "self", "href": f"{base}/{path}"}]}
        for path, noun in nouns.items()
    ]
    return {"resources": shown}


async def _quota(_service: NetworkService, _request: Request) -> Response:
    return reply(_QUOTA)


_QUOTA = {"quota": dict.fromkeys((
    "network", "subnet", "port", "router", "floatingip", "security_group", "security_group_rule",
    "subnetpool", "rbac_policy",
), -1)}  # fmt: skip


async def _no_quota(_service: NetworkService, _request: Request) -> Response:
    """There is none that could be taken away, which is what was asked for: `openstack quota delete`
    means all services at once, and fails at the first that refuses.
    """
    return Response(status=204)


async def _quota_used(service: NetworkService, request: Request) -> Response:
    """What a project has of what is not limited here."""
    project = request.params[0]
    if project != request.who.project_id and not request.who.is_admin:
        raise Forbidden("Only administrators see the quotas of other projects.")
    networks = len(service.ctx.settings.networks)
    ports = await count_ports(service.ctx, project)
    used = {
        "network": networks, "subnet": networks, "port": ports, "security_group": 1,
        "security_group_rule": len(_rules(project)),
    }  # fmt: skip
    return reply(_used(used))


def _used(used: dict[str, int]) -> dict[str, Any]:
    return {
        "quota": {
            name: {"limit": limit, "used": used.get(name, 0), "reserved": 0}
            for name, limit in _QUOTA["quota"].items()
        }
    }


def _form(path: str) -> shape.Json:
    """The form of one, of which some fields may be shown."""
    network, other = (Network("", kind, "", "10.0.0.0/24") for kind in ("bridge", "user"))
    made: dict[str, list[View]] = {
        "networks": [_network(one, is_first=True) for one in (network, other)],
        "subnets": [_subnet(network)],
        "security-groups": [_group("")],
        "security-group-rules": _rules(""),
    }  # fmt: skip
    return shape.whole(shape.wire(*made[path])) if path in made else shape.record({})


def _shown_form(path: str) -> Shape:
    return lambda: shape.under(_NOUNS[path][0], _form(path))


def _page_form(path: str) -> Shape:
    noun = _NOUNS[path][0]
    return lambda: shape.listed(f"{noun}s", _form(path), f"{noun}s_links")


_READ = "networks:read"
ROUTES = (
    Route("GET", "/", _versions, gives=lambda: shape.wire(_about(""))),
    Route("GET", "/v2.0", _resources, gives=lambda: shape.wire(_contents(""))),
    Route("GET", "/v2.0/ports", network_ports.index, _READ, gives=network_ports.page_form),
    Route("GET", "/v2.0/ports/{id}", network_ports.show, _READ, gives=network_ports.form),
    *(
        Route("GET", f"/v2.0/{path}", _index(path), _READ, gives=_page_form(path))
        for path in _NOUNS
    ),
    *(
        Route("GET", f"/v2.0/{path}/{{id}}", _show(path), _READ, gives=_shown_form(path))
        for path in _NOUNS
    ),
    Route("GET", "/v2.0/quotas/{project}", _quota, _READ, gives=lambda: shape.wire(_QUOTA)),
    Route("DELETE", "/v2.0/quotas/{project}", _no_quota, "quotas:manage"),
    Route("GET", "/v2.0/quotas/{project}/default", _quota, _READ, gives=lambda: shape.wire(_QUOTA)),
    Route(
        "GET",
        "/v2.0/quotas/{project}/details",
        _quota_used,
        _READ,
        gives=lambda: shape.wire(_used({})),
    ),
)
_ROUTES = Routes(ROUTES)
