"""Chassis: found, made, changed and forgotten, and nodes put into them."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

from siderite.baremetal.domain import facts
from siderite.baremetal.domain.chassis import Chassis
from siderite.baremetal.store import CHASSIS
from siderite.baremetal.store import CHASSIS_CONTENTS
from siderite.baremetal.store import remove_chassis
from siderite.baremetal.store import take_place
from siderite.baremetal.usecases.context import Context
from siderite.core.errors import Conflict
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.ids import new_uuid
from siderite.core.store import Duplicate
from siderite.core.store import Line
from siderite.core.store.table import Page
from siderite.core.store.table import Where
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change


def _missing(uuid: str) -> NotFound:
    return NotFound(
        f"Chassis {uuid} could not be found; `baremetal chassis list` shows those there are."
    )


async def body_of(ctx: Context, uuid: str) -> str:
    """A chassis as it is shown, rendered."""
    rows = await ctx.door.store.fetch("SELECT body FROM chassis WHERE uuid = ?", (uuid,))
    if not rows:
        raise _missing(uuid)
    return rows[0][0]  # type: ignore[return-value]


async def chassis(ctx: Context, uuid: str) -> Chassis:
    """A chassis as a value."""
    found = await CHASSIS.get(ctx.door.store, uuid)
    if found is None:
        raise _missing(uuid)
    return found


async def page(ctx: Context, what: str, where: Sequence[Where], page: Page) -> Sequence[Line]:
    """Columns of a page of chassis."""
    if page.marker is not None:
        await chassis(ctx, page.marker)
    return await CHASSIS.select(ctx.door.store, what, where, page)


async def put_node_into(ctx: Context, change: Change, uuid: str) -> None:
    """With this change a node comes into a chassis, which must be there."""
    if await CHASSIS.get(ctx.door.store, uuid) is None:
        raise Invalid(f"chassis_uuid: {_missing(uuid).sentence}")
    change.put(take_place(uuid))


async def create(ctx: Context, fields: dict[str, Any], *, cause: Cause) -> Chassis:
    """A new chassis."""
    change = ctx.door.change(cause)
    made = {**fields, "uuid": fields.get("uuid") or new_uuid(), "created_at": iso(change.now)}
    new = Chassis(**made)
    change.put(CHASSIS.insert(new))
    change.tell(*(facts.chassis_crud("create", status, new) for status in ("start", "end")))
    try:
        await ctx.door.commit(change)
    except Duplicate as clash:
        await _announce_failure(ctx, cause, "create", new)
        raise Conflict(
            f"A chassis with UUID {new.uuid} already exists; leave it out to get a new one."
        ) from clash
    return new


async def update(
    ctx: Context, uuid: str, changes: Callable[[Chassis], dict[str, Any]], *, cause: Cause
) -> Chassis:
    """Change the chassis, or say why not; it announces both."""

    async def decide(change: Change) -> Chassis:
        before = await chassis(ctx, uuid)
        new = {k: v for k, v in changes(before).items() if v != getattr(before, k)}
        if "uuid" in new:
            await _announce_failure(ctx, cause, "update", before)
            raise Invalid(
                f"Cannot overwrite UUID for an existing chassis, which is {before.uuid};"
                " create another one in its place."
            )
        if not new:
            return before
        after = before.changed(change.now, new)
        change.put(CHASSIS.swap(before, after))
        change.tell(facts.chassis_crud("update", "start", before))
        change.tell(facts.chassis_crud("update", "end", after))
        return after

    return await ctx.door.attempt(cause, uuid, decide)


async def remove(ctx: Context, uuid: str, *, cause: Cause) -> None:
    """Forget a chassis that no node is in."""

    async def decide(change: Change) -> None:
        found = await chassis(ctx, uuid)
        rows = await ctx.door.store.fetch(CHASSIS_CONTENTS, (uuid,))
        if not rows:
            raise _missing(uuid)
        taken, nodes = (int(number or 0) for number in rows[0])
        if nodes:
            await _announce_failure(ctx, cause, "delete", found)
            raise Invalid(
                "Cannot complete the requested action because chassis"
                f" {uuid} contains nodes ({nodes}); take them out by their chassis_uuid first."
            )
        change.put(remove_chassis(found, taken))
        change.tell(*(facts.chassis_crud("delete", status, found) for status in ("start", "end")))

    await ctx.door.attempt(cause, uuid, decide)


async def _announce_failure(ctx: Context, cause: Cause, action: str, chassis: Chassis) -> None:
    """Nothing changed, and that is announced too."""
    change = ctx.door.change(cause)
    change.tell(*(facts.chassis_crud(action, status, chassis) for status in ("start", "error")))
    await ctx.door.commit(change)
