"""What a workload found: samples of one quantity, their median and their spread."""

from dataclasses import dataclass
from enum import StrEnum
from statistics import median


class Unit(StrEnum):
    """The quantity; of RATE more is better, of the others less."""

    RATE = "/s"
    TIME = "s"
    MILLISECONDS = "ms"
    MEMORY = "MB"


@dataclass(frozen=True, slots=True)
class Figure:
    """Samples of one quantity, in the order in which they were taken."""

    unit: Unit
    samples: tuple[float, ...]
    failed: int = 0
    notes: tuple[str, ...] = ()

    @property
    def median(self) -> float:
        """The middle sample."""
        return median(self.samples)

    def ratio_to(self, other: "Figure") -> float:
        """This over the other: the median over pairs taken in turns, else of the medians."""
        if len(self.samples) == len(other.samples):
            return median(a / b for a, b in zip(self.samples, other.samples, strict=True))
        return self.median / other.median

    def times_better_than(self, other: "Figure") -> float:
        """How many times better the median is: more of a rate, less of time or memory."""
        if self.unit is Unit.RATE:
            return self.median / other.median if other.median else float("inf")
        return other.median / self.median

    def __str__(self) -> str:
        low, high = min(self.samples), max(self.samples)
        spread = "" if len(self.samples) == 1 else f" ({plain(low)}–{plain(high)})"
        return f"{plain(self.median)} {self.unit}{spread}".replace(" /s", "/s")


@dataclass(frozen=True, slots=True)
class Measured:
    """A subject's figure, and its limit's where one was asked for."""

    figure: Figure
    limit: Figure | None = None


def plain(value: float) -> str:
    """Three figures that mean something, without an exponent."""
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3g}"
