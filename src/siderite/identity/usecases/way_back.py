"""A way back in for whoever has the machine, but no administrator's password any more."""

from siderite.core.errors import NotFound
from siderite.identity.domain import ROLES
from siderite.identity.domain import SYSTEM
from siderite.identity.domain import User
from siderite.identity.domain import on_project
from siderite.identity.usecases.grants import Grants
from siderite.identity.usecases.last_admin import ADMIN
from siderite.identity.usecases.projects import Projects
from siderite.identity.usecases.users import Users

_ROLE = next(role for role in ROLES if role.name == ADMIN)


async def let_in(users: Users, projects: Projects, grants: Grants, password: str) -> User:
    """The user admin logs in to the project admin by this password, and may do everything: what of
    that was lost is given back. The password comes last, so that who has it has the rest.
    """
    found = await users.find(name=ADMIN, enabled=None)
    if not found:
        raise NotFound("there is no user admin any more: another administrator must help.")
    known = await projects.find(name=ADMIN, enabled=None)
    home = known[0] if known else await projects.create({"name": ADMIN}, {})
    if not home.enabled:
        await projects.update(home.uuid, {"enabled": True}, {})
    for scope in (on_project(home.uuid), SYSTEM):
        await grants.give(found[0].uuid, scope, _ROLE)
    return await users.update(found[0].uuid, {"password": password, "enabled": True}, {})
