"""Power over Redfish."""

from typing import Any

from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.drivers.bmc import PowerOrder
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.contract import Task
from siderite.baremetal.drivers.redfish.errors import quoted
from siderite.baremetal.drivers.redfish.lines import Lines

_READING = "a reading of its power"
_SAID = {
    "On": PowerState.ON,
    "PoweringOn": PowerState.ON,
    "Off": PowerState.OFF,
    "PoweringOff": PowerState.ON,  # not off yet
}
_LONGEST_TIME = 64
# The first that the BMC offers.
_RESETS = {
    PowerOrder.ON: ("On", "ForceOn"),
    PowerOrder.OFF: ("ForceOff",),
    PowerOrder.SOFT_OFF: ("GracefulShutdown", "PushPowerButton"),
    PowerOrder.RESET: ("ForceRestart", "PowerCycle"),
    PowerOrder.SOFT_RESET: ("GracefulRestart",),
}


class RedfishButton:
    """The power button of Redfish systems."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    async def power(self, at: Endpoint) -> PowerState:
        """What the BMC says."""
        said = (await self._lines.system_page(at, _READING)).get("PowerState")
        if not isinstance(said, str) or said not in _SAID:
            shown = "null" if said is None else quoted(at, str(said))
            why = f"it answers that PowerState is {shown}, which is neither on nor off"
            raise Unreachable(
                at.bmc, _READING, why, "It may be starting; look at it if that lasts."
            )
        return _SAID[said]

    async def last_reset(self, at: Endpoint) -> str | None:
        """When the machine was last reset, if the BMC tells."""
        page = await self._lines.system_page(at, "the time of its last reset")
        said = page.get("LastResetTime")
        return said[:_LONGEST_TIME] if isinstance(said, str) and said else None

    async def press(self, at: Endpoint, order: PowerOrder) -> Task | None:
        """Give an order."""
        return await reset(self._lines, at, f"power {order}", *_RESETS[order])


async def reset(lines: Lines, at: Endpoint, doing: str, *kinds: str) -> Task | None:
    """Have the system reset in the first of these ways that its BMC offers."""

    def post(system: Any) -> None:
        offered = {kind.value: kind for kind in system.get_allowed_reset_system_values()}
        for kind in kinds:
            if kind in offered:
                system.reset_system(offered[kind])
                return
        known = ", ".join(sorted(offered))
        raise Refused(at.bmc, doing, f"it offers no {' or '.join(kinds)}, only {known}")

    # What it offers may depend on whether its machine is on: it is read anew.
    return await lines.order(at, doing, post)
