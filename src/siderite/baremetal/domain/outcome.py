"""What a driver answers: done, waiting for something, or failed. Values, not exceptions."""

from typing import Any

import msgspec

from siderite.baremetal.domain.hardware import Found
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.power import PowerTarget


class Done(msgspec.Struct, frozen=True):
    """Finished; `changes` are the node's fields that follow, such as inspected properties.

    `remember` goes into the node's `driver_internal_info`; None forgets a key. `found` is kept
    beside the node, such as its inventory.
    """

    changes: dict[str, Any] = {}
    remember: dict[str, Any] = {}
    found: Found | None = None


class Wait(msgspec.Struct, frozen=True):
    """Not finished: why, and in how many seconds it is worth asking again.

    `callback` says that the node's ramdisk will call; the node then shows its wait state. With
    `is_away` it does not answer, and is asked when it calls: before, nobody has the work, and it
    could be told to begin what has been given up.
    `remember` goes into the node's `driver_internal_info` before the driver is asked again; None
    forgets a key. `switches` says that the machine's power is about to be changed so, which is
    announced before the driver is asked again; `power` what the machine has by now.
    """

    reason: str
    again_in: float
    callback: bool = False
    remember: dict[str, Any] = {}
    switches: PowerTarget | None = None
    power: PowerState | None = None
    is_away: bool = False


class Failed(msgspec.Struct, frozen=True):
    """It cannot be done; the reason is for the operator, with the remedy if there is one."""

    reason: str


class StillThere(msgspec.Struct, frozen=True):
    """A ramdisk that was given up goes on running, or may: why, and what to do about it.

    `remember` is as that of `Done`.
    """

    reason: str
    remember: dict[str, Any] = {}


Outcome = Done | Wait | Failed
