"""Tables as a terminal shows them."""

import os
from contextlib import suppress

import pytest

from siderite.cli import show
from siderite.cli.events_monitor import _print

COLUMNS = (("name", lambda one: one["name"]), ("why", lambda one: one["why"]))


def _shown(capsys: pytest.CaptureFixture[str], *names: str, why: str = "-") -> list[str]:
    show.rows([{"name": name, "why": why} for name in names], COLUMNS, "table", name="name")
    return capsys.readouterr().out.splitlines()


def test_columns_are_straight_in_scripts_that_take_two_columns_for_a_letter(capsys) -> None:
    assert _shown(capsys, "web", "雪の町", "e\u0301te\u0301") == [
        "NAME    WHY",
        "web     -",
        "雪の町  -",
        "e\u0301te\u0301     -",
    ]


def test_what_is_shown_gives_no_orders_to_the_terminal(capsys) -> None:
    [_, line] = _shown(capsys, "\x1b]0;owned\x07\x9b31m", why="first\nsecond")
    assert line == r"\x1b]0;owned\x07\x9b31m  first\nsecond"


def test_a_wide_word_is_cut_where_the_terminal_ends(monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    [_, line] = _shown(capsys, "n", why="雪" * 40)
    assert line == "n     " + "雪" * 16 + "…"


def test_no_number_of_the_monitor_is_cut_in_a_narrow_terminal(monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    counts = dict.fromkeys(
        ("started", "ended", "failed", "succeeded", "abandoned", "open", "overdue"), 12345
    )
    row = {"operation": "baremetal.node.provision_set", "longest_open_s": 7312.0, **counts}
    _print({"operations": [row], "current_to": 9}, [])
    said = capsys.readouterr().out
    assert said.count("12345") == 7
    assert "…" not in said


def test_a_monitor_that_nobody_reads_on_does_not_say_that_something_is_overdue(monkeypatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with suppress(BrokenPipeError), os.fdopen(writer, "w", buffering=1) as closed:
        monkeypatch.setattr("sys.stdout", closed)
        with pytest.raises(BrokenPipeError):
            _print({"operations": [], "current_to": 9}, [])
