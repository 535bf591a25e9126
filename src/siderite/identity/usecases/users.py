"""Users: looking, making, changing, deleting. A new password or disabling ends all tokens."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from typing import TypedDict

from siderite.core.errors import Conflict
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.ids import new_uuid
from siderite.core.log import get_logger
from siderite.core.store import Duplicate
from siderite.core.store import Lost
from siderite.core.store import Store
from siderite.core.store.table import Where
from siderite.identity import store as rows
from siderite.identity.domain import PasswordProof
from siderite.identity.domain import User
from siderite.identity.passwords import Passwords
from siderite.identity.usecases import extra as extras
from siderite.identity.usecases.changes import Changes
from siderite.identity.usecases.last_admin import spare
from siderite.identity.usecases.logins import Logins
from siderite.identity.usecases.projects import changed_meanwhile

log = get_logger("identity")


class UserFields(TypedDict, total=False):
    """What a caller may say of a user; the password is plain here and nowhere beyond."""

    name: str
    enabled: bool
    password: str | None
    default_project_id: str | None


class Users:
    """The users of one installation."""

    def __init__(
        self, store: Store, passwords: Passwords, logins: Logins, changes: Changes
    ) -> None:
        self._store = store
        self._passwords = passwords
        self._logins = logins
        self._changes = changes

    async def find(self, *, name: str | None, enabled: bool | None) -> list[User]:
        """All users, or those that the filters leave."""
        where = []
        if name is not None:
            where.append(Where("name = ?", (name,)))
        if enabled is not None:
            where.append(Where("enabled = ?", (int(enabled),)))
        return await rows.USERS.find(self._store, *where)

    async def get(self, user_id: str) -> User:
        """One user."""
        return await find_user(self._store, user_id)

    async def create(self, fields: UserFields, extra: Mapping[str, Any]) -> User:
        """Make a user; the name must be new. Without a password the user cannot log in."""
        stored = await self._stored(fields)
        kept = extras.merged("user", {}, extra)
        user = User(uuid=new_uuid().replace("-", ""), extra=kept, **stored)
        try:
            await self._store.commit([rows.USERS.insert(user)])
        except Duplicate as why:
            raise _taken(user.name) from why
        log.info("user created", user_id=user.uuid)
        return user

    async def update(self, user_id: str, fields: UserFields, extra: Mapping[str, Any]) -> User:
        """Change a user."""
        await self.get(user_id)  # before the work of hashing
        stored = await self._stored(fields)
        before = await self.get(user_id)
        kept = extras.merged("user", before.extra, extra)
        after = replace(before, version=before.version + 1, extra=kept, **stored)
        return await self._swap(before, after, is_ending="password" in fields or not after.enabled)

    async def change_password(self, user_id: str, original: str, new: str) -> None:
        """A user's own change of password."""
        before = await self._logins.by_password(PasswordProof(original, id=user_id))
        after = replace(
            before, version=before.version + 1, password=await self._passwords.hash(new)
        )
        await self._swap(before, after, is_ending=True)

    async def delete(self, user_id: str) -> None:
        """Delete a user with grants and tokens."""
        user = await self.get(user_id)
        ops = [
            *await spare(self._store, lambda one: one.user_id == user_id),
            rows.USERS.remove(user),
            rows.remove_grants_of_user(user_id),
            rows.remove_tokens_of_user(user_id),
            rows.remove_credentials_of_user(user_id),
        ]
        try:
            await self._store.commit(ops)
        except Lost as why:
            raise changed_meanwhile("user") from why
        self._changes.note()
        log.info("user deleted", user_id=user_id)

    async def _stored(self, fields: UserFields) -> UserFields:
        """The fields as they are kept: the password hashed, the default project known to exist."""
        stored = fields.copy()
        password = fields.get("password")
        if password is not None:
            stored["password"] = await self._passwords.hash(password)
        project_id = fields.get("default_project_id")
        if project_id is not None and await rows.PROJECTS.get(self._store, project_id) is None:
            raise Invalid(
                f"default_project_id names no project: {project_id[:64]!r}; see /v3/projects."
            )
        return stored

    async def _swap(self, before: User, after: User, *, is_ending: bool) -> User:
        if is_ending:
            after = replace(after, epoch=before.epoch + 1)
        ops = [rows.USERS.swap(before, after)]
        if not after.enabled or after.password is None:
            ops += await spare(self._store, lambda one: one.user_id == before.uuid)
        if is_ending:
            ops.append(rows.remove_tokens_of_user(before.uuid))
        try:
            await self._store.commit(ops)
        except Duplicate as why:
            raise _taken(after.name) from why
        except Lost as why:
            raise changed_meanwhile("user") from why
        self._changes.note()
        if is_ending:
            log.info("user's tokens revoked", user_id=before.uuid)
        return after


async def find_user(store: Store, user_id: str) -> User:
    """A user that must be there."""
    user = await rows.USERS.get(store, user_id)
    if user is None:
        raise NotFound(f"There is no user {user_id[:64]!r}; list them at /v3/users.")
    return user


def _taken(name: str) -> Conflict:
    return Conflict(f"There is a user named {name!r} already; choose another name.")
