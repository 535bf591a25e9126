"""What a figure must reach, and whether it does."""

from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from bench.figure import Figure
from bench.figure import Measured


class Against(Enum):
    """What a bar is measured by."""

    LIMIT_AT_LEAST = "at least this part of the limit"
    LIMIT_AT_MOST = "at most this many times the limit"
    PEER = "at least this many times better than the peer"
    ITSELF = "at most this"
    ITSELF_AT_LEAST = "at least this"


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar; `met` is None where the other side was not measured."""

    against: Against
    value: float
    unit: str = ""

    def met(self, measured: Measured, peer: Figure | None) -> bool | None:
        """Whether the figures reach it."""
        figure, limit = measured.figure, measured.limit
        match self.against:
            case Against.LIMIT_AT_LEAST:
                return None if limit is None else figure.ratio_to(limit) >= self.value
            case Against.LIMIT_AT_MOST:
                return None if limit is None else figure.ratio_to(limit) <= self.value
            case Against.PEER:
                return None if peer is None else figure.times_better_than(peer) >= self.value
            case Against.ITSELF:
                return figure.median <= self.value
            case Against.ITSELF_AT_LEAST:
                return figure.median >= self.value
            case _:
                assert_never(self.against)

    def __str__(self) -> str:
        match self.against:
            case Against.LIMIT_AT_LEAST:
                return f"≥ {self.value:.0%} of limit"
            case Against.LIMIT_AT_MOST:
                return f"≤ {self.value:g} × limit"
            case Against.PEER:
                return f"≥ {self.value:g} × peer"
            case Against.ITSELF:
                return f"≤ {self.value:g} {self.unit}"
            case Against.ITSELF_AT_LEAST:
                return f"≥ {self.value:g}{self.unit}"
            case _:
                assert_never(self.against)
