"""Application credentials over HTTP."""

from collections.abc import Sequence
from datetime import UTC
from datetime import datetime
from typing import TYPE_CHECKING
from typing import Any

import msgspec

from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply
from siderite.identity.domain import Role
from siderite.identity.domain import Session
from siderite.identity.passwords import MAX_LENGTH
from siderite.identity.usecases.credentials import Wanted
from siderite.identity.web import query
from siderite.identity.web import views
from siderite.identity.web.schemas import MAX_DESCRIPTION
from siderite.identity.web.schemas import MAX_NAME
from siderite.identity.web.schemas import convert

if TYPE_CHECKING:
    from siderite.identity.web.service import IdentityService

_EXAMPLE = '{"application_credential": {"name": "…", "roles": [{"name": "member"}]}}'


class _Role(msgspec.Struct):
    id: str | None = None
    name: str | None = None


class _Given(msgspec.Struct, forbid_unknown_fields=True):
    """What is said of a new one; a misspelt word would make one for longer, or for more."""

    name: str
    description: str | None = None
    roles: list[_Role] | None = None
    secret: str | None = None
    expires_at: str | None = None
    unrestricted: bool = False
    access_rules: list[Any] | None = None
    id: Any = None
    project_id: Any = None
    system: Any = None


class Body(msgspec.Struct):
    """The body that makes one."""

    application_credential: _Given


async def list_all(service: "IdentityService", request: Request) -> Response:
    """GET /v3/users/{user_id}/application_credentials"""
    user_id = (await service.identity.users.get(query.path_id(request))).uuid
    found = await service.identity.credentials.of_user(user_id, query.text(request, "name"))
    shown = (views.credential(service.v3, one) for one in found)
    path = f"/users/{user_id}/application_credentials"
    return reply(views.listing(service.v3, path, "application_credentials", shown))


async def show(service: "IdentityService", request: Request) -> Response:
    """GET /v3/users/{user_id}/application_credentials/{credential_id}"""
    user_id, credential_id = query.path_id(request), query.path_id(request, 1)
    found = await service.identity.credentials.get(user_id, credential_id)
    return reply({"application_credential": views.credential(service.v3, found)})


async def create(service: "IdentityService", request: Request) -> Response:
    """POST /v3/users/{user_id}/application_credentials"""
    wanted = _wanted(await request.json(), await service.identity.roles.every())
    session = await _session(service, request)
    made, secret = await service.identity.credentials.create(session, wanted)
    shown = {**views.credential(service.v3, made), "secret": secret}
    return reply({"application_credential": shown}, 201)


async def delete(service: "IdentityService", request: Request) -> Response:
    """DELETE /v3/users/{user_id}/application_credentials/{credential_id}"""
    user_id, credential_id = query.path_id(request), query.path_id(request, 1)
    session = await _session(service, request)
    await service.identity.credentials.delete(session, user_id, credential_id)
    return Response(status=204)


async def _session(service: "IdentityService", request: Request) -> Session:
    """The token's session: credentials are managed with tokens only."""
    token = request.header(b"x-auth-token")
    session = await service.identity.sessions.find(token) if token else None
    if session is None:
        raise Forbidden("Application credentials are made and deleted with a token; log in first.")
    return session


def _wanted(body: object, known: Sequence[Role]) -> Wanted:
    given = convert(body, Body, _EXAMPLE).application_credential
    if not given.name.strip() or len(given.name) > MAX_NAME:
        raise Invalid(f"The name must have 1 to {MAX_NAME} characters and not only blanks.")
    if given.description is not None and len(given.description) > MAX_DESCRIPTION:
        raise Invalid(f"The description must have at most {MAX_DESCRIPTION} characters.")
    if given.secret is not None and not 0 < len(given.secret) <= MAX_LENGTH:
        raise Invalid(f"The secret must have 1 to {MAX_LENGTH} characters.")
    if given.access_rules:
        raise Invalid("Access rules are not supported here; restrict by roles.")
    return Wanted(
        name=given.name,
        description=given.description,
        roles=tuple(dict.fromkeys(_role(one, known) for one in given.roles or ())) or None,
        secret=given.secret,
        expires_at=None if given.expires_at is None else _moment(given.expires_at),
        unrestricted=given.unrestricted,
    )


def _role(given: _Role, known: Sequence[Role]) -> str:
    for role in known:
        if given.id == role.id or (given.id is None and given.name == role.name):
            return role.name
    raise Invalid("A role is named by its id or its name; list them at /v3/roles.")


def _moment(text: str) -> float:
    try:
        at = datetime.fromisoformat(text)
        # What is in the year 9999 elsewhere may be beyond it in UTC, where nothing can show it.
        return (at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as why:
        raise Invalid("expires_at must be a time such as 2027-01-31T00:00:00Z.") from why
