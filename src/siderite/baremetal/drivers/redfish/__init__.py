"""Machines whose BMC speaks Redfish: `redfish` on the wire, on the library sushy.

`lines` are the connections; `button` is power, `board` how the machine starts, `media` its virtual
discs, `inside` what the BMC knows of its parts; `driver` puts them together.
"""

from siderite.baremetal.drivers.redfish.driver import redfish_driver
from siderite.baremetal.drivers.redfish.lines import Lines

__all__ = ["Lines", "redfish_driver"]
