"""`siderite config show`: every option, its value and where that came from."""

import argparse
import sys
from operator import itemgetter

from siderite.cli import show
from siderite.cli.settings import loaded
from siderite.core import config

_HEADS = ("option", "value", "from", "meaning")
_COLUMNS: tuple[show.Column, ...] = tuple((head, itemgetter(head)) for head in _HEADS)


def run(said: argparse.Namespace) -> int:
    """Print the table: for eyes broken to the terminal's width, else a line for each option."""
    options = list(config.show(loaded(said)))
    if said.output != "table" or not sys.stdout.isatty():
        rows = [dict(zip(_HEADS, row, strict=True)) for row in options]
        show.rows(rows, _COLUMNS, said.output, name="option")
        return 0
    from rich.console import Console
    from rich.table import Table

    table = Table(*_HEADS, box=None, pad_edge=False)
    for row in options:
        table.add_row(*row)
    Console(markup=False).print(table)  # a value such as [fe80::1]:8770 is no markup
    return 0
