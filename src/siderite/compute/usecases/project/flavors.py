"""Flavors: made, found, changed, deleted; who may use them."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

from siderite.compute.domain import facts
from siderite.compute.domain.flavor import Flavor
from siderite.compute.store import FLAVORS
from siderite.compute.usecases.context import Context
from siderite.core.errors import Conflict
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.ids import new_uuid
from siderite.core.store import Duplicate
from siderite.core.store import Line
from siderite.core.store import Op
from siderite.core.store.table import Where
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who

_BY_ID = "SELECT doc FROM flavors WHERE flavorid = ?"
_MINE = (
    "(is_public = 1 OR EXISTS (SELECT 1 FROM flavor_access a WHERE a.flavor = flavors.uuid"
    " AND a.project_id = ?))"
)


def _missing(ident: str) -> NotFound:
    return NotFound(
        f"Flavor {ident[:255]} could not be found. `flavor list` shows those for your project."
    )


async def flavor(ctx: Context, ident: str, who: Who) -> Flavor:
    """A flavor by its id, if the caller may use it."""
    rows = await ctx.door.store.fetch(_BY_ID, (ident,))
    found = FLAVORS.value(rows[0][0]) if rows else None
    if found is None or not (who.is_admin or found.is_for(who.project_id)):
        raise _missing(ident)
    return found


async def for_server(ctx: Context, ident: str, who: Who) -> Flavor:
    """The flavor that a request's body names: one that is not there is a wrong body."""
    try:
        return await flavor(ctx, ident, who)
    except NotFound as why:
        raise Invalid(why.sentence) from why


async def page(
    ctx: Context, conditions: Sequence[Where], *, order: str, limit: int, who: Who,
    is_public: bool | None,
) -> Sequence[Line]:  # fmt: skip
    """Id, name and body of flavors; of those that the caller may use, or of all for those who may
    see all (`is_public` None).
    """
    where = list(conditions)
    if is_public is None and not who.is_admin:
        is_public = True
    if is_public is not None and not who.is_admin:
        where.append(Where(_MINE, (who.project_id,)))
    elif is_public is not None:
        where.append(Where("is_public = ?", (int(is_public),)))
    clause = " AND ".join(condition.sql for condition in where)
    args = [arg for condition in where for arg in condition.args]
    sql = "SELECT flavorid, name, body, id FROM flavors"
    if clause:
        sql += f" WHERE {clause}"
    return await ctx.door.store.fetch(f"{sql} ORDER BY {order} LIMIT {limit}", args)


def _access(before: Flavor, after: Flavor) -> list[Op]:
    """The rows that lists find a project's own flavors by."""
    gone = sorted(set(before.projects) - set(after.projects))
    new = sorted(set(after.projects) - set(before.projects))
    return [
        *(
            Op("DELETE FROM flavor_access WHERE flavor = ? AND project_id = ?", (after.uuid, one))
            for one in gone
        ),
        *(
            Op("INSERT INTO flavor_access (flavor, project_id) VALUES (?, ?)", (after.uuid, one))
            for one in new
        ),
    ]


async def create(ctx: Context, fields: dict[str, Any], cause: Cause) -> Flavor:
    """A new flavor."""
    change = ctx.door.change(cause)
    made = Flavor(uuid=new_uuid(), created_at=iso(change.now), **fields)
    change.put(FLAVORS.insert(made))
    change.tell(facts.flavor("create", made))
    try:
        await ctx.door.commit(change)
    except Duplicate as clash:
        if clash.column.endswith("flavorid"):
            raise Conflict(
                f"Flavor with ID {made.flavorid} already exists. Choose another."
            ) from clash
        raise Conflict(f"Flavor with name {made.name} already exists. Choose another.") from clash
    return made


async def change(
    ctx: Context, ident: str, changes: Callable[[Flavor], dict[str, Any]], *, who: Who, cause: Cause
) -> Flavor:
    """Change a flavor's description, extra specs or access list."""

    async def decide(change: Change) -> Flavor:
        before = await flavor(ctx, ident, who)
        after = before.changed(change.now, changes(before))
        change.put(FLAVORS.swap(before, after))
        change.tell(facts.flavor("update", after))
        for op in _access(before, after):
            change.put(op)
        return after

    return await ctx.door.attempt(cause, "flavor:" + ident, decide)


async def remove(ctx: Context, ident: str, *, who: Who, cause: Cause) -> None:
    """Delete a flavor; servers keep what they have of it."""

    async def decide(change: Change) -> None:
        found = await flavor(ctx, ident, who)
        change.put(FLAVORS.remove(found))
        for op in _access(found, found.changed(change.now, {"projects": []})):
            change.put(op)
        change.tell(facts.flavor("delete", found))

    await ctx.door.attempt(cause, "flavor:" + ident, decide)
