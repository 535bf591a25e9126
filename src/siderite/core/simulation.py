"""What simulated parts have in common: scripts that say how they behave, kept in a file of theirs.

A script is a small JSON object. Those of narrower scopes speak first; what they are silent about is
taken from the wider ones.
"""

import sqlite3
from typing import Any
from typing import Generic
from typing import Self
from typing import TypeVar

import msgspec

from siderite.core.errors import Invalid

_A_DAY_S = 86400
_MAPS = ("latency_s", "fail")

Latency = float | tuple[float, float]


class Behaviour(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What every script may speak of: how long calls take, which fail, and whether it answers."""

    latency_s: dict[str, Latency] | None = None
    fail: dict[str, str] | None = None
    unreachable: bool | None = None

    def over(self, wider: Self) -> Self:
        """This script where it speaks, the wider one elsewhere."""
        mine = {name: getattr(self, name) for name in self.__struct_fields__}
        said = {name: value for name, value in mine.items() if value is not None}
        for name in _MAPS:
            if name in said:
                said[name] = {**(getattr(wider, name) or {}), **said[name]}
        return msgspec.structs.replace(wider, **said)

    def latency(self, chance: float, *keys: str) -> float:
        """Seconds that something takes, by the first key that the script knows, or `*`."""
        value = _first(self.latency_s, keys) or 0.0
        if isinstance(value, tuple):
            return value[0] + (value[1] - value[0]) * chance
        return value

    def failure(self, *keys: str) -> str | None:
        """Why something fails, if it does."""
        return _first(self.fail, keys)


V = TypeVar("V")
B = TypeVar("B", bound=Behaviour)


def _first(known: dict[str, V] | None, keys: tuple[str, ...]) -> V | None:
    if known is None:
        return None
    return next((known[key] for key in (*keys, "*") if key in known), None)


def parse(document: Any, script: type[B], of: str) -> B:
    """A script from JSON, or a sentence about what is wrong with it."""
    try:
        parsed = msgspec.convert(document, script)
    except msgspec.ValidationError as why:
        keys = ", ".join(script.__struct_fields__)
        raise Invalid(
            f"Not a script for simulated {of}: {why}. A script is an object with any of {keys}."
        ) from why
    for value in (parsed.latency_s or {}).values():
        low, high = value if isinstance(value, tuple) else (value, value)
        if not 0 <= low <= high <= _A_DAY_S:
            raise Invalid("A latency is a number of seconds from 0 to 86400, or [low, high].")
    return parsed


def open_file(path: str, schema: str, *, alone: bool) -> sqlite3.Connection:
    """What simulated parts remember: on disk, but nobody waits for the disk. `alone`: no other
    process may look into it meanwhile, which makes it quicker.
    """
    db = sqlite3.connect(path, isolation_level=None, cached_statements=64)
    locking = "locking_mode=EXCLUSIVE" if alone else "busy_timeout=10000"
    for pragma in (locking, "journal_mode=WAL", "synchronous=OFF"):
        db.execute(f"PRAGMA {pragma}")
    db.executescript(schema)
    return db


class Scripts(Generic[B]):
    """The scripts by their scope: `all`, or a kind and a name."""

    def __init__(self, db: sqlite3.Connection, script: type[B]) -> None:
        self._db = db
        self.type = script
        self._plain = script()
        db.execute("CREATE TABLE IF NOT EXISTS scripts (scope TEXT PRIMARY KEY, script TEXT)")
        self._known: dict[str, B] = {}
        self.load()

    def load(self) -> None:
        """See what other processes have set."""
        rows = self._db.execute("SELECT scope, script FROM scripts")
        self._known = {scope: msgspec.json.decode(text, type=self.type) for scope, text in rows}

    def of(self, *scopes: str) -> B:
        """The script that holds in all of the scopes, the widest first."""
        script = self._known.get("all", self._plain)
        for scope in scopes:
            near = self._known.get(scope)
            if near is not None:
                script = near.over(script)
        return script

    def every(self) -> dict[str, B]:
        """All that were set."""
        return dict(self._known)

    def set(self, scope: str, script: B | None) -> None:
        """Set or remove the script of a scope."""
        if script is None:
            self._known.pop(scope, None)
            self._db.execute("DELETE FROM scripts WHERE scope = ?", (scope,))
        else:
            self._known[scope] = script
            text = msgspec.json.encode(script).decode()
            self._db.execute("INSERT OR REPLACE INTO scripts VALUES (?, ?)", (scope, text))
