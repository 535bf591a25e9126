"""Projects: looking, making, changing, deleting."""

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any
from typing import TypedDict

from msgspec.structs import replace

from siderite.core.errors import Conflict
from siderite.core.errors import NotFound
from siderite.core.ids import new_uuid
from siderite.core.log import get_logger
from siderite.core.store import Duplicate
from siderite.core.store import Lost
from siderite.core.store import Store
from siderite.core.store.table import Where
from siderite.identity import store as rows
from siderite.identity.domain import Project
from siderite.identity.domain import on_project
from siderite.identity.usecases import extra as extras
from siderite.identity.usecases.changes import Changes
from siderite.identity.usecases.last_admin import spare_project

log = get_logger("identity")


class ProjectFields(TypedDict, total=False):
    """What a caller may say of a project."""

    name: str
    description: str
    enabled: bool


class Projects:
    """The projects of one installation."""

    def __init__(self, store: Store, changes: Changes) -> None:
        self._store = store
        self._changes = changes

    async def find(self, *, name: str | None, enabled: bool | None) -> list[Project]:
        """All projects, or those that the filters leave."""
        where = []
        if name is not None:
            where.append(Where("name = ?", (name,)))
        if enabled is not None:
            where.append(Where("enabled = ?", (int(enabled),)))
        return await rows.PROJECTS.find(self._store, *where)

    async def of_user(self, user_id: str) -> list[Project]:
        """The enabled projects where the user holds a role."""
        return await rows.projects_of(self._store, user_id)

    async def get(self, project_id: str) -> Project:
        """One project."""
        return await find_project(self._store, project_id)

    async def create(self, fields: ProjectFields, extra: Mapping[str, Any]) -> Project:
        """Make a project; its name must be new."""
        kept = extras.merged("project", {}, extra)
        project = Project(uuid=new_uuid().replace("-", ""), extra=kept, **fields)
        try:
            await self._store.commit([rows.PROJECTS.insert(project)])
        except Duplicate as why:
            raise _taken(project.name) from why
        log.info("project created", project_id=project.uuid)
        return project

    async def update(
        self, project_id: str, fields: ProjectFields, extra: Mapping[str, Any]
    ) -> Project:
        """Change a project; disabling it ends its tokens."""
        before = await self.get(project_id)
        kept = extras.merged("project", before.extra, extra)
        after = replace(before, version=before.version + 1, extra=kept, **fields)
        ops = [rows.PROJECTS.swap(before, after)]
        if before.enabled and not after.enabled:
            scope = on_project(project_id)
            ops += await spare_project(self._store, scope)
            ops.append(rows.remove_tokens_at(scope))
        try:
            await self._store.commit(ops)
        except Duplicate as why:
            raise _taken(after.name) from why
        except Lost as why:
            raise changed_meanwhile("project") from why
        self._changes.note()
        return after

    async def retag(self, project_id: str, tags: Callable[[list[str]], list[str]]) -> list[str]:
        """Give a project the tags that `tags` makes of those it has."""
        before = await self.get(project_id)
        new = tags(list(before.extra.get("tags", ())))
        kept = extras.merged("project", before.extra, {"tags": new})
        after = replace(before, version=before.version + 1, extra=kept)
        try:
            await self._store.commit([rows.PROJECTS.swap(before, after)])
        except Lost as why:
            raise changed_meanwhile("project") from why
        return new

    async def delete(self, project_id: str) -> None:
        """Delete a project with its grants and tokens. What it owns elsewhere stays."""
        project = await self.get(project_id)
        scope = on_project(project_id)
        ops = [
            *await spare_project(self._store, scope),
            rows.PROJECTS.remove(project),
            rows.remove_grants_at(scope),
            rows.remove_tokens_at(scope),
            rows.remove_credentials_of_project(project_id),
        ]
        try:
            await self._store.commit(ops)
        except Lost as why:
            raise changed_meanwhile("project") from why
        self._changes.note()
        log.info("project deleted", project_id=project_id)


async def find_project(store: Store, project_id: str) -> Project:
    """A project that must be there."""
    project = await rows.PROJECTS.get(store, project_id)
    if project is None:
        raise NotFound(f"There is no project {project_id[:64]!r}; list them at /v3/projects.")
    return project


def changed_meanwhile(what: str) -> Conflict:
    """Another request came first."""
    return Conflict(
        f"Another request changed the {what} at the same moment; look at it and try again.",
        retry_after_s=1,
    )


def _taken(name: str) -> Conflict:
    return Conflict(f"There is a project named {name!r} already; choose another name.")
