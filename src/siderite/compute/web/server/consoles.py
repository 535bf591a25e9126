"""POST /v2.1/servers/{id}/remote-consoles."""

from typing import TYPE_CHECKING

from siderite.compute.web import forms
from siderite.compute.web.forms import Key
from siderite.compute.web.server.larger_actions import open_console
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
    url = await open_console(service, request, asked["protocol"], asked["type"])
    return reply({"remote_console": {**asked, "url": url}})


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
