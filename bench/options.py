"""The command line."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.growth import CURVES
from bench.workload import WORKLOADS

_SIZES = "100,1000,10000,100000"


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller wants."""

    peer: str | None
    is_quick: bool
    is_strict: bool
    db: str | None
    only: tuple[str, ...]
    json_file: Path | None
    endpoint: str | None
    token: str | None
    growth: tuple[int, ...]
    plot: Path | None


def parse(words: Sequence[str]) -> Options:
    """The words of the command line as options."""
    names = list(dict.fromkeys([*(workload.name for workload in WORKLOADS), *CURVES]))
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measures Siderite against what the machine could do and against Ironic.",
    )
    add = parser.add_argument
    add(
        "--peer",
        nargs="?",
        const="fresh",
        choices=["fresh", "kept"],
        help="also measure Ironic from PyPI; 'kept' takes its figures of an earlier run",
    )
    add("--quick", action="store_true", help="fewer and shorter rounds: under a minute")
    add("--strict", action="store_true", help="exit 3 when a bar is missed or cannot be judged")
    add("--db", metavar="URL|postgres", help="PostgreSQL at a URL, or a throw-away one")
    add("--only", metavar="NAME", action="append", choices=names, help=f"of {', '.join(names)}")
    add("--json", metavar="FILE", type=Path, help="write everything, samples included")
    add("--endpoint", metavar="URL", help="measure a bare metal API that already runs instead")
    add("--token", help="X-Auth-Token for --endpoint")
    add(
        "--growth",
        metavar="SIZES",
        nargs="?",
        const=_SIZES,
        type=_sizes,
        default=(),
        help=f"curves over so many nodes instead of the table; without sizes {_SIZES}",
    )
    add("--plot", metavar="FILE", type=Path, help="write the curves as SVG")
    found = parser.parse_args(words)
    possible = [
        one.name
        for one in WORKLOADS
        if not (found.endpoint and (one.of_process or one.of_siderite))
        and (found.db or not one.of_postgres)
    ]
    if found.growth:
        possible = list(CURVES)
    elif missing := set(found.only or ()).difference(possible):
        parser.error(f"not possible without a process of its own, --db or --growth: {missing}")
    return Options(
        peer=found.peer,
        is_quick=found.quick,
        is_strict=found.strict,
        db=found.db,
        only=tuple(found.only or possible),
        json_file=found.json,
        endpoint=found.endpoint,
        token=found.token,
        growth=found.growth,
        plot=found.plot,
    )


def _sizes(words: str) -> tuple[int, ...]:
    found = tuple(int(word) for word in words.split(","))
    if min(found) < 1:
        raise argparse.ArgumentTypeError("a fleet has at least one node")
    return found
