"""Looks at machines whose power is said to have changed while their servers were busy."""

import msgspec

from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.power import Power
from siderite.compute.usecases.server import due
from siderite.compute.usecases.server import power_truth
from siderite.compute.usecases.server import progress
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.hands import NotOurs
from siderite.compute.workers.hands import guest_of
from siderite.compute.workers.hands import place_of
from siderite.core.work import Work

_BUSY_S = 2.0
_UNREAD_S = 10.0


class AnnouncedWork:
    """The handler."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands

    async def handle(self, held: Work) -> None:
        """The record follows if the machine is as was announced; else it was an echo, or is no
        more so.
        """
        ctx = self._hands.ctx
        tag = msgspec.json.decode(held.job, type=str)
        server = await progress.load(ctx, held.machine)
        if server is None or server.deleted or ctx.door.clock() >= held.deadline:
            await progress.abandon(ctx, held)
            return
        if server.task_state is not None:
            await due.later(ctx, held, f"the server is {server.task_state}", _BUSY_S)
            return
        try:
            place = await place_of(self._hands, server.host)
        except NotOurs as why:
            await due.pass_on(ctx, held, why.host)
            return
        seen = None
        if not isinstance(place, Failed):
            seen = await place.driver.life.state(place.at, guest_of(self._hands, server))
        if seen is Power.NOSTATE:
            await due.later(ctx, held, "the power of its machine cannot be read now", _UNREAD_S)
            return
        if seen is not power_truth.TAGS[tag]:
            await progress.abandon(ctx, held)
            return
        await power_truth.confirmed(ctx, held, server, tag)
