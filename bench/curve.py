"""What becomes of figures while the fleet grows: their points, and the table. Pure."""

import json
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import field

from bench.figure import Figure
from bench.figure import Unit

FROM = 1000
"""Below, a page has fewer nodes, and is quicker for that."""


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
    def base(self) -> int | None:
        """The size that growth is counted from: the first of a thousand nodes or more, or the first
        of all; None with a single point.
        """
        sizes = sorted(self.points)
        return next((size for size in sizes[:-1] if size >= FROM), sizes[0] if sizes[1:] else None)

    @property
    def growth(self) -> float | None:
        """How many times worse it is at the largest size than at the base."""
        if self.base is None:
            return None
        first, last = self.points[self.base], self.points[max(self.points)]
        if first.unit is Unit.RATE:
            first, last = last, first
        return last.median / first.median if first.median else None

    @property
    def met(self) -> bool | None:
        """Whether it grew as little as it must; None where that cannot be said."""
        if self.most is None or self.growth is None or self.base is None or self.base < FROM:
            return None
        return self.growth <= self.most


def as_json(curves: Sequence[Curve], problems: Mapping[str, str], facts: Mapping[str, str]) -> str:
    """Everything, samples included, for programs."""
    shown = [
        {
            "curve": curve.name,
            "title": curve.title,
            "points": {size: asdict(figure) for size, figure in curve.points.items()},
            "growth": curve.growth,
            "most": curve.most,
            "met": curve.met,
        }
        for curve in curves
    ]
    found = {"facts": dict(facts), "problems": dict(problems), "curves": shown}
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


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
