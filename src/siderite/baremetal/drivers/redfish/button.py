"""Power over Redfish."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.drivers.bmc import PowerOrder
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.contract import Task
from siderite.baremetal.drivers.redfish.errors import quoted
from siderite.baremetal.drivers.redfish.lines import Lines
from siderite.baremetal.drivers.redfish.lines import Page
from siderite.baremetal.drivers.redfish.lines import Read

_READING = "a reading of its power"
_SAID = {
    "On": PowerState.ON,
    "PoweringOn": PowerState.ON,
    "Off": PowerState.OFF,
    "PoweringOff": PowerState.ON,  # not off yet
}
_LONGEST_TIME = 64
_ELSEWHERE = "@Redfish.ActionInfo"
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
    """Have the system reset in the first of these ways that its BMC offers; one that does not say
    what it offers is asked for the first.
    """

    def choose(page: Page, read: Read) -> tuple[str, Page]:
        action = _inside(_inside(page, "Actions"), "#ComputerSystem.Reset")
        target = urlsplit(str(action.get("target") or "")).path
        if not target.startswith("/"):
            raise Refused(at.bmc, doing, "its system's page has no address for resets")
        offered = _offered(action, read) or kinds
        for kind in kinds:
            if kind in offered:
                return target, {"ResetType": kind}
        known = quoted(at, ", ".join(sorted(offered)))
        raise Refused(at.bmc, doing, f"it offers no {' or '.join(kinds)}, only {known}")

    # What it offers may depend on whether its machine is on: it is read anew.
    return await lines.order_plainly(at, doing, choose)


def _offered(action: Page, read: Read) -> Sequence[str]:
    """The kinds of reset that a BMC says it has, here or on a page of their own."""
    listed, where = action.get("ResetType@Redfish.AllowableValues"), action.get(_ELSEWHERE)
    if not listed and isinstance(where, str) and where.startswith("/"):
        found = read(where)
        inside = found.get("Parameters") if isinstance(found, dict) else None
        each = inside if isinstance(inside, list) else ()
        named = (one for one in each if isinstance(one, dict) and one.get("Name") == "ResetType")
        listed = next((one.get("AllowableValues") for one in named), None)
    return [kind for kind in listed if isinstance(kind, str)] if isinstance(listed, list) else ()


def _inside(page: Page, key: str) -> Page:
    found = page.get(key)
    return found if isinstance(found, dict) else {}
