"""The bare metal API's table of contents."""

from dataclasses import replace
from typing import TYPE_CHECKING
from typing import Any

from siderite.baremetal.web import chassis
from siderite.baremetal.web import firmware_states
from siderite.baremetal.web import management
from siderite.baremetal.web import nodes
from siderite.baremetal.web import ports
from siderite.baremetal.web import states
from siderite.baremetal.web.versions import RANGE
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply
from siderite.core.microversion import OURS

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service


def _version(service: "Service", request: Request) -> dict[str, Any]:
    return {
        "id": "v1",
        "links": [{"href": service.base(request) + "v1/", "rel": "self"}],
        "status": "CURRENT",
        "min_version": RANGE.text(RANGE.low),
        "version": RANGE.text(RANGE.high),
    }


async def root(service: "Service", request: Request) -> Response:
    """GET /"""
    version = _version(service, request)
    about = "Siderite's bare metal service, which speaks the OpenStack Bare Metal API."
    return reply(
        {
            "name": "OpenStack Ironic API",
            "description": about,
            "default_version": version,
            "versions": [version],
        }
    )


async def v1(service: "Service", request: Request) -> Response:
    """GET /v1"""
    base = service.base(request)
    return reply(
        {
            "id": "v1",
            "links": [{"href": base + "v1/", "rel": "self"}],
            "media_types": [
                {"base": "application/json", "type": "application/vnd.openstack.ironic.v1+json"}
            ],
            **{
                kind: [
                    {"href": f"{base}v1/{kind}/", "rel": "self"},
                    {"href": f"{base}{kind}/", "rel": "bookmark"},
                ]
                for kind in ("nodes", "ports", "chassis")
            },
            "version": _version(service, request),
        }
    )


_READ, _WRITE = "node:management:read", "node:management"
_BOOT_DEVICE = "/nodes/{node}/management/boot_device"
_LIGHTS = "/nodes/{node}/management/indicators"
_VENDOR = "/nodes/{node}/vendor_passthru"
_HARDWARE = (
    Route("PUT", "/nodes/{node}/states/boot_mode", firmware_states.set_boot_mode, _WRITE, 76),
    Route("PUT", "/nodes/{node}/states/secure_boot", firmware_states.set_secure_boot, _WRITE, 76),
    Route("PUT", "/nodes/{node}/states/raid", firmware_states.set_raid, _WRITE),
    Route("GET", _BOOT_DEVICE, management.boot_device, _READ),
    Route("PUT", _BOOT_DEVICE, management.set_boot_device, _WRITE),
    Route("GET", _BOOT_DEVICE + "/supported", management.boot_devices, _READ),
    Route("PUT", "/nodes/{node}/management/inject_nmi", management.inject_nmi, _WRITE, 29),
    Route("GET", _LIGHTS, management.indicators, _READ, 63),
    Route("GET", _LIGHTS + "/{indicator}", management.indicator, _READ, 63),
    Route("PUT", _LIGHTS + "/{indicator}", management.set_indicator, _WRITE, 63),
    Route("GET", "/nodes/{node}/management/sensors", management.sensors, _READ, OURS),
    Route("GET", "/nodes/{node}/vmedia", management.media, _READ, 93),
    Route("POST", "/nodes/{node}/vmedia", management.insert, _WRITE, 89),
    Route("DELETE", "/nodes/{node}/vmedia", management.eject, _WRITE, 89),
    Route("GET", _VENDOR + "/methods", management.vendor_methods, _READ),
    *(
        Route(method, path, management.vendor_passthru, _WRITE)
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
        for path in (_VENDOR, _VENDOR + "/{method}")
    ),
)
_V1 = (
    Route("GET", "/nodes", nodes.index, "node:read"),
    Route("POST", "/nodes", nodes.create, "node:create"),
    Route("GET", "/nodes/detail", nodes.detail, "node:read"),
    Route("GET", "/nodes/{node}", nodes.show, "node:read"),
    Route("PATCH", "/nodes/{node}", nodes.patch, "node:update"),
    Route("DELETE", "/nodes/{node}", nodes.remove, "node:delete"),
    Route("GET", "/nodes/{node}/states", states.show, "node:read"),
    Route("PUT", "/nodes/{node}/states/provision", states.set_provision, "node:provision"),
    Route("PUT", "/nodes/{node}/states/power", states.set_power, "node:power"),
    Route("PUT", "/nodes/{node}/maintenance", nodes.maintenance_on, "node:maintenance"),
    Route("DELETE", "/nodes/{node}/maintenance", nodes.maintenance_off, "node:maintenance"),
    Route("GET", "/nodes/{node}/validate", nodes.validation, "node:read"),
    *_HARDWARE,
    Route("GET", "/nodes/{node}/ports", ports.of_node, "port:read"),
    Route("GET", "/nodes/{node}/ports/detail", ports.of_node_detail, "port:read"),
    Route("GET", "/ports", ports.index, "port:read"),
    Route("POST", "/ports", ports.create, "port:create"),
    Route("GET", "/ports/detail", ports.detail, "port:read"),
    Route("GET", "/ports/{port}", ports.show, "port:read"),
    Route("PATCH", "/ports/{port}", ports.patch, "port:update"),
    Route("DELETE", "/ports/{port}", ports.remove, "port:delete"),
    Route("GET", "/chassis", chassis.index, "chassis:read"),
    Route("POST", "/chassis", chassis.create, "chassis:create"),
    Route("GET", "/chassis/detail", chassis.detail, "chassis:read"),
    Route("GET", "/chassis/{chassis}", chassis.show, "chassis:read"),
    Route("PATCH", "/chassis/{chassis}", chassis.patch, "chassis:update"),
    Route("DELETE", "/chassis/{chassis}", chassis.remove, "chassis:delete"),
    Route("GET", "/chassis/{chassis}/nodes", chassis.nodes_of, "chassis:read"),
    Route("GET", "/chassis/{chassis}/nodes/detail", chassis.nodes_of_detail, "chassis:read"),
)

ROUTES = (
    Route("GET", "/", root),
    Route("GET", "/v1", v1),
    *(replace(route, path="/v1" + route.path) for route in _V1),
    *_V1,  # links of the bookmark kind have no version in them
)
"""Every address, with and without `/v1`."""
