"""Changing firmware settings over Redfish: the steps of interface `bios`.

The BMC keeps what is asked for until the machine starts the next time, so the machine is switched
off, told, and switched on; how far that has come is recorded on the node. Where the BMC makes a
task of it, that ends only after the start; one that already runs is let end before, for a while.
Then the firmware is given time to take them: until they show, or nothing more can be expected.
"""

import zlib
from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import msgspec

from siderite.baremetal.domain import bios
from siderite.baremetal.domain.hardware import BiosSetting
from siderite.baremetal.domain.hardware import Found
from siderite.baremetal.domain.hardware import HardwareError
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Outcome
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.domain.secrets import without
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.drivers.bmc import PowerOrder
from siderite.baremetal.drivers.bmc import outcome_of
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.contract import Task
from siderite.baremetal.drivers.contract import TaskEnd
from siderite.baremetal.drivers.contract import UnderWay
from siderite.baremetal.drivers.redfish.parts import VAGUE_S
from siderite.baremetal.drivers.redfish.parts import Parts
from siderite.baremetal.drivers.switch import MEMORY as RESET
from siderite.core.errors import Invalid

MEMORY = "bios_change"
PATIENCE = 30
"""How often a task that runs while the machine is off is asked for before the machine starts."""
APPLY_S, RESET_S, LOOK_S = 1800.0, 300.0, 5.0
"""How long settings may take to show after a start, how long it may take those of the factory
(which may be what they were), and how often they are looked at meanwhile.
"""
STEPS = [
    Step("bios", name, switches=PowerTarget.REBOOT)
    for name in ("apply_configuration", "factory_reset")
]
Json = dict[str, Any]
Wanted = Mapping[str, bios.Value] | None


