"""Roles: those that policies know, and others that an administrator adds.

An added role can be held and is told with tokens, for services elsewhere that know it; here it
allows nothing. A role's id follows from its name, so a role cannot be renamed.
"""

from siderite.core.errors import Conflict
from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.log import get_logger
from siderite.core.store import Duplicate
from siderite.core.store import Store
from siderite.identity import store as rows
from siderite.identity.domain import ROLES
from siderite.identity.domain import Role
from siderite.identity.usecases.changes import Changes

log = get_logger("identity")

_FIXED = frozenset(role.name for role in ROLES)


class Roles:
    """The roles of one installation."""

    def __init__(self, store: Store, changes: Changes) -> None:
        self._store = store
        self._changes = changes

    async def every(self) -> list[Role]:
        """All of them, the fixed ones first; one that was added before the program had a role of
        its name stands in for that.
        """
        added = await rows.added_roles(self._store)
        names = {role.name for role in added}
        return [*(role for role in ROLES if role.name not in names), *added]

    async def added(self) -> frozenset[str]:
        """Names of those that were added."""
        return frozenset(role.name for role in await rows.added_roles(self._store))

    async def find(self, role_id: str) -> Role | None:
        """The role of an id."""
        return next((role for role in await self.every() if role.id == role_id), None)

    async def get(self, role_id: str) -> Role:
        """The role of an id, which must be there."""
        found = await self.find(role_id)
        if found is None:
            raise NotFound(f"There is no role {role_id[:64]!r}; list them at /v3/roles.")
        return found

    async def create(self, name: str, description: str) -> Role:
        """Add a role."""
        role = Role(name, (), description)
        if name.lower() in _FIXED:
            raise _taken(name)
        try:
            await self._store.commit([rows.add_role(role)])
        except Duplicate as why:
            raise _taken(name) from why
        log.info("role added", role=name)
        return role

    async def update(self, role_id: str, name: str | None, description: str | None) -> Role:
        """Change the description of an added role."""
        before = await self._added(role_id)
        if name not in (None, before.name):
            raise Invalid("A role cannot be renamed; add another one, and delete this one.")
        after = Role(before.name, (), before.description if description is None else description)
        await self._store.commit([rows.describe_role(after)])
        return after

    async def delete(self, role_id: str) -> None:
        """Delete an added role; nobody holds it any more."""
        role = await self._added(role_id)
        await self._store.commit([rows.remove_role(role), rows.remove_grants_of_role(role.name)])
        self._changes.note()
        log.info("role deleted", role=role.name)

    async def _added(self, role_id: str) -> Role:
        role = await self.get(role_id)
        if role.name not in await self.added():
            raise Forbidden(
                f"The role {role.name} is part of the program and stays as it is; only added roles"
                " can be changed or deleted."
            )
        return role


def _taken(name: str) -> Conflict:
    return Conflict(f"There is a role named {name!r} already; choose another name.")
