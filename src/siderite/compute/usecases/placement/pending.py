"""A PENDING server is in the care of a service outside, which finds room for it or gives it up.

Whoever takes care of one says so first (`claim`): for as long as it asked for, no other may, so
that two services never free room for the same server. It says too when it makes room: others go for
the server then, and its time is not over until it is known whether that was of use.
"""

import msgspec

from siderite.compute.domain.server import Actor
from siderite.compute.domain.server import Fault
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import Event
from siderite.compute.domain.server_machine import V
from siderite.compute.store import SERVERS
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.placement import kept_room
from siderite.compute.usecases.placement import placing
from siderite.compute.usecases.project import quota
from siderite.compute.usecases.server import acting
from siderite.compute.usecases.server import find
from siderite.compute.usecases.server.acting import Ask
from siderite.core.errors import Busy
from siderite.core.errors import Conflict
from siderite.core.times import iso
from siderite.core.times import seconds as moment
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.transition import apply
from siderite.core.who import Who

MAKING_ROOM_S = 6 * 3600.0
"""How long after its time a server is kept, at the most, while somebody makes room for it: a node
may be cleaned for hours, and the reaper waits for as long.
"""
_WOKEN_S = 30.0
"""How long room is kept for one that was woken."""
_NEVER = "9999"


def deadline(ctx: Context, server: Server) -> str | None:
    """By when a server must have found room."""
    if ctx.settings.pending_timeout_s <= 0:
        return None
    end = moment(server.created_at) + ctx.settings.pending_timeout_s
    if not server.making_room:
        return iso(end)
    return max(iso(end), min(server.kept_until or "", iso(end + MAKING_ROOM_S)))


async def claim(
    ctx: Context,
    uuid: str,
    *,
    keeper: str,
    seconds: int,
    making_room: bool | None,
    node: str | None = None,
    who: Who,
    cause: Cause,
) -> Server:
    """Somebody takes care of a PENDING server for so long; again by the same prolongs it. Whether
    room is being made stays as it was if nothing is said of it. What is made on a node that was
    named is kept for the server.
    """
    at = None if node is None else await kept_room.hypervisor(ctx, node)

    async def decide(change: Change) -> Server:
        server = await find.server(ctx, uuid, who)
        if server.vm_state != V.PENDING or server.task_state is not None:
            raise Conflict(f"Instance {uuid} is not pending: it is {server.status}")
        is_kept = (server.kept_until or "") > iso(change.now)
        if server.keeper not in (None, keeper) and is_kept:
            raise Busy(
                f"Instance {uuid} is in the care of {server.keeper} until {server.kept_until}"
            )
        was_making = is_kept and server.making_room
        is_making = was_making if making_room is None else making_room
        until = iso(change.now + seconds)
        cared_for = server.changed(
            change.now,
            {
                "keeper": keeper, "kept_until": until, "making_room": is_making,
            },
        )  # fmt: skip
        if not is_making:
            change.put(kept_room.let_go(server))
        elif at is None:
            change.put(kept_room.keep_on(server, until))
        else:
            change.put(kept_room.keep(server, at, now=iso(change.now), until=until))
        after = msgspec.structs.replace(cared_for, deadline=deadline(ctx, cared_for))
        if after.deadline == server.deadline:  # there is nothing of it to see
            after = msgspec.structs.replace(after, updated_at=server.updated_at)
        change.put(SERVERS.swap(server, after))
        return after

    return await ctx.door.attempt(cause, uuid, decide)


async def wake(ctx: Context, uuid: str) -> bool:
    """Have a PENDING server built that nobody takes care of, if a host has room by now. The room is
    kept for it until it is placed, so that those after it are not woken for the same.
    """

    async def decide(change: Change) -> bool:
        server = await SERVERS.get(ctx.door.store, uuid)
        if server is None or server.state != V.PENDING:
            return False
        is_kept = server.keeper is not None and (server.kept_until or "") > iso(change.now)
        if is_kept:
            return False
        found = await placing.find_place(ctx, server)
        if not found.ranked:
            return False
        now, until = iso(change.now), iso(change.now + _WOKEN_S)
        change.put(kept_room.keep(server, found.ranked[0].uuid, now=now, until=until))
        change.put(await quota.still(ctx, server))
        acting.begin(ctx, change, server, Ask("build"))
        return True

    return await ctx.door.attempt(Cause(), uuid, decide)


async def give_up_late(ctx: Context, uuid: str) -> None:
    """A PENDING server whose time is over becomes an error."""

    async def decide(change: Change) -> None:
        server = await SERVERS.get(ctx.door.store, uuid)
        if server is None or server.state != V.PENDING:
            return
        if (deadline(ctx, server) or _NEVER) > iso(change.now):
            return
        why = f"No room was found for it within {ctx.settings.pending_timeout_s:g} s."
        fault = Fault(500, why, iso(change.now))
        changes = {"by": Actor(), "fault": fault}
        apply(change, ctx.rules, server, Event.RESET_ERROR, changes=changes)
        change.put(acting.note(change, server, "resetState"))

    await ctx.door.attempt(Cause(), uuid, decide)
