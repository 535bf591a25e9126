"""What other services tell of a server: answered event by event, in order.

Events of networks and volumes ask nothing of us: there is no such service that we wait for.
"""

import asyncio
from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

from siderite.compute.domain.server import Server
from siderite.compute.store import SERVERS
from siderite.compute.usecases import power_truth
from siderite.compute.usecases.context import Context
from siderite.core.transition import Cause

WELL, BAD, MISSING, NO_HOST = 200, 400, 404, 422
_NEED_TAG = frozenset({"volume-extended", "power-update", "accelerator-request-bound"})

Taken = Callable[[Context, Server, str, Cause], Awaitable[int]]
"""Does what an event asks for, with its tag; the code that it is answered with."""

TAKEN: dict[str, Taken] = {"power-update": power_truth.power_update}
"""By the event's name; those that are not here ask for nothing."""


async def take(ctx: Context, events: Sequence[dict[str, Any]], *, cause: Cause) -> list[int]:
    """The code of each event. Those of one server are taken in order, servers side by side."""
    codes = [WELL] * len(events)
    by_server: dict[str, list[int]] = {}
    for number, event in enumerate(events):
        by_server.setdefault(event["server_uuid"], []).append(number)

    async def some(numbers: list[int]) -> None:
        for number in numbers:
            codes[number] = await _one(ctx, events[number], cause)

    await asyncio.gather(*map(some, by_server.values()))
    return codes


async def _one(ctx: Context, event: dict[str, Any], cause: Cause) -> int:
    server = await SERVERS.get(ctx.door.store, event["server_uuid"])
    if server is None or server.deleted:
        return MISSING
    if event["name"] in _NEED_TAG and event.get("tag") is None:
        return BAD
    if server.host is None:
        return NO_HOST
    takes = TAKEN.get(event["name"])
    return WELL if takes is None else await takes(ctx, server, event.get("tag") or "", cause)
