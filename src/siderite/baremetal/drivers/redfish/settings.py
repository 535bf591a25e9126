"""Changing firmware settings over Redfish: the steps of interface `bios`.

The BMC keeps what is asked for until the machine starts the next time, so the machine is switched
off, told, and switched on; how far that has come is recorded on the node.
"""

from collections.abc import Awaitable
from collections.abc import Callable
from typing import Any

from siderite.baremetal.domain.hardware import Found
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Outcome
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.drivers.bmc import PowerOrder
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.redfish.inside import RedfishInside
from siderite.baremetal.drivers.redfish.lines import Lines
from siderite.baremetal.drivers.switch import MEMORY as RESET
from siderite.baremetal.drivers.switch import Switch

MEMORY = "bios_change"
STEPS = [Step("bios", "apply_configuration"), Step("bios", "factory_reset")]


class RedfishSettings:
    """Sets and resets firmware settings."""

    def __init__(self, lines: Lines, switch: Switch, inside: RedfishInside) -> None:
        self._lines = lines
        self._switch = switch
        self._inside = inside

    async def apply(self, at: Endpoint, step: Step, token: str) -> Outcome:
        """Set what `settings` of the step's arguments asks for."""
        wanted = _wanted(step.args.get("settings"))
        if wanted is None:
            return Failed("args.settings must be a list of objects with name and value")

        async def patch() -> None:
            await self._lines.system(
                at, "new BIOS settings", lambda system: system.bios.set_attributes(wanted)
            )

        return await self._over_a_start(at, token, patch)

    async def reset(self, at: Endpoint, step: Step, token: str) -> Outcome:
        """Back to what the factory set."""

        async def post() -> None:
            await self._lines.system(
                at, "the factory's BIOS settings", lambda system: system.bios.reset_bios()
            )

        return await self._over_a_start(at, token, post)

    async def _over_a_start(
        self, at: Endpoint, token: str, tell: Callable[[], Awaitable[None]]
    ) -> Outcome:
        memory = at.driver_internal_info.get(MEMORY)
        if memory != token:
            waiting = await self._switch.toward(at, PowerOrder.OFF, token)
            if waiting is not None:
                return waiting
            await tell()
            return Wait("the BMC has the settings; the machine is to start with them", 0.0,
                        remember={MEMORY: token})  # fmt: skip
        waiting = await self._switch.start(at, token)
        if waiting is not None:
            return waiting
        found = Found(bios=list(await self._inside.settings(at)))
        return Done({"power_state": "power on"}, {MEMORY: None, RESET: None}, found)


def _wanted(settings: Any) -> dict[str, Any] | None:
    if not isinstance(settings, list) or not settings:
        return None
    wanted = {}
    for one in settings:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str) or "value" not in one:
            return None
        wanted[one["name"]] = one["value"]
    return wanted
