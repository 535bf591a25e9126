"""Grants: who holds which role where. Taking a role away ends the user's tokens there."""

from dataclasses import replace

from siderite.core.errors import NotFound
from siderite.core.log import get_logger
from siderite.core.store import Lost
from siderite.core.store import Store
from siderite.core.store.table import Where
from siderite.identity import store as rows
from siderite.identity.domain import DEFAULT
from siderite.identity.domain import Grant
from siderite.identity.domain import Role
from siderite.identity.domain import Scope
from siderite.identity.domain import ScopeKind
from siderite.identity.domain import User
from siderite.identity.usecases.changes import Changes
from siderite.identity.usecases.last_admin import ADMIN
from siderite.identity.usecases.last_admin import spare
from siderite.identity.usecases.projects import changed_meanwhile
from siderite.identity.usecases.projects import find_project
from siderite.identity.usecases.users import find_user

log = get_logger("identity")


class Grants:
    """The role assignments of one installation."""

    def __init__(self, store: Store, changes: Changes) -> None:
        self._store = store
        self._changes = changes

    async def find(
        self, *, user_id: str | None, scope: Scope | None, role: Role | None
    ) -> list[Grant]:
        """All grants, or those that the filters leave."""
        where = []
        if user_id is not None:
            where.append(Where("g.user_id = ?", (user_id,)))
        if scope is not None:
            where.append(
                Where("g.kind = ? AND g.target_id = ?", (scope.kind.value, scope.target_id))
            )
        if role is not None:
            where.append(Where("g.role = ?", (role.name,)))
        return await rows.grants(self._store, where)

    async def of_user(self, user_id: str, scope: Scope) -> frozenset[str]:
        """Names of the roles that a user was given there."""
        await self._check(user_id, scope)
        return await rows.roles_at(self._store, user_id, scope)

    async def give(self, user_id: str, scope: Scope, role: Role) -> None:
        """Give a role; giving it again is fine."""
        await self._check(user_id, scope)
        await self._store.commit([rows.give(user_id, scope, role.name)])
        self._changes.note()
        log.info(
            "role given", user_id=user_id, at=scope.kind.value, to=scope.target_id, role=role.name
        )

    async def take(self, user_id: str, scope: Scope, role: Role) -> None:
        """Take a role away, and end the user's tokens there."""
        user = await self._check(user_id, scope)
        taken = (user_id, scope, role.name)
        ops = [
            *await spare(
                self._store, lambda one: (one.user_id, one.scope, one.role) == taken, but=user_id
            ),
            rows.remove_grant(user_id, scope, role.name),
            rows.remove_tokens_of_user_at(user_id, scope),
        ]
        if role.name == ADMIN:  # who counts on this one to stay must notice (`last_admin`)
            ops.append(rows.USERS.swap(user, replace(user, version=user.version + 1)))
        try:
            await self._store.commit(ops)
        except Lost as why:
            if role.name in await rows.roles_at(self._store, user_id, scope):
                raise changed_meanwhile("grant") from why
            raise not_held(role) from why
        self._changes.note()
        log.info(
            "role taken", user_id=user_id, at=scope.kind.value, to=scope.target_id, role=role.name
        )

    async def _check(self, user_id: str, scope: Scope) -> User:
        user = await find_user(self._store, user_id)
        if scope.kind is ScopeKind.DOMAIN and scope.target_id != DEFAULT.id:
            raise NotFound(
                f"There is no domain {scope.target_id[:64]!r}; list them at /v3/domains."
            )
        if scope.kind is ScopeKind.PROJECT:
            await find_project(self._store, scope.target_id)
        return user


def not_held(role: Role) -> NotFound:
    """The user was not given that role there."""
    return NotFound(f"The user does not hold the role {role.name} there; see /v3/role_assignments.")
