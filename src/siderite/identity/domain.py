"""The values of identity: domain, roles, projects, users, scopes, sessions. Pure.

The roles that policies name and the one domain are tables here, not rows in the database. Ids of
such fixed things are derived from their names, so they are the same everywhere.
"""

from collections.abc import Collection
from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import field
from enum import StrEnum
from typing import Any
from uuid import UUID
from uuid import uuid5

import msgspec

_NAMESPACE = UUID("6f0c1d0a-5b0e-5a0f-9b5e-1b1f3f0f7d2a")


def fixed_id(name: str) -> str:
    """The id of a thing that is not a row: the same in every installation, in Keystone's form."""
    return uuid5(_NAMESPACE, name).hex


class Domain(msgspec.Struct, frozen=True):
    """The namespace of users and projects; there is one."""

    id: str
    name: str


DEFAULT = Domain("default", "Default")


class Role(msgspec.Struct, frozen=True):
    """What a user may be somewhere; a role brings those that it implies."""

    name: str
    implies: tuple[str, ...]
    description: str

    @property
    def id(self) -> str:
        """Stable, derived from the name."""
        return role_id(self.name)


def role_id(name: str) -> str:
    """The id of a role: the same everywhere."""
    return fixed_id(f"role/{name}")


ROLES = (
    Role("admin", ("manager", "member"), "May do everything, everywhere."),
    Role("manager", ("member",), "May do what members may; Keystone has it, so tools ask for it."),
    Role("member", ("reader",), "May use and change what the project owns."),
    Role("reader", (), "May look at what the project owns."),
    Role("service", (), "Held by services: may validate tokens and see all projects' machines."),
)
_IMPLIED = {role.name: role.implies for role in ROLES}


def effective(names: Iterable[str], added: Collection[str] = ()) -> frozenset[str]:
    """The roles with all that they imply. Added ones imply nothing, also one that was added before
    the program had a role of its name: nobody is to gain rights by an upgrade.
    """
    found: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += () if name in added else _IMPLIED.get(name, ())
    return frozenset(found)


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """An owner of things. `extra` holds attributes that we keep and show but do not read."""

    uuid: str
    name: str
    version: int = 1
    domain_id: str = DEFAULT.id
    description: str = ""
    enabled: bool = True
    extra: dict[str, Any] = msgspec.field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Somebody who can log in. Tokens are good only within the epoch they were issued in."""

    uuid: str
    name: str
    version: int = 1
    domain_id: str = DEFAULT.id
    enabled: bool = True
    password: str | None = field(default=None, repr=False)
    default_project_id: str | None = None
    epoch: int = 1
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """An application credential: a secret that is good for one project and some of a user's roles,
    as long as the user holds them. It outlives a change of the user's password.
    """

    uuid: str
    user_id: str
    project_id: str
    name: str
    secret: str = field(repr=False)
    version: int = 1
    description: str | None = None
    roles: tuple[str, ...] = ()
    expires_at: float | None = None
    unrestricted: bool = False
    """Whether tokens of it may manage the user's credentials."""

    @property
    def role_text(self) -> str:
        """The roles as a column."""
        return " ".join(self.roles)


class ScopeKind(StrEnum):
    """What a token is good for."""

    UNSCOPED = "unscoped"
    PROJECT = "project"
    DOMAIN = "domain"
    SYSTEM = "system"


class Scope(msgspec.Struct, frozen=True):
    """A place where roles are held."""

    kind: ScopeKind
    target_id: str


UNSCOPED = Scope(ScopeKind.UNSCOPED, "")
SYSTEM = Scope(ScopeKind.SYSTEM, "all")


def on_project(project_id: str) -> Scope:
    """The scope of a project."""
    return Scope(ScopeKind.PROJECT, project_id)


def on_domain(domain_id: str) -> Scope:
    """The scope of a domain."""
    return Scope(ScopeKind.DOMAIN, domain_id)


class Grant(msgspec.Struct, frozen=True):
    """A role that a user holds somewhere, with the names for those who print it."""

    user_id: str
    user: str
    scope: Scope
    project: str | None
    role: str


class CredentialRef(msgspec.Struct, frozen=True):
    """The credential that a token was got with."""

    id: str
    name: str
    unrestricted: bool


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """What a good token stands for, as things are now."""

    user_id: str
    user: str
    scope: Scope
    project: str | None
    roles: frozenset[str]
    methods: tuple[str, ...]
    audit_ids: tuple[str, ...]
    issued_at: float
    expires_at: float
    credential: CredentialRef | None = None
    epoch: int = 1
    """The user's, in which it was issued."""


class DomainRef(msgspec.Struct, frozen=True):
    """A domain as a caller names it."""

    id: str | None = None
    name: str | None = None

    def resolve(self) -> Domain | None:
        """The domain that is meant, if there is such a one."""
        if self.id is not None:
            return DEFAULT if self.id == DEFAULT.id else None
        # Keystone's usual database does not mind case, and many a client's settings rely on it.
        return DEFAULT if (self.name or "").lower() == DEFAULT.name.lower() else None


UNSAID = DomainRef()


class WantedScope(msgspec.Struct, frozen=True):
    """A scope as a caller asks for it: by id, or by name within a domain."""

    kind: ScopeKind
    id: str | None = None
    name: str | None = None
    domain: DomainRef = UNSAID


@dataclass(frozen=True, slots=True)
class PasswordProof:
    """A password, and whose it is said to be: by id, or by name within a domain."""

    password: str = field(repr=False)
    id: str | None = None
    name: str | None = None
    domain: DomainRef = UNSAID


@dataclass(frozen=True, slots=True)
class TokenProof:
    """A token to be exchanged for another."""

    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class CredentialProof:
    """An application credential's secret, and which it is: by its id, or by its name and user."""

    secret: str = field(repr=False)
    id: str | None = None
    name: str | None = None
    user_id: str | None = None
    user: str | None = None
    domain: DomainRef = UNSAID


class Login(msgspec.Struct, frozen=True):
    """A proof and the wanted scope; none means the user's default project, if any."""

    proof: PasswordProof | TokenProof | CredentialProof
    scope: WantedScope | None
