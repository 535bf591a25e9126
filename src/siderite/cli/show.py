"""How answers are printed: as a table, JSON, YAML, or names only."""

import json
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

Record = Mapping[str, Any]
Column = tuple[str, Callable[[Record], Any]]
_PLAIN = "\x1b[0m"
_COLOURS = (
    ("\x1b[31m", ("failed", "error", "down", "wrong")),
    ("\x1b[33m", ("unknown", "pending", "wait", "ing", "maintenance", "caution")),
    ("\x1b[32m", ("active", "available", "up", "well")),
)


def rows(records: Sequence[Record], columns: Sequence[Column], form: str, *, name: str) -> None:
    """A list; `name` is the key that scripts want."""
    if form == "name":
        for record in records:
            print(record[name])
    elif form == "table":
        cells = [[text(of(record)) for _, of in columns] for record in records]
        _table([head.upper() for head, _ in columns], cells)
    else:
        _whole(list(records), form)


def details(records: Sequence[Record], form: str, *, name: str) -> None:
    """Everything about a few: a table of keys and values each."""
    if form == "name":
        for record in records:
            print(record[name])
    elif form == "table":
        for record in records:
            shown = {key: value for key, value in record.items() if not _is_links(value)}
            _table(["FIELD", "VALUE"], [[key, text(value)] for key, value in shown.items()])
    else:
        _whole(list(records) if len(records) > 1 else records[0], form)


def _is_links(value: Any) -> bool:
    """Addresses for programs."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) and one.keys() == {"href", "rel"} for one in value)
    )


def text(value: Any) -> str:
    """A value in a cell."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return plain(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


_ORDERS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def plain(words: str) -> str:
    """Words on one line, without orders to the terminal: others may have named what is shown."""
    return _ORDERS.sub(lambda found: found[0].encode("unicode_escape").decode(), words)


def _whole(value: Any, form: str) -> None:
    if form == "json":
        print(json.dumps(value, indent=2, ensure_ascii=False))
        return
    import yaml

    print(yaml.safe_dump(value, sort_keys=False, allow_unicode=True), end="")


def _table(heads: list[str], cells: list[list[str]]) -> None:
    _fit(heads, cells)
    widths = [max(map(_width, column)) for column in zip(heads, *cells, strict=True)]
    for row in (heads, *cells):
        padded = [
            cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)
        ]
        line = "  ".join(padded if row is heads else map(_coloured, padded))
        print(line.rstrip())


_LEAST = 12
"""What is left of a last column, however narrow the terminal is."""
_LONGEST = 30
"""What is left of a name where there is no room for it."""


def _fit(heads: list[str], cells: list[list[str]]) -> None:
    """Where somebody looks, a list is no wider than the terminal, if it can be."""
    if not sys.stdout.isatty() or heads[-1] == "VALUE":
        return
    ident = next((at for at, head in enumerate(heads) if head in ("UUID", "ID")), None)
    has_long = _room(heads, cells) < _LEAST and _shorten(cells)
    room = _room(heads, cells)
    if room < _LEAST and ident and not has_long and all(row[0] != "-" for row in cells):
        for row in (heads, *cells):  # names will do where there is no room for both
            del row[ident]
        room = _room(heads, cells)
    room = max(room, _LEAST)
    for row in cells:
        row[-1] = _cut(row[-1], room)


def _shorten(cells: list[list[str]]) -> bool:
    """One long name does not push everything else out of sight; whether there is one."""
    long = [row for row in cells if _width(row[0]) > _LONGEST]
    for row in long:
        row[0] = _cut(row[0], _LONGEST)
    return bool(long)


def _width(words: str) -> int:
    """Columns of a terminal: some scripts take two for a letter, marks on a letter take none."""
    return len(words) if words.isascii() else sum(map(_columns, words))


def _columns(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _cut(words: str, room: int) -> str:
    """As much as there is room for."""
    if _width(words) <= room:
        return words
    sums = accumulate(map(_columns, words))
    return words[: sum(1 for width in sums if width < room)] + "…"


def _room(heads: list[str], cells: list[list[str]]) -> int:
    """How much of the terminal is left for the last column."""
    others = [max(map(_width, column)) for column in zip(heads, *cells, strict=True)][:-1]
    return shutil.get_terminal_size().columns - sum(width + 2 for width in others)


def _coloured(cell: str) -> str:
    """A state in its colour, where somebody looks and did not say no (NO_COLOR)."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return cell
    word = cell.strip().lower()
    if word.count(" ") > 1:  # a sentence, not a state
        return cell
    for colour, ends in _COLOURS:
        if word.endswith(ends):
            return colour + cell + _PLAIN
    return cell
