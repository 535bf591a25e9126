"""The bare metal API's table of contents."""

from typing import TYPE_CHECKING
from typing import Any

from msgspec.structs import replace

from siderite.baremetal.web import drivers
from siderite.baremetal.web import fleet
from siderite.baremetal.web import views
from siderite.baremetal.web.beside import allocations
from siderite.baremetal.web.beside import chassis
from siderite.baremetal.web.beside import inspection_rules
from siderite.baremetal.web.beside import ports
from siderite.baremetal.web.beside import runbooks
from siderite.baremetal.web.beside import templates
from siderite.baremetal.web.beside import volumes
from siderite.baremetal.web.node import console
from siderite.baremetal.web.node import details
from siderite.baremetal.web.node import firmware_states
from siderite.baremetal.web.node import history
from siderite.baremetal.web.node import management
from siderite.baremetal.web.node import nodes
from siderite.baremetal.web.node import provision_body
from siderite.baremetal.web.node import schemas
from siderite.baremetal.web.node import states
from siderite.baremetal.web.node import timeline
from siderite.baremetal.web.node import traits
from siderite.baremetal.web.node import vifs
from siderite.baremetal.web.outside import agent
from siderite.baremetal.web.outside import hooks
from siderite.baremetal.web.outside import network_events
from siderite.baremetal.web.versions import RANGE
from siderite.core import shape
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply
from siderite.core.microversion import OURS

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service


KINDS = {
    "nodes": 1, "ports": 1, "chassis": 1, "drivers": 1, "portgroups": 23, "volume": 32,
    "conductors": 49, "allocations": 52, "deploy_templates": 55, "shards": 82, "runbooks": 92,
    "inspection_rules": 96, "lookup": 22, "heartbeat": 22, "events": 54, "continue_inspection": 84,
    "hooks": OURS,
}  # fmt: skip
"""What the root of the API links to, since which version."""


def _version(base: str) -> dict[str, Any]:
    return {
        "id": "v1",
        "links": [{"href": base + "v1/", "rel": "self"}],
        "status": "CURRENT",
        "min_version": RANGE.text(RANGE.low),
        "version": RANGE.text(RANGE.high),
    }


async def root(service: "Service", request: Request) -> Response:
    """GET /"""
    return reply(_root(service.base(request)))


def _root(base: str) -> dict[str, Any]:
    version = _version(base)
    about = "Siderite's bare metal service, which speaks the OpenStack Bare Metal API."
    return {
        "name": "OpenStack Ironic API",
        "description": about,
        "default_version": version,
        "versions": [version],
    }


def root_form() -> shape.Json:
    """The form of the root."""
    return shape.wire(_root(""))


async def v1(service: "Service", request: Request) -> Response:
    """GET /v1"""
    return reply(_contents(service.base(request), request.version))


def _contents(base: str, version: int) -> dict[str, Any]:
    return {
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
            for kind, since in KINDS.items()
            if since <= version
        },
        "version": _version(base),
    }


def v1_form() -> shape.Json:
    """The form of the API's own address."""
    return shape.wire(_contents("", RANGE.low), _contents("", RANGE.high))


