"""The timing of a clean shutdown."""

from msgspec.structs import replace

from siderite.compute.domain.power import Power
from siderite.compute.domain.server_machine import SERVER
from siderite.compute.domain.server_machine import V
from siderite.compute.domain.shutdown import LONGEST_S
from siderite.compute.domain.shutdown import Down
from siderite.compute.domain.shutdown import Look
from siderite.compute.domain.shutdown import PullPlug
from siderite.compute.domain.shutdown import Shutdown
from siderite.compute.domain.shutdown import Signal
from siderite.compute.domain.shutdown import decide
from siderite.compute.domain.shutdown import rewound
from siderite.compute.domain.shutdown import signalled
from siderite.compute.domain.shutdown import timeout_of
from siderite.compute.usecases.context import ServerRules
from siderite.core.config import Config
from siderite.wiring.compute import settings


def _story(plan: Shutdown) -> tuple[list[float], float]:
    """When a guest that ignores everything is signalled, and when the plug is pulled."""
    now, signals = 0.0, list[float]()
    while True:
        step = decide(plan, Power.RUNNING, now)
        if isinstance(step, Signal):
            signals.append(now)
            plan = signalled(plan, now)
        elif isinstance(step, Look):
            now = round(now + step.again_in, 3)
        else:
            assert isinstance(step, PullPlug)
            return signals, now


def test_sixty_and_ten_are_six_signals_and_then_the_plug() -> None:
    signals, plug = _story(Shutdown(60, 10, 0.0))
    assert len(signals) == 6
    assert plug == 60


def test_signals_that_were_missed_are_not_made_up_for() -> None:
    """Nobody was there from second 1 to second 45: one signal is sent then, not four."""
    plan = signalled(Shutdown(60, 10, began=0.0), 0.0)
    assert decide(plan, Power.RUNNING, 45.0) == Signal()
    plan = signalled(plan, 45.0)
    assert isinstance(decide(plan, Power.RUNNING, 45.0), Look)
    assert decide(plan, Power.RUNNING, 50.0) == Signal()
    assert decide(signalled(plan, 50.0), Power.RUNNING, 60.0) == PullPlug("forced")
    assert plan.signals == 2, "what is told are those that were sent"


def test_without_a_timeout_there_is_no_signal() -> None:
    assert decide(Shutdown(0, 10), Power.RUNNING, 5.0) == PullPlug("hard")


def test_what_is_down_is_down() -> None:
    assert decide(Shutdown(60, 10), Power.SHUTDOWN, 5.0) == Down("was off")
    assert decide(Shutdown(60, 10, 1.0, 2), Power.CRASHED, 5.0) == Down("clean")


def test_a_plug_that_takes_its_time_to_be_pulled_is_told_as_that() -> None:
    for how in ("hard", "forced"):
        plan = Shutdown(60, 10, 1.0, 6, pulled=how)
        assert decide(plan, Power.RUNNING, 5.0) == PullPlug(how)
        assert decide(plan, Power.SHUTDOWN, 6.0) == Down(how)


def test_a_guest_that_cannot_hear_is_not_asked() -> None:
    assert decide(Shutdown(60, 10), Power.PAUSED, 5.0) == PullPlug("hard")


def test_an_image_may_say_how_long() -> None:
    assert timeout_of({"os_shutdown_timeout": "5"}, 60) == 5
    assert timeout_of({"os_shutdown_timeout": "soon"}, 60) == 60
    assert timeout_of({}, 60) == 60
    for unusable in ("", "-1", "1.5", "1e3", "²", "inf", "nan"):
        assert timeout_of({"os_shutdown_timeout": unusable}, 60) == 60
    assert timeout_of({"os_shutdown_timeout": "9" * 400}, 60) == LONGEST_S
    assert timeout_of({"os_shutdown_timeout": "0"}, 60) == 0
    assert timeout_of({"os_shutdown_timeout": "9" * 30}, 60) == LONGEST_S


def test_a_clock_that_is_put_back_costs_no_more_than_one_interval() -> None:
    plan = Shutdown(60, 10, began=7200.0, signals=3)
    assert rewound(plan, 7225.0) == plan
    after = rewound(plan, 3600.0)
    assert isinstance(decide(after, Power.RUNNING, 3600.0), Look)
    assert decide(after, Power.RUNNING, 3610.0) == Signal()
    assert decide(after, Power.RUNNING, 3640.0) == PullPlug("forced")


def test_a_soft_reboot_has_its_own_timeout_on_top_of_its_time() -> None:
    moved = SERVER.fire(V.ACTIVE, "reboot")
    rules = ServerRules(replace(settings(Config()), soft_reboot_timeout_s=900))
    assert rules.deadline(moved, None) == 600.0 + 900.0  # type: ignore[arg-type]  # not looked at
