"""Changing firmware settings over Redfish: the steps of interface `bios`.

The BMC keeps what is asked for until the machine starts the next time, so the machine is switched
off, told, and switched on; how far that has come is recorded on the node. Where the BMC makes a
task of it, that ends only after the start; one that already runs is let end before, for a while.
"""

from collections.abc import Awaitable
from collections.abc import Callable
from typing import Any

import msgspec

from siderite.baremetal.domain import bios
from siderite.baremetal.domain.hardware import Found
from siderite.baremetal.domain.hardware import HardwareError
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Outcome
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.secrets import without
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.drivers.bmc import PowerOrder
from siderite.baremetal.drivers.bmc import outcome_of
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.contract import Task
from siderite.baremetal.drivers.contract import Tasks
from siderite.baremetal.drivers.contract import UnderWay
from siderite.baremetal.drivers.redfish.inside import RedfishInside
from siderite.baremetal.drivers.redfish.lines import Lines
from siderite.baremetal.drivers.switch import MEMORY as RESET
from siderite.baremetal.drivers.switch import Switch
from siderite.core.errors import Invalid

MEMORY = "bios_change"
PATIENCE = 30
"""How often a task that runs while the machine is off is asked for before the machine starts."""
STEPS = [Step("bios", "apply_configuration"), Step("bios", "factory_reset")]


class RedfishSettings:
    """Sets and resets firmware settings."""

    def __init__(self, lines: Lines, switch: Switch, inside: RedfishInside, tasks: Tasks) -> None:
        self._lines = lines
        self._switch = switch
        self._inside = inside
        self._tasks = tasks

    async def apply(self, at: Endpoint, step: Step, token: str) -> Outcome:
        """Set what `settings` of the step's arguments asks for."""
        try:
            wanted = bios.settings(step.args.get("settings"))
        except Invalid as why:
            return Failed(why.sentence)

        async def patch() -> Task | None:
            return await self._lines.order(
                at, "new BIOS settings", lambda system: system.bios.set_attributes(wanted)
            )

        try:
            outcome = await self._over_a_start(at, token, patch)
        except HardwareError as why:
            outcome = outcome_of(why)
        if isinstance(outcome, Done):
            return outcome
        # A BMC may say what it has against a value, and with it the value.
        reason = without(outcome.reason, bios.hidden(wanted))
        return msgspec.structs.replace(outcome, reason=reason)

    async def reset(self, at: Endpoint, step: Step, token: str) -> Outcome:
        """Back to what the factory set."""

        async def post() -> Task | None:
            return await self._lines.order(
                at, "the factory's BIOS settings", lambda system: system.bios.reset_bios()
            )

        return await self._over_a_start(at, token, post)

    async def _over_a_start(
        self, at: Endpoint, token: str, tell: Callable[[], Awaitable[Task | None]]
    ) -> Outcome:
        memory: Any = at.driver_internal_info.get(MEMORY)
        task = _task(memory, token)
        if memory != token and task is None:
            waiting = await self._switch.toward(at, PowerOrder.OFF, token)
            if waiting is not None:
                return waiting
            task = await tell()
            known: Any = token
            if task is not None:
                known = {"token": token, "task": msgspec.to_builtins(task), "starts": False}
            return Wait("the BMC has the settings; the machine is to start with them", 0.0,
                        remember={MEMORY: known})  # fmt: skip
        if task is not None and not memory["starts"]:
            return await self._before_the_start(at, task, memory)
        waiting = await self._switch.start(at, token)
        if waiting is not None:
            return waiting
        end = await self._tasks.ask(at, task) if task is not None else None
        if isinstance(end, UnderWay):
            return end.wait
        found = Found(bios=list(await self._inside.settings(at)))
        return Done({"power_state": "power on"}, {MEMORY: None, RESET: None}, found)

    async def _before_the_start(self, at: Endpoint, task: Task, memory: Any) -> Wait:
        """What the BMC does with the machine off is let end; what waits for the start is not."""
        end = await self._tasks.ask(at, task)
        left = memory.get("patience", PATIENCE)
        if isinstance(end, UnderWay) and end.is_running and left > 0:
            fewer = {MEMORY: {**memory, "patience": left - 1}}
            return Wait(end.reason, end.again_in, remember=fewer)
        known = {**memory, "starts": True} if isinstance(end, UnderWay) else memory["token"]
        return Wait("the machine is to start with its settings", 0.0, remember={MEMORY: known})


def _task(memory: Any, token: str) -> Task | None:
    if not isinstance(memory, dict) or memory.get("token") != token:
        return None
    return msgspec.convert(memory["task"], Task)
