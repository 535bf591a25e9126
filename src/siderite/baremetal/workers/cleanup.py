"""Tidying up after an abort: the run that was given up is forgotten by the driver, then the node
may move. A BMC that is out of reach, or a machine that is not off yet, is waited for, until the
deadline.
"""

import msgspec

from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import StillThere
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.drivers.contract import Drivers
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life import progress
from siderite.baremetal.usecases.life.abort import Cleanup
from siderite.baremetal.usecases.life.tidied import left_behind
from siderite.baremetal.usecases.life.tidied import tidied
from siderite.core.log import get_logger
from siderite.core.work import Work

log = get_logger("cleanup")


class CleanupAfterAbort:
    """The handler of cleanup work."""

    def __init__(self, ctx: Context, drivers: Drivers) -> None:
        self._ctx = ctx
        self._drivers = drivers

    async def handle(self, held: Work) -> None:
        """Have the driver forget the run; a service that was aborted ends in `active`, unless its
        ramdisk may run in place of the workload.
        """
        job = msgspec.json.decode(held.job, type=Cleanup)
        node = await progress.load(self._ctx, held.machine)
        driver = self._drivers.get(node.driver) if node is not None else None
        still = node is not None and job.is_of(node)
        outcome: Wait | Done | StillThere | None = None
        back = job.back and still  # else other work may have booted its own ramdisk
        if node is not None and driver is not None and (job.token or back):
            at = Endpoint.of(node, worked=True)
            outcome = await driver.steps.forget(at, job.token, back=back)
        is_early = self._ctx.door.clock() < held.deadline
        if node is not None and isinstance(outcome, Wait) and is_early:
            await progress.cleanup_waits(self._ctx, held, node, outcome)
            return
        if isinstance(outcome, Wait | StillThere):
            log.warning("a ramdisk may still run", node=held.machine, reason=outcome.reason)
        if node is not None and not still and isinstance(outcome, Done):
            # Whatever it does now is none of this, but its ramdisk is gone, and its machine off.
            await tidied(self._ctx, held, node, Cleanup(job.token), outcome)
        elif node is None or not still:
            await progress.abandon(self._ctx, held)
        elif isinstance(outcome, Wait | StillThere):
            await left_behind(self._ctx, held, node, outcome)
        else:
            await tidied(self._ctx, held, node, job, outcome)
