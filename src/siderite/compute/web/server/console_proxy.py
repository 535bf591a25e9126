"""`/consoles/vnc?token=…`: a page with the server's screen, and the WebSocket that the page (or
noVNC, or anybody's client) speaks VNC over. The token is all that it takes.
"""

from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs

from siderite.compute.domain.talk import Screens
from siderite.core.errors import SideriteError
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import Routes
from siderite.core.http import reply
from siderite.core.websocket import carry
from siderite.core.websocket import refuse

_HEADERS = [
    (b"content-type", b"text/html; charset=utf-8"),
    # The token is in the address: it goes to nobody else.
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


async def page(service: "ConsoleProxy", request: Request) -> Response:
    """GET /consoles/vnc"""
    return Response(service.page, 200, list(_HEADERS))


class ConsoleProxy:
    """The service at `/consoles`, and the WebSocket there."""

    name = "consoles"

    def __init__(self, screens: Screens) -> None:
        self._screens = screens
        self.page = files("siderite.compute.web.server").joinpath("vnc.html").read_bytes()
        self.routes = Routes([Route("GET", "/vnc", page, media="text/html")])

    async def prepare(self, request: Request, route: Route) -> None:
        """The token is the WebSocket's to show."""

    def finish(self, request: Request, response: Response) -> None:
        """Nothing to add."""

    def error(self, request: Request, error: SideriteError) -> Response:
        return reply({"error": {"code": error.status, "message": error.sentence}}, error.status)

    async def socket(self, scope: Any, receive: Any, send: Any) -> None:
        """Carry VNC between a client and the guest's screen."""
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        token = (query.get("token") or [""])[0]
        try:
            screen = await self._screens.connect(token)
        except SideriteError as why:
            await refuse(receive, send, why.sentence)
            return
        await carry(scope, receive, send, screen)
