"""What longer changes over Redfish are made with."""

from collections.abc import Callable
from dataclasses import dataclass

from siderite.baremetal.drivers.contract import Tasks
from siderite.baremetal.drivers.redfish.inside import RedfishInside
from siderite.baremetal.drivers.redfish.lines import Lines
from siderite.baremetal.drivers.switch import Switch
from siderite.core.clock import now as wall_clock

VAGUE_S = 1.0
"""By so much may a time lie ahead and the clock was not set back: processes differ by a little."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of the driver that give orders, switch, look and follow."""

    lines: Lines
    switch: Switch
    inside: RedfishInside
    tasks: Tasks
    clock: Callable[[], float] = wall_clock
