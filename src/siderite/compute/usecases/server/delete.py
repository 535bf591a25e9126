"""Servers go: at once, or first so that they can be restored for a while."""

from collections.abc import Callable
from typing import Any

import msgspec

from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import V
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.project import quota
from siderite.compute.usecases.server import acting
from siderite.compute.usecases.server import find
from siderite.compute.usecases.server import interrupting
from siderite.compute.usecases.server import leaving
from siderite.compute.usecases.server.acting import Ask
from siderite.compute.usecases.server.leaving import Left
from siderite.core.errors import Conflict
from siderite.core.store import Op
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who

_MAY_BE_SHELVED = (V.SHELVED, V.SHELVED_OFFLOADED, V.ERROR)


async def ask(
    ctx: Context,
    uuid: str,
    *,
    who: Who,
    cause: Cause,
    force: bool = False,
    still: Callable[[Server], bool] = lambda _: True,
) -> Server:
    """Have a server deleted, whatever it is doing, if it is `still` so; asking again changes
    nothing.
    """

    async def decide(change: Change) -> Server:
        server = await find.server(ctx, uuid, who)
        acting.check_lock(server, who)
        if not still(server):
            raise Conflict(f"Server {uuid} is {server.state} by now; it is not deleted.")
        if server.task_state == "deleting":
            return server
        soft = (
            ctx.settings.reclaim_interval_s > 0
            and not force
            and server.launched_at is not None
            and server.vm_state != V.SOFT_DELETED
        )
        if soft and server.task_state == "soft-deleting":
            return server
        args: dict[str, Any] = {}
        args |= await interrupting.give_up(ctx, change, server, for_action="delete")
        left = leaving.of(server, await interrupting.under_way(ctx, server))
        if not soft:
            ops: list[Op] = []
            if left is not None and not left.has_claim:
                ops += leaving.behind(server, left, change.now)
            elif left is not None:  # it goes with the rest, if all goes well
                args[leaving.KIND] = msgspec.to_builtins(left)
            wish = Ask("delete", args, lambda *_: ({}, {}, ops))
            return acting.begin(ctx, change, server, wish)
        return acting.begin(ctx, change, server, _aside(server, args, left, change.now))

    return await ctx.door.attempt(cause, uuid, decide)


async def restore(ctx: Context, uuid: str, *, who: Who, cause: Cause) -> Server:
    """Have a deleted server back, if its project may have one more."""

    async def decide(change: Change) -> Server:
        server = await find.server(ctx, uuid, who)
        acting.check_lock(server, who)
        acting.check_state(server, "restore", "restore")
        counts = []
        if server.uncounted:
            counts.append(await quota.take(ctx, server.project_id, server.flavor, 1))
        wish = Ask("restore", prepare=lambda *_: ({"uncounted": False}, {}, counts))
        return acting.begin(ctx, change, server, wish)

    return await ctx.door.attempt(cause, uuid, decide)


def _aside(server: Server, args: dict[str, Any], left: Left | None, now: float) -> Ask:
    """It may come back: what a move left elsewhere must not wait for its end."""
    ops = [] if left is None else leaving.behind(server, left, now)
    if server.counted is not None:
        ops.append(quota.becomes(server, server.flavor))
    changes: dict[str, Any] = {"move": None, "counted": None, "soft_deleted_at": iso(now)}
    if server.host is not None and server.vm_state not in _MAY_BE_SHELVED:
        changes["shelved_at"] = None  # its image is old, and its disk is what counts
    return Ask("soft_delete", args, lambda *_: (changes, {}, ops))
