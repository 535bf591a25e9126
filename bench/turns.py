"""The workloads, one after another: of the service alone, or of service and peer in turns.

A computer's speed may change by a third within minutes. So each figure of the peer is taken between
two of the service, and whoever is not measured stands still meanwhile (SIGSTOP).
"""

import sys
import time
from dataclasses import replace

from bench.figure import Figure
from bench.figure import Measured
from bench.figure import Unit
from bench.plan import Plan
from bench.stage import Stage
from bench.workload import WORKLOADS
from bench.workload import Workload

Outcome = Measured | str
Outcomes = dict[str, Outcome]


def halved(plan: Plan) -> Plan:
    """Of a subject that is measured twice: half the rounds each time."""
    return replace(plan, rounds=-(-plan.rounds // 2), cycle_rounds=-(-plan.cycle_rounds // 2))


def alone(stage: Stage, names: tuple[str, ...]) -> Outcomes:
    """Run the named workloads."""
    return {
        workload.name: _run(workload, stage) for workload in WORKLOADS if workload.name in names
    }


def in_turns(stage: Stage, other: Stage, names: tuple[str, ...]) -> tuple[Outcomes, Outcomes]:
    """Run the named workloads; what the other one has too, of both. It stands still at first."""
    ours: Outcomes = {}
    theirs: Outcomes = {}
    awake, is_there = stage, True
    for workload in WORKLOADS:
        if workload.name not in names:
            continue
        awake = _wake(stage, awake)
        ours[workload.name] = before = _run(workload, stage)
        if workload.of_siderite or not is_there:
            continue
        awake = _wake(other, awake)
        try:
            theirs[workload.name] = _run(workload, other)
        except Exception as problem:  # it is gone: what the service did is still worth a table
            theirs[workload.name] = sentence(problem)
            is_there = False
        awake = _wake(stage, awake)
        if isinstance(before, Measured) and before.figure.unit is Unit.RATE:
            after = _run(workload, stage)
            ours[workload.name] = _joined(before, after) if isinstance(after, Measured) else after
    return ours, theirs


def sentence(problem: BaseException) -> str:
    """What went wrong; of a group, what went wrong first."""
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    return f"{type(problem).__name__}: {problem}"


def _run(workload: Workload, stage: Stage) -> Outcome:
    """A sentence stands for one that broke."""
    outcome: Outcome
    try:
        outcome = workload.measure(stage)
    except Exception as problem:
        if stage.child is not None and stage.child.process.poll() is not None:
            raise  # the subject is gone: nothing more to measure
        outcome = sentence(problem)
    shown = outcome.figure if isinstance(outcome, Measured) else outcome
    print(f"{stage.title}: {workload.title}: {shown}", file=sys.stderr)
    return outcome


def _wake(wanted: Stage, awake: Stage) -> Stage:
    if wanted is awake:
        return wanted
    awake.stand_still(still=True)
    wanted.stand_still(still=False)
    time.sleep(wanted.plan.settle_s)
    return wanted


def _joined(before: Measured, after: Measured) -> Measured:
    limit = before.limit
    if before.limit is not None and after.limit is not None:
        limit = _both(before.limit, after.limit)
    return Measured(_both(before.figure, after.figure), limit)


def _both(before: Figure, after: Figure) -> Figure:
    samples, notes = before.samples + after.samples, before.notes + after.notes
    return Figure(before.unit, samples, before.failed + after.failed, notes[:3])
