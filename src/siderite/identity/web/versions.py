"""Version documents."""

from typing import TYPE_CHECKING

from siderite.core import shape
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply
from siderite.identity.web import views

if TYPE_CHECKING:
    from siderite.identity.web.service import IdentityService


async def choices(service: "IdentityService", _request: Request) -> Response:
    """GET /: which versions there are; 300 Multiple Choices, as Keystone says it."""
    return reply(_choices(service.v3), 300)


def _choices(v3: str) -> views.View:
    return {"versions": {"values": [views.version(v3)]}}


def choices_form() -> shape.Json:
    """The form of the choice of versions."""
    return shape.wire(_choices(""))


async def version(service: "IdentityService", _request: Request) -> Response:
    """GET /v3"""
    return reply({"version": views.version(service.v3)})


def form() -> shape.Json:
    """The form of the one version."""
    return shape.wire({"version": views.version("")})
