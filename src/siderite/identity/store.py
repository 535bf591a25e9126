"""Rows of identity: users and projects as values, grants and tokens as plain rows.

Called by the use cases only. Users and projects keep an empty `body`: what the wire shows of them
holds the public URL, so it is rendered when it is asked for.
"""

from collections.abc import Sequence

from siderite.core.store import Line
from siderite.core.store import Op
from siderite.core.store import Store
from siderite.core.store.table import Table
from siderite.core.store.table import Where
from siderite.identity.domain import Credential
from siderite.identity.domain import CredentialRef
from siderite.identity.domain import Grant
from siderite.identity.domain import Project
from siderite.identity.domain import Role
from siderite.identity.domain import Scope
from siderite.identity.domain import ScopeKind
from siderite.identity.domain import Session
from siderite.identity.domain import User
from siderite.identity.domain import effective

USERS: Table[User] = Table(
    "identity_users", User, ("domain_id", "name", "enabled", "epoch"), lambda _: ""
)
PROJECTS: Table[Project] = Table(
    "identity_projects", Project, ("domain_id", "name", "enabled"), lambda _: ""
)
CREDENTIALS: Table[Credential] = Table(
    "identity_credentials",
    Credential,
    ("user_id", "project_id", "name", "role_text", "unrestricted"),
    lambda _: "",
)

_ISSUE = """
INSERT INTO identity_tokens
  (hash, user_id, epoch, kind, target_id, methods, audit_ids, issued_at, expires_at, credential)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_SESSION = """
SELECT t.user_id, u.name, t.kind, t.target_id, p.name, t.methods, t.audit_ids, t.issued_at,
  t.expires_at, g.role, t.credential, c.name, c.role_text, c.unrestricted, r.name,
  t.epoch
FROM identity_tokens t
JOIN identity_users u ON u.uuid = t.user_id AND u.epoch = t.epoch AND u.enabled = 1
LEFT JOIN identity_projects p ON t.kind = 'project' AND p.uuid = t.target_id AND p.enabled = 1
LEFT JOIN identity_grants g
  ON g.user_id = t.user_id AND g.kind = t.kind AND g.target_id = t.target_id
LEFT JOIN identity_roles r ON r.name = g.role
LEFT JOIN identity_credentials c ON c.uuid = t.credential
WHERE t.hash = ? AND t.expires_at > ?
"""
_ADD_GRANT = """
INSERT INTO identity_grants (user_id, kind, target_id, role) VALUES (?, ?, ?, ?)
ON CONFLICT DO NOTHING
"""
_GIVE = """
INSERT INTO identity_grants (user_id, kind, target_id, role)
SELECT uuid, ?, ?, ? FROM identity_users WHERE uuid = ?
  AND (? <> 'project' OR EXISTS (SELECT 1 FROM identity_projects WHERE uuid = ?))
ON CONFLICT DO NOTHING
"""
_GRANTS = """
SELECT g.user_id, u.name, g.kind, g.target_id, p.name, g.role
FROM identity_grants g
JOIN identity_users u ON u.uuid = g.user_id
LEFT JOIN identity_projects p ON g.kind = 'project' AND p.uuid = g.target_id
"""


async def user_named(store: Store, name: str, domain_id: str) -> User | None:
    """The user of this name."""
    found = await USERS.find(store, Where("name = ? AND domain_id = ?", (name, domain_id)))
    return found[0] if found else None


async def project_named(store: Store, name: str, domain_id: str) -> Project | None:
    """The project of this name."""
    found = await PROJECTS.find(store, Where("name = ? AND domain_id = ?", (name, domain_id)))
    return found[0] if found else None


async def projects_of(store: Store, user_id: str) -> list[Project]:
    """The enabled projects where the user holds a role, oldest first."""
    held = "SELECT target_id FROM identity_grants WHERE kind = 'project' AND user_id = ?"
    return await PROJECTS.find(store, Where(f"enabled = 1 AND uuid IN ({held})", (user_id,)))


async def has_users(store: Store) -> bool:
    """Whether anybody is there."""
    return bool(await store.fetch("SELECT 1 FROM identity_users LIMIT 1"))


async def roles_at(store: Store, user_id: str, scope: Scope) -> frozenset[str]:
    """Names of the roles granted to the user there, without those they imply."""
    sql = "SELECT role FROM identity_grants WHERE user_id = ? AND kind = ? AND target_id = ?"
    rows = await store.fetch(sql, (user_id, scope.kind.value, scope.target_id))
    return frozenset(str(row[0]) for row in rows)


async def grants(store: Store, where: Sequence[Where]) -> list[Grant]:
    """Grants that meet the conditions (on `g`), in a stable order."""
    clause = " AND ".join(condition.sql for condition in where)
    args = [arg for condition in where for arg in condition.args]
    sql = (
        _GRANTS
        + (f"WHERE {clause} " if clause else "")
        + "ORDER BY u.id, g.kind, g.target_id, g.role"
    )
    return [
        Grant(
            user_id=str(user_id),
            user=str(user),
            scope=Scope(ScopeKind(str(kind)), str(target)),
            project=None if project is None else str(project),
            role=str(role),
        )
        for user_id, user, kind, target, project, role in await store.fetch(sql, args)
    ]


def add_grant(user_id: str, scope: Scope, role: str) -> Op:
    """Give a role; giving it again changes nothing."""
    return Op(_ADD_GRANT, (user_id, scope.kind.value, scope.target_id, role))


def give(user_id: str, scope: Scope, role: str) -> Op:
    """The same, to a user and in a project that are there; nothing if one of them went meanwhile.
    Not for a commit that makes them.
    """
    kind, target = scope.kind.value, scope.target_id
    return Op(_GIVE, (kind, target, role, user_id, kind, target))


def remove_grant(user_id: str, scope: Scope, role: str) -> Op:
    """Take a role away; `Lost` if it was not held."""
    sql = (
        "DELETE FROM identity_grants WHERE user_id = ? AND kind = ? AND target_id = ? AND role = ?"
    )
    return Op(sql, (user_id, scope.kind.value, scope.target_id, role), 1)


def remove_grants_of_user(user_id: str) -> Op:
    """Take all of a user's roles away."""
    return Op("DELETE FROM identity_grants WHERE user_id = ?", (user_id,))


