"""A clean shutdown: when to signal the guest, when to pull the plug. Pure timing.

The worker asks `decide` each time it looks; what was done so far is part of its job, so that a
restart goes on with the time that is left.
"""

from collections.abc import Mapping

import msgspec

from siderite.compute.domain.power import Power

POLL_S = 1.0
"""How often a guest that has been signalled is looked at."""
LONGEST_S = 3600.0
"""No image and no option gives a guest more time."""


class Shutdown(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a shutdown is to be done, and how far it is."""

    timeout_s: float = 60.0
    interval_s: float = 10.0
    began: float | None = None
    signals: int = 0
    missed: int = 0
    """Signals that were due while nobody could send them: they are not made up for."""
    pulled: str | None = None
    """`forced` or `hard`: the host was told to power it off, and takes its time."""
    ended: str | None = None
    """`clean`, `forced`, `hard`, or `was off`."""


class Signal(msgspec.Struct, frozen=True):
    """Ask the guest to shut down, now."""


class PullPlug(msgspec.Struct, frozen=True):
    """Power it off; `how` is what is told of it."""

    how: str


class Look(msgspec.Struct, frozen=True):
    """Look again in so many seconds."""

    again_in: float


class Down(msgspec.Struct, frozen=True):
    """Nothing runs any more."""

    how: str


def decide(shutdown: Shutdown, power: Power, now: float) -> Signal | PullPlug | Look | Down:
    """What to do next about a guest that should be down."""
    if power.is_down:
        return Down(shutdown.pulled or ("clean" if shutdown.signals else "was off"))
    if shutdown.pulled is not None:
        return PullPlug(shutdown.pulled)
    if shutdown.timeout_s <= 0 or power in (Power.PAUSED, Power.SUSPENDED):
        return PullPlug("hard")
    if shutdown.began is None:
        return Signal()
    elapsed = now - shutdown.began
    if elapsed >= shutdown.timeout_s:
        return PullPlug("forced")
    following = _due(shutdown) * shutdown.interval_s
    if elapsed >= following:
        return Signal()
    return Look(max(0.01, min(POLL_S, following - elapsed, shutdown.timeout_s - elapsed)))


def _due(shutdown: Shutdown) -> int:
    """How many signals were due so far."""
    return shutdown.signals + shutdown.missed


def signalled(shutdown: Shutdown, now: float) -> Shutdown:
    """The same after a signal: the next one is due when it would have been, however late this one
    was and however many were missed before it.
    """
    elapsed = 0.0 if shutdown.began is None else now - shutdown.began
    late = int(elapsed // shutdown.interval_s) - _due(shutdown) if shutdown.interval_s > 0 else 0
    return msgspec.structs.replace(
        shutdown, signals=shutdown.signals + 1, missed=shutdown.missed + max(0, late)
    )


def left(shutdown: Shutdown, now: float) -> float:
    """How long the guest still has."""
    began = now if shutdown.began is None else shutdown.began
    return max(0.01, began + shutdown.timeout_s - now)


def rewound(shutdown: Shutdown, now: float) -> Shutdown:
    """The same if the clock was put back since it began: what is left of its time is what was left
    after the last signal.
    """
    if shutdown.began is None or now >= shutdown.began:
        return shutdown
    spent = max(0, _due(shutdown) - 1) * shutdown.interval_s
    return msgspec.structs.replace(shutdown, began=now - spent)


def timeout_of(properties: Mapping[str, str], default_s: float) -> float:
    """The image's own `os_shutdown_timeout`, if that is a number of seconds, 0 or more."""
    text = properties.get("os_shutdown_timeout", "").strip()
    asked = default_s
    if text.isascii() and text.isdigit():
        asked = float(text)
    return min(max(0.0, asked), LONGEST_S)
