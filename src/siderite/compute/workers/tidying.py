"""What becomes due by itself: deleted servers that can no longer be restored, shelved ones that
leave their hosts, old records, nodes that are gone, and guests that an evacuation left behind.
"""

import asyncio
from collections.abc import Awaitable
from collections.abc import Callable
from functools import partial

import msgspec

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import V
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.fleet import hosts
from siderite.compute.usecases.fleet import networks
from siderite.compute.usecases.placement import kept_room
from siderite.compute.usecases.placement import pending
from siderite.compute.usecases.server import due
from siderite.compute.usecases.server import leaving
from siderite.compute.usecases.server import progress
from siderite.compute.usecases.server.migrations import Evicted
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.hands import NotOurs
from siderite.compute.workers.hands import apart
from siderite.compute.workers.hands import guest_of
from siderite.compute.workers.hands import place_of
from siderite.compute.workers.holding import to_its_end
from siderite.core.errors import SideriteError
from siderite.core.log import get_logger
from siderite.core.work import Work

log = get_logger("tidying")

EVERY_S = 30.0
_AGAIN_S = 30.0
_BUSY_S = 2.0
_HELD_S = 60.0
"""What a host does not get done in so long is called off, to be tried again."""
_ROUNDS = 20
_DUE: tuple[
    tuple[
        Callable[[Context, int], Awaitable[due.Some]], Callable[[Context, str], Awaitable[object]]
    ],
    ...,
] = (
    (due.to_reclaim, due.reclaim),
    (due.to_offload, due.offload),
    (due.pending_too_long, pending.give_up_late),
    (due.to_wake, pending.wake),
)
"""What finds some that are due after a place in the list, and what is done about each."""


class Tidying:
    """Looks every so often."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        self._places = [0] * len(_DUE)

    async def run(self) -> None:
        """For ever."""
        while True:
            try:
                await self.round()
            except Exception as why:
                log.error("cannot tidy up", error=repr(why))
            await asyncio.sleep(EVERY_S)

    async def round(self) -> None:
        """Whatever is due now."""
        ctx = self._hands.ctx
        for n, (find, deal) in enumerate(_DUE):
            uuids, self._places[n] = await find(ctx, self._places[n])
            for uuid in uuids:
                await self._try(deal(ctx, uuid))
        await networks.complete(ctx)
        await kept_room.forget_old(ctx)
        await hosts.forget_gone(ctx)
        for _ in range(_ROUNDS):
            if not await due.forget_old(ctx):
                break

    async def _try(self, asked: Awaitable[object]) -> None:
        try:
            await asked
        except SideriteError as why:
            log.info("not now", why=why.sentence)


class EvictedWork:
    """The handler of what servers left behind that were evacuated or deleted: gone as soon as the
    old host is back, or off if they can be restored.
    """

    def __init__(self, hands: Hands) -> None:
        self._hands = hands

    async def handle(self, held: Work) -> None:
        """Remove the guest from its old host, unless its server came back to it."""
        ctx = self._hands.ctx
        job = msgspec.json.decode(held.job, type=Evicted)
        server = await progress.load(ctx, job.server)
        is_late = ctx.door.clock() >= held.deadline
        if server is None or is_late or not _is_left(job, server):
            await progress.abandon(ctx, held)
            return
        if await self._comes_elsewhere(server):
            await due.later(ctx, held, f"the server is {server.task_state}", _BUSY_S)
            return
        try:
            outcome = await to_its_end(
                self._hands, partial(self._remove, held, job, server), ctx.door.clock() + _HELD_S
            )
        except NotOurs as why:
            await due.pass_on(ctx, held, why.host)
            return
        if isinstance(outcome, Done):
            await progress.abandon(ctx, held)
            return
        await due.later(ctx, held, outcome.reason, _AGAIN_S)

    async def _comes_elsewhere(self, server: Server) -> bool:
        """Whether it is being unshelved: its new files may be in the same folder, on storage that
        hosts share, and it has no host yet by which that can be told.
        """
        if server.host is not None or server.task_state is None or server.deleted:
            return False
        return not await leaving.is_waited_for(self._hands.ctx, server)

    async def _remove(self, held: Work, job: Evicted, server: Server) -> Outcome:
        at = None if server.deleted else server.host
        waits = await apart(self._hands, job.host, at)
        if waits is not None:
            return waits
        place = await place_of(self._hands, job.host)
        if isinstance(place, Failed):
            return Done()  # a host that was removed keeps nothing of ours
        guest = guest_of(self._hands, server, node=job.node)
        token = f"{held.machine}/evicted"
        if job.only_off:
            return await place.driver.power.off(place.at, guest, token)
        home = await place_of(self._hands, at)
        if isinstance(home, Failed):
            return await place.driver.life.destroy(place.at, guest, token)
        return await place.driver.life.leave(place.at, guest, home.at, token)


def _is_left(job: Evicted, server: Server) -> bool:
    """Whether there is still something to be done: its server is not back on that host, nor, if it
    was only to be off there, restored.
    """
    if job.only_off:
        return server.state == V.SOFT_DELETED and server.host == job.host
    return server.host != job.host or server.deleted
