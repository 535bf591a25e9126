"""The workload of a node's whole life: managed, cleaned, deployed, torn down, cleaned again."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

from bench import load
from bench.address import Address
from bench.client import Client
from bench.commits import Kind
from bench.figure import Figure
from bench.figure import Measured
from bench.figure import Unit
from bench.fleet import Fleet
from bench.stage import Stage
from bench.watch import NodeFailed
from bench.watch import Wait
from bench.watch import ask
from bench.watch import rests_in
from bench.watch import waiting

# Verb, and the state it ends in.
LIFE = (
    ("manage", "manageable"),
    ("provide", "available"),
    ("active", "active"),
    ("deleted", "available"),
)
# Into each end state and into the active states on the way: verifying, cleaning, deploying,
# deleting and cleaning again. The least number of durable changes of state that a cycle has.
TRANSITIONS = 9
_PATIENCE_S = 900.0
_SETTLE_S = 2.0
"""What a service still does with new nodes after its answers is not part of their lives."""


def cycle(stage: Stage) -> Measured:
    """Whole lives per second, so many nodes at once; against bare commits of nine rows each.

    All nodes are made before. Whoever is through with one goes on with the next, so that none waits
    for the slowest. One client looks after all nodes for those who wait.
    """
    return _cycle(stage, each_alone=False)


def cycle_each(stage: Stage) -> Measured:
    """The same, and everyone asks for its own node."""
    return _cycle(stage, each_alone=True)


def _cycle(stage: Stage, *, each_alone: bool) -> Measured:
    plan = stage.plan
    assert stage.fleet.size
    samples: list[float] = []
    limits: list[float] = []
    problems: list[str] = []
    for _ in range(plan.cycle_rounds):
        fleets = [stage.new_fleet(plan.at_once) for _ in range(plan.cycle_lives)]
        done, elapsed_s, failures = load.run(_round(stage.address, fleets, each_alone=each_alone))
        load.run(_remove(stage.address, fleets))
        samples.append(done / elapsed_s)
        problems += failures
        if stage.commits is not None:
            limits.append(stage.commits.rate(Kind.UPDATE, plan.limit_seconds) / TRANSITIONS)
    notes = tuple(problems[:3])
    return Measured(
        Figure(Unit.RATE, tuple(samples), len(problems), notes),
        Figure(Unit.RATE, tuple(limits)) if limits else None,
    )


async def _round(
    address: Address, fleets: Sequence[Fleet], *, each_alone: bool
) -> tuple[int, float, list[str]]:
    """Lead the nodes of new fleets through their lives, so many at once as a fleet has: how many
    lives, in what time.
    """
    await load.all_of(address, [make for fleet in fleets for make in fleet.creates()], clients=8)
    await asyncio.sleep(_SETTLE_S)
    problems: list[str] = []
    done = 0
    async with AsyncExitStack() as stack:
        wait = await stack.enter_async_context(waiting(address, *fleets, each_alone=each_alone))

        async def lead(number: int, client: Client) -> None:
            nonlocal done
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    for fleet in fleets:
                        await _live(client, fleet.uuid(number), wait)
                        done += 1
            except (NodeFailed, TimeoutError) as problem:
                problems.append(str(problem) or f"not done after {_PATIENCE_S} s")

        crowd = [await stack.enter_async_context(Client(address)) for _ in range(fleets[0].size)]
        begin = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number, client in enumerate(crowd):
                group.create_task(lead(number, client))
        return done, time.perf_counter() - begin, problems


async def _remove(address: Address, fleets: Sequence[Fleet]) -> None:
    """Nobody shall have to look after these nodes while others are measured."""
    gone = [remove for fleet in fleets for remove in fleet.deletes()]
    await load.all_of(address, gone, clients=8)


async def _live(client: Client, uuid: str, wait: Wait) -> None:
    for verb, state in LIFE:
        await ask(client, uuid, "provision", verb)
        await wait(client, uuid, rests_in(state))
