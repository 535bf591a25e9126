"""How simulated hosts and guests behave. A script is a small JSON object; the nearest one that
speaks wins.

    {"latency_s": {"spawn": [1, 3], "off": 0.5, "*": 0.1},
     "fail": {"spawn": "disk full"},
     "guest": "obeys", "shutdown_s": 2, "ready_s": 15, "unreachable": false}

Keys of `latency_s` and `fail` are a driver's call (`spawn`, `destroy`, `on`, `live_migrate` …) or
`*`. A guest `obeys` a shutdown signal after `shutdown_s`, or `ignores` it; signals that come before
it has been up for `ready_s` are lost. An `unreachable` host does not answer; its guests go on.
"""

from typing import Literal

from siderite.core import simulation


class Script(simulation.Behaviour, frozen=True):
    """The behaviour of a host and its guests, as far as this script speaks of it."""

    guest: Literal["obeys", "ignores"] | None = None
    shutdown_s: float | None = None
    ready_s: float | None = None
