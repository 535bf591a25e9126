"""Identity as the rest of the program sees it: whose credential this is, and the use cases."""

import asyncio
from collections.abc import Awaitable
from collections.abc import Callable

from siderite.core import clock as clocks
from siderite.core.store import Store
from siderite.core.who import Who
from siderite.identity.passwords import Passwords
from siderite.identity.usecases.basic import Basic
from siderite.identity.usecases.changes import Changes
from siderite.identity.usecases.credentials import Credentials
from siderite.identity.usecases.first_start import first_start
from siderite.identity.usecases.grants import Grants
from siderite.identity.usecases.logins import Logins
from siderite.identity.usecases.projects import Projects
from siderite.identity.usecases.roles import Roles
from siderite.identity.usecases.service_account import service_token
from siderite.identity.usecases.sessions import Sessions
from siderite.identity.usecases.users import Users
from siderite.identity.usecases.way_back import let_in


class Identity:
    """The identity of one installation; an `Authenticator` for every API."""

    def __init__(
        self,
        store: Store,
        *,
        token_ttl_s: int,
        clock: Callable[[], float] = clocks.now,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        changes = Changes()
        self._store = store
        self._clock = clock
        self._passwords = Passwords()
        self.sessions = Sessions(store, changes, clock)
        self.logins = Logins(
            store,
            self.sessions,
            self._passwords,
            token_ttl_s=token_ttl_s,
            clock=clock,
            sleep=sleep,
        )
        self.projects = Projects(store, changes)
        self.users = Users(store, self._passwords, self.logins, changes)
        self.roles = Roles(store, changes)
        self.grants = Grants(store, changes)
        self.credentials = Credentials(store, self._passwords, changes, clock)
        self._basic = Basic(store, self.logins, changes, clock)
        self._remembered = self.sessions.remembered

    async def first_start(
        self, password: str, keep: Callable[[str], None] = lambda password: None
    ) -> str | None:
        """Make projects and admin in an empty database; the password if it had to be made up."""
        return await first_start(self._store, self._passwords, password, keep)

    async def let_admin_in(self, password: str) -> None:
        """Have the user admin be an administrator again, with this password."""
        await let_in(self.users, self.projects, self.grants, password)

    async def service_token(self, name: str, life_s: float) -> str:
        """A token by which one of our own services asks another."""
        return await service_token(self._store, self.sessions, name, self._clock() + life_s)

    async def by_token(self, token: str) -> Who | None:
        """Who a token stands for. Asked once per request: from memory, mostly."""
        who = self._remembered(token)
        return who if who is not None else await self.sessions.who(token)

    async def by_password(self, user: str, password: str) -> Who | None:
        """Who a name and a password belong to, at home in their default or first project."""
        return await self._basic.who(user, password)
