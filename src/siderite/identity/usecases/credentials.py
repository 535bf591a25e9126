"""Application credentials: made by a user from a token, listed, deleted; a secret is told once."""

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field

from siderite.core.errors import Conflict
from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.ids import new_secret
from siderite.core.ids import new_uuid
from siderite.core.log import get_logger
from siderite.core.store import Duplicate
from siderite.core.store import Lost
from siderite.core.store import Store
from siderite.core.store.table import Where
from siderite.identity import store as rows
from siderite.identity.domain import Credential
from siderite.identity.domain import ScopeKind
from siderite.identity.domain import Session
from siderite.identity.passwords import Passwords
from siderite.identity.usecases.changes import Changes
from siderite.identity.usecases.projects import changed_meanwhile

log = get_logger("identity")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a user asks for; without roles, all that the token has."""

    name: str
    description: str | None = None
    roles: tuple[str, ...] | None = None
    secret: str | None = field(default=None, repr=False)
    expires_at: float | None = None
    unrestricted: bool = False


class Credentials:
    """The application credentials of one installation."""

    def __init__(
        self, store: Store, passwords: Passwords, changes: Changes, clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._passwords = passwords
        self._changes = changes
        self._clock = clock

    async def of_user(self, user_id: str, name: str | None) -> list[Credential]:
        """A user's credentials."""
        where = [Where("user_id = ?", (user_id,))]
        if name is not None:
            where.append(Where("name = ?", (name,)))
        return await rows.CREDENTIALS.find(self._store, *where)

    async def get(self, user_id: str, credential_id: str) -> Credential:
        """One of a user's credentials."""
        found = await rows.CREDENTIALS.get(self._store, credential_id)
        if found is None or found.user_id != user_id:
            raise NotFound(
                f"There is no application credential {credential_id[:64]!r};"
                f" list them at /v3/users/{user_id}/application_credentials."
            )
        return found

    async def create(self, session: Session, wanted: Wanted) -> tuple[Credential, str]:
        """A new credential for the token's project, and its secret."""
        _may_manage(session)
        if session.scope.kind is not ScopeKind.PROJECT:
            raise Invalid("An application credential is for a project; log in to a project first.")
        roles = tuple(sorted(session.roles)) if wanted.roles is None else wanted.roles
        beyond = sorted(set(roles) - session.roles)
        if beyond:
            raise Invalid(
                f"You do not hold the role {beyond[0]} in this project; you hold:"
                f" {', '.join(sorted(session.roles))}."
            )
        if wanted.expires_at is not None and wanted.expires_at <= self._clock():
            raise Invalid("expires_at is in the past; choose a later time, or leave it out.")
        secret = wanted.secret or new_secret(64)
        made = Credential(
            uuid=new_uuid().replace("-", ""),
            user_id=session.user_id,
            project_id=session.scope.target_id,
            name=wanted.name,
            secret=await self._passwords.hash(secret),
            description=wanted.description,
            roles=roles,
            expires_at=wanted.expires_at,
            unrestricted=wanted.unrestricted,
        )
        try:
            await self._store.commit([rows.CREDENTIALS.insert(made)])
        except Duplicate as why:
            raise Conflict(
                f"You have an application credential named {wanted.name!r} already."
            ) from why
        log.info("application credential made", credential=made.uuid, user_id=made.user_id)
        return made, secret

    async def delete(self, session: Session, user_id: str, credential_id: str) -> None:
        """Forget a credential; tokens got with it end."""
        _may_manage(session)
        found = await self.get(user_id, credential_id)
        try:
            await self._store.commit([rows.CREDENTIALS.remove(found)])
        except Lost as why:
            raise changed_meanwhile("application credential") from why
        self._changes.note()
        log.info("application credential deleted", credential=found.uuid)


def _may_manage(session: Session) -> None:
    if session.credential is not None and not session.credential.unrestricted:
        raise Forbidden(
            "A token of a restricted application credential cannot make or delete credentials; log"
            " in with a password."
        )
