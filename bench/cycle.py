"""The workload of a node's whole life: managed, cleaned, deployed, torn down, cleaned again."""

import asyncio
import time
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
from bench.watch import Watch
from bench.watch import ask
from bench.watch import rests_in

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


def cycle(stage: Stage) -> Measured:
    """Whole lives per second, so many nodes at once; against bare commits of nine rows each.

    Each node is made anew for each of its lives, so that none waits for the slowest of a round.
    """
    plan = stage.plan
    assert stage.fleet.size
    samples: list[float] = []
    limits: list[float] = []
    problems: list[str] = []
    for _ in range(plan.cycle_rounds):
        fleet = stage.new_fleet(plan.at_once)
        done, elapsed_s, failures = load.run(_round(stage.address, fleet, plan.lives))
        samples.append(done / elapsed_s)
        problems += failures
        if stage.commits is not None:
            limits.append(stage.commits.rate(Kind.UPDATE, plan.limit_seconds) / TRANSITIONS)
    notes = tuple(problems[:3])
    return Measured(
        Figure(Unit.RATE, tuple(samples), len(problems), notes),
        Figure(Unit.RATE, tuple(limits)) if limits else None,
    )


async def _round(address: Address, fleet: Fleet, lives: int) -> tuple[int, float, list[str]]:
    """Lead all nodes of a new fleet through their lives at once: how many lives, in what time."""
    await load.all_of(address, fleet.creates(), clients=8)
    problems: list[str] = []
    async with AsyncExitStack() as stack:
        watch = await stack.enter_async_context(Watch(address, fleet))
        crowd = [await stack.enter_async_context(Client(address)) for _ in range(fleet.size)]

        async def live(number: int) -> None:
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    for life in range(lives):
                        if life:
                            await _begin_again(crowd[number], fleet, number)
                        await _live(crowd[number], fleet.uuid(number), watch)
            except (NodeFailed, TimeoutError) as problem:
                problems.append(str(problem) or f"not done after {_PATIENCE_S} s")

        begin = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in range(fleet.size):
                group.create_task(live(number))
        return (fleet.size - len(problems)) * lives, time.perf_counter() - begin, problems


async def _live(client: Client, uuid: str, watch: Watch) -> None:
    for verb, state in LIFE:
        await ask(client, uuid, "provision", verb)
        await watch.until(uuid, rests_in(state))


async def _begin_again(client: Client, fleet: Fleet, number: int) -> None:
    """Delete the node and make it once more."""
    uuid = fleet.uuid(number)
    gone = await client.send("DELETE", f"/v1/nodes/{uuid}")
    if gone.status != 204:
        raise NodeFailed(f"deleting {uuid}: {gone.status} {gone.body[:300].decode()}")
    again = fleet.create(number)
    made = await client.send(again.method, again.path, again.body)
    if made.status != again.expect:
        raise NodeFailed(f"making {uuid} again: {made.status} {made.body[:300].decode()}")
