"""A reading of a machine's power: what its BMC says, or why nothing can be said."""

import asyncio

import msgspec

from siderite.baremetal.domain.hardware import HardwareError
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.drivers.contract import Driver
from siderite.baremetal.drivers.contract import Endpoint
from siderite.core.log import get_logger

log = get_logger("reading")

SILENT = "the BMC does not answer: check its address, credentials and network"


class Reading(msgspec.Struct, frozen=True):
    """UNKNOWN has a reason."""

    power: PowerState
    why: str = ""
    is_final: bool = False
    """The BMC answered, and will not say: asking again soon is no use."""
    refuses_login: bool = False
    """It does not take the credentials, and may lock the account if it is asked often."""
    again_in: float | None = None
    """In how many seconds it should be asked again, if that is known."""


async def read_power(driver: Driver, at: Endpoint, *, timeout_s: float | None = None) -> Reading:
    """Ask once; whatever goes wrong is UNKNOWN."""
    try:
        if timeout_s is None:
            power = await driver.power.read(at)
        else:
            async with asyncio.timeout(timeout_s):
                power = await driver.power.read(at)
    except HardwareError as why:
        again_in = why.again_in if isinstance(why, Unreachable) else None
        return Reading(
            PowerState.UNKNOWN, why.sentence, isinstance(why, Refused), why.refuses_login, again_in
        )
    except TimeoutError:
        return Reading(PowerState.UNKNOWN, f"the BMC did not answer within {timeout_s:g} s")
    except Exception as why:
        log.error("a driver failed unexpectedly", node=at.node, error=repr(why), trace=why)
        reason = f"the driver failed ({type(why).__name__}): see the log"
        return Reading(PowerState.UNKNOWN, reason)
    return Reading(power, SILENT if power is PowerState.UNKNOWN else "")
