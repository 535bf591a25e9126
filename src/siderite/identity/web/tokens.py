"""Tokens over HTTP: log in, validate, revoke; and the catalogue."""

from typing import TYPE_CHECKING

from siderite.core import shape
from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply
from siderite.identity.domain import Scope
from siderite.identity.domain import ScopeKind
from siderite.identity.domain import Session
from siderite.identity.policy import may_end_session
from siderite.identity.policy import may_see_session
from siderite.identity.web import login
from siderite.identity.web import query
from siderite.identity.web import views
from siderite.identity.web.catalogue import Catalogue
from siderite.identity.web.schemas import items

if TYPE_CHECKING:
    from siderite.identity.web.service import IdentityService

_MAX_BODY = 64 * 1024
_NO_SUCH_TOKEN = "The token in X-Subject-Token is not good (any more)."  # noqa: S105


async def issue(service: "IdentityService", request: Request) -> Response:
    """POST /v3/auth/tokens"""
    command = login.parse(await request.json(_MAX_BODY))
    token, session = await service.identity.logins.login(command)
    return _shown(service, request, session, token, 201)


async def validate(service: "IdentityService", request: Request) -> Response:
    """GET /v3/auth/tokens"""
    token, session = await _subject(service, request)
    if not may_see_session(request.who, session):
        raise Forbidden("Only services, administrators and its owner may validate a token.")
    return _shown(service, request, session, token, 200)


async def revoke(service: "IdentityService", request: Request) -> Response:
    """DELETE /v3/auth/tokens"""
    token, session = await _subject(service, request)
    if not may_end_session(request.who, session):
        raise Forbidden("Only administrators and its owner may revoke a token.")
    await service.identity.sessions.revoke(token)
    return Response(status=204)


async def catalog(service: "IdentityService", _request: Request) -> Response:
    """GET /v3/auth/catalog"""
    return reply(views.listing(service.v3, "/auth/catalog", "catalog", service.catalogue_view))


async def _subject(service: "IdentityService", request: Request) -> tuple[str, Session]:
    token = request.header(b"x-subject-token")
    if not token:
        raise Invalid("The header X-Subject-Token is needed: it says which token is meant.")
    session = await service.identity.sessions.find(token)
    if session is None:
        raise NotFound(_NO_SUCH_TOKEN)
    return token, session


def _shown(
    service: "IdentityService", request: Request, session: Session, token: str, status: int
) -> Response:
    catalogue = None if query.flag(request, "nocatalog") else service.catalogue_view
    headers = [(b"x-subject-token", token.encode("latin-1"))]
    return reply(views.session(session, catalogue), status, headers)


def _catalogue() -> list[views.View]:
    return views.catalogue(Catalogue("", "", ()))


def form() -> shape.Json:
    """The form of what a token stands for, whatever it is for."""
    catalogue = _catalogue()
    shown = [
        views.session(shape.made_up(Session, bare=bare, scope=Scope(kind, "")), catalogue)
        for kind in ScopeKind for bare in (True, False)
    ]  # fmt: skip
    shown += [views.session(one, None) for one in shape.both(Session)]
    return shape.wire(*shown)


def catalog_form() -> shape.Json:
    """The form of the catalogue by itself."""
    return items("catalog", *_catalogue())
