"""Hosts of our own: added, checked, removed. Not Nova's: from 2.900 on, administrators only."""

from typing import TYPE_CHECKING
from typing import Any

from siderite.compute.domain.host import Host
from siderite.compute.usecases.fleet import hosts
from siderite.compute.usecases.server import listing
from siderite.compute.web import forms
from siderite.compute.web.forms import Key
from siderite.core import shape
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

_SINCE = 900


def _shown(host: Host, statuses: dict[str, str]) -> dict[str, Any]:
    return {
        "name": host.name,
        "driver": host.driver,
        "uri": host.uri,
        "options": host.options,
        "conductor_group": host.conductor_group,
        "status": statuses.get(host.name, "UNKNOWN"),
        "disabled": host.disabled,
        "disabled_reason": host.disabled_reason,
    }


@shape.like(shape.record({}, others=True))
def _options(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise forms.wrong(name, value, "it must be an object")
    return {str(key): str(item) for key, item in value.items()}


@shape.like(shape.text(0, 255, "[a-zA-Z0-9_.-]*"))
def _group(name: str, value: Any) -> str:
    group: str = forms.text(0, 255, r"[a-zA-Z0-9_.-]*")(name, value)
    return group.lower()


_NEW = {
    "name": Key(forms.text(1, 255, r"[a-zA-Z0-9-._]{1,255}"), required=True),
    "uri": Key(forms.text(0, 500)),
    "driver": Key(forms.text(1, 40)),
    "options": Key(_options),
    "conductor_group": Key(_group),
}
_CHANGES = {"conductor_group": Key(_group, required=True)}


def _form() -> shape.Json:
    shown = [_shown(host, {}) for host in shape.both(Host)]
    return shape.seen(*shown, {**shown[0], "problem": None}, {**shown[0], "problem": ""})


def _driver_of(uri: str) -> str:
    """The driver that a URI speaks of: `simulated:`, `baremetal:` or that of a bare metal API, or
    one of libvirt's.
    """
    if uri.startswith(("baremetal:", "http:", "https:")):
        return "baremetal"
    if uri.startswith("simulated:") or not uri:
        return "simulated"
    if uri.startswith(("qemu:", "qemu+")):
        return "libvirt"
    known = (
        "qemu:///system, qemu+ssh://HOST/system, qemu+tls://HOST/system, baremetal:, https://IRONIC"
    )
    raise forms.wrong("uri", uri, f"it must be one such as {known}, or simulated:")


async def index(service: "Service", request: Request) -> Response:
    """GET /v2.1/hosts"""
    statuses = await listing.host_statuses(service.ctx)
    every = await hosts.every(service.ctx)
    return reply({"hosts": [_shown(host, statuses) for host in every]})


async def add(service: "Service", request: Request) -> Response:
    """POST /v2.1/hosts"""
    asked = await forms.under(request, "host", _NEW)
    uri = asked.get("uri", "")
    driver = asked.get("driver") or _driver_of(uri)
    host = await hosts.add(
        service.ctx, asked["name"], driver, uri, asked.get("options", {}),
        group=asked.get("conductor_group", ""),
    )  # fmt: skip
    problem = await service.talk.check_host(host)
    statuses = await listing.host_statuses(service.ctx)
    return reply({"host": {**_shown(host, statuses), "problem": problem}}, 201)


async def show(service: "Service", request: Request) -> Response:
    """GET /v2.1/hosts/{name}"""
    host = await hosts.known(service.ctx, request.params[0])
    return reply({"host": _shown(host, await listing.host_statuses(service.ctx))})


async def change(service: "Service", request: Request) -> Response:
    """PATCH /v2.1/hosts/{name}"""
    asked = await forms.under(request, "host", _CHANGES)
    name, group = request.params[0], asked["conductor_group"]
    host = await hosts.regroup(service.ctx, name, group, cause=service.cause(request))
    return reply({"host": _shown(host, await listing.host_statuses(service.ctx))})


async def check(service: "Service", request: Request) -> Response:
    """POST /v2.1/hosts/{name}/check"""
    host = await hosts.known(service.ctx, request.params[0])
    problem = await service.talk.check_host(host)
    statuses = await listing.host_statuses(service.ctx)
    return reply({"host": {**_shown(host, statuses), "problem": problem}})


async def remove(service: "Service", request: Request) -> Response:
    """DELETE /v2.1/hosts/{name}"""
    await hosts.remove(service.ctx, request.params[0])
    return Response(status=204)


ROUTES = (
    Route(
        "GET",
        "/v2.1/hosts",
        index,
        "hosts:manage",
        _SINCE,
        gives=lambda: shape.listed("hosts", _form()),
    ),
    Route(
        "POST",
        "/v2.1/hosts",
        add,
        "hosts:manage",
        _SINCE,
        takes=lambda: shape.under("host", forms.form(_NEW)),
        gives=lambda: shape.under("host", _form()),
    ),
    Route(
        "GET",
        "/v2.1/hosts/{name}",
        show,
        "hosts:manage",
        _SINCE,
        gives=lambda: shape.under("host", _form()),
    ),
    Route(
        "PATCH",
        "/v2.1/hosts/{name}",
        change,
        "hosts:manage",
        _SINCE,
        takes=lambda: shape.under("host", forms.form(_CHANGES)),
        gives=lambda: shape.under("host", _form()),
    ),
    Route("DELETE", "/v2.1/hosts/{name}", remove, "hosts:manage", _SINCE),
    Route(
        "POST",
        "/v2.1/hosts/{name}/check",
        check,
        "hosts:manage",
        _SINCE,
        gives=lambda: shape.under("host", _form()),
    ),
)
