"""The addresses of a node's management: what a machine is asked while the client waits."""

import re
from typing import TYPE_CHECKING
from typing import Any

from siderite.baremetal.domain.hardware import BootDevice
from siderite.baremetal.domain.hardware import BootSetting
from siderite.baremetal.domain.hardware import Indicator
from siderite.baremetal.domain.hardware import Light
from siderite.baremetal.domain.hardware import MediaDevice
from siderite.baremetal.domain.hardware import Medium
from siderite.baremetal.domain.hardware import Sensor
from siderite.baremetal.domain.secrets import mask
from siderite.baremetal.usecases.machine import management
from siderite.baremetal.usecases.node import find
from siderite.baremetal.web import forms
from siderite.baremetal.web import policy
from siderite.baremetal.web.address import ident
from siderite.baremetal.web.bodies import Body
from siderite.baremetal.web.bodies import no_query
from siderite.baremetal.web.drivers import no_vendor_method
from siderite.core import shape
from siderite.core.check import short
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

_LONGEST_URL = 2048
_USER, _QUERY = re.compile(r"://[^/]*@"), re.compile(r"\?.*", re.DOTALL)
_SOURCES = ("http", "local", "swift")
BOOT_DEVICE = Body(
    {"boot_device": "pxe"},
    ("persistent",),
    {"boot_device": shape.words(BootDevice), "persistent": shape.or_null(shape.FLAG)},
)
LIGHT = Body({"state": "on"})
MEDIUM = Body(
    {"device_type": "cdrom", "image_url": "http://images/boot.iso"},
    ("image_download_source",),
    {
        "device_type": shape.words(MediaDevice),
        "image_download_source": shape.or_null(shape.words(_SOURCES)),
    },
)


def _read(request: Request) -> Any:
    return policy.guard("node:management:read", request.who)


def _write(request: Request) -> Any:
    return policy.guard("node:management", request.who)


