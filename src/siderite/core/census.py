"""Machines are counted for Prometheus: beside the requests, and for a hundredth of the time at
most, for it takes longer when there are more.
"""

import time
from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Sequence

from siderite.core import metrics

_PAUSE = 99.0
"""As many times as long as it took, until they are counted again."""


class Census:
    """What counts machines of one kind."""

    def __init__(
        self, kind: str, count: Callable[[], Awaitable[Sequence[metrics.Headcount]]]
    ) -> None:
        self._kind = kind
        self._count = count
        self._again = 0.0

    async def measure(self) -> None:
        """Count them, if it is time."""
        began = time.monotonic()
        if began < self._again:
            return
        self._again = began + 60.0  # who asks meanwhile does not count, too
        metrics.machines(self._kind, await self._count())
        ended = time.monotonic()
        self._again = ended + _PAUSE * (ended - began)
