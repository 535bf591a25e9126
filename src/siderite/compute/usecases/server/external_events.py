"""What other services tell of a server: answered event by event, in order.

Events of networks and volumes ask nothing of us: there is no such service that we wait for.
"""

import asyncio
from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import msgspec

from siderite.compute.usecases.context import Context
from siderite.compute.usecases.server import power_truth
from siderite.core.errors import SideriteError
from siderite.core.errors import Unavailable
from siderite.core.ids import new_request_id
from siderite.core.log import get_logger
from siderite.core.transition import Cause

log = get_logger("external events")

WELL, BAD, MISSING, NO_HOST = 200, 400, 404, 422
_NEED_TAG = frozenset({"volume-extended", "power-update", "accelerator-request-bound"})
_AT_ONCE = 500

Taken = Callable[[Context, str, str, Cause], Awaitable[int]]
"""Does what an event asks of a server, with its tag; the code that it is answered with."""

TAKEN: dict[str, Taken] = {"power-update": power_truth.power_update}
"""By the event's name; those that are not here ask for nothing."""


async def take(ctx: Context, events: Sequence[dict[str, Any]], *, cause: Cause) -> list[int]:
    """The code of each event. Those of one server are taken in order, servers side by side."""
    codes = [WELL] * len(events)
    by_server: dict[str, list[int]] = {}
    for number, event in enumerate(events):
        by_server.setdefault(event["server_uuid"].lower(), []).append(number)
    hosts = await _hosts(ctx, by_server)

    async def some(uuid: str, numbers: list[int]) -> None:
        for number in numbers:
            # Each is an action of its own, and an action is found by its request.
            known = cause
            if number != numbers[0]:
                known = msgspec.structs.replace(cause, request_id=new_request_id())
            codes[number] = await _one(ctx, uuid, hosts, events[number], known)

    await asyncio.gather(*(some(uuid, numbers) for uuid, numbers in by_server.items()))
    return codes


async def _hosts(ctx: Context, uuids: Iterable[str]) -> dict[str, str | None]:
    """The hosts of those servers that there are."""
    found: dict[str, str | None] = {}
    every = list(uuids)
    for at in range(0, len(every), _AT_ONCE):
        some = every[at : at + _AT_ONCE]
        marks = ", ".join("?" * len(some))
        sql = f"SELECT uuid, host FROM servers WHERE deleted = 0 AND uuid IN ({marks})"  # noqa: S608
        found.update(await ctx.door.store.fetch(sql, some))  # type: ignore[arg-type]  # two columns
    return found


async def _one(
    ctx: Context, uuid: str, hosts: dict[str, str | None], event: dict[str, Any], cause: Cause
) -> int:
    if uuid not in hosts:
        return MISSING
    if event["name"] in _NEED_TAG and event.get("tag") is None:
        return BAD
    if hosts[uuid] is None:
        return NO_HOST
    takes = TAKEN.get(event["name"])
    if takes is None:
        return WELL
    try:
        return await takes(ctx, uuid, event.get("tag") or "", cause)
    except Unavailable:
        raise  # none of the others can be taken either
    except SideriteError as why:
        log.error("event not taken", name=event["name"], server=uuid, error=why.sentence)
        return why.status  # its own: the others are taken all the same
