"""Logging in: a proof (password or token) and a wanted scope become a session.

An unknown user, a wrong password and a disabled user get the same sentence after the same work.
What is wrong with the scope is only said to somebody whose proof was good.
"""

from collections.abc import Awaitable
from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from siderite.core.errors import Unauthorized
from siderite.core.log import get_logger
from siderite.core.store import Store
from siderite.core.store.table import Where
from siderite.identity import store as rows
from siderite.identity.domain import SYSTEM
from siderite.identity.domain import UNSCOPED
from siderite.identity.domain import Credential
from siderite.identity.domain import CredentialProof
from siderite.identity.domain import CredentialRef
from siderite.identity.domain import Login
from siderite.identity.domain import PasswordProof
from siderite.identity.domain import Project
from siderite.identity.domain import Scope
from siderite.identity.domain import ScopeKind
from siderite.identity.domain import Session
from siderite.identity.domain import TokenProof
from siderite.identity.domain import User
from siderite.identity.domain import WantedScope
from siderite.identity.domain import on_domain
from siderite.identity.domain import on_project
from siderite.identity.passwords import Passwords
from siderite.identity.throttle import Throttle
from siderite.identity.tokens import new_audit_id
from siderite.identity.usecases.sessions import Sessions

log = get_logger("identity")

_REFUSED = (
    "The user name or the password is wrong, or the account is disabled; check both and try again."
)
_NO_CREDENTIAL = (
    "The application credential or its secret is wrong, or it has expired; make a new one."
)
_BAD_TOKEN = "The token is not good (any more); log in with a password."  # noqa: S105
_NO_ROLE = (
    "You hold no role in the {what} that you ask for, or there is none like it; "
    "ask an administrator for a role there, or ask for a token of another scope."
)


