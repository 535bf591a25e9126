"""HTTP basic: a name and a password with each request, so a good answer is remembered.

What is remembered is keyed by a keyed hash of both, with a key that lives as long as the process.
The password itself is checked once a minute; every five seconds the database is asked whether the
user's epoch is still the same, so a changed password or a disabled user is seen as soon as a
revoked token.
"""

import hashlib
import secrets
from collections.abc import Callable
from typing import NamedTuple

from siderite.core.errors import Unauthorized
from siderite.core.store import Store
from siderite.core.who import Who
from siderite.identity import store as rows
from siderite.identity.domain import DEFAULT
from siderite.identity.domain import DomainRef
from siderite.identity.domain import PasswordProof
from siderite.identity.domain import ScopeKind
from siderite.identity.domain import User
from siderite.identity.domain import effective
from siderite.identity.usecases.changes import Changes
from siderite.identity.usecases.logins import Logins
from siderite.identity.usecases.sessions import RECHECK_S

GOOD_FOR_S = 60.0
_MAX_REMEMBERED = 1000


class _Known(NamedTuple):
    who: Who
    epoch: int
    proved_at: float
    checked_at: float
    change: int


class Basic:
    """Who a name and a password belong to."""

    def __init__(
        self, store: Store, logins: Logins, changes: Changes, clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._logins = logins
        self._changes = changes
        self._clock = clock
        self._secret = secrets.token_bytes(32)
        self._known: dict[bytes, _Known] = {}

    async def who(self, name: str, password: str) -> Who | None:
        """The caller, at home in their default or first project; None if either is wrong."""
        if not _can_be_stored(name):
            return None
        key = self._key(name, password)
        now = self._clock()
        known = self._known.get(key)
        if known is not None and known.proved_at <= now < known.proved_at + GOOD_FOR_S:
            fresh = known.checked_at <= now < known.checked_at + RECHECK_S
            if fresh and known.change == self._changes.count:
                return known.who
            user = await rows.USERS.get(self._store, known.who.user_id)
            if user is not None and user.enabled and user.epoch == known.epoch:
                return await self._remember(key, user, known.proved_at)
        self._known.pop(key, None)
        proof = PasswordProof(password, name=name, domain=DomainRef(id=DEFAULT.id))
        try:
            user = await self._logins.by_password(proof)
        except Unauthorized:
            return None
        return await self._remember(key, user, self._clock())

    async def _remember(self, key: bytes, user: User, proved_at: float) -> Who:
        change = self._changes.count
        who = await self._at_home(user)
        if key not in self._known and len(self._known) >= _MAX_REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[key] = _Known(who, user.epoch, proved_at, self._clock(), change)
        return who

    async def _at_home(self, user: User) -> Who:
        scope = await self._logins.home(user)
        added = {role.name for role in await rows.added_roles(self._store)}
        roles = effective(await rows.roles_at(self._store, user.uuid, scope), added)
        project = None
        if scope.kind is ScopeKind.PROJECT:
            project = await rows.PROJECTS.get(self._store, scope.target_id)
        return Who(
            user_id=user.uuid,
            user=user.name,
            project_id=project.uuid if project else None,
            project=project.name if project else None,
            roles=roles if project or scope.kind is ScopeKind.SYSTEM else frozenset(),
            system=scope.kind is ScopeKind.SYSTEM,
        )

    def _key(self, name: str, password: str) -> bytes:
        keyed = hashlib.blake2b(key=self._secret, digest_size=32)
        for part in (name, password):
            data = part.encode("utf-8", "surrogatepass")
            keyed.update(b"%d:" % len(data) + data)
        return keyed.digest()


def _can_be_stored(name: str) -> bool:
    """Whether a database takes the text at all; a header can hold what JSON cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in name
