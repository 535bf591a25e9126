"""The image API as a service: who may ask, its headers and its errors."""

from http import HTTPStatus

from siderite.core.auth import identify
from siderite.core.errors import RangeNotSatisfiable
from siderite.core.errors import SideriteError
from siderite.core.guard import Guard
from siderite.core.http import Authenticator
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import Routes
from siderite.core.http import reply
from siderite.core.transition import Cause
from siderite.image.transfer import Transfer
from siderite.image.usecases.context import Context
from siderite.image.web import policy
from siderite.image.web.routes import ROUTES

_ROUTES = Routes(ROUTES)


class ImageService:
    """The API at `/image`."""

    name = "image"
    routes = _ROUTES

    def __init__(self, ctx: Context, transfer: Transfer, guard: Guard, who: Authenticator) -> None:
        self.ctx = ctx
        self.transfer = transfer
        self.guard = guard
        self._who = who

    def cause(self, request: Request) -> Cause:
        """The request as the cause of what follows from it."""
        return Cause(request.request_id, request.who.user or None, request.who.project_id)

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
        """A body that OpenStack's clients find the sentence in."""
        body = {
            "code": error.status,
            "title": HTTPStatus(error.status).phrase,
            "message": error.sentence,
        }
        response = reply({"error": body}, error.status)
        if error.status == HTTPStatus.UNAUTHORIZED:
            response.headers.append((b"www-authenticate", b'Basic realm="Siderite image"'))
        if isinstance(error, RangeNotSatisfiable) and error.size is not None:
            response.headers.append((b"content-range", b"bytes */%d" % error.size))
        return response
