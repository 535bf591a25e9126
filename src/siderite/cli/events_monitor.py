"""`siderite events monitor`: what began and has not ended, over HTTP."""

import argparse
import json
from typing import Any

from siderite.cli.cloud import Cloud

_COUNTS = ("started", "ended", "failed", "succeeded", "abandoned", "open", "overdue")
_SHOWN = 20
_WIDE = 160


def run(said: argparse.Namespace) -> int:
    """Print the report; 1 if something is overdue, so that scripts can tell."""
    cloud = Cloud(said.data)
    report, _ = cloud.ask("GET", "/events/v1/monitor")
    late, _ = cloud.ask("GET", f"/events/v1/monitor/open?overdue=true&limit={_SHOWN}")
    if said.output == "json":
        print(json.dumps({**report, "overdue": late["open"]}, separators=(",", ":")))
    else:
        _print(report, late["open"])
    return 1 if late["open"] else 0


def _print(report: dict[str, Any], late: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    class Printed(Console):
        """Whose reader may go: rich would end with 1 then, which is our word for overdue."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    console = Printed(width=_WIDE)  # in a narrow terminal lines are broken, and no number is cut
    table = Table(box=None, pad_edge=False)
    table.add_column("operation", no_wrap=True)
    for name in (*_COUNTS, "longest open"):
        table.add_column(name, justify="right")
    for row in report["operations"]:
        longest = row["longest_open_s"]
        counts = [str(row[name]) for name in _COUNTS]
        table.add_row(row["operation"], *counts, "" if longest is None else f"{longest:.0f} s")
    console.print(table)
    for each in late:
        resource = each["resource"]
        console.print(
            f"overdue: {each['operation']} of {resource['type']} {resource['id']}, begun"
            f" {each['since'][:19]} (event {each['seq']}), quiet for {each['quiet_s']:.0f} s",
            highlight=False,
        )
    console.print(f"current to event {report['current_to']}", highlight=False)
