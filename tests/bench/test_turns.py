"""Service and peer take turns, and whoever is not measured stands still."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench import turns
from bench.address import Address
from bench.child import Child
from bench.figure import Figure
from bench.figure import Measured
from bench.figure import Unit
from bench.fleet import Fleet
from bench.plan import Plan
from bench.stage import Stage
from bench.subject import Running
from bench.workload import Workload

PLAN = Plan(
    rounds=5, seconds=1, limit_seconds=1, cycle_rounds=2, starts=1, cycle_lives=1, lives=1,
    settle_s=0,
)  # fmt: skip


@dataclass(frozen=True)
class Sleeper:
    """A subject that only is there."""

    title: str

    def start(self) -> Running:
        process = subprocess.Popen(["sleep", "600"], start_new_session=True)
        return Running(Address("127.0.0.1", 1), Child(process, 0.0))

    def stock(self, running: Running, fleet: Fleet) -> None:
        raise AssertionError("nothing is to be put in")


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[Stage, Stage]]:
    """The service, and a peer that stands still."""
    with ExitStack() as stack:
        ours, theirs = (
            stack.enter_context(Stage(Sleeper(title), PLAN, place=tmp_path, commits=None))
            for title in ("ours", "theirs")
        )
        theirs.stand_still(still=True)
        yield ours, theirs


def _stands_still(stage: Stage) -> bool:
    assert stage.child is not None
    stat = Path(f"/proc/{stage.child.process.pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "T"


def test_each_rate_of_the_peer_is_taken_between_two_of_the_service(
    both: tuple[Stage, Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, str]] = []

    def workload(name: str, unit: Unit, *, of_siderite: bool = False) -> Workload:
        def measure(stage: Stage) -> Measured:
            assert [_stands_still(one) for one in both] == [one is not stage for one in both]
            told.append((name, stage.title))
            return Measured(Figure(unit, (float(len(told)),)), Figure(unit, (9.0,)))

        return Workload(name, name, measure, None, of_siderite=of_siderite)

    every = (
        workload("rate", Unit.RATE),
        workload("time", Unit.TIME),
        workload("own", Unit.RATE, of_siderite=True),
        workload("unwanted", Unit.RATE),
    )
    monkeypatch.setattr(turns, "WORKLOADS", every)
    ours, theirs = turns.in_turns(*both, ("rate", "time", "own"))
    assert told == [
        ("rate", "ours"), ("rate", "theirs"), ("rate", "ours"),
        ("time", "ours"), ("time", "theirs"),
        ("own", "ours"),
    ]  # fmt: skip
    assert ours["rate"] == Measured(Figure(Unit.RATE, (1.0, 3.0)), Figure(Unit.RATE, (9.0, 9.0)))
    peers = {name: one.figure.samples for name, one in theirs.items() if not isinstance(one, str)}
    assert peers == {"rate": (2.0,), "time": (5.0,)}


def test_a_peer_that_is_gone_leaves_the_service_to_be_measured(
    both: tuple[Stage, Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(stage: Stage) -> Measured:
        if stage.title == "theirs":
            assert stage.child is not None
            stage.child.process.kill()
            stage.child.process.wait()
            raise ConnectionError("it does not answer")
        return Measured(Figure(Unit.RATE, (1.0,)))

    every = tuple(Workload(name, name, measure, None) for name in ("a", "b"))
    monkeypatch.setattr(turns, "WORKLOADS", every)
    ours, theirs = turns.in_turns(*both, ("a", "b"))
    assert [isinstance(one, Measured) for one in ours.values()] == [True, True]
    assert theirs == {"a": "ConnectionError: it does not answer"}


def test_a_subject_that_is_measured_twice_has_half_the_rounds_each_time() -> None:
    assert (turns.halved(PLAN).rounds, turns.halved(PLAN).cycle_rounds) == (3, 1)
