"""An administrator says what state a server is in."""

from typing import Any

from siderite.compute.domain.server_machine import Event
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.context import actor
from siderite.compute.usecases.project import quota
from siderite.compute.usecases.server import acting
from siderite.compute.usecases.server import find
from siderite.compute.usecases.server import interrupting
from siderite.compute.usecases.server import leaving
from siderite.compute.usecases.server import unwanted
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.transition import apply
from siderite.core.who import Who


async def reset(ctx: Context, uuid: str, state: str, *, who: Who, cause: Cause) -> dict[str, str]:
    """The server is active, or in error; whatever was being done to it is given up, and a resize
    that waits to be confirmed is. The image that will not be filled because of that, if any, by
    what is to become of it (`interrupting`): work is there for that, for when whoever fills it has
    let go of the server.
    """
    event = Event.RESET_ACTIVE if state == "active" else Event.RESET_ERROR

    async def decide(change: Change) -> dict[str, str]:
        server = await find.server(ctx, uuid, who)
        acting.check_state(server, event, "resetState")
        changes: dict[str, Any] = {
            "by": actor(cause), "counted": None, "uncounted": False, "move": None,
        }  # fmt: skip
        apply(change, ctx.rules, server, event, changes=changes)
        left = leaving.of(server, await interrupting.under_way(ctx, server))
        if left is not None:
            for op in leaving.behind(server, left, change.now):
                change.put(op)
        change.put(*quota.count_again(server))
        if server.counted is not None:
            change.put(quota.becomes(server, server.flavor))
        change.put(acting.note(change, server, "resetState"))
        unfilled = await interrupting.give_up(ctx, change, server, for_action="resetState")
        change.put(*unwanted.given_up(server, unfilled, change.now))
        return unfilled

    return await ctx.door.attempt(cause, uuid, decide)
