"""Tokens: issuing, looking up, revoking; and the memory that makes a look-up cheap.

`remembered` is asked once per request of every API. An entry counts for five seconds, as long as
its token lives and no change of rights was made by this process; then the database is asked again.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from siderite.core.store import Lost
from siderite.core.store import Store
from siderite.core.who import Who
from siderite.identity import store as rows
from siderite.identity.domain import CredentialRef
from siderite.identity.domain import Scope
from siderite.identity.domain import ScopeKind
from siderite.identity.domain import Session
from siderite.identity.domain import User
from siderite.identity.tokens import new_token
from siderite.identity.tokens import token_hash
from siderite.identity.usecases.changes import Changes

RECHECK_S = 5.0
_MAX_REMEMBERED = 10_000
_SWEEP_INTERVAL_S = 600.0


class _Known(NamedTuple):
    who: Who
    checked_at: float
    until: float
    change: int


class Sessions:
    """The tokens of one installation."""

    def __init__(self, store: Store, changes: Changes, clock: Callable[[], float]) -> None:
        self._store = store
        self._changes = changes
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._swept_at: float | None = None

    def remembered(self, token: str) -> Who | None:
        """Who a token stands for, from memory; None if the database must be asked."""
        known = self._known.get(token)
        if known is None or known.change != self._changes.count:
            return None
        # A clock that was set back makes an entry old, not young.
        return known.who if known.checked_at <= self._clock() < known.until else None

    async def who(self, token: str) -> Who | None:
        """Who a token stands for, from the database."""
        change = self._changes.count
        session = await self.find(token)
        if session is None:
            self._known.pop(token, None)
            return None
        now = self._clock()
        if token not in self._known and len(self._known) >= _MAX_REMEMBERED:
            del self._known[next(iter(self._known))]
        who = who_of(session)
        until = min(now + RECHECK_S, session.expires_at)
        self._known[token] = _Known(who, now, until, change)
        return who

    async def find(self, token: str) -> Session | None:
        """What a token stands for as things are now; None if it is not good (any more)."""
        hashed = token_hash(token)
        return await rows.session(self._store, hashed, self._clock()) if hashed else None

    async def issue(
        self,
        user: User,
        scope: Scope,
        *,
        methods: tuple[str, ...],
        audit_ids: tuple[str, ...],
        expires_at: float,
        credential: CredentialRef | None = None,
    ) -> tuple[str, Session] | None:
        """A new token; None if the user lost the right to it while it was made."""
        text = new_token()
        hashed = token_hash(text)
        assert hashed is not None  # noqa: S101 - it is one of ours
        now = self._clock()
        new = Session(
            user_id=user.uuid,
            user=user.name,
            scope=scope,
            project=None,
            roles=frozenset(),
            methods=methods,
            audit_ids=audit_ids,
            issued_at=now,
            expires_at=expires_at,
            credential=credential,
        )
        await self._store.commit([rows.add_token(hashed, new, user.epoch)])
        await self._sweep(now)
        session = await self.find(text)
        return None if session is None else (text, session)

    async def _sweep(self, now: float) -> None:
        """Now and then, remove what time has ended; if others are at those rows, next time."""
        if self._swept_at is not None and 0 <= now - self._swept_at < _SWEEP_INTERVAL_S:
            return
        self._swept_at = now
        with suppress(Lost):
            await self._store.commit([rows.remove_expired_tokens(now)])

    async def revoke(self, token: str) -> None:
        """End a token."""
        hashed = token_hash(token)
        if hashed is not None:
            await self._store.commit([rows.remove_token(hashed)])
            self._changes.note()


def who_of(session: Session) -> Who:
    """The caller that a session stands for, as all APIs know them."""
    on_project = session.scope.kind is ScopeKind.PROJECT
    return Who(
        user_id=session.user_id,
        user=session.user,
        project_id=session.scope.target_id if on_project else None,
        project=session.project,
        roles=session.roles,
        system=session.scope.kind is ScopeKind.SYSTEM,
    )
