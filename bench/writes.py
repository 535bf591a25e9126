"""The workloads that write one row: create a node, PATCH a node; and the client's own limit."""

from collections import Counter
from collections.abc import Callable
from itertools import count

from bench import load
from bench.capture import Answer
from bench.commits import Kind
from bench.figure import Figure
from bench.figure import Measured
from bench.figure import Unit
from bench.load import Request
from bench.stage import Stage


def create(stage: Stage) -> Measured:
    """Create nodes; against bare inserts."""
    assert stage.fleet.size
    fleet = stage.new_fleet(0)
    numbers = count()
    return _in_turns(stage, lambda _: fleet.create(next(numbers)), Kind.INSERT)


def patch(stage: Stage) -> Measured:
    """PATCH a field of /extra, each client nodes of its own; against bare updates."""
    fleet, clients = stage.fleet, stage.plan.writers
    numbers = [count() for _ in range(clients)]

    def make(client: int) -> Request:
        number = next(numbers[client])
        node = (number * clients + client) % (fleet.size - fleet.size % clients)
        body = b'[{"op": "add", "path": "/extra/bench", "value": "%d"}]' % number
        return Request("PATCH", f"/v1/nodes/{fleet.uuid(node)}", body, 200)

    return _in_turns(stage, make, Kind.UPDATE)


def ceiling(stage: Stage) -> Figure:
    """What the client does at most: the same creates, answered by the static app."""
    fleet = stage.new_fleet(0)
    answer = Answer.taken(stage.address, fleet.create(0))
    child, address = stage.static([answer])
    numbers = count(1)
    try:
        tallies = [
            load.run(
                load.for_seconds(
                    address,
                    lambda _: fleet.create(next(numbers)),
                    clients=stage.plan.writers,
                    seconds=stage.plan.limit_seconds,
                )
            )
            for _ in range(stage.plan.rounds)
        ]
    finally:
        child.stop()
    return Figure(Unit.RATE, tuple(tally.rate for tally in tallies))


def _in_turns(stage: Stage, make: Callable[[int], Request], kind: Kind) -> Measured:
    plan = stage.plan
    samples: list[float] = []
    limits: list[float] = []
    others: Counter[int] = Counter()
    for _ in range(plan.rounds):
        tally = load.run(
            load.for_seconds(stage.address, make, clients=plan.writers, seconds=plan.seconds)
        )
        samples.append(tally.rate)
        others += tally.others
        if stage.commits is not None:
            limits.append(stage.commits.rate(kind, plan.limit_seconds))
    notes = tuple(f"{times} answers had status {status}" for status, times in others.items())
    return Measured(
        Figure(Unit.RATE, tuple(samples), others.total(), notes),
        Figure(Unit.RATE, tuple(limits)) if limits else None,
    )
