"""Changing power over any BMC: orders are given, given again when they seem lost, and the BMC is
read until the machine has followed.

A reboot is off and then on, with the half it has come to recorded on the node: a crash at any
point neither skips a half nor does one twice. A machine that must stay on is never told to go off:
it is reset, which nobody can see afterwards, so that is recorded as soon as the BMC was told. When
it was reset before is recorded first: if the answer gets lost, or we do, a BMC that tells another
time by then was told.

Where a BMC follows by a task, that is asked for too: an order is not repeated while its task runs,
and one whose task failed is told as such. The task of a reset is part of what is recorded.
"""

import time
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import msgspec

from siderite.baremetal.domain.hardware import HardwareError
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Outcome
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.drivers.bmc import PowerButton
from siderite.baremetal.drivers.bmc import PowerOrder
from siderite.baremetal.drivers.bmc import outcome_of
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.contract import Task
from siderite.baremetal.drivers.contract import Tasks
from siderite.baremetal.drivers.contract import UnderWay

SOON_S, POLL_S = 0.2, 1.0
"""Most machines follow at once: they are read again soon, and then ever more seldom."""
RESEND_S = {PowerOrder.ON: 15.0, PowerOrder.OFF: 15.0, PowerOrder.SOFT_OFF: 5.0}
"""A guest that still boots does not hear a soft off, so that is repeated soonest."""
UNTOLD = "the BMC does not say whether the machine is on or off; nothing is done until it does"
MEMORY = "power_change"
_TO_RESET, RESET_DONE = "to reset", "reset"
_REMEMBERED_ORDERS = 10_000
Json = Mapping[str, Any]


