"""The table, as text for people and as JSON for programs; and the peer's figures kept for later."""

import json
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from datetime import UTC
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.bar import Bar
from bench.figure import Figure
from bench.figure import Measured
from bench.figure import Unit
from bench.workload import Workload

_HEAD = ("workload", "service", "limit", "ratio", "peer", "× peer", "bar", "met?")


@dataclass(frozen=True, slots=True)
class Row:
    """One line: what the subject did, what the peer did; `problem` when there is no figure."""

    workload: Workload
    bar: Bar | None
    measured: Measured | None
    peer: Figure | None
    problem: str | None = None

    @property
    def figure(self) -> Figure | None:
        """What the subject did."""
        return self.measured.figure if self.measured else None

    @property
    def limit(self) -> Figure | None:
        """What could be done at most."""
        return self.measured.limit if self.measured else None

    @property
    def met(self) -> bool | None:
        """Whether the bar is reached; None where that cannot be said."""
        if self.bar is None or self.measured is None:
            return None
        return self.bar.met(self.measured, self.peer)

    @property
    def is_broken(self) -> bool:
        """Whether something went wrong, as opposed to slowly."""
        return self.problem is not None or bool(self.figure and self.figure.failed)

    def cells(self) -> tuple[str, ...]:
        """What the table shows."""
        figure, limit = self.figure, self.limit
        ratio = better = "–"
        if figure and limit:
            part = figure.ratio_to(limit)
            ratio = _percent(part) if figure.unit is Unit.RATE else f"{part:.1f} ×"
        if figure and self.peer:
            better = f"{figure.times_better_than(self.peer):.1f} ×"
        met = {True: "yes", False: "NO", None: "?" if self.bar else "–"}[self.met]
        return (
            self.workload.title,
            str(figure) if figure else "broke",
            str(limit or "–"),
            ratio,
            str(self.peer or "–"),
            better,
            str(self.bar or "–"),
            met,
        )

    def remarks(self) -> Iterable[str]:
        """What the table has no room for."""
        if self.problem:
            yield f"{self.workload.name}: {self.problem}"
        for who, figure in (("", self.figure), ("peer, ", self.peer)):
            if figure is None:
                continue
            for note in figure.notes:
                yield f"{who}{self.workload.name}: {note}"
            if figure.failed:
                yield f"{who}{self.workload.name}: {figure.failed} requests or nodes failed"

    def as_json(self) -> dict[str, Any]:
        """Everything, samples included."""
        return {
            "workload": self.workload.name,
            "title": self.workload.title,
            "service": _figure(self.figure),
            "limit": _figure(self.limit),
            "peer": _figure(self.peer),
            "bar": str(self.bar) if self.bar else None,
            "met": self.met,
            "problem": self.problem,
        }


def text(rows: Sequence[Row], facts: Mapping[str, str], remarks: Sequence[str]) -> str:
    """The table with the facts below it."""
    lines = [_HEAD, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    out = [
        " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) for line in lines
    ]
    out.insert(1, "-|-".join("-" * width for width in widths))
    notes = [*remarks, *(remark for row in rows for remark in row.remarks())]
    if notes:
        out += ["", *(f"- {note}" for note in notes)]
    out += ["", ", ".join(f"{name} {value}" for name, value in facts.items())]
    return "\n".join(line.rstrip() for line in out)


def as_json(rows: Sequence[Row], facts: Mapping[str, str], remarks: Sequence[str]) -> str:
    """The same for programs."""
    found = {
        "facts": dict(facts),
        "remarks": list(remarks),
        "rows": [row.as_json() for row in rows],
    }
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def keep(figures: Mapping[str, Figure], title: str, file: Path) -> None:
    """Keep a peer's figures, with the date; those of workloads not run this time stay."""
    kept = _load(file)
    today = datetime.now(UTC).isoformat(timespec="seconds")
    for name, figure in figures.items():
        kept[name] = {"date": today, "title": title, "figure": asdict(figure)}
    file.write_text(json.dumps(kept, indent=2) + "\n")


def kept(file: Path) -> tuple[dict[str, Figure], str]:
    """A peer's kept figures, and a sentence that says how old they are."""
    rows = _load(file)
    figures = {
        name: Figure(
            Unit(row["figure"]["unit"]),
            tuple(row["figure"]["samples"]),
            row["figure"]["failed"],
            tuple(row["figure"]["notes"]),
        )
        for name, row in rows.items()
    }
    dates = sorted(row["date"] for row in rows.values())
    age = f"kept from {dates[0]}" if dates else "none kept: run with --peer first"
    return figures, f"peer: figures {age}"


def _percent(part: float) -> str:
    return f"{part:.0%}" if part >= 0.1 else f"{part:.1%}"


def _load(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {}
    return found


def _figure(figure: Figure | None) -> dict[str, Any] | None:
    return None if figure is None else {**asdict(figure), "median": figure.median}
