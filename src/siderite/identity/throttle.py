"""Slowing down guesses: after ten failures in a row for one name, each further refusal comes later.

Counted per process. Only refusals wait: whoever knows the password gets in at once.
"""

FREE = 10
FIRST_DELAY_S = 0.1
MAX_DELAY_S = 2.0
_MAX_NAMES = 4096
_MAX_NAME = 255
_DOUBLINGS = 5


class Throttle:
    """Failures in a row by name; names beyond a bound push out the oldest."""

    def __init__(self) -> None:
        self._failures: dict[str, int] = {}

    def failed(self, name: str) -> float:
        """Count a failure; how long to hold the refusal back, in seconds."""
        key = name[:_MAX_NAME]
        count = self._failures.pop(key, 0) + 1
        if len(self._failures) >= _MAX_NAMES:
            del self._failures[next(iter(self._failures))]
        self._failures[key] = count
        beyond = count - FREE
        if beyond <= 0:
            return 0.0
        return min(MAX_DELAY_S, FIRST_DELAY_S * (1 << min(beyond - 1, _DOUBLINGS)))

    def succeeded(self, name: str) -> None:
        """Forget the failures of this name."""
        self._failures.pop(name[:_MAX_NAME], None)
