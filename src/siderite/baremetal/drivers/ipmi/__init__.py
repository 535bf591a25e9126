"""Machines whose BMC speaks IPMI: `ipmi` on the wire, on the program ipmitool.

`tool` runs it, `board` is what it is used for, `inside` is inspection, `console` is the serial
line, `driver` puts them together.
"""

from siderite.baremetal.drivers.ipmi.console import SerialOverLan
from siderite.baremetal.drivers.ipmi.driver import ipmi_driver
from siderite.baremetal.drivers.ipmi.tool import IpmiTool

__all__ = ["IpmiTool", "SerialOverLan", "ipmi_driver"]
