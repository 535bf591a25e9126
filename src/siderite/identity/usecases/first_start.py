"""The first start: projects admin and service, and the user admin, in one commit."""

from collections.abc import Callable

from siderite.core.ids import new_secret
from siderite.core.ids import new_uuid
from siderite.core.log import get_logger
from siderite.core.store import Store
from siderite.core.store.in_turn import in_turn
from siderite.identity import store as rows
from siderite.identity.domain import SYSTEM
from siderite.identity.domain import Project
from siderite.identity.domain import User
from siderite.identity.domain import on_project
from siderite.identity.passwords import Passwords

log = get_logger("identity")
_LOCK = 734002


async def first_start(
    store: Store, passwords: Passwords, password: str, keep: Callable[[str], None]
) -> str | None:
    """Make what an empty installation needs, once; the password if it was made up here.

    It was done if there is any user: a renamed or deleted admin does not come back. `keep` is given
    the password before it is anybody's, so that it cannot be lost; of several processes that start
    at the same moment, only one gets that far, so that none keeps a password that is nobody's.
    """
    async with in_turn(store, _LOCK):
        if await rows.has_users(store):
            return None
        return await _make(store, passwords, password, keep)


async def _make(
    store: Store, passwords: Passwords, password: str, keep: Callable[[str], None]
) -> str | None:
    made_up = "" if password else new_secret(18)
    keep(password or made_up)
    admin_project = Project(uuid=_new_id(), name="admin", description="The operator's project.")
    service_project = Project(uuid=_new_id(), name="service", description="Accounts of services.")
    admin = User(
        uuid=_new_id(),
        name="admin",
        password=await passwords.hash(password or made_up),
        default_project_id=admin_project.uuid,
    )
    ops = [
        rows.PROJECTS.insert(admin_project),
        rows.PROJECTS.insert(service_project),
        rows.USERS.insert(admin),
        rows.add_grant(admin.uuid, on_project(admin_project.uuid), "admin"),
        rows.add_grant(admin.uuid, SYSTEM, "admin"),
    ]
    await store.commit(ops)
    log.info("first start: user admin made", user_id=admin.uuid)
    return made_up or None


def _new_id() -> str:
    return new_uuid().replace("-", "")
