"""Deploying and cleaning from a ramdisk that speaks as ironic-python-agent does.

`client` gives it commands, `ramdisks` makes what a machine boots it from (of what `fetch` has
fetched, if it is not here), `boot` boots it over a BMC, and `steps` are the steps that hardware
types with a BMC have in common.
"""

from siderite.baremetal.drivers.agent.boot import Booter
from siderite.baremetal.drivers.agent.client import Agent
from siderite.baremetal.drivers.agent.ramdisks import Ramdisks
from siderite.baremetal.drivers.agent.ramdisks import RamdiskSettings
from siderite.baremetal.drivers.agent.steps import AgentSteps

__all__ = ["Agent", "AgentSteps", "Booter", "RamdiskSettings", "Ramdisks"]
