"""Nobody takes the last administrator away: without one, nobody could make another."""

from collections.abc import Callable

from siderite.core.errors import Conflict
from siderite.core.store import Op
from siderite.core.store import Store
from siderite.core.store.table import Where
from siderite.identity import store as rows
from siderite.identity.domain import Grant

_IN_FORCE = Where(
    "g.role = 'admin' AND u.enabled = 1 AND (g.kind <> 'project' OR p.enabled = 1)", ()
)


async def spare(store: Store, goes: Callable[[Grant], bool]) -> list[Op]:
    """What must stay true for a change that ends the grants which `goes` says: another user who
    can log in is an administrator. Refused if there is none; nothing if it ends no such grant.
    """
    every = await rows.grants(store, [_IN_FORCE])
    if not any(map(goes, every)):
        return []
    for user_id in dict.fromkeys(one.user_id for one in every if not goes(one)):
        user = await rows.USERS.get(store, user_id)
        if user is not None and user.password is not None:
            return [rows.USERS.hold(user)]
    raise Conflict(
        "That would leave no administrator who can log in, and nobody could make another; give the"
        " role admin to another user with a password first."
    )
