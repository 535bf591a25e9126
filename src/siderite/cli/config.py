"""`siderite config show`: every option, its value and where that came from."""

import argparse

from siderite.cli.settings import loaded
from siderite.core.config import show


def run(said: argparse.Namespace) -> int:
    """Print the table."""
    from rich.console import Console
    from rich.table import Table

    table = Table("option", "value", "from", "meaning", box=None, pad_edge=False)
    for row in show(loaded(said)):
        table.add_row(*row)
    Console().print(table)
    return 0
