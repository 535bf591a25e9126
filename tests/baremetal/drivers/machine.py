"""Driving one machine by hand, as a worker would: ask, wait, remember, ask again."""

import asyncio

from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.drivers.contract import Endpoint

PATIENCE_S = 60.0


def node(bmc, **more):
    """The node of a BMC, with more of `driver_info`."""
    return Endpoint("a-node", {**bmc.driver_info, **more}, {}, {})


class Machine:
    """An endpoint, and what its driver wants remembered."""

    def __init__(self, driver_info, **interfaces):
        self.driver_info = dict(driver_info)
        self.memory = {}
        self.interfaces = interfaces
        self.waits = []
        self.instance_info = {}
        self.stays_on = False
        self.pause_s = 0.1

    @property
    def at(self):
        return Endpoint(
            "n1",
            self.driver_info,
            {},
            self.instance_info,
            self.memory,
            self.interfaces,
            stays_on=self.stays_on,
        )

    async def until_done(self, ask):
        """Ask until the answer is no `Wait`."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                outcome = await ask(self.at)
                if isinstance(outcome, Done | Wait):
                    self.memory |= outcome.remember
                if not isinstance(outcome, Wait):
                    return outcome
                self.waits.append(outcome.reason)
                await asyncio.sleep(min(outcome.again_in, self.pause_s))

    async def power(self, driver, target, token="t"):
        """Change power, to the end."""
        return await self.until_done(lambda at: driver.power.set(at, target, f"{token}/{target}"))
