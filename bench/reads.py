"""The workloads that read: one node, and a page of nodes with all their fields; wrk asks."""

import json

from bench import wrk
from bench.address import Address
from bench.capture import Answer
from bench.capture import NotAsExpected
from bench.figure import Figure
from bench.figure import Measured
from bench.figure import Unit
from bench.load import Request
from bench.stage import Stage


def one_node(stage: Stage) -> Measured:
    """GET one node, over several connections; against the static app with the same bytes."""
    path = f"/v1/nodes/{stage.fleet.uuid(stage.fleet.size // 2)}"
    return _in_turns(stage, path, Unit.RATE, connections=stage.plan.readers)


def detail_list(stage: Stage) -> Measured:
    """Time of a page of the detail list, over one connection; against the static app."""
    assert stage.fleet.size >= stage.plan.page
    path = f"/v1/nodes/detail?limit={stage.plan.page}"
    return _in_turns(stage, path, Unit.TIME, connections=1)


def _in_turns(stage: Stage, path: str, unit: Unit, *, connections: int) -> Measured:
    answer = Answer.taken(stage.address, Request("GET", path, b"", 200))
    if unit is Unit.TIME and (found := len(json.loads(answer.body)["nodes"])) != stage.plan.page:
        raise NotAsExpected(f"{path} gave {found} nodes, not {stage.plan.page}")
    samples: list[float] = []
    limits: list[float] = []
    failed = 0

    def blow(address: Address) -> float:
        nonlocal failed
        seen = wrk.blow(address, path, connections=connections, seconds=stage.plan.seconds)
        failed += seen.failed
        return seen.rate if unit is Unit.RATE else seen.p50_s

    notes = (f"{path.partition('?')[0]}: {len(answer.body)} bytes",)
    if stage.commits is None:
        samples = [blow(stage.address) for _ in range(stage.plan.rounds)]
        return Measured(Figure(unit, tuple(samples), failed, notes))
    child, address = stage.static([answer])
    try:
        for _ in range(stage.plan.rounds):
            samples.append(blow(stage.address))
            limits.append(blow(address))
    finally:
        child.stop()
    return Measured(Figure(unit, tuple(samples), failed, notes), Figure(unit, tuple(limits)))
