"""What drivers of real BMCs share: the orders they give, and what follows from errors."""

from enum import StrEnum
from typing import Protocol

from siderite.baremetal.domain.hardware import HardwareError
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.contract import Task

ASK_AGAIN_S = 5.0


def outcome_of(error: HardwareError) -> Wait | Failed:
    """What a driver answers after this error: what is out of reach may come back."""
    if isinstance(error, Unreachable):
        return Wait(error.sentence, error.again_in or ASK_AGAIN_S)
    return Failed(error.sentence)


class PowerOrder(StrEnum):
    """One order to a BMC's power button."""

    ON = "on"
    OFF = "off"
    SOFT_OFF = "soft off"
    RESET = "reset"
    SOFT_RESET = "soft reset"


class PowerButton(Protocol):
    """A BMC's power: each call is one round trip, and raises HardwareError."""

    async def power(self, at: Endpoint) -> PowerState:
        """What the BMC says."""
        ...

    async def last_reset(self, at: Endpoint) -> str | None:
        """When the machine was last reset, by the BMC's clock and in its words; None if it does not
        tell.
        """
        ...

    async def press(self, at: Endpoint, order: PowerOrder) -> Task | None:
        """Give an order; the machine follows in its own time."""
        ...
