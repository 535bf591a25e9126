"""Ways to a server's console, and what was said there."""

from collections.abc import Awaitable
from collections.abc import Callable
from typing import TYPE_CHECKING
from typing import Any

from siderite.compute.usecases.server import acting
from siderite.compute.web import forms
from siderite.compute.web.forms import Key
from siderite.compute.web.server import action_keys
from siderite.core import shape
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

_KINDS = {
    "vnc": ("novnc", "xvpvnc"), "spice": ("spice-html5", "spice-direct"), "serial": ("serial",),
    "rdp": ("rdp-html5",), "mks": ("webmks",),
}  # fmt: skip
_MKS = 8


def _keys(version: int) -> forms.Keys:
    protocols = [name for name in _KINDS if name != "mks" or version >= _MKS]
    return {
        "protocol": Key(forms.one_of(*protocols), required=True),
        "type": Key(forms.text(1, 40), required=True),
    }


def form() -> shape.Json:
    """The form of the body."""
    return shape.under("remote_console", forms.form(_keys(forms.LATEST)))


async def open_remote(service: "Service", request: Request) -> Response:
    """POST /v2.1/servers/{id}/remote-consoles"""
    asked = await forms.under(request, "remote_console", _keys(request.version))
    if asked["type"] not in _KINDS[asked["protocol"]]:
        raise Invalid(
            f"Invalid input for field/attribute type. Value: {asked['type']}. For"
            f" {asked['protocol']} it is one of {', '.join(_KINDS[asked['protocol']])}."
        )
    url = await _open(service, request, asked["protocol"], asked["type"])
    return reply({"remote_console": {**asked, "url": url}})


async def output(service: "Service", request: Request, value: Any) -> Response:
    """os-getConsoleOutput"""
    asked = forms.take(
        {} if value is None else value,
        "os-getConsoleOutput",
        action_keys.CONSOLE_OUTPUT,
        request.version,
    )
    server = await service.server(request)
    acting.check_host(server)
    length = asked.get("length")
    text = await service.talk.console_log(server, None if length == -1 else length)
    return reply({"output": text})


def old(protocol: str) -> Callable[["Service", Request, Any], Awaitable[Response]]:
    """os-get…Console, up to 2.5"""

    async def does(service: "Service", request: Request, value: Any) -> Response:
        asked = forms.take(value, "console", action_keys.CONSOLE, request.version)
        url = await _open(service, request, protocol, asked["type"])
        return reply({"console": {"type": asked["type"], "url": url}})

    return does


async def _open(service: "Service", request: Request, protocol: str, kind: str) -> str:
    """The URL of a way to a server's console."""
    server = await service.server(request)
    acting.check_host(server)
    url = await service.consoles.open(server, protocol, kind, request.base)
    if url is None:
        raise Invalid(
            f"Unavailable console type {kind}. The server's host offers none; its console log may"
            " tell what is wanted."
        )
    return url


ROUTES = (
    Route(
        "POST",
        "/v2.1/servers/{id}/remote-consoles",
        open_remote,
        "servers:action",
        6,
        takes=form,
        gives=lambda: shape.wire({"remote_console": {"protocol": "", "type": "", "url": ""}}),
    ),
)
