"""Curves as an SVG: one small plot for each, sizes to the right, both axes logarithmic. Pure.

Equal steps are equal factors, so that a flat line is constant, and one that rises as steeply as the
dashed one grows with the fleet. Lines at each point go from the best to the worst sample.
"""

import math
from collections.abc import Sequence
from html import escape

from bench.curve import Curve
from bench.figure import Figure
from bench.figure import Unit
from bench.figure import plain

WIDTH, HEIGHT = 300, 190
_COLUMNS = 3
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 34, 26
_STYLE = (
    "text{font:11px sans-serif;fill:#333}.t{font-weight:bold}.g{stroke:#ddd}"
    ".d{stroke:#bbb;stroke-dasharray:3 3}.c{stroke:#0a6;stroke-width:2;fill:none}"
    ".s{stroke:#0a6}.p{fill:#0a6}.e{text-anchor:end}.m{text-anchor:middle}"
)


def svg(curves: Sequence[Curve], caption: str) -> str:
    """The picture of all curves that have points."""
    shown = [curve for curve in curves if curve.points]
    rows = math.ceil(len(shown) / _COLUMNS)
    width, height = WIDTH * _COLUMNS, HEIGHT * rows + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
        f' aria-label="{escape(caption)}">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for number, curve in enumerate(shown):
        across, down = number % _COLUMNS * WIDTH, number // _COLUMNS * HEIGHT
        parts += [f'<g transform="translate({across} {down})">', *_panel(curve), "</g>"]
    parts += [f'<text x="8" y="{height - 8}">{escape(caption)}</text>', "</svg>"]
    return "\n".join(parts) + "\n"


class _Scale:
    """Where a value of one axis stands."""

    def __init__(self, low: float, high: float, begin: float, end: float) -> None:
        self._low, self._span = math.log10(low), math.log10(high) - math.log10(low) or 1.0
        self._begin, self._length = begin, end - begin

    def __call__(self, value: float) -> float:
        part = (math.log10(value) - self._low) / self._span
        return round(self._begin + part * self._length, 1)


def _panel(curve: Curve) -> list[str]:
    sizes = sorted(curve.points)
    figures = [curve.points[size] for size in sizes]
    low, high = _range(figures)
    x = _Scale(sizes[0], sizes[-1], _LEFT + 8, WIDTH - _RIGHT - 12)
    y = _Scale(low, high, HEIGHT - _BOTTOM, _TOP)
    unit = figures[0].unit
    parts = [f'<text class="t" x="8" y="16">{escape(curve.title)} ({escape(unit)})</text>']
    for value in _ticks(low, high):
        parts += [
            f'<line class="g" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y(value)}" y2="{y(value)}"/>',
            f'<text class="e" x="{_LEFT - 4}" y="{y(value) + 4}">{plain(value)}</text>',
        ]
    parts += [
        f'<text class="m" x="{x(size)}" y="{HEIGHT - 8}">{_short(size)}</text>' for size in sizes
    ]
    if unit is not Unit.RATE:
        parts += _in_proportion(sizes, figures[0].median, high, x, y)
    points = " ".join(f"{x(s)},{y(f.median)}" for s, f in zip(sizes, figures, strict=True))
    parts.append(f'<polyline class="c" points="{points}"/>')
    for size, figure in zip(sizes, figures, strict=True):
        worst, best = y(max(figure.samples)), y(min(figure.samples))
        parts += [
            f'<line class="s" x1="{x(size)}" x2="{x(size)}" y1="{worst}" y2="{best}"/>',
            f'<circle class="p" cx="{x(size)}" cy="{y(figure.median)}" r="3"/>',
        ]
    return parts


def _in_proportion(
    sizes: Sequence[int], first: float, high: float, x: _Scale, y: _Scale
) -> list[str]:
    """The way of something that doubles when the fleet does, as far as there is room."""
    far = min(sizes[-1], sizes[0] * high / first)
    if far <= sizes[0]:
        return []
    end = first * far / sizes[0]
    return [f'<line class="d" x1="{x(sizes[0])}" y1="{y(first)}" x2="{x(far)}" y2="{y(end)}"/>']


def _range(figures: Sequence[Figure]) -> tuple[float, float]:
    """From a power of ten to another, at least a factor of ten apart, around all samples."""
    samples = [max(sample, 1e-9) for figure in figures for sample in figure.samples]
    low = 10.0 ** math.floor(math.log10(min(samples)))
    high = 10.0 ** math.ceil(math.log10(max(samples)))
    return low, max(high, low * 10)


def _ticks(low: float, high: float) -> list[float]:
    return [low * 10**step for step in range(round(math.log10(high / low)) + 1)]


def _short(size: int) -> str:
    return f"{size // 1000}k" if size >= 1000 and size % 1000 == 0 else str(size)
