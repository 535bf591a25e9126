"""The workloads of being there: memory with a fleet loaded, time from start to first answer."""

import json

from bench.capture import Answer
from bench.figure import Figure
from bench.figure import Measured
from bench.figure import Unit
from bench.load import Request
from bench.stage import Stage


class NotOurs(Exception):
    """Memory and start are measured only of a process that the benchmark started."""

    def __str__(self) -> str:
        return type(self).__doc__ or ""


def memory(stage: Stage) -> Measured:
    """Resident memory of all processes, after every node has been listed once."""
    if stage.child is None:
        raise NotOurs
    marker = ""
    for _ in range(0, stage.fleet.size, stage.plan.page):
        path = f"/v1/nodes/detail?limit={stage.plan.page}{marker}"
        page = Answer.taken(stage.address, Request("GET", path, b"", 200))
        marker = f"&marker={json.loads(page.body)['nodes'][-1]['uuid']}"
    return Measured(Figure(Unit.MEMORY, (stage.child.resident_mb(),)))


def first_start(stage: Stage) -> Measured:
    """Time from the start on an empty data directory to the first 200."""
    if stage.first_start_s is None:
        raise NotOurs
    return Measured(Figure(Unit.TIME, (stage.first_start_s,)))


def start_again(stage: Stage) -> Measured:
    """Time from a start with the fleet loaded to the first 200."""
    if stage.child is None:
        raise NotOurs
    assert stage.fleet.size
    return Measured(Figure(Unit.TIME, tuple(stage.restart() for _ in range(stage.plan.starts))))
