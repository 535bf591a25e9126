"""Changes of a server's record that ask nothing of its host: name, metadata, tags, lock …"""

from collections.abc import Callable
from typing import Any

from siderite.compute.domain import facts
from siderite.compute.domain.server import Server
from siderite.compute.store import SERVERS
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.server import acting
from siderite.compute.usecases.server import find
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who


async def change(
    ctx: Context,
    uuid: str,
    changes: Callable[[Server], dict[str, Any]],
    *,
    who: Who,
    cause: Cause,
    check: Callable[[Server], None] = lambda server: None,
    honours_lock: bool = False,
) -> Server:
    """Change some fields; it is announced."""

    async def decide(change: Change) -> Server:
        before = await find.server(ctx, uuid, who)
        if honours_lock:
            acting.check_lock(before, who)
        check(before)
        after = before.changed(change.now, changes(before))
        change.put(SERVERS.swap(before, after))
        change.tell(facts.update(before, after))
        return after

    return await ctx.door.attempt(cause, uuid, decide)


async def lock(
    ctx: Context, uuid: str, *, on: bool, reason: str | None, who: Who, cause: Cause
) -> None:
    """Lock or unlock a server; an owner cannot undo an administrator's lock."""

    async def decide(change: Change) -> None:
        before = await find.server(ctx, uuid, who)
        if not on and before.locked_by == "admin" and not who.is_admin:
            acting.check_lock(before, who)
        by = None
        if on:
            by = "owner" if who.project_id == before.project_id else "admin"
            if before.locked_by == "admin" and not who.is_admin:
                by = "admin"
        after = before.changed(
            change.now, {"locked_by": by, "locked_reason": reason if on else None}
        )
        change.put(SERVERS.swap(before, after))
        name = "lock" if on else "unlock"
        change.put(acting.note(change, before, name))
        change.tell(facts.said(name, after))

    await ctx.door.attempt(cause, uuid, decide)


async def noted(ctx: Context, uuid: str, action: str, *, who: Who, cause: Cause) -> None:
    """Something is recorded as done that needs nothing to be done."""

    async def decide(change: Change) -> None:
        server = await find.server(ctx, uuid, who)
        acting.check_lock(server, who)
        change.put(acting.note(change, server, action))

    await ctx.door.attempt(cause, uuid, decide)
