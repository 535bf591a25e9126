"""How simulated hosts and guests behave. A script is a small JSON object; the nearest one that
speaks wins.

    {"latency_s": {"spawn": [1, 3], "off": 0.5, "*": 0.1},
     "fail": {"spawn": "disk full"},
     "guest": "obeys", "shutdown_s": 2, "ready_s": 15, "unreachable": false}

Keys of `latency_s` and `fail` are a driver's call (`spawn`, `destroy`, `on`, `live_migrate` …) or
`*`. A guest `obeys` a shutdown signal after `shutdown_s`, or `ignores` it; signals that come before
it has been up for `ready_s` are lost. An `unreachable` host does not answer; its guests go on.
"""

from typing import Any
from typing import Literal

import msgspec

from siderite.core.errors import Invalid

Latency = float | tuple[float, float]


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The behaviour of a host and its guests, as far as this script speaks of it."""

    latency_s: dict[str, Latency] | None = None
    fail: dict[str, str] | None = None
    guest: Literal["obeys", "ignores"] | None = None
    shutdown_s: float | None = None
    ready_s: float | None = None
    unreachable: bool | None = None

    def over(self, wider: "Script") -> "Script":
        """This script where it speaks, the wider one elsewhere."""
        mine = {name: getattr(self, name) for name in self.__struct_fields__}
        said = {name: value for name, value in mine.items() if value is not None}
        for name in ("latency_s", "fail"):
            if name in said:
                said[name] = {**(getattr(wider, name) or {}), **said[name]}
        return msgspec.structs.replace(wider, **said)

    def latency(self, chance: float, call: str) -> float:
        """Seconds that a call takes."""
        known = self.latency_s
        if known is None:
            return 0.0
        value = known.get(call, known.get("*", 0.0))
        if isinstance(value, tuple):
            return value[0] + (value[1] - value[0]) * chance
        return value

    def failure(self, call: str) -> str | None:
        """Why a call fails, if it does."""
        known = self.fail
        return None if known is None else known.get(call, known.get("*"))


def parse(document: Any) -> Script:
    """A script from JSON, or a sentence about what is wrong with it."""
    try:
        script = msgspec.convert(document, Script)
    except msgspec.ValidationError as why:
        raise Invalid(f"Not a script for simulated hosts: {why}.") from why
    for value in (script.latency_s or {}).values():
        low, high = value if isinstance(value, tuple) else (value, value)
        if not 0 <= low <= high <= 86400:  # noqa: PLR2004 - a day
            raise Invalid("A latency is a number of seconds from 0 to 86400, or [low, high].")
    return script
