"""The identity API as a `Service`: who asks, whether they may, and Keystone's form of an error."""

from collections.abc import Sequence
from http import HTTPStatus

from siderite.core.auth import identify
from siderite.core.errors import Forbidden
from siderite.core.errors import SideriteError
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import Routes
from siderite.core.http import reply
from siderite.identity.identity import Identity
from siderite.identity.policy import PUBLIC
from siderite.identity.policy import allows
from siderite.identity.web import views
from siderite.identity.web.catalogue import CatalogEntry
from siderite.identity.web.catalogue import Catalogue
from siderite.identity.web.routes import ROUTES

_ROUTES = Routes(ROUTES)


_NOT_MADE = {
    "domains": " There is one domain here, default; make a project in its place.",
    "groups": " There are no groups here; give the roles to each user.",
}
"""What people look for here, and what does in its place."""


class IdentityService:
    """The API at `/identity`."""

    name = "identity"
    routes = _ROUTES

    def __init__(
        self,
        identity: Identity,
        *,
        public_url: str,
        region: str,
        catalog: Sequence[CatalogEntry],
    ) -> None:
        root = public_url.rstrip("/")
        self.identity = identity
        self.v3 = f"{root}/identity/v3"
        self.catalogue = Catalogue(root, region, catalog)
        self.catalogue_view = views.catalogue(self.catalogue)
        self._challenge = (b"www-authenticate", f'Keystone uri="{self.v3}"'.encode())

    async def prepare(self, request: Request, route: Route) -> None:
        """Find out who asks, and refuse what the route's rule refuses."""
        if route.policy == PUBLIC:
            return
        request.who = await identify(request, self.identity, basic=True)
        if not allows(route.policy, request.who, request.params):
            raise Forbidden

    def finish(self, request: Request, response: Response) -> None:
        """The headers that every answer carries."""
        response.headers.append((b"x-openstack-request-id", request.request_id.encode()))
        response.headers.append((b"vary", b"X-Auth-Token"))

    def error(self, request: Request, error: SideriteError) -> Response:
        """Keystone's form of an error."""
        said = error.sentence
        if error.status == HTTPStatus.METHOD_NOT_ALLOWED:
            said += "".join(why for word, why in _NOT_MADE.items() if f"/v3/{word}" in said)
        body = {"code": error.status, "title": HTTPStatus(error.status).phrase, "message": said}
        response = reply({"error": body}, error.status)
        if error.status == HTTPStatus.UNAUTHORIZED:
            response.headers.append(self._challenge)
        return response
