"""Keeps in touch with hosts: asks what they offer, so that those who answer count as up."""

import asyncio
from collections.abc import Sequence

from siderite.compute.domain.host import Host
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Inventory
from siderite.compute.usecases.fleet import asking
from siderite.compute.usecases.fleet import hosts
from siderite.compute.usecases.fleet.hosts import Offer
from siderite.compute.usecases.server import acting
from siderite.compute.workers import stalled
from siderite.compute.workers.hands import Hands
from siderite.core.log import get_logger
from siderite.core.store import Lost

log = get_logger("hosts")

EVERY_S = 10.0
AT_ONCE = 32
PATIENCE_S = 20.0
_SOON_S = 5.0


class HostWatch:
    """One round asks all hosts, or those of a conductor group, at once, so many at a time."""

    def __init__(self, hands: Hands, group: str | None = None) -> None:
        self._hands = hands
        self._group = group
        self._again = asyncio.Event()
        self._known: dict[str, tuple[float, list[Offer]]] = {}
        """What hosts offered when they were last heard of, by their UUID: written down only when it
        changes, or is not there any more.
        """

    def look_now(self) -> None:
        """A host was added: do not wait for the next round."""
        self._again.set()

    async def run(self) -> None:
        """For ever."""
        self._known.clear()  # another process may have written down something else meanwhile
        while True:
            self._again.clear()
            try:
                await self.round()
            except Exception as why:
                log.error("cannot look at hosts", error=repr(why))
            try:
                async with asyncio.timeout(EVERY_S):
                    await self._again.wait()
            except TimeoutError:
                continue

    async def round(self) -> None:
        """Ask every host once."""
        async with self._hands.asking.turn:
            await self.ask_all(await hosts.every(self._hands.ctx, self._group))

    async def ask_all(self, some: Sequence[Host]) -> None:
        """Ask these hosts at once, so many at a time."""
        turns = asyncio.Semaphore(AT_ONCE)

        async def one(host: Host) -> None:
            async with turns:
                await self._ask(host)

        await asyncio.gather(*(one(host) for host in some))

    async def ask(self, host: Host) -> str | None:
        """Ask one host and write down what it says; why it cannot be used, if it cannot."""
        self._known.pop(host.uuid, None)
        return await self._ask(host)

    async def _ask(self, host: Host) -> str | None:
        problem = await self._heard(host)
        if problem is None:
            await stalled.go_on(self._hands, host)
        self._hands.asking.at[host.name] = self._hands.ctx.door.clock()
        return problem

    async def _heard(self, host: Host) -> str | None:
        driver = self._hands.drivers.get(host.driver)
        if driver is None:
            return f"driver {host.driver} is not there"
        try:
            async with asyncio.timeout(PATIENCE_S):
                answer = await driver.life.capacity(At(host.name, host.uri, host.options))
        except Exception as why:
            log.warning("host does not answer", host=host.name, error=repr(why))
            return repr(why)
        if not isinstance(answer, Sequence):
            log.warning("host cannot be used", host=host.name, reason=answer.reason)
            return answer.reason
        offers = [_offer(one) for one in answer]
        last, known = self._known.pop(host.uuid, (0.0, None))
        at = await hosts.alive(self._hands.ctx, host.name, last) if known == offers else None
        try:
            at = at or await hosts.heard(self._hands.ctx, host.name, offers)
        except Lost:
            if await hosts.named(self._hands.ctx, host.name) is None:
                return "it was removed meanwhile"
            return None  # another process has just written it down
        self._known[host.uuid] = at, offers
        return None


async def ask_silent(hands: Hands) -> None:
    """Ask the hosts that were not heard of lately, before somebody is told that there are none: if
    the database was away, or all who ask them, it was not they who were silent.
    """
    async with hands.asking.turn:
        now = hands.ctx.door.clock()
        silent = await hosts.silent(hands.ctx)
        asked = hands.asking.at
        late = [one for one in silent if not 0 <= now - asked.get(one.name, 0.0) <= EVERY_S]
        await HostWatch(hands).ask_all([host for host in late if hands.serves(host)])
        others = [host for host in late if not hands.serves(host)]
        for host in others:
            asked[host.name] = now
        await asyncio.gather(*(asking.check(hands.ctx, host, _SOON_S) for host in others))


async def answers(hands: Hands, name: str) -> bool:
    """Whether a host that was taken for down, and that nobody forced down, answers after all:
    perhaps it was not asked, as above.
    """
    async with hands.asking.turn:
        now, asked = hands.ctx.door.clock(), hands.asking.at
        host = await hosts.named(hands.ctx, name)
        if host is None or host.forced_down:
            return False
        if not 0 <= now - asked.get(name, 0.0) <= EVERY_S:
            if hands.serves(host):
                await HostWatch(hands).ask(host)
            else:
                asked[name] = now
                await asking.check(hands.ctx, host, _SOON_S)
    return await acting.is_down(hands.ctx, name) is False


def _offer(one: Inventory) -> Offer:
    return Offer(
        node=one.node, type=one.hypervisor_type, version=one.hypervisor_version, vcpus=one.vcpus,
        ram_mib=one.ram_mib, disk_gib=one.disk_gib, resource_class=one.resource_class,
        traits=one.traits, address=one.address, cpu_info=one.cpu_info,
        is_available=one.is_available, why_not=one.why_not,
    )  # fmt: skip
