"""The power watch: one sweep over all nodes, for ever, that finds out what their machines do.

Nodes whose power changed are read again soon, quiet ones less and less often, up to the interval,
and so are those that have changed again each time; each reading is a little early by chance, so
that a rack does not answer all at once. A few readings are under way at a time, each a task of its
own; a node that waits for its turn is a row. A BMC that does not take the credentials is read ever
more seldom, down to once in an hour, lest it locks the account. Readings that found nothing new are
written down many at a time. Nothing is locked and no transaction is open during a reading: see
`usecases.power.power_watch`.
"""

import asyncio
import random
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.power_truth import Limits
from siderite.baremetal.domain.power_truth import Policy
from siderite.baremetal.domain.power_truth import Verdict
from siderite.baremetal.domain.power_truth import is_left_alone
from siderite.baremetal.domain.power_truth import judge
from siderite.baremetal.domain.power_truth import judge_failure
from siderite.baremetal.drivers.contract import Drivers
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.contract import gone
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.power import power_schedule
from siderite.baremetal.usecases.power import power_watch
from siderite.baremetal.usecases.power.power_schedule import Plan
from siderite.baremetal.usecases.power.power_watch import Watched
from siderite.baremetal.workers.reading import Reading
from siderite.baremetal.workers.reading import read_power
from siderite.core.log import get_logger

log = get_logger("power_watch")

BATCH = 16
BREATH_S = 0.02
"""So many nodes are taken up at a time, then requests are answered: a sweep of many nodes may take
a while, but nobody else should notice it.
"""
GROUP = 6
PACE_S = 0.025
"""So few changes are recorded at a time, and so far apart: when a whole hall comes back from a
power cut, requests are answered meanwhile.
"""
_QUICKEST = 16
"""The shortest pause is the interval by this."""
_SELDOM_S = 3600.0
_SELDOM = (
    "Lest it locks the account it is asked ever more seldom, down to once in an hour, until"
    " driver_info is changed, or maintenance is set and ended."
)
"""The longest pause of a BMC that does not take the credentials, and how that is told."""
_EARLY = 0.25
"""How much of its pause a reading may come early."""


class Rhythm(msgspec.Struct, frozen=True):
    """How often, how many at once, how long for one, and what follows from failures."""

    interval_s: float
    in_flight: int
    timeout_s: float
    limits: Limits
    policy: Policy


