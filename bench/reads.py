"""The workloads that read: one node, and a page of nodes with all their fields; wrk asks."""

import json
from dataclasses import replace

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
    return in_turns(stage, path, Unit.RATE, connections=stage.plan.readers)


def detail_list(stage: Stage) -> Measured:
    """Time of a page of the detail list, over one connection; against the static app."""
    assert stage.fleet.size >= stage.plan.page
    path = f"/v1/nodes/detail?limit={stage.plan.page}"
    return in_turns(stage, path, Unit.TIME, connections=1)


def in_turns(
    stage: Stage,
    path: str,
    unit: Unit,
    *,
    connections: int,
    root: Address | None = None,
    items: str = "nodes",
) -> Measured:
    """GET a path of the subject and of the static app that gives the same bytes, in turns."""
    here = root or stage.address
    answer = Answer.taken(here, Request("GET", path, b"", 200))
    if unit is Unit.TIME and (found := len(json.loads(answer.body)[items])) != stage.plan.page:
        raise NotAsExpected(f"{path} gave {found} {items}, not {stage.plan.page}")
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
        samples = [blow(here) for _ in range(stage.plan.rounds)]
        return Measured(Figure(unit, tuple(samples), failed, notes))
    child, static = stage.static([answer])
    address = replace(static, prefix=here.prefix)
    try:
        for _ in range(stage.plan.rounds):
            samples.append(blow(here))
            limits.append(blow(address))
    finally:
        child.stop()
    return Measured(Figure(unit, tuple(samples), failed, notes), Figure(unit, tuple(limits)))
