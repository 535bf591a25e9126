"""The workload of power: nodes switched on and off in turn, each change waited for."""

import asyncio
import time
from contextlib import AsyncExitStack
from itertools import cycle

from bench import load
from bench.client import Client
from bench.commits import Kind
from bench.figure import Figure
from bench.figure import Measured
from bench.figure import Unit
from bench.fleet import Fleet
from bench.stage import Stage
from bench.watch import NodeFailed
from bench.watch import Watch
from bench.watch import ask
from bench.watch import has_power
from bench.watch import rests_in
from bench.watch import waiting

# The wish and its fulfilment: the least number of durable changes.
TRANSITIONS = 2


def power(stage: Stage) -> Measured:
    """Power changes per second, so many nodes at once; against bare commits of two rows each. One
    client looks after all nodes for those who wait.
    """
    return _power(stage, each_alone=False)


def power_each(stage: Stage) -> Measured:
    """The same, and everyone asks for its own node."""
    return _power(stage, each_alone=True)


def _power(stage: Stage, *, each_alone: bool) -> Measured:
    plan = stage.plan
    assert stage.fleet.size
    fleet = stage.new_fleet(plan.at_once)
    samples: list[float] = []
    limits: list[float] = []
    problems: list[str] = []
    load.run(_make_manageable(stage, fleet))
    for _ in range(plan.rounds):
        rate, failures = load.run(_round(stage, fleet, each_alone=each_alone))
        samples.append(rate)
        problems += failures
        if stage.commits is not None:
            limits.append(stage.commits.rate(Kind.UPDATE, plan.limit_seconds) / TRANSITIONS)
    return Measured(
        Figure(Unit.RATE, tuple(samples), len(problems), tuple(problems[:3])),
        Figure(Unit.RATE, tuple(limits)) if limits else None,
    )


async def _make_manageable(stage: Stage, fleet: Fleet) -> None:
    await load.all_of(stage.address, fleet.creates(), clients=stage.plan.writers)
    async with Watch(stage.address, fleet) as watch, Client(stage.address) as client:
        for number in range(fleet.size):
            await ask(client, fleet.uuid(number), "provision", "manage")
            await watch.until(fleet.uuid(number), rests_in("manageable"))


async def _round(stage: Stage, fleet: Fleet, *, each_alone: bool) -> tuple[float, list[str]]:
    """Switch all nodes on and off until the time is up: changes per second, and what failed."""
    problems: list[str] = []
    changes = 0
    async with AsyncExitStack() as stack:
        wait = await stack.enter_async_context(waiting(stage.address, fleet, each_alone=each_alone))
        crowd = [await stack.enter_async_context(Client(stage.address)) for _ in range(fleet.size)]
        begin = time.perf_counter()
        until = begin + stage.plan.seconds

        async def switch(number: int) -> None:
            nonlocal changes
            uuid = fleet.uuid(number)
            for target in cycle(("power on", "power off")):
                try:
                    await ask(crowd[number], uuid, "power", target)
                    await wait(crowd[number], uuid, has_power(target))
                except NodeFailed as problem:
                    problems.append(str(problem))
                    return
                changes += 1
                # Each round ends with the power off, so that the next one has something to do.
                if target == "power off" and time.perf_counter() > until:
                    return

        async with asyncio.TaskGroup() as group:
            for number in range(fleet.size):
                group.create_task(switch(number))
        return changes / (time.perf_counter() - begin), problems
