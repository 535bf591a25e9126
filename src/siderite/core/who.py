"""Who is asking, and who can tell."""

from typing import Protocol

import msgspec


class Who(msgspec.Struct, frozen=True):
    """Who is asking, as the identity service knows them."""

    user_id: str
    user: str
    project_id: str | None
    project: str | None
    roles: frozenset[str]
    system: bool = False

    @property
    def is_admin(self) -> bool:
        """Administrators of any project or of the system may do everything, as in OpenStack."""
        return "admin" in self.roles

    @property
    def sees_all(self) -> bool:
        """Whether lists are not cut to the caller's own project."""
        return self.is_admin or self.system or "service" in self.roles


NOBODY = Who("", "", None, None, frozenset())


class Authenticator(Protocol):
    """Who can tell whom a credential belongs to; None if it is not good (any more)."""

    async def by_token(self, token: str) -> Who | None: ...
    async def by_password(self, user: str, password: str) -> Who | None: ...
