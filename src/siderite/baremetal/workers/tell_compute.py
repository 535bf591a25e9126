"""Telling a compute service of nodes' power: in order per node, until it was taken or refused for
good.

While the other side is away or slow, few requests are tried and the rest waits in the database:
telling must not take the places of those who work on machines.
"""

import math
import random
import time

from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.power import tell_compute
from siderite.baremetal.workers.compute_api import ComputeApi
from siderite.baremetal.workers.compute_api import NotNow
from siderite.core.log import get_logger
from siderite.core.work import Work

log = get_logger("tell_compute")

AT_ONCE = 8
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0


class TellCompute:
    """The handler of this work."""

    def __init__(self, ctx: Context, api: ComputeApi | None) -> None:
        self._ctx = ctx
        self._api = api
        self._under_way = 0
        self._failures = 0
        self._not_before = -math.inf  # by a clock that nobody can set
        self._why = ""

    async def handle(self, held: Work) -> None:
        """Tell all that there is to tell of one node."""
        if self._api is None:
            await tell_compute.later(self._ctx, held, "compute_endpoint is empty", LONGEST_PAUSE_S)
            return
        pause = self._not_before - time.monotonic()
        if pause > 0:
            await tell_compute.later(self._ctx, held, self._why, pause * _spread())
            return
        if self._under_way >= AT_ONCE:
            reason = "others are being told of just now"
            await tell_compute.later(self._ctx, held, reason, FIRST_PAUSE_S * _spread())
            return
        self._under_way += 1
        try:
            await self._tell(held, self._api)
        except NotNow as why:
            await tell_compute.later(self._ctx, held, str(why), self._failed(why) * _spread())
        finally:
            self._under_way -= 1

    async def _tell(self, held: Work, api: ComputeApi) -> None:
        while True:
            update = await tell_compute.next_update(self._ctx, held)
            if update is None:
                await tell_compute.all_told(self._ctx, held)
                return
            answer = await api.tell(update)
            self._failures = 0
            if answer.reason is not None:
                log.warning(
                    "a change of power was refused", node=update.node, server=update.server,
                    tag=update.tag, code=answer.code, why=answer.reason,
                )  # fmt: skip
            await tell_compute.told(self._ctx, held, update, answer)

    def _failed(self, why: NotNow) -> float:
        """The other side is not well: leave it alone for a while, longer each time."""
        now = time.monotonic()
        if now >= self._not_before:  # those who had begun before say nothing new
            pause = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(self._failures, 10))
            self._failures += 1
            self._not_before = now + pause
            self._why = str(why)
            log.warning("cannot tell of power", why=self._why, again_in=pause)
        return max(FIRST_PAUSE_S, self._not_before - now)


def _spread() -> float:
    """So that those who wait do not come all at once."""
    return 1.0 + 0.2 * random.random()  # noqa: S311 - no secret
