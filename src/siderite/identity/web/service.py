"""The identity API as a `Service`: who asks, whether they may, and Keystone's form of an error."""

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Sequence
from http import HTTPStatus

from siderite.core.errors import Forbidden
from siderite.core.errors import SideriteError
from siderite.core.errors import Unauthorized
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import Routes
from siderite.core.http import Who
from siderite.core.http import reply
from siderite.identity.identity import Identity
from siderite.identity.policy import PUBLIC
from siderite.identity.policy import allows
from siderite.identity.web import views
from siderite.identity.web.catalogue import CatalogEntry
from siderite.identity.web.catalogue import Catalogue
from siderite.identity.web.routes import ROUTES

_ROUTES = Routes(ROUTES)


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
        who = await self._who(request)
        if who is None:
            raise Unauthorized(
                "Authentication is required: send a good token as X-Auth-Token; "
                f"get one at {self.v3}/auth/tokens."
            )
        request.who = who
        if not allows(route.policy, who, request.params):
            raise Forbidden

    def finish(self, request: Request, response: Response) -> None:
        """The headers that every answer carries."""
        response.headers.append((b"x-openstack-request-id", request.request_id.encode()))
        response.headers.append((b"vary", b"X-Auth-Token"))

    def error(self, request: Request, error: SideriteError) -> Response:
        """Keystone's form of an error."""
        body = {
            "code": error.status,
            "title": HTTPStatus(error.status).phrase,
            "message": error.sentence,
        }
        response = reply({"error": body}, error.status)
        if error.status == HTTPStatus.UNAUTHORIZED:
            response.headers.append(self._challenge)
        return response

    async def _who(self, request: Request) -> Who | None:
        token = request.header(b"x-auth-token")
        if token is not None:
            return await self.identity.by_token(token)
        scheme, _, given = (request.header(b"authorization") or "").partition(" ")
        if scheme.lower() != "basic":
            return None
        try:
            user, found, password = b64decode(given, validate=True).decode().partition(":")
        except (NotBase64, UnicodeDecodeError):
            return None
        return await self.identity.by_password(user, password) if found else None
