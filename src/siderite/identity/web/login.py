"""The login body, `{"auth": {"identity": …, "scope": …}}`, as a command."""

from typing import Any

import msgspec

from siderite.core.errors import Invalid
from siderite.core.errors import Unauthorized
from siderite.identity.domain import CredentialProof
from siderite.identity.domain import DomainRef
from siderite.identity.domain import Login
from siderite.identity.domain import PasswordProof
from siderite.identity.domain import ScopeKind
from siderite.identity.domain import TokenProof
from siderite.identity.domain import WantedScope
from siderite.identity.web.schemas import convert

_EXAMPLE = (
    '{"auth": {"identity": {"methods": ["password"], "password": {"user": {"name": "…", '
    '"domain": {"id": "default"}, "password": "…"}}}, "scope": {"project": {"name": "…", '
    '"domain": {"id": "default"}}}}}'
)


class _Domain(msgspec.Struct):
    id: str | None = None
    name: str | None = None


class _User(msgspec.Struct):
    password: str
    id: str | None = None
    name: str | None = None
    domain: _Domain | None = None


class _Password(msgspec.Struct):
    user: _User


class _Token(msgspec.Struct):
    id: str


class _Owner(msgspec.Struct):
    id: str | None = None
    name: str | None = None
    domain: _Domain | None = None


class _Credential(msgspec.Struct):
    secret: str
    id: str | None = None
    name: str | None = None
    user: _Owner | None = None


class _Identity(msgspec.Struct):
    methods: list[str]
    application_credential: _Credential | None = None
    password: _Password | None = None
    token: _Token | None = None


class _Project(msgspec.Struct):
    id: str | None = None
    name: str | None = None
    domain: _Domain | None = None


class _System(msgspec.Struct):
    all: bool


class _Scope(msgspec.Struct):
    project: _Project | None = None
    domain: _Domain | None = None
    system: _System | None = None
    unscoped: dict[str, Any] | None = None
    trust: Any = msgspec.field(default=None, name="OS-TRUST:trust")


class _Auth(msgspec.Struct):
    identity: _Identity
    scope: _Scope | str | None = None


class Body(msgspec.Struct):
    """The whole body."""

    auth: _Auth


def parse(body: object) -> Login:
    """The command that a login body stands for."""
    auth = convert(body, Body, _EXAMPLE).auth
    return Login(_proof(auth.identity), _scope(auth.scope))


def _proof(identity: _Identity) -> PasswordProof | TokenProof | CredentialProof:
    methods = set(identity.methods)
    if len(methods) != 1:
        raise Invalid(
            "auth.identity.methods must name one method: password, token or application_credential."
        )
    if methods == {"password"}:
        if identity.password is None:
            raise Invalid("The method is password, so auth.identity.password.user is needed.")
        return _password(identity.password.user)
    if methods == {"token"}:
        if identity.token is None:
            raise Invalid("The method is token, so auth.identity.token.id is needed.")
        return TokenProof(identity.token.id)
    if methods == {"application_credential"}:
        if identity.application_credential is None:
            raise Invalid("The method is application_credential, so that is needed beside it.")
        return _credential(identity.application_credential)
    raise Unauthorized(
        "That authentication method is not supported here; use password, token or"
        " application_credential."
    )


def _credential(given: _Credential) -> CredentialProof:
    if given.id is not None:
        return CredentialProof(given.secret, id=given.id)
    if given.name is None or given.user is None:
        raise Invalid("auth.identity.application_credential needs an id, or a name and a user.")
    if given.user.id is not None:
        return CredentialProof(given.secret, name=given.name, user_id=given.user.id)
    if given.user.name is None:
        raise Invalid("auth.identity.application_credential.user needs an id, or name and domain.")
    domain = _domain("auth.identity.application_credential.user.domain", given.user.domain)
    return CredentialProof(given.secret, name=given.name, user=given.user.name, domain=domain)


def _password(user: _User) -> PasswordProof:
    if user.id is not None:
        return PasswordProof(user.password, id=user.id)
    if user.name is None:
        raise Invalid("auth.identity.password.user needs an id, or a name and a domain.")
    domain = _domain("auth.identity.password.user.domain", user.domain)
    return PasswordProof(user.password, name=user.name, domain=domain)


def _scope(scope: _Scope | str | None) -> WantedScope | None:
    if scope is None:
        return None
    if isinstance(scope, str):
        if scope != "unscoped":
            raise Invalid('auth.scope must be an object, or the text "unscoped".')
        return WantedScope(ScopeKind.UNSCOPED)
    if scope.trust is not None:
        raise Invalid("Trusts are not supported here; ask for a project, domain or system scope.")
    wanted = []
    if scope.project is not None:
        wanted.append(_project(scope.project))
    if scope.domain is not None:
        wanted.append(
            WantedScope(ScopeKind.DOMAIN, domain=_domain("auth.scope.domain", scope.domain))
        )
    if scope.system is not None:
        if not scope.system.all:
            raise Invalid('auth.scope.system must be {"all": true}.')
        wanted.append(WantedScope(ScopeKind.SYSTEM))
    if scope.unscoped is not None:
        wanted.append(WantedScope(ScopeKind.UNSCOPED))
    if len(wanted) != 1:
        raise Invalid("auth.scope must name one of project, domain, system and unscoped.")
    return wanted[0]


def _project(project: _Project) -> WantedScope:
    if project.id is not None:
        return WantedScope(ScopeKind.PROJECT, id=project.id)
    if project.name is None:
        raise Invalid("auth.scope.project needs an id, or a name and a domain.")
    domain = _domain("auth.scope.project.domain", project.domain)
    return WantedScope(ScopeKind.PROJECT, name=project.name, domain=domain)


def _domain(where: str, domain: _Domain | None) -> DomainRef:
    if domain is None or (domain.id is None and domain.name is None):
        raise Invalid(f'{where} is needed, with an id or a name, such as {{"id": "default"}}.')
    return DomainRef(domain.id, domain.name)
