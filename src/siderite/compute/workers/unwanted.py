"""Removes images that servers do not need any more."""

import msgspec

from siderite.compute.usecases.server import due
from siderite.compute.usecases.server import progress
from siderite.compute.usecases.server.unwanted import Job
from siderite.compute.usecases.server.unwanted import Unfilled
from siderite.compute.workers.hands import Hands
from siderite.core.errors import SideriteError
from siderite.core.log import get_logger
from siderite.core.work import Work

log = get_logger("images")

_AGAIN_S = 30.0


class UnwantedWork:
    """The handler."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands

    async def handle(self, held: Work) -> None:
        """Remove it; one that is gone, or that somebody protects, is no trouble."""
        ctx = self._hands.ctx
        job: Job = msgspec.json.decode(held.job, type=Job)
        image = job.image if isinstance(job, Unfilled) else job
        try:
            if isinstance(job, Unfilled):
                await self._hands.images.discard(image)
            else:
                await self._hands.images.remove(image)
        except SideriteError as why:
            if ctx.door.clock() < held.deadline:
                await due.later(ctx, held, why.sentence, _AGAIN_S)
                return
            log.warning("an image is left", image=image, server=held.machine, why=why.sentence)
        await progress.abandon(ctx, held)
