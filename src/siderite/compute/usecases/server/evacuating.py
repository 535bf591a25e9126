"""A server is made elsewhere, as its host is down. What was being done to it is given up, a move to
another host too: the work on that would only wait for the host.
"""

from typing import Any

import msgspec

from siderite.compute.domain.job import Job
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import V
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.project import quota
from siderite.compute.usecases.server import acting
from siderite.compute.usecases.server import find
from siderite.compute.usecases.server import interrupting
from siderite.compute.usecases.server import leaving
from siderite.compute.usecases.server import unwanted
from siderite.compute.usecases.server.acting import Ask
from siderite.compute.usecases.server.kinds import KINDS
from siderite.core.errors import Conflict
from siderite.core.errors import Invalid
from siderite.core.store import Op
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who

_HELD = (V.PAUSED, V.SUSPENDED, V.RESCUED, V.RESIZED)


class Evacuate(msgspec.Struct, frozen=True):
    """What is asked for: a host, if one is named, and whether it is to end stopped there."""

    host: str | None = None
    stopped: bool = False
    password: str | None = None


async def evacuate(ctx: Context, uuid: str, wish: Evacuate, *, who: Who, cause: Cause) -> Server:
    """Have a server made on another host."""

    async def decide(change: Change) -> Server:
        server = await find.server(ctx, uuid, who)
        await check_is_down(ctx, server)
        if wish.host is not None and wish.host == server.host:
            raise Invalid("The target host can't be the same one. Name another, or none.")
        acting.check_lock(server, who)
        _check_held(server)
        acting.check_state(server, "evacuate", "evacuate")
        acting.check_place(ctx, server, KINDS["evacuate"])
        job = await interrupting.under_way(ctx, server)
        await _check_is_lost(ctx, server, job)
        ops = _moves_no_more(server, job, change.now)
        unfilled = await interrupting.give_up(ctx, change, server, for_action="evacuate")
        change.put(*unwanted.given_up(server, unfilled, change.now))
        changes: dict[str, Any] = {"move": None, "counted": None}
        if wish.password:
            kept = msgspec.structs.replace(server.request, admin_password=wish.password)
            changes["request"] = kept
        args: dict[str, Any] = {"stopped": wish.stopped}
        if wish.host is not None:
            args["host"] = wish.host
        ask = Ask("evacuate", args, lambda *_: (changes, {}, ops))
        return acting.begin(ctx, change, server, ask)

    return await ctx.door.attempt(cause, uuid, decide)


async def check_is_down(ctx: Context, server: Server) -> None:
    """Only servers of a host that is down can be evacuated."""
    if await acting.is_down(ctx, server.host) is False:
        raise Invalid(
            f"Compute service of {server.host} is still in use. If it is not, say so first:"
            f" `compute service set --down {server.host} nova-compute`."
        )


def _check_held(server: Server) -> None:
    move = server.move
    if server.vm_state == V.RESIZED and move is not None and move.source_host != server.host:
        raise Conflict(
            f"Cannot 'evacuate' instance {server.uuid} while it is in vm_state {server.vm_state}."
            f" Revert that (revertResize): its disk is still on host {move.source_host}."
        )
    if server.vm_state in _HELD:
        raise Conflict(
            f"Cannot 'evacuate' instance {server.uuid} while it is in vm_state"
            f" {server.vm_state}, which it cannot leave as its host is down. Have its state"
            " reset to error first (os-resetState)."
        )


async def _check_is_lost(ctx: Context, server: Server, job: Job | None) -> None:
    """An evacuation under way goes on, unless the host that it leads to is down by now."""
    if job is None or job.action != KINDS["evacuate"].action:
        return
    refuge = job.args.get("to", {}).get("host")
    if refuge is None or not await acting.is_down(ctx, refuge):
        raise acting.busy(server, "evacuate")


def _moves_no_more(server: Server, job: Job | None, now: float) -> list[Op]:
    """What is at the other end of a move under way is removed when the server has found its place,
    and its project's quota counts it in the size that it has.
    """
    left = leaving.of(server, job)
    ops = [] if left is None else leaving.behind(server, left, now)
    if server.counted is not None:
        ops.append(quota.becomes(server, server.flavor))
    return ops
