"""How simulated machines behave. A script is a small JSON object; the nearest one that speaks wins.

    {"latency_s": {"power": 2, "clean": 5, "deploy.write_image": 30, "*": 1},
     "fail": {"deploy.write_image": "disk is gone", "power": "PSU broken"},
     "ramdisk": true, "silent": false, "unreachable": false, "audit": false}

Keys of `latency_s` and `fail` are a step as `interface.step`, a kind of work (`clean`, `deploy`,
`power` …) or `*`. A latency may be `[low, high]`. `ramdisk` makes in-band steps wait for a call
back; a `silent` ramdisk never calls. `unreachable` is the BMC; the machine itself goes on. `audit`
has the BMC write down under which lease it was told to do something.
"""

from typing import Any

import msgspec

from siderite.core.errors import Invalid

Latency = float | tuple[float, float]


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The behaviour of a machine, as far as this script speaks of it."""

    latency_s: dict[str, Latency] | None = None
    fail: dict[str, str] | None = None
    ramdisk: bool | None = None
    silent: bool | None = None
    unreachable: bool | None = None
    audit: bool | None = None

    def over(self, wider: "Script") -> "Script":
        """This script where it speaks, the wider one elsewhere."""
        return Script(
            latency_s=_merged(wider.latency_s, self.latency_s),
            fail=_merged(wider.fail, self.fail),
            ramdisk=wider.ramdisk if self.ramdisk is None else self.ramdisk,
            silent=wider.silent if self.silent is None else self.silent,
            unreachable=wider.unreachable if self.unreachable is None else self.unreachable,
            audit=wider.audit if self.audit is None else self.audit,
        )

    def latency(self, chance: float, *keys: str) -> float:
        """Seconds that something takes, by the first key that the script knows."""
        known = self.latency_s or {}
        for key in (*keys, "*"):
            if key in known:
                value = known[key]
                if isinstance(value, tuple):
                    return value[0] + (value[1] - value[0]) * chance
                return value
        return 0.0

    def failure(self, *keys: str) -> str | None:
        """Why something fails, if it does."""
        known = self.fail or {}
        for key in (*keys, "*"):
            if key in known:
                return known[key]
        return None


def _merged(wide: dict[str, Any] | None, near: dict[str, Any] | None) -> dict[str, Any] | None:
    if wide is None or near is None:
        return near if wide is None else wide
    return {**wide, **near}


def parse(document: Any) -> Script:
    """A script from JSON, or a sentence about what is wrong with it."""
    try:
        script = msgspec.convert(document, Script)
    except msgspec.ValidationError as why:
        raise Invalid(f"Not a script for simulated machines: {why}.") from why
    for value in (script.latency_s or {}).values():
        low, high = value if isinstance(value, tuple) else (value, value)
        if not 0 <= low <= high <= 86400:  # noqa: PLR2004 - a day
            raise Invalid("A latency is a number of seconds from 0 to 86400, or [low, high].")
    return script
