"""How simulated machines behave. A script is a small JSON object; the nearest one that speaks wins.

    {"latency_s": {"power": 2, "clean": 5, "deploy.write_image": 30, "*": 1},
     "fail": {"deploy.write_image": "disk is gone", "power": "PSU broken"},
     "ramdisk": true, "silent": false, "unreachable": false, "audit": false}

Keys of `latency_s` and `fail` are a step as `interface.step`, a kind of work (`clean`, `deploy`,
`power` …) or `*`. A latency may be `[low, high]`. `ramdisk` makes in-band steps wait for a call
back; a `silent` ramdisk never calls. `unreachable` is the BMC; the machine itself goes on. `audit`
has the BMC write down under which lease it was told to do something.
"""

from siderite.core import simulation


class Script(simulation.Behaviour, frozen=True):
    """The behaviour of a machine, as far as this script speaks of it."""

    ramdisk: bool | None = None
    silent: bool | None = None
    audit: bool | None = None
