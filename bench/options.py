"""The command line."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.workload import WORKLOADS


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


def parse(words: Sequence[str]) -> Options:
    """The words of the command line as options."""
    names = [workload.name for workload in WORKLOADS]
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
    found = parser.parse_args(words)
    possible = [one.name for one in WORKLOADS if not (found.endpoint and one.of_process)]
    return Options(
        peer=found.peer,
        is_quick=found.quick,
        is_strict=found.strict,
        db=found.db,
        only=tuple(found.only or possible),
        json_file=found.json,
        endpoint=found.endpoint,
        token=found.token,
    )