_AGENT = (
    Route("GET", "/lookup", agent.lookup, since=22, gives=agent.found_form),
    Route("POST", "/heartbeat/{node}", agent.heartbeat, since=22, takes=agent.HEARTBEAT.form),
    Route("POST", "/continue_inspection", agent.continue_inspection, gives=agent.inspected_form),
)
_READ, _WRITE = "node:management:read", "node:management"
_FIRMWARE = "node:firmware:read"
_BOOT_DEVICE = "/nodes/{node}/management/boot_device"
_LIGHTS = "/nodes/{node}/management/indicators"
_VENDOR = "/nodes/{node}/vendor_passthru"
_HARDWARE = (
    Route("GET", "/nodes/{node}/states/console", console.show, "node:console",
          gives=console.form),
    Route(
        "PUT",
        "/nodes/{node}/states/console",
        console.switch,
        "node:console",
        takes=console.SWITCH.form,
    ),
    Route(
        "PUT",
        "/nodes/{node}/states/boot_mode",
        firmware_states.set_boot_mode,
        _WRITE,
        76,
        firmware_states.BOOT_MODE.form,
    ),
    Route(
        "PUT",
        "/nodes/{node}/states/secure_boot",
        firmware_states.set_secure_boot,
        _WRITE,
        76,
        firmware_states.SECURE_BOOT.form,
    ),
    Route("PUT", "/nodes/{node}/states/raid", firmware_states.set_raid, _WRITE),
    Route("GET", _BOOT_DEVICE, management.boot_device, _WRITE, gives=management.boot_form),
    Route(
        "PUT", _BOOT_DEVICE, management.set_boot_device, _WRITE, takes=management.BOOT_DEVICE.form
    ),
    Route("GET", _BOOT_DEVICE + "/supported", management.boot_devices, _WRITE,
          gives=management.boot_devices_form),
    Route("PUT", "/nodes/{node}/management/inject_nmi", management.inject_nmi, _WRITE, 29),
    Route("GET", _LIGHTS, management.indicators, _READ, 63, gives=management.indicators_form),
    Route("GET", _LIGHTS + "/{indicator}", management.indicator, _READ, 63,
          gives=management.light_form),
    Route(
        "PUT", _LIGHTS + "/{indicator}", management.set_indicator, _WRITE, 63, management.LIGHT.form
    ),
    Route("GET", "/nodes/{node}/management/sensors", management.sensors, _READ, OURS,
          gives=management.sensors_form),
    Route("GET", "/nodes/{node}/vmedia", management.media, _READ, 93, gives=management.media_form),
    Route("POST", "/nodes/{node}/vmedia", management.insert, _WRITE, 89, management.MEDIUM.form),
    Route("DELETE", "/nodes/{node}/vmedia", management.eject, _WRITE, 89),
    Route("GET", "/nodes/{node}/bios", details.bios, _FIRMWARE, 40, gives=details.bios_form),
    Route("GET", "/nodes/{node}/bios/{setting}", details.bios_setting, _FIRMWARE, 40,
          gives=details.bios_setting_form),
    Route("GET", "/nodes/{node}/firmware", details.firmware, _FIRMWARE, 86,
          gives=details.firmware_form),
    Route("GET", "/nodes/{node}/inventory", details.inventory, _READ, 81,
          gives=details.inventory_form),
    Route("GET", "/nodes/{node}/history", history.index, _READ, 78, gives=history.page_form),
    Route("GET", "/nodes/{node}/history/{entry}", history.show, _READ, 78, gives=history.form),
    Route("GET", "/nodes/{node}/timeline", timeline.index, _READ, OURS, gives=timeline.form),
    Route("GET", _VENDOR + "/methods", management.vendor_methods, _READ,
          gives=drivers.no_methods_form),
    *(
        Route(method, path, management.vendor_passthru, _WRITE)
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
        for path in (_VENDOR, _VENDOR + "/{method}")
    ),
)  # fmt: skip
_V1 = (
    Route("GET", "/nodes", nodes.index, "node:read", gives=nodes.page_form),
    Route("POST", "/nodes", nodes.create, "node:create", takes=schemas.new, gives=nodes.shown),
    Route("GET", "/nodes/detail", nodes.detail, "node:read", gives=nodes.page_form),
    Route("GET", "/nodes/{node}", nodes.show, "node:read", gives=nodes.partly),
    Route("PATCH", "/nodes/{node}", nodes.patch, "node:update", takes=schemas.FORM.patch,
          gives=nodes.shown),
    Route("DELETE", "/nodes/{node}", nodes.remove, "node:delete"),
    Route("GET", "/nodes/{node}/states", states.show, "node:read", gives=views.states_form),
    Route("PUT", "/nodes/{node}/states/provision", states.set_provision, "node:provision",
          takes=provision_body.form),
    Route("PUT", "/nodes/{node}/states/power", states.set_power, "node:power",
          takes=states.power_form),
    Route("PUT", "/nodes/{node}/maintenance", nodes.maintenance_on, "node:maintenance",
          takes=nodes.maintenance_form),
    Route("DELETE", "/nodes/{node}/maintenance", nodes.maintenance_off, "node:maintenance"),
    Route("GET", "/nodes/{node}/validate", nodes.validation, "node:validate",
          gives=nodes.validation_form),
    *_HARDWARE,
    *_AGENT,
    *traits.OF_NODES.routes(),
    Route("GET", "/nodes/{node}/vifs", vifs.index, "vif:read", vifs.SINCE, gives=vifs.shown),
    Route("POST", "/nodes/{node}/vifs", vifs.attach, "vif:update", vifs.SINCE, vifs.form),
    Route("DELETE", "/nodes/{node}/vifs/{vif}", vifs.detach, "vif:update", vifs.SINCE),
    Route("GET", "/nodes/{node}/allocation", allocations.of_node, "allocation:read", 52,
          gives=allocations.ALLOCATIONS.partly),
    Route("DELETE", "/nodes/{node}/allocation", allocations.free_node, "allocation:delete", 52),
    Route("GET", "/nodes/{node}/children", fleet.children, "node:read", fleet.CHILDREN_SINCE,
          gives=fleet.children_form),
    *ports.PORTS.routes_below_nodes(1),
    *ports.PORTGROUPS.routes_below_nodes(24),
    *volumes.CONNECTORS.routes_below_nodes(volumes.SINCE),
    *volumes.TARGETS.routes_below_nodes(volumes.SINCE),
    Route("GET", "/nodes/{node}/volume", volumes.of_node, "volume:read", volumes.SINCE,
          gives=volumes.form),
    *ports.PORTS.routes(),
    *ports.PORTGROUPS.routes(),
    Route("GET", "/portgroups/{portgroup}/ports", ports.of_portgroup, "port:read", 24,
          gives=ports.PORTS.page_form),
    Route("GET", "/portgroups/{portgroup}/ports/detail", ports.of_portgroup_detail, "port:read", 24,
          gives=ports.PORTS.page_form),
    *chassis.RESOURCE.routes(),
    Route("GET", "/chassis/{chassis}/nodes", chassis.nodes_of, "chassis:read",
          gives=nodes.page_form),
    Route("GET", "/chassis/{chassis}/nodes/detail", chassis.nodes_of_detail, "chassis:read",
          gives=nodes.page_form),
    Route("GET", "/volume", volumes.index, "volume:read", volumes.SINCE, gives=volumes.form),
    *volumes.CONNECTORS.routes(),
    *volumes.TARGETS.routes(),
    *templates.TEMPLATES.routes(),
    *runbooks.RUNBOOKS.routes(),
    *hooks.HOOKS.routes(),
    Route("GET", "/nodes/{node}/hold", hooks.show_hold, "hold:read", OURS,
          gives=hooks.hold_form),
    Route("PUT", "/nodes/{node}/hold", hooks.answer, "hold:answer", OURS, hooks.answer_form),
    *inspection_rules.RULES.routes(),
    *traits.OF_RUNBOOKS.routes(),
    *allocations.ALLOCATIONS.routes(),
    Route("GET", "/conductors", fleet.conductor_index, "conductor:read", fleet.CONDUCTORS_SINCE,
          gives=fleet.conductors_form),
    Route("GET", "/conductors/{host}", fleet.conductor, "conductor:read", fleet.CONDUCTORS_SINCE,
          gives=fleet.conductor_form),
    Route("GET", "/shards", fleet.shards, "shard:read", fleet.SHARDS_SINCE,
          gives=fleet.shards_form),
    Route("GET", "/drivers", drivers.index, "driver:read", gives=drivers.page_form),
    Route("GET", "/drivers/{driver}", drivers.show, "driver:read", gives=drivers.form),
    Route("GET", "/drivers/{driver}/properties", drivers.properties, "driver:read",
          gives=drivers.sentences_form),
    Route("GET", "/drivers/{driver}/raid/logical_disk_properties", drivers.raid_properties,
          "driver:read", gives=drivers.raid_form),
    Route("GET", "/drivers/{driver}/vendor_passthru/methods", drivers.vendor_methods,
          "driver:read", gives=drivers.no_methods_form),
    *(
        Route(method, "/drivers/{driver}/vendor_passthru" + more, drivers.vendor_passthru,
              "driver:vendor")
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
        for more in ("", "/{method}")
    ),
    Route("POST", "/events", network_events.post, "network_event:post", 54,
          network_events.EVENTS.form),
)  # fmt: skip

ROUTES = (
    Route("GET", "/", root, gives=root_form),
    Route("GET", "/v1", v1, gives=v1_form),
    *(replace(route, path="/v1" + route.path) for route in _V1),
    *_V1,  # links of the bookmark kind have no version in them
)
"""Every address, with and without `/v1`."""

_READ_WITHOUT = frozenset({
    states.show, nodes.validation, console.show, management.boot_device, management.boot_devices,
    management.indicators, management.indicator, management.sensors, management.vendor_methods,
    traits.OF_NODES.show, traits.OF_RUNBOOKS.show, vifs.index, fleet.children, volumes.of_node,
    volumes.index, drivers.properties, drivers.raid_properties, drivers.vendor_methods,
})  # fmt: skip
_CHANGED_WITH = frozenset({
    nodes.patch, management.eject, management.vendor_passthru, drivers.vendor_passthru,
    agent.continue_inspection,
})  # fmt: skip


def takes_query(route: Route) -> bool:
    """Whether an address looks at its query: most that are read do, few that change something."""
    if route.method == "GET":
        return route.handler not in _READ_WITHOUT
    return route.handler in _CHANGED_WITH
