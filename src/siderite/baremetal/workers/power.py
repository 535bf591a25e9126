"""Power changes that were asked for."""

from collections.abc import Mapping
from typing import Any
from typing import assert_never

import msgspec

from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.drivers.contract import Drivers
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.contract import gone
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life import progress
from siderite.baremetal.usecases.power import power
from siderite.baremetal.usecases.power.power import PowerJob
from siderite.baremetal.workers.reading import read_power
from siderite.core.work import Work

_RETRY_S = 2.0


class Power:
    """The handler of power work."""

    def __init__(self, ctx: Context, drivers: Drivers) -> None:
        self._ctx = ctx
        self._drivers = drivers

    async def handle(self, held: Work) -> None:
        """Bring the node to the power that was asked for, or find out that it cannot be."""
        node = await progress.load_or_abandon(self._ctx, held)
        if node is None:
            return
        job = msgspec.json.decode(held.job, type=PowerJob)
        target = PowerTarget(job.target)
        driver = self._drivers.get(node.driver)
        if driver is None:
            await self._end(node, held, job, error=gone(node.driver))
            return
        at = Endpoint.of(node, worked=job.has_begun)
        reading = await read_power(driver, at)
        observed = reading.power
        if self._ctx.door.clock() >= held.deadline:
            await self._overdue(node, held, job, observed)
            return
        if reading.is_final:
            await self._end(node, held, job, error=reading.why)
            return
        if observed is PowerState.UNKNOWN:
            # No action starts from an unknown state: wait until the BMC can be read.
            unknown = Wait(reading.why, reading.again_in or _RETRY_S)
            await power.waits(self._ctx, held, job, unknown)
            return
        if observed is target.leads_to and not target.is_reboot:
            await self._end(node, held, job)
            return
        if job.hard:
            outcome = await driver.power.set(at, target.hard, f"{job.token}/hard")
        else:
            outcome = await driver.power.set(at, target, job.token)
        match outcome:
            case Done():
                await self._end(node, held, job, remember=outcome.remember)
            case Wait():
                begun = msgspec.structs.replace(job, has_begun=True)
                await power.waits(self._ctx, held, begun, outcome)
            case Failed():
                await self._end(node, held, job, error=outcome.reason, observed=observed)
            case _:
                assert_never(outcome)

    async def _overdue(self, node: Node, held: Work, job: PowerJob, observed: PowerState) -> None:
        """Time is up: what was asked softly is done hard, if so configured; else it failed."""
        target = PowerTarget(job.target)
        harder = self._ctx.settings.soft_power_off_then_hard and target.is_soft and not job.hard
        if harder and observed is PowerState.ON:
            await power.harden(self._ctx, held, job)
        else:
            await self._end(node, held, job, error=_late(held, target), observed=observed)

    async def _end(
        self,
        node: Node,
        held: Work,
        job: PowerJob,
        *,
        error: str | None = None,
        observed: PowerState | None = None,
        remember: Mapping[str, Any] | None = None,
    ) -> None:
        text = None if error is None else f"Failed to change power state to {job.target!r}: {error}"
        seen = None if observed is None else observed.wire
        await power.ended(
            self._ctx, held, job, node=node, error=text, observed=seen, remember=remember or {}
        )


def _late(held: Work, target: PowerTarget) -> str:
    why = f" (last: {held.reason})" if held.reason else ""
    return f"the machine did not reach {target.leads_to.value!r} in time{why}"