def remove_grants_at(scope: Scope) -> Op:
    """Take everybody's roles away there."""
    sql = "DELETE FROM identity_grants WHERE kind = ? AND target_id = ?"
    return Op(sql, (scope.kind.value, scope.target_id))


def add_token(token_hash: str, session: Session, epoch: int) -> Op:
    """Record a new token."""
    args = (
        token_hash,
        session.user_id,
        epoch,
        session.scope.kind.value,
        session.scope.target_id,
        " ".join(session.methods),
        " ".join(session.audit_ids),
        session.issued_at,
        session.expires_at,
        session.credential.id if session.credential else None,
    )
    return Op(_ISSUE, args, 1)


async def session(store: Store, token_hash: str, now: float) -> Session | None:
    """What the token stands for now; None if it has no meaning (any more)."""
    rows = await store.fetch(_SESSION, (token_hash, now))
    return _session(rows) if rows else None


def _session(rows: Sequence[Line]) -> Session | None:
    user_id, user, kind, target, project, methods, audit_ids, issued_at, expires_at = rows[0][:9]
    scope = Scope(ScopeKind(str(kind)), str(target))
    added = {str(row[14]) for row in rows if row[14] is not None}
    roles = effective((str(row[9]) for row in rows if row[9] is not None), added)
    ref = None
    credential, name, role_text, unrestricted = rows[0][10:14]
    if credential is not None:
        if name is None:  # it is gone, and its tokens with it
            return None
        roles &= effective(str(role_text).split())
        ref = CredentialRef(str(credential), str(name), bool(unrestricted))
    if scope.kind is not ScopeKind.UNSCOPED and not roles:
        return None
    if scope.kind is ScopeKind.PROJECT and project is None:
        return None
    return Session(
        user_id=str(user_id),
        user=str(user),
        scope=scope,
        project=None if project is None else str(project),
        roles=roles,
        methods=tuple(str(methods).split(" ")),
        audit_ids=tuple(str(audit_ids).split(" ")),
        issued_at=float(issued_at or 0),
        expires_at=float(expires_at or 0),
        credential=ref,
        epoch=int(rows[0][15] or 0),
    )


def remove_credentials_of_user(user_id: str) -> Op:
    """Forget all of a user's credentials."""
    return Op("DELETE FROM identity_credentials WHERE user_id = ?", (user_id,))


def remove_credentials_of_project(project_id: str) -> Op:
    """Forget all credentials for a project."""
    return Op("DELETE FROM identity_credentials WHERE project_id = ?", (project_id,))


def remove_token(token_hash: str) -> Op:
    """Revoke one token."""
    return Op("DELETE FROM identity_tokens WHERE hash = ?", (token_hash,))


def remove_tokens_of_user(user_id: str) -> Op:
    """Revoke all of a user's tokens."""
    return Op("DELETE FROM identity_tokens WHERE user_id = ?", (user_id,))


def remove_tokens_at(scope: Scope) -> Op:
    """Revoke everybody's tokens there."""
    sql = "DELETE FROM identity_tokens WHERE kind = ? AND target_id = ?"
    return Op(sql, (scope.kind.value, scope.target_id))


def remove_tokens_of_user_at(user_id: str, scope: Scope) -> Op:
    """Revoke a user's tokens there."""
    sql = "DELETE FROM identity_tokens WHERE user_id = ? AND kind = ? AND target_id = ?"
    return Op(sql, (user_id, scope.kind.value, scope.target_id))


def remove_expired_tokens(now: float) -> Op:
    """Sweep tokens that time has ended."""
    return Op("DELETE FROM identity_tokens WHERE expires_at <= ?", (now,))


async def added_roles(store: Store) -> list[Role]:
    """Roles beside those of the program, by name."""
    rows = await store.fetch("SELECT name, description FROM identity_roles ORDER BY name")
    return [Role(str(name), (), str(description)) for name, description in rows]


def add_role(role: Role) -> Op:
    """A new role."""
    return Op(
        "INSERT INTO identity_roles (name, folded, description) VALUES (?, ?, ?)",
        (role.name, role.name.lower(), role.description),
        1,
    )


def describe_role(role: Role) -> Op:
    """A role's new description."""
    return Op(
        "UPDATE identity_roles SET description = ? WHERE name = ?",
        (role.description, role.name),
        1,
    )


def remove_role(role: Role) -> Op:
    """A role goes."""
    return Op("DELETE FROM identity_roles WHERE name = ?", (role.name,), 1)


def remove_grants_of_role(name: str) -> Op:
    """Nobody holds it any more."""
    return Op("DELETE FROM identity_grants WHERE role = ?", (name,))