class PowerWatch:
    """The sweep over all nodes, or those of one conductor group. Its state is in the database: it
    may be stopped and started anywhere.
    """

    def __init__(
        self,
        ctx: Context,
        drivers: Drivers,
        rhythm: Rhythm,
        group: str | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._ctx = ctx
        self._drivers = drivers
        self._rhythm = rhythm
        self._group = group
        self._chance = chance
        self._readings: dict[str, asyncio.Task[None]] = {}
        self._plans: dict[str, Plan] = {}  # of nodes that are read, not written yet
        self._group_at, self._room = 0.0, 0

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                is_behind = await self._begin()
                if not is_behind or len(self._plans) >= BATCH:
                    await self._write()
                # Without haste: many that became due meanwhile cost little more than one.
                await asyncio.sleep(BREATH_S if is_behind else self._idle_s)
        finally:
            for task in self._readings.values():
                task.cancel()
            await asyncio.gather(*self._readings.values(), return_exceptions=True)
            self._readings.clear()
            self._plans.clear()  # whatever was not written is read again

    @property
    def _idle_s(self) -> float:
        return min(1.0, self._rhythm.interval_s / (2 * _QUICKEST))

    async def _begin(self) -> bool:
        """Begin readings of nodes that are due, as far as there is room; whether more may be."""
        room = min(BATCH, self._rhythm.in_flight - len(self._readings))
        if room <= 0:
            return True
        most = room + len(self._readings) + len(self._plans)
        now = self._ctx.door.clock()
        found = await power_schedule.due(self._ctx, now, most, self._group)
        known = self._readings.keys() | self._plans.keys()
        uuids = [uuid for uuid in found if uuid not in known][:room]
        if not uuids:
            return False
        for item in await power_watch.look(self._ctx, uuids):
            if is_left_alone(item.node, has_work=item.has_work):
                self._plans[item.node.uuid] = self._later(item, failures=item.failures)
            else:
                self._readings[item.node.uuid] = asyncio.create_task(self._reading(item))
        return len(uuids) == room

    async def _write(self) -> None:
        """Write down when nodes are due again of which there was nothing else to write."""
        while self._plans:
            some = list(self._plans.values())[:BATCH]
            now = self._ctx.door.clock()  # which may have been set back since they were made
            soon = [replace(plan, due=min(plan.due, now + plan.pause)) for plan in some]
            await self._ctx.door.store.commit([power_schedule.schedule(soon)])
            for plan in some:
                del self._plans[plan.node]

    async def _reading(self, item: Watched) -> None:
        """Read one node; what went wrong with it is tried again."""
        uuid = item.node.uuid
        try:
            plan = await self._read(item)
        except Exception as why:
            log.error("a reading went wrong", node=uuid, error=repr(why), trace=why)
            plan = self._plan(item, self._rhythm.interval_s, 0)
        del self._readings[uuid]
        if plan is not None:
            self._plans[uuid] = plan

    async def _read(self, item: Watched) -> Plan | None:
        """Read one node and record what follows; the plan if that is all there is to write."""
        reading = await self._ask(item.node)
        observed = reading.power
        if observed is PowerState.UNKNOWN:
            failures = item.failures + 1
            no_entry = reading.is_final and reading.refuses_login
            limits = self._rhythm.limits
            why = f"{reading.why} {_SELDOM}" if reading.refuses_login else reading.why
            verdict = judge_failure(item.node, failures, why, limits, at_once=no_entry)
        else:
            failures = 0
            verdict = judge(item.node, observed, self._policy(item.node))
        plan = self._next(item, reading, verdict, failures)
        if verdict.is_quiet:
            return plan
        await self._turn()
        if not await power_watch.record(self._ctx, item.node, verdict, plan):
            return self._soon(item, item.failures)  # the reading was of a node that is no more
        log.info(
            "power", node=item.node.uuid, recorded=item.node.power_state, observed=observed.value,
            failures=failures, changes=verdict.changes,
        )  # fmt: skip
        return None

    def _next(self, item: Watched, reading: Reading, verdict: Verdict, failures: int) -> Plan:
        """When the node is read again."""
        if reading.refuses_login:
            return self._seldom(item, failures)
        if verdict.is_quiet:
            first = failures == 1 and item.failures == 0
            return self._soon(item, failures) if first else self._later(item, failures=failures)
        is_known = reading.power is not PowerState.UNKNOWN
        if is_known and self._is_restless(item, verdict):
            return self._later(item, failures=0)
        return self._soon(item, failures)

    def _is_restless(self, item: Watched, verdict: Verdict) -> bool:
        """Whether the machine will not stay as the record says, or has moved once more when it was
        just read for that: it is put back, and told of, less and less often.
        """
        return verdict.put_back is not None or 0 < item.pause < self._rhythm.interval_s

    async def _turn(self) -> None:
        """Wait until a change may be recorded."""
        now = asyncio.get_running_loop().time()
        if self._room == 0 or now > self._group_at + PACE_S:
            self._group_at, self._room = max(now, self._group_at + PACE_S), GROUP
        self._room -= 1
        await asyncio.sleep(self._group_at - now)

    async def _ask(self, node: Node) -> Reading:
        """What the hardware says, or why it cannot be told."""
        driver = self._drivers.get(node.driver)
        if driver is None:
            return Reading(PowerState.UNKNOWN, gone(node.driver))
        return await read_power(driver, Endpoint.of(node), timeout_s=self._rhythm.timeout_s)

    def _policy(self, node: Node) -> Policy:
        return self._rhythm.policy if node.power_policy is None else Policy(node.power_policy)

    def _later(self, item: Watched, *, failures: int) -> Plan:
        """Twice the pause it had, up to the interval."""
        interval = self._rhythm.interval_s
        pause = min(interval, max(interval / _QUICKEST, 2 * item.pause))
        return self._plan(item, pause, failures)

    def _seldom(self, item: Watched, failures: int) -> Plan:
        """The interval, then twice the pause it had, up to an hour; a change of the credentials has
        the node read at once.
        """
        interval = self._rhythm.interval_s
        pause = min(max(interval, 2 * item.pause), max(interval, _SELDOM_S))
        return self._plan(item, pause, failures)

    def _soon(self, item: Watched, failures: int) -> Plan:
        return self._plan(item, self._rhythm.interval_s / _QUICKEST, failures)

    def _plan(self, item: Watched, pause: float, failures: int) -> Plan:
        due = self._ctx.door.clock() + pause * (1 - _EARLY * self._chance())
        return Plan(item.node.uuid, due, pause, failures, was=item.pause)
