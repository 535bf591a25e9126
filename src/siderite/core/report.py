"""What workers report: one commit that names the lease's fence, so that it is lost with the lease.

If only the machine has changed meanwhile (somebody renamed it), the report is decided again on the
machine as it is now; if the lease is gone, or the machine has moved on, `Lost` tells the worker to
stop.
"""

from collections.abc import Awaitable
from collections.abc import Callable
from typing import TypeVar

from siderite.core import metrics
from siderite.core import work
from siderite.core.errors import IllegalVerb
from siderite.core.store import Lost
from siderite.core.store.table import Resource
from siderite.core.store.table import Table
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.transition import Door
from siderite.core.work import Work

R = TypeVar("R", bound=Resource)


async def report(
    door: Door,
    held: Work,
    table: Table[R],
    known: R,
    *,
    decide: Callable[[Change, R], Awaitable[R]],
    still: Callable[[R, R], bool],
) -> R:
    """Commit what `decide` says of the machine, and return what it has become. `still` says of it
    as it was known and as it is whether that decision may be made again.
    """
    async with door.turns.of(held.machine):
        while True:
            change = door.change(Cause(held.request_id))
            try:
                after = await decide(change, known)
            except IllegalVerb as why:
                if await _if_ours(door, held, table) is None:
                    raise Lost(f"{held.kind} of {held.machine} was given up") from why
                raise
            try:
                await door.commit(change)
            except Lost:
                metrics.races_lost()
                fresh = await _if_ours(door, held, table)
                if fresh is None or not still(known, fresh):
                    raise
                known = fresh
            else:
                return after


async def _if_ours(door: Door, held: Work, table: Table[R]) -> R | None:
    """The machine as it is, if the lease is still held."""
    if not await work.is_held(door.store, held):
        return None
    return await table.get(door.store, held.machine)
