"""Tokens for our own services, when one of them calls another over its public API."""

from siderite.core.errors import Unauthorized
from siderite.core.ids import new_uuid
from siderite.core.store import Duplicate
from siderite.core.store import Store
from siderite.identity import store as rows
from siderite.identity.domain import DEFAULT
from siderite.identity.domain import User
from siderite.identity.domain import on_project
from siderite.identity.tokens import new_audit_id
from siderite.identity.usecases.sessions import Sessions

PROJECT = "service"
ROLE = "service"


async def service_token(store: Store, sessions: Sessions, name: str, expires_at: float) -> str:
    """A token of the service's own account, which is made when it is not there. The account has no
    password: nobody else can log in with it.
    """
    project = await rows.project_named(store, PROJECT, DEFAULT.id)
    if project is None or not project.enabled:
        raise Unauthorized("There is no project service (any more), where services have accounts.")
    user = await rows.user_named(store, name, DEFAULT.id)
    if user is None:
        user = await _made(store, name, project.uuid)
    scope = on_project(project.uuid)
    await store.commit([rows.add_grant(user.uuid, scope, ROLE)])
    issued = await sessions.issue(
        user, scope, methods=("password",), audit_ids=(new_audit_id(),), expires_at=expires_at
    )
    if issued is None:
        raise Unauthorized(f"The account {name} is disabled; enable it.")
    return issued[0]


async def _made(store: Store, name: str, project: str) -> User:
    user = User(uuid=new_uuid().replace("-", ""), name=name, default_project_id=project)
    try:
        await store.commit([rows.USERS.insert(user)])
    except Duplicate:  # another process was first
        found = await rows.user_named(store, name, DEFAULT.id)
        assert found is not None  # noqa: S101 - it was there a moment ago
        return found
    return user