async def boot_device(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/management/boot_device"""
    found = await management.boot_device(service.ctx, ident(request), request.who, _write(request))
    return reply(found)


def boot_form() -> shape.Json:
    """The form of what a machine starts from next."""
    return shape.wire(*shape.both(BootSetting))


async def boot_devices(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/management/boot_device/supported"""
    found = await management.boot_devices(service.ctx, ident(request), request.who, _write(request))
    return reply({"supported_boot_devices": found})


def boot_devices_form() -> shape.Json:
    """The form of what it may start from."""
    return shape.wire({"supported_boot_devices": list(BootDevice)})


async def set_boot_device(service: "Service", request: Request) -> Response:
    """PUT /v1/nodes/{node}/management/boot_device"""
    body = await BOOT_DEVICE.of(request)
    name = body.get("boot_device")
    if not isinstance(name, str) or name not in [*BootDevice]:
        devices = ", ".join(BootDevice)
        raise Invalid(f"Invalid boot device {short(name)} specified; there are: {devices}.")
    await management.set_boot_device(
        service.ctx,
        ident(request),
        BootDevice(name),
        persistent=forms.flag("persistent", body.get("persistent")),
        who=request.who,
        guard=_write(request),
    )
    return Response(status=204)


async def inject_nmi(service: "Service", request: Request) -> Response:
    """PUT /v1/nodes/{node}/management/inject_nmi"""
    if await request.body() not in (b"", b"{}", b"null"):
        raise Invalid("inject_nmi takes an empty body, or {}.")
    await management.inject_nmi(service.ctx, ident(request), request.who, _write(request))
    return Response(status=204)


async def indicators(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/management/indicators"""
    node, found = await management.indicators(
        service.ctx, ident(request), request.who, _read(request)
    )
    base = service.base(request)
    return reply({"indicators": [_light(light, node.uuid, base) for light in found]})


def _light(light: Indicator, node: str, base: str) -> dict[str, Any]:
    name = f"{light.name}@{light.component}"
    path = f"nodes/{node}/management/indicators/{name}"
    links = [
        {"href": f"{base}v1/{path}", "rel": "self"},
        {"href": f"{base}{path}", "rel": "bookmark"},
    ]
    return {
        "name": name,
        "component": light.component,
        "readonly": light.readonly,
        "states": light.states,
        "links": links,
    }


def indicators_form() -> shape.Json:
    """The form of a machine's lights."""
    return shape.wire({"indicators": [_light(one, "", "") for one in shape.both(Indicator)]})


async def indicator(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/management/indicators/{indicator}"""
    state = await management.indicator(
        service.ctx, ident(request), request.params[1], request.who, _read(request)
    )
    return reply({"state": state})


def light_form() -> shape.Json:
    """The form of a light's state."""
    return shape.under("state", shape.words(Light))


async def set_indicator(service: "Service", request: Request) -> Response:
    """PUT /v1/nodes/{node}/management/indicators/{indicator}"""
    body = await LIGHT.of(request)
    state = body.get("state")
    if not isinstance(state, str):
        raise Invalid("state must be text, such as on, off or blinking.")
    await management.set_indicator(
        service.ctx, ident(request), request.params[1], state.lower(),
        who=request.who, guard=_write(request),
    )  # fmt: skip
    return Response(status=204)


async def sensors(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/management/sensors"""
    found = await management.sensors(service.ctx, ident(request), request.who, _read(request))
    return reply({"sensors": found})


def sensors_form() -> shape.Json:
    """The form of a machine's readings."""
    return shape.wire({"sensors": shape.both(Sensor)})


async def media(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/vmedia"""
    no_query(request)
    found = await management.media(service.ctx, ident(request), request.who, _read(request))
    return reply([_medium(medium) for medium in found])


def _medium(medium: Medium) -> dict[str, Any]:
    kinds = {"cdrom": ["CD", "DVD"], "disk": ["USBStick"], "floppy": ["Floppy"]}
    url = _QUERY.sub("?***", medium.image_url or "")  # which may be a signature
    return {
        "image": mask(_USER.sub("://***@", url)),
        "inserted": medium.inserted,
        "media_types": kinds[medium.device_type],
    }


def media_form() -> shape.Json:
    """The form of a machine's virtual media."""
    return shape.wire([_medium(medium) for medium in shape.both(Medium)])


async def insert(service: "Service", request: Request) -> Response:
    """POST /v1/nodes/{node}/vmedia"""
    body = await MEDIUM.of(request)
    url = body.get("image_url")
    if not isinstance(url, str) or "://" not in url or len(url) > _LONGEST_URL:
        raise Invalid(f"image_url must be a URL of at most {_LONGEST_URL} characters.")
    source = body.get("image_download_source")
    if source is not None and source not in _SOURCES:
        raise Invalid("image_download_source must be http, local or swift.")
    await management.insert(
        service.ctx, ident(request), _device(body.get("device_type")), url,
        who=request.who, guard=_write(request),
    )  # fmt: skip
    return Response(status=204)


async def eject(service: "Service", request: Request) -> Response:
    """DELETE /v1/nodes/{node}/vmedia"""
    devices: list[MediaDevice] = []
    for key, value in request.query:
        if key != "device_types":
            raise Invalid(f"Unexpected arguments: {key[:80]}. Ejecting takes: device_types.")
        devices += [_device(name) for name in value.split(",") if name]
    await management.eject(
        service.ctx, ident(request), devices, who=request.who, guard=_write(request)
    )
    return Response(status=204)


def _device(name: Any) -> MediaDevice:
    if not isinstance(name, str) or name not in [*MediaDevice]:
        raise Invalid(f"A virtual medium is one of {', '.join(MediaDevice)}, not {short(name)}.")
    return MediaDevice(name)


async def vendor_methods(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/vendor_passthru/methods"""
    await find.node(service.ctx, ident(request), request.who, _read(request))
    return reply({})


async def vendor_passthru(service: "Service", request: Request) -> Response:
    """Any method at /v1/nodes/{node}/vendor_passthru"""
    node = await find.node(service.ctx, ident(request), request.who, _write(request))
    raise no_vendor_method(request, node.driver)
