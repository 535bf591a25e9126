"""Times as text: pure functions of a moment in seconds."""

from datetime import UTC
from datetime import datetime
from functools import lru_cache
from math import floor

_MICROS = 1_000_000


@lru_cache(64)  # one change writes its moment several times
def iso(at: float) -> str:
    """The REST form: ISO 8601 with microseconds and offset; sorts as text."""
    whole = floor(at)
    micros = round((at - whole) * 1e6)
    if micros == _MICROS:
        whole, micros = whole + 1, 0
    return f"{_second(whole)}.{micros:06d}+00:00"


@lru_cache(16)
def _second(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()[:19]


def seconds(text: str) -> float:
    """The moment that `iso` wrote."""
    return datetime.fromisoformat(text).timestamp()


def to_second(text: str | None) -> str | None:
    """The same without what a second is divided into: `2026-11-16T03:04:05Z`."""
    return None if text is None else text[:19] + "Z"


def without_offset(text: str | None) -> str | None:
    """The same as a clock shows it: `2026-11-16T03:04:05.000000`."""
    return None if text is None else text[:26]