class Logins:
    """The way in."""

    def __init__(
        self,
        store: Store,
        sessions: Sessions,
        passwords: Passwords,
        *,
        token_ttl_s: int,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._passwords = passwords
        self._ttl_s = token_ttl_s
        self._clock = clock
        self._sleep = sleep
        self._throttle = Throttle()

    async def login(self, login: Login) -> tuple[str, Session]:
        """A new token and what it stands for; Unauthorized says why not."""
        credential: CredentialRef | None = None
        match login.proof:
            case PasswordProof() as proof:
                user = await self.by_password(proof)
                methods: tuple[str, ...] = ("password",)
                audit_ids: tuple[str, ...] = (new_audit_id(),)
                expires_at = self._clock() + self._ttl_s
                scope = await self._scope(user, login.scope)
            case TokenProof(token):
                old, user = await self._by_token(token)
                methods = tuple(sorted({*old.methods, "token"}))
                audit_ids = (new_audit_id(), old.audit_ids[-1])
                expires_at = old.expires_at  # an exchange does not lengthen a token's life
                credential = old.credential
                scope = await self._rescoped(old, user, login.scope)
            case CredentialProof() as claim:
                found, user = await self._by_credential(claim)
                if login.scope is not None:
                    raise Unauthorized(
                        "An application credential has its project; do not ask for a scope."
                    )
                methods = ("application_credential",)
                audit_ids = (new_audit_id(),)
                expires_at = min(self._clock() + self._ttl_s, found.expires_at or float("inf"))
                scope = on_project(found.project_id)
                credential = CredentialRef(found.uuid, found.name, found.unrestricted)
            case _:
                assert_never(login.proof)
        issued = await self._sessions.issue(
            user, scope, methods=methods, audit_ids=audit_ids, expires_at=expires_at,
            credential=credential,
        )  # fmt: skip
        if issued is None:
            raise Unauthorized("Your rights changed while you logged in; try again.")
        return issued

    async def _rescoped(self, old: Session, user: User, wanted: WantedScope | None) -> Scope:
        """The scope of a token that was got for another; a credential's project stays."""
        if old.credential is None:
            return await self._scope(user, wanted)
        if wanted is not None and await self._scope(user, wanted) != old.scope:
            raise Unauthorized(
                "A token of an application credential is for the credential's project only."
            )
        return old.scope

    async def _by_credential(self, claim: CredentialProof) -> tuple[Credential, User]:
        """The credential and its user. Refusals take the same work, whatever was wrong."""
        found = await self._claimed_credential(claim)
        user = await rows.USERS.get(self._store, found.user_id) if found else None
        name = claim.id or claim.name or ""
        right = await self._passwords.matches(claim.secret, found.secret if found else None, name)
        is_over = found is not None and (found.expires_at or float("inf")) <= self._clock()
        if found is None or user is None or not right or not user.enabled or is_over:
            log.info("login refused", credential=found.uuid if found else None)
            await self._sleep(self._throttle.failed(name))
            raise Unauthorized(_NO_CREDENTIAL)
        self._throttle.succeeded(name)
        return found, user

    async def _claimed_credential(self, claim: CredentialProof) -> Credential | None:
        if claim.id is not None:
            return await rows.CREDENTIALS.get(self._store, claim.id)
        user_id = claim.user_id
        if user_id is None:
            domain = claim.domain.resolve()
            if domain is None or claim.user is None:
                return None
            user = await rows.user_named(self._store, claim.user, domain.id)
            user_id = user.uuid if user else ""
        where = Where("user_id = ? AND name = ?", (user_id, claim.name or ""))
        found = await rows.CREDENTIALS.find(self._store, where)
        return found[0] if found else None

    async def by_password(self, proof: PasswordProof) -> User:
        """The user whose password it is. Refusals take the same work, whatever was wrong."""
        user = await self._claimed(proof)
        stored = user.password if user is not None else None
        name = proof.id or proof.name or ""
        right = await self._passwords.matches(proof.password, stored, name)
        if user is None or not right or not user.enabled:
            # The name is not logged: people type passwords into the wrong field.
            log.info("login refused", user_id=user.uuid if user else None)
            await self._sleep(self._throttle.failed(name))
            raise Unauthorized(_REFUSED)
        self._throttle.succeeded(name)
        return user

    async def home(self, user: User) -> Scope:
        """Where a user is who names no scope: default project, else the first, else the system."""
        default = await self._default(user)
        if default is not UNSCOPED:
            return default
        projects = await rows.projects_of(self._store, user.uuid)
        if projects:
            return on_project(projects[0].uuid)
        return SYSTEM if await rows.roles_at(self._store, user.uuid, SYSTEM) else UNSCOPED

    async def _claimed(self, proof: PasswordProof) -> User | None:
        if proof.id is not None:
            return await rows.USERS.get(self._store, proof.id)
        domain = proof.domain.resolve()
        if domain is None or proof.name is None:
            return None
        return await rows.user_named(self._store, proof.name, domain.id)

    async def _by_token(self, token: str) -> tuple[Session, User]:
        """What it stands for, and its user: in the epoch of the token, so that what is got for it
        is no better than it if that ended a moment ago.
        """
        session = await self._sessions.find(token)
        user = await rows.USERS.get(self._store, session.user_id) if session else None
        if session is None or user is None:
            raise Unauthorized(_BAD_TOKEN)
        return session, replace(user, epoch=session.epoch)

    async def _scope(self, user: User, wanted: WantedScope | None) -> Scope:
        if wanted is None:
            return await self._default(user)
        match wanted.kind:
            case ScopeKind.UNSCOPED:
                return UNSCOPED
            case ScopeKind.SYSTEM:
                scope: Scope | None = SYSTEM
            case ScopeKind.DOMAIN:
                domain = wanted.domain.resolve()
                scope = on_domain(domain.id) if domain else None
            case ScopeKind.PROJECT:
                project = await self._project(wanted)
                scope = on_project(project.uuid) if project and project.enabled else None
            case _:
                assert_never(wanted.kind)
        if scope is None or not await rows.roles_at(self._store, user.uuid, scope):
            raise Unauthorized(_NO_ROLE.format(what=wanted.kind.value))
        return scope

    async def _project(self, wanted: WantedScope) -> Project | None:
        if wanted.id is not None:
            return await rows.PROJECTS.get(self._store, wanted.id)
        domain = wanted.domain.resolve()
        if domain is None or wanted.name is None:
            return None
        return await rows.project_named(self._store, wanted.name, domain.id)

    async def _default(self, user: User) -> Scope:
        """The user's default project, if it is there and they hold a role in it."""
        if user.default_project_id is None:
            return UNSCOPED
        project = await rows.PROJECTS.get(self._store, user.default_project_id)
        if project is None or not project.enabled:
            return UNSCOPED
        scope = on_project(project.uuid)
        return scope if await rows.roles_at(self._store, user.uuid, scope) else UNSCOPED
