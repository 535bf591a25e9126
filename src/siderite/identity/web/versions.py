"""Version documents."""

from typing import TYPE_CHECKING

from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply
from siderite.identity.web import views

if TYPE_CHECKING:
    from siderite.identity.web.service import IdentityService


async def choices(service: "IdentityService", _request: Request) -> Response:
    """GET /: which versions there are; 300 Multiple Choices, as Keystone says it."""
    return reply({"versions": {"values": [views.version(service.v3)]}}, 300)


async def version(service: "IdentityService", _request: Request) -> Response:
    """GET /v3"""
    return reply({"version": views.version(service.v3)})