class Switch:
    """The power interface over a BMC's button."""

    def __init__(
        self,
        button: PowerButton,
        *,
        tasks: Tasks | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._button = button
        self._tasks = tasks
        self._clock = clock
        self._ordered: dict[tuple[str, PowerOrder], float] = {}
        self._begun: dict[tuple[str, PowerOrder], Task] = {}

    async def read(self, at: Endpoint) -> PowerState:
        """What the BMC says."""
        return await self._button.power(at)

    async def set(self, at: Endpoint, to: PowerTarget, token: str) -> Outcome:
        """Bring the machine to this power, one round trip at a time."""
        try:
            if to.is_reboot:
                return await self._reboot(at, to, token)
            order = {PowerTarget.ON: PowerOrder.ON, PowerTarget.OFF: PowerOrder.OFF}.get(
                to, PowerOrder.SOFT_OFF
            )
            if at.stays_on and order is not PowerOrder.ON:
                return Failed("power off is disabled for this node (disable_power_off)")
            waiting = await self.toward(at, order, token)
        except HardwareError as why:
            return outcome_of(why)
        return waiting or Done()

    async def toward(self, at: Endpoint, order: PowerOrder, token: str) -> Wait | None:
        """Order it unless that was done lately; None once the machine has followed. One that must
        stay on is as it should be.
        """
        if at.stays_on and order is not PowerOrder.ON:
            return None
        goal = PowerState.ON if order is PowerOrder.ON else PowerState.OFF
        power = await self._button.power(at)
        if power is goal:
            return None
        if power is PowerState.UNKNOWN:
            return Wait(UNTOLD, POLL_S)
        key, now = (token, order), self._clock()
        busy = await self._busy(at, key)
        if busy is not None:
            return busy
        last = self._ordered.get(key)
        if last is None or now - last >= RESEND_S[order]:
            await self._press(at, key, goal, is_first=last is None)
            self._ordered[key] = last = now
        again_in = min(max((now - last) / 2, SOON_S), POLL_S)
        return Wait(f"the machine was told to go {order}, and has not yet", again_in)

    async def _press(
        self, at: Endpoint, key: tuple[str, PowerOrder], goal: PowerState, *, is_first: bool
    ) -> None:
        try:
            task = await self._button.press(at, key[1])
        except Refused:
            # What was told before is under way, and what has moved by itself since it was read may
            # be there: BMCs differ in what they say to both.
            if is_first and await self._button.power(at) is not goal:
                raise
            return
        if len(self._ordered) >= _REMEMBERED_ORDERS:
            self._ordered.clear()  # at worst an order is given twice, which is harmless
            self._begun.clear()
        if task is not None:
            self._begun[key] = task

    async def _busy(self, at: Endpoint, key: tuple[str, PowerOrder]) -> Wait | None:
        """Whether the BMC still works on an order of ours. A guest that would not hear a soft one
        is no reason to give up: it is told again.
        """
        task = self._begun.get(key)
        if task is None:
            return None
        try:
            waiting = await self._ask(at, task)
        except Refused:
            del self._begun[key]
            if key[1] is PowerOrder.SOFT_OFF:
                return None
            raise
        if waiting is None:
            del self._begun[key]
            self._ordered[key] = self._clock()  # it has its time from now on
        return waiting

    async def _ask(self, at: Endpoint, task: Task) -> Wait | None:
        end = await self._tasks.ask(at, task) if self._tasks is not None else None
        return end.wait if isinstance(end, UnderWay) else None

    async def start(self, at: Endpoint, token: str, *, soft: bool = False) -> Wait | None:
        """Have a machine that was brought `toward` off start; None once it has."""
        known = at.driver_internal_info.get(MEMORY) or {}
        if at.stays_on and (known.get("token") != token or known.get("half") == _TO_RESET):
            return await self._reset(at, token, known, soft=soft)
        if at.stays_on and known.get("task"):
            waiting = await self._ask(at, msgspec.convert(known["task"], Task))
            return waiting or Wait("it was reset", 0.0, remember=_memory(token, RESET_DONE))
        return await self.toward(at, PowerOrder.ON, token)

    async def _reset(self, at: Endpoint, token: str, known: Json, *, soft: bool) -> Wait:
        """Have a machine that must stay on start anew, unless it has since that was noted."""
        power = await self._button.power(at)
        if power is PowerState.UNKNOWN:
            return Wait(UNTOLD, POLL_S)
        if power is not PowerState.ON:
            return Wait("the machine is to go on", 0.0, remember=_memory(token, RESET_DONE))
        last = await self._button.last_reset(at)
        if known.get("token") != token:
            noted = _memory(token, _TO_RESET, last=last)
            return Wait("the machine is to be reset", 0.0, remember=noted)
        if last not in (None, known.get("last")):
            seen = {MEMORY: {"token": token, "half": RESET_DONE, "seen": True}}
            return Wait("the machine was reset", SOON_S, remember=seen)
        task = await self._button.press(at, PowerOrder.SOFT_RESET if soft else PowerOrder.RESET)
        return Wait("the machine was reset", SOON_S, remember=_memory(token, RESET_DONE, task))

    async def _reboot(self, at: Endpoint, to: PowerTarget, token: str) -> Outcome:
        if at.stays_on:
            waiting = await self.start(at, token, soft=to.is_soft)
            return waiting or Done(remember={MEMORY: None})
        memory = at.driver_internal_info.get(MEMORY) or {}
        half = memory.get("half") if memory.get("token") == token else None
        if half is None:
            return Wait("the machine is to go off first", 0.0, remember=_memory(token, "off"))
        if half == "off":
            order = PowerOrder.SOFT_OFF if to.is_soft else PowerOrder.OFF
            waiting = await self.toward(at, order, token)
            return waiting or Wait(
                "off; the machine is to go on again", 0.0, remember=_memory(token, "on")
            )
        return await self.toward(at, PowerOrder.ON, token) or Done(remember={MEMORY: None})


def _memory(
    token: str, half: str, task: Task | None = None, *, last: str | None = None
) -> dict[str, Any]:
    begun = {} if task is None else {"task": msgspec.to_builtins(task)}
    before = {} if last is None else {"last": last}
    return {MEMORY: {"token": token, "half": half, **begun, **before}}
