"""What becomes of figures while the fleet grows: their points, and the table. Pure."""

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field

from bench.figure import Figure
from bench.figure import Unit


@dataclass(slots=True)
class Curve:
    """One quantity at several sizes; `most` is how many times worse it may be at the largest size
    than at a thousand nodes.
    """

    name: str
    title: str
    most: float | None = None
    points: dict[int, Figure] = field(default_factory=dict)

    @property
    def growth(self) -> float | None:
        """How many times worse it is at the largest size than at the first of a thousand or more,
        or at the first of all; None with a single point.
        """
        sizes = sorted(self.points)
        base = next((size for size in sizes if size >= 1000), None)
        if base is None or base == sizes[-1]:
            base = sizes[0] if sizes else None
        if base is None or base == sizes[-1]:
            return None
        first, last = self.points[base].median, self.points[sizes[-1]].median
        unit = self.points[base].unit
        above, below = (first, last) if unit is Unit.RATE else (last, first)
        return above / below if below else None

    @property
    def met(self) -> bool | None:
        """Whether it grew as little as it must; None where that cannot be said."""
        if self.most is None or self.growth is None:
            return None
        return self.growth <= self.most


def text(curves: Sequence[Curve], problems: Mapping[str, str]) -> str:
    """The table: a line for each quantity, a column for each size."""
    sizes = sorted({size for curve in curves for size in curve.points})
    head = ["nodes", *(f"{size:,}" for size in sizes), "growth", "bar", "met?"]
    lines = [head]
    for curve in curves:
        points = [str(curve.points[size]) if size in curve.points else "–" for size in sizes]
        growth = "–" if curve.growth is None else f"{curve.growth:.1f} ×"
        bar = "–" if curve.most is None else f"≤ {curve.most:g} ×"
        met = {True: "yes", False: "NO", None: "–"}[curve.met]
        lines.append([curve.title, *points, growth, bar, met])
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    out = [
        " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) for line in lines
    ]
    out.insert(1, "-|-".join("-" * width for width in widths))
    out += [f"- {name}: {why}" for name, why in problems.items()]
    return "\n".join(line.rstrip() for line in out)
