"""Curves: how a figure grew, and the table that says so."""

import json

import pytest

from bench.curve import Curve
from bench.curve import as_json
from bench.curve import text
from bench.figure import Figure
from bench.figure import Unit


def times(**points):
    made = {int(size[1:]): Figure(Unit.TIME, tuple(p)) for size, p in points.items()}
    return Curve("get", "GET", 1.5, made)


def test_growth_is_counted_from_a_thousand_nodes_on():
    assert times(n100=[1.0], n1000=[2.0], n10000=[3.0]).growth == 1.5


def test_fewer_nodes_are_counted_from_the_first():
    assert times(n10=[1.0], n100=[2.0]).growth == 2.0
    assert times(n10=[1.0], n1000=[2.0]).growth == 2.0


def test_fewer_nodes_are_not_judged():
    assert times(n10=[1.0], n100=[2.0]).met is None


def test_programs_get_all_samples():
    told = json.loads(as_json([times(n1000=[1.0, 2.0], n2000=[3.0])], {}, {"python": "3"}))
    assert told["curves"][0]["points"]["1000"]["samples"] == [1.0, 2.0]
    assert told["curves"][0]["growth"] == 2.0


def test_a_single_size_did_not_grow():
    assert times(n1000=[1.0]).growth is None
    assert times(n1000=[1.0]).met is None
    assert times().growth is None


def test_a_rate_that_falls_grew_worse():
    points = {1000: Figure(Unit.RATE, (300.0,)), 9000: Figure(Unit.RATE, (100.0,))}
    assert Curve("create", "create", 2, points).growth == 3.0


@pytest.mark.parametrize(("last", "met"), [(1.4, True), (1.6, False)])
def test_a_bar_is_met_or_not(last, met):
    assert times(n1000=[1.0], n2000=[last]).met is met


def test_the_table_has_a_column_for_each_size_and_a_line_for_what_broke():
    curves = [times(n1000=[1.0, 2.0, 3.0], n2000=[2.0]), Curve("tail", "tail")]
    lines = text(curves, {"tail, 1000 nodes": "no answer"}).splitlines()
    assert [cell.strip() for cell in lines[0].split("|")] == [
        "nodes", "1,000", "2,000", "growth", "bar", "met?",
    ]  # fmt: skip
    assert "2.00 s (1.00–3.00)" in lines[2]
    assert lines[3].split("|")[1].strip() == "–"
    assert lines[4] == "- tail, 1000 nodes: no answer"
