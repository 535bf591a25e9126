"""Has guests go on that stood still as their host's disk was full, once there is room again."""

import asyncio

from siderite.compute.domain.host import Host
from siderite.compute.domain.outcome import Done
from siderite.compute.domain.server_machine import V
from siderite.compute.drivers.contract import At
from siderite.compute.usecases.server import power_truth
from siderite.compute.usecases.server import progress
from siderite.compute.usecases.server.power_truth import Recorded
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.hands import guest_of
from siderite.core.ids import new_uuid
from siderite.core.log import get_logger

log = get_logger("stalled")

PATIENCE_S = 30.0
_RUN = (V.ACTIVE, V.RESCUED, V.RESIZED)
"""Where a guest should run; one that its user paused stays so."""


async def go_on(hands: Hands, host: Host) -> None:
    """Those of a host; what cannot be done now is looked at again with the next round."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            await _look(hands, host)
    except Exception as why:
        log.warning("cannot have guests go on", host=host.name, error=repr(why))


async def _look(hands: Hands, host: Host) -> None:
    driver, at = hands.drivers.get(host.driver), At(host.name, host.uri, host.options)
    if driver is None or driver.stalls is None:
        return
    uuids = await driver.stalls.stalled(at)
    if not uuids:
        return
    for one in await power_truth.on_host(hands.ctx, host.name, uuids):
        if one.task_state is None and one.vm_state in _RUN:
            await _one(hands, host, one)


async def _one(hands: Hands, host: Host, one: Recorded) -> None:
    server = await progress.load(hands.ctx, one.uuid)
    part = hands.drivers[host.driver].pause
    if server is None or part is None:
        return
    at = At(host.name, host.uri, host.options)
    outcome = await part.unpause(at, guest_of(hands, server), new_uuid())
    if isinstance(outcome, Done):
        log.info("goes on, as its host's disk has room again", server=one.uuid, host=host.name)