class RedfishSettings:
    """Sets and resets firmware settings."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def apply(self, at: Endpoint, step: Step, token: str) -> Outcome:
        """Set what `settings` of the step's arguments asks for."""
        try:
            wanted = bios.settings(step.args.get("settings"))
        except Invalid as why:
            return Failed(why.sentence)

        try:
            outcome = await self._over_a_start(at, token, lambda: self._patch(at, wanted), wanted)
        except HardwareError as why:
            outcome = outcome_of(why)
        if isinstance(outcome, Done):
            return outcome
        # A BMC may say what it has against a value, and with it the value.
        reason = without(outcome.reason, bios.hidden(wanted))
        return msgspec.structs.replace(outcome, reason=reason)

    async def _patch(self, at: Endpoint, wanted: Mapping[str, bios.Value]) -> Task | None:
        """Give the order. Who was killed right after it gives it twice, and a BMC that has settings
        for the next start may take no others until then: they are these.
        """
        try:
            return await self._parts.lines.order(
                at, "new BIOS settings", lambda system: system.bios.set_attributes(wanted)
            )
        except (Refused, Unreachable) as why:
            has_answered = isinstance(why, Refused) or why.is_busy
            if not has_answered or not await self._is_pending(at, wanted):
                raise
            return None

    async def _is_pending(self, at: Endpoint, wanted: Mapping[str, bios.Value]) -> bool:
        try:
            pending = await self._pending(at)
        except HardwareError:
            return False  # it has none, or nobody can tell: what it said to the order stands
        return bios.is_pending(wanted, pending)

    async def _pending(self, at: Endpoint) -> Json:
        return await self._parts.lines.system(at, "its pending BIOS settings", _pending)

    async def _are_gone(self, at: Endpoint, wanted: Wanted) -> bool:
        """Whether the BMC shows that it neither has nor will have them; not if it shows nothing."""
        if wanted is None:
            return False
        try:
            if bios.is_pending(wanted, await self._pending(at)):
                return False
        except Refused:
            return False
        shown = await self._parts.inside.settings(at)
        return bios.differing(wanted, {one.name: one.value for one in shown}) is not None

    async def reset(self, at: Endpoint, step: Step, token: str) -> Outcome:
        """Back to what the factory set."""

        async def post() -> Task | None:
            return await self._parts.lines.order(
                at, "the factory's BIOS settings", lambda system: system.bios.reset_bios()
            )

        return await self._over_a_start(at, token, post, None)

    async def _over_a_start(
        self, at: Endpoint, token: str, tell: Callable[[], Awaitable[Task | None]], wanted: Wanted
    ) -> Outcome:
        memory = _memory(at, token)
        if memory is None or memory.get("tell"):
            waiting = await self._parts.switch.toward(at, PowerOrder.OFF, token)
            return waiting or await self._tell(at, token, tell, wanted, is_again=memory is not None)
        if "since" in memory:
            return await self._settle(at, memory, wanted)
        task = None if memory.get("task") is None else msgspec.convert(memory["task"], Task)
        if task is not None and not memory["starts"]:
            return await self._before_the_start(at, task, memory, wanted)
        waiting = await self._parts.switch.start(at, token)
        if waiting is not None:
            return waiting
        end = await self._parts.tasks.ask(at, task) if task is not None else None
        if isinstance(end, UnderWay):
            return end.wait
        known = {"token": token, "was": memory.get("was"), "since": self._parts.clock()}
        reason = "the machine starts with its settings"
        return Wait(reason, 0.0, remember={MEMORY: known, RESET: None}, power=PowerState.ON)

    async def _tell(
        self,
        at: Endpoint,
        token: str,
        tell: Callable[[], Awaitable[Task | None]],
        wanted: Wanted,
        *,
        is_again: bool,
    ) -> Wait:
        was = None if wanted is not None else _digest(await self._parts.inside.settings(at))
        task = await tell()
        begun = None if task is None else msgspec.to_builtins(task)
        known = {"token": token, "was": was, "task": begun, "starts": False, "again": is_again}
        reason = "the BMC has the settings; the machine is to start with them"
        return Wait(reason, 0.0, remember={MEMORY: known})

    async def _before_the_start(
        self, at: Endpoint, task: Task, memory: Json, wanted: Wanted
    ) -> Wait:
        """What the BMC does with the machine off is let end; what waits for the start is not. One
        that has forgotten its task, as it began anew, and the settings with it, is told once more.
        """
        end = await self._parts.tasks.ask(at, task)
        if end is TaskEnd.LOST and not memory.get("again") and await self._are_gone(at, wanted):
            anew = {MEMORY: {**memory, "task": None, "tell": True}}
            return Wait("the BMC has forgotten the settings, and is told anew", 0.0, remember=anew)
        left = memory.get("patience", PATIENCE)
        if isinstance(end, UnderWay) and end.is_running and left > 0:
            fewer = {MEMORY: {**memory, "patience": left - 1}}
            return Wait(end.reason, end.again_in, remember=fewer)
        goes_on = isinstance(end, UnderWay)
        known = {**memory, "starts": True, "task": memory["task"] if goes_on else None}
        return Wait("the machine is to start with its settings", 0.0, remember={MEMORY: known})

    async def _settle(self, at: Endpoint, memory: Json, wanted: Wanted) -> Outcome:
        """The firmware takes its settings while it starts, which takes minutes: who switched the
        machine off meanwhile would take them away.
        """
        shown = list(await self._parts.inside.settings(at))
        now = self._parts.clock()
        took = now - memory["since"]
        if took < -VAGUE_S:
            anew = {MEMORY: {**memory, "since": now}}
            return Wait("the clock was set back meanwhile", 0.0, remember=anew)
        limit = RESET_S if wanted is None else APPLY_S
        if wanted is None:
            differs = None
            is_over = _digest(shown) != memory.get("was")
        else:
            differs = bios.differing(wanted, {one.name: one.value for one in shown})
            is_over = differs is None
        if not is_over and took < limit:
            return Wait(
                "the machine starts, and its firmware takes the settings:"
                f" {differs or 'they show no change yet'}; it is given {limit:g} s",
                min(LOOK_S, limit - took),
            )
        if differs is not None:
            return Failed(
                f"{at.bmc} took the settings, but {limit:g} s after the machine's start {differs}."
                " Look at the machine's screen and the BMC's log, then ask again."
            )
        found = Found(bios=shown)
        return Done({"power_state": "power on"}, {MEMORY: None, RESET: None}, found)


def _pending(system: Any) -> Json:
    system.bios.refresh(force=True)
    found = system.bios.pending_attributes
    return found if isinstance(found, dict) else {}


def _memory(at: Endpoint, token: str) -> Json | None:
    """How far this run is; a former version kept but its token, if the BMC had no task."""
    memory = at.driver_internal_info.get(MEMORY)
    if isinstance(memory, str):
        memory = {"token": memory}
    return memory if isinstance(memory, dict) and memory.get("token") == token else None


def _digest(settings: Sequence[BiosSetting]) -> int:
    return zlib.crc32(repr([(one.name, one.value) for one in settings]).encode())
