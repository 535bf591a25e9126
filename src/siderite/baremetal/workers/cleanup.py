"""Tidying up after an abort: the run that was given up is forgotten by the driver, then the node
may move. A BMC that is out of reach is waited for, until the deadline.
"""

import msgspec

from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.node_machine import Event
from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.drivers.contract import Drivers
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.usecases import progress
from siderite.baremetal.usecases.abort import Cleanup
from siderite.baremetal.usecases.context import Context
from siderite.core.log import get_logger
from siderite.core.work import Work

log = get_logger("cleanup")


class CleanupAfterAbort:
    """The handler of cleanup work."""

    def __init__(self, ctx: Context, drivers: Drivers) -> None:
        self._ctx = ctx
        self._drivers = drivers

    async def handle(self, held: Work) -> None:
        """Have the driver forget the run; a service that was aborted ends in `active`."""
        job = msgspec.json.decode(held.job, type=Cleanup)
        node = await progress.load(self._ctx, held.machine)
        driver = self._drivers.get(node.driver) if node is not None else None
        away = None
        if node is not None and driver is not None and job.token:
            away = await driver.steps.forget(Endpoint.of(node), job.token)
        if away is not None and self._ctx.door.clock() < held.deadline:
            await progress.cleanup_waits(self._ctx, held, away)
            return
        if away is not None:
            log.warning("a ramdisk may still run", node=held.machine, reason=away.reason)
        if node is None or not job.is_of(node):
            await progress.abandon(self._ctx, held)  # whatever it does now is none of this
        elif away is not None and node.provision_state == P.RESCUEFAIL:
            await progress.left_behind(self._ctx, held, node, away.reason)
        elif job.then is not None and NODE.can(node.provision_state, Event(job.then)):
            await progress.aborted_fully(self._ctx, held, node, Event(job.then))
        else:
            await progress.abandon(self._ctx, held)
