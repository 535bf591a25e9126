"""The benchmark's command line."""

import pytest

from bench.growth import CURVES
from bench.options import parse


def test_curves_have_usual_sizes_and_may_be_chosen():
    assert parse([]).growth == ()
    assert parse(["--growth"]).growth == (100, 1000, 10000, 100000)
    assert parse(["--growth", "5,7", "--only", "sweep"]).only == ("sweep",)
    assert parse(["--growth"]).only == tuple(CURVES)


def test_several_processes_are_measured_only_on_postgresql():
    assert "cycle-4" not in parse([]).only
    assert "cycle-4" in parse(["--db", "postgres"]).only


@pytest.mark.parametrize(
    "words",
    [["--only", "cycle-4"], ["--only", "sweep"], ["--growth", "0"], ["--growth", "x"]],
    ids=" ".join,
)
def test_what_cannot_be_measured_is_refused(words, capsys):
    with pytest.raises(SystemExit):
        parse(words)
    assert "error" in capsys.readouterr().err
