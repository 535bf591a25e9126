"""Compares what hosts run with what the record says: all of them every so often, and at once those
of which a host tells something.

A host is asked once for all its guests; only servers whose power differs are looked at one by one.
A reading counts only if the server has not changed since before it was taken.
"""

import asyncio
from collections.abc import Mapping
from collections.abc import Sequence

from siderite.compute.domain.host import Host
from siderite.compute.domain.power import Power
from siderite.compute.domain.power_truth import Policy
from siderite.compute.domain.power_truth import Verdict
from siderite.compute.domain.power_truth import settle
from siderite.compute.domain.server_machine import V
from siderite.compute.drivers.contract import At
from siderite.compute.usecases.fleet import hosts
from siderite.compute.usecases.server import power_truth
from siderite.compute.usecases.server.power_truth import Reading
from siderite.compute.usecases.server.power_truth import Recorded
from siderite.compute.workers.hands import Hands
from siderite.core.errors import SideriteError
from siderite.core.log import get_logger

log = get_logger("power")

PATIENCE_S = 60.0
SETTLE_S = 1.0
"""Between a host's word and our look: a guest that reboots is off for a moment."""
FORGET_S = 15.0
"""For so long a guest is looked at after its host's last word."""
_NEW_HOSTS_S = 10.0
"""How often hosts that came or went are looked for."""


class PowerSync:
    """All servers, or those of a conductor group, host by host."""

    def __init__(
        self, hands: Hands, group: str | None = None, *, every_s: float, at_once: int
    ) -> None:
        self._hands = hands
        self.group = group
        self._every_s = every_s
        self._turns = asyncio.Semaphore(at_once)

    async def run(self) -> None:
        """For ever, if it is wanted."""
        while self._every_s > 0:
            await asyncio.sleep(self._every_s)
            try:
                await self.round()
            except Exception as why:
                log.error("cannot compare the power of servers", error=repr(why))

    async def round(self) -> int:
        """Look at every host once; how many servers were not as recorded."""
        found = await hosts.every(self._hands.ctx, self.group)
        return sum(await asyncio.gather(*(self.look(host) for host in found)))

    async def look(self, host: Host, only: Sequence[str] | None = None) -> int:
        """Look at a host's servers, or at some of them."""
        driver = self._hands.drivers.get(host.driver)
        if driver is None:
            return 0
        recorded = await power_truth.on_host(self._hands.ctx, host.name, only)
        if not recorded:
            return 0
        try:
            async with self._turns, asyncio.timeout(PATIENCE_S):
                states = await driver.life.states(At(host.name, host.uri, host.options))
        except Exception as why:
            log.warning("cannot read the power of a host's servers", host=host.name, why=repr(why))
            return 0
        if states is None:
            return 0
        readings = [(one, _reading(one, states, knows_all=driver.knows_all)) for one in recorded]
        differ = [(one, reading) for one, reading in readings if _differs(one, reading.power)]
        await asyncio.gather(*(self._settle(one, reading) for one, reading in differ))
        return len(differ)

    async def _settle(self, one: Recorded, seen: Reading) -> None:
        async with self._turns:
            try:
                verdict = await power_truth.found(self._hands.ctx, one.uuid, one.version, seen)
            except SideriteError as why:
                log.info("not now", server=one.uuid, why=why.sentence)
                return
        if verdict is not Verdict.NOTHING:
            log.info("power was not as recorded", server=one.uuid, seen=seen.words, then=verdict)


def _reading(one: Recorded, states: Mapping[str, Power], *, knows_all: bool) -> Reading:
    seen = states.get(one.uuid)
    if seen is not None:
        return Reading(seen)
    # One that never came to be is no news.
    was_there = one.vm_state == V.ACTIVE or Power(one.power_state) is not Power.NOSTATE
    is_gone = knows_all and was_there
    return Reading(Power.SHUTDOWN if is_gone else Power.NOSTATE, is_gone=is_gone)


def _differs(one: Recorded, seen: Power) -> bool:
    """Whether a reading may lead to anything, under whatever policy."""
    recorded = Power(one.power_state)
    verdict = settle(one.vm_state, one.task_state, recorded, seen, Policy.HARDWARE)
    return verdict is not Verdict.NOTHING


class Lifecycle:
    """Listens to hosts that tell of their guests, those that `sync` looks at: one task per host."""

    def __init__(self, hands: Hands, sync: PowerSync) -> None:
        self._hands = hands
        self._sync = sync
        self._listening: dict[str, asyncio.Task[None]] = {}
        """By the host's UUID: one that was removed and added anew may be elsewhere."""

    async def run(self) -> None:
        """For ever; hosts may come and go."""
        try:
            while True:
                await self._listen_to_all()
                await asyncio.sleep(_NEW_HOSTS_S)
        finally:
            for task in self._listening.values():
                task.cancel()

    async def _listen_to_all(self) -> None:
        try:
            every = await hosts.every(self._hands.ctx, self._sync.group)
            found = {host.uuid: host for host in every}
        except Exception as why:
            log.warning("cannot list hosts", error=repr(why))
            return
        for uuid, task in list(self._listening.items()):
            if task.done() or uuid not in found:
                task.cancel()
                del self._listening[uuid]
        for uuid, host in found.items():
            driver = self._hands.drivers.get(host.driver)
            if uuid not in self._listening and driver is not None and driver.watch is not None:
                self._listening[uuid] = asyncio.create_task(self._listen(host))

    async def _listen(self, host: Host) -> None:
        watch = self._hands.drivers[host.driver].watch
        if watch is None:
            return
        heard: dict[str, float] = {}
        news = asyncio.Event()

        async def tell(uuid: str, power: Power) -> None:
            heard[uuid] = asyncio.get_running_loop().time()
            news.set()

        looking = asyncio.create_task(self._look_after(host, heard, news))
        try:
            await watch.watch(At(host.name, host.uri, host.options), tell)
        except Exception as why:
            log.warning("cannot listen to a host", host=host.name, error=repr(why))
        finally:
            looking.cancel()

    async def _look_after(self, host: Host, heard: dict[str, float], news: asyncio.Event) -> None:
        """Look at all once the listening began: nobody told of what happened before. Then at those
        that were told of, all that there are in one go, until no work on them can be under way that
        would have hidden it. Of most of thousands of hosts there is no news: nothing is done then.
        """
        only: list[str] | None = None
        while True:
            await asyncio.sleep(SETTLE_S)
            now = asyncio.get_running_loop().time()
            try:
                if only is None or only:
                    await self._sync.look(host, only)
            except Exception as why:
                log.error("cannot look at a host's servers", host=host.name, error=repr(why))
            for uuid in [uuid for uuid, told_at in heard.items() if now - told_at > FORGET_S]:
                del heard[uuid]
            if not heard:
                news.clear()
                await news.wait()
            only = list(heard)
