"""Simulated hardware, shipped: `fake-hardware` on the wire.

`machines` is the hardware: it has a memory of its own that survives our crashes, as real machines
do. `scripts` says how it behaves: latencies, failures, outages, per node, per rack or for all.
`driver` drives it as a driver drives real machines; `control` lets operators write the scripts.
"""

from siderite.baremetal.drivers.simulated.console import SimulatedConsole
from siderite.baremetal.drivers.simulated.control import simulator_service
from siderite.baremetal.drivers.simulated.driver import simulated_driver
from siderite.baremetal.drivers.simulated.machines import Machines

__all__ = ["Machines", "SimulatedConsole", "simulated_driver", "simulator_service"]
