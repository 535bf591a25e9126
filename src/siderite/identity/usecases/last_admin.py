"""Nobody takes the last administrator away: without one, nobody could make another."""

from collections.abc import Callable

from siderite.core.errors import Conflict
from siderite.core.store import Op
from siderite.core.store import Store
from siderite.core.store.table import Where
from siderite.identity import store as rows
from siderite.identity.domain import Grant
from siderite.identity.domain import Scope
from siderite.identity.domain import ScopeKind

ADMIN = "admin"
_IN_FORCE = Where(
    "g.role = ? AND u.enabled = 1 AND (g.kind <> 'project' OR p.enabled = 1)", (ADMIN,)
)


async def spare(store: Store, goes: Callable[[Grant], bool], *, but: str | None = None) -> list[Op]:
    """What must stay true for a change that ends the grants which `goes` says: another user who
    can log in is an administrator. Refused if there is none; nothing if it ends no such grant.
    `but` is a user whose row the change itself sees to.
    """
    every = await rows.grants(store, [_IN_FORCE])
    if not any(map(goes, every)):
        return []
    held = await _first_held(store, [one for one in every if not goes(one)])
    if held is not None:
        return [op for user, op in held if user is None or user != but]
    raise Conflict(
        "That would leave no administrator who can log in, and nobody could make another; give the"
        " role admin to another user with a password first."
    )


async def spare_project(store: Store, scope: Scope) -> list[Op]:
    """The same for the end of a project: an administrator can log in to another one. Clients log
    in to projects; those of the system alone would have to be told to.
    """
    every = await rows.grants(store, [_IN_FORCE])
    if all(one.scope != scope for one in every):
        return []
    others = [one for one in every if one.scope.kind is ScopeKind.PROJECT and one.scope != scope]
    held = await _first_held(store, others)
    if held is not None:
        return [op for _, op in held]
    raise Conflict(
        "That is the last project that an administrator can log in to; give the role admin on"
        " another project to a user with a password first."
    )


async def _first_held(store: Store, grants: list[Grant]) -> list[tuple[str | None, Op]] | None:
    for one in grants:
        held = await _hold(store, one)
        if held is not None:
            return held
    return None


async def _hold(store: Store, grant: Grant) -> list[tuple[str | None, Op]] | None:
    """What a grant in force rests on, by the user whose row it is if it is one; None if its user
    cannot log in. The grant itself is taken away only together with a change of its user
    (`Grants.take`).
    """
    user = await rows.USERS.get(store, grant.user_id)
    if user is None or user.password is None:
        return None
    held: list[tuple[str | None, Op]] = [(user.uuid, rows.USERS.hold(user))]
    if grant.scope.kind is ScopeKind.PROJECT:
        project = await rows.PROJECTS.get(store, grant.scope.target_id)
        if project is None:
            return None
        held.append((None, rows.PROJECTS.hold(project)))
    return held
