"""Times as text: pure functions of a moment in seconds."""

from datetime import UTC
from datetime import datetime
from functools import lru_cache


@lru_cache(64)  # one change writes its moment several times
def iso(at: float) -> str:
    """The REST form: ISO 8601 with microseconds and offset; sorts as text."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds")


def seconds(text: str) -> float:
    """The moment that `iso` wrote."""
    return datetime.fromisoformat(text).timestamp()
