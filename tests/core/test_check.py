"""What the checks of all products' requests have in common."""

from typing import Any

import pytest

from siderite.core import check
from siderite.core import shape


@pytest.mark.parametrize(
    ("said", "meant"),
    [(True, True), ("On", True), (" y ", True), (False, False), ("0", False), ("NO", False)],
)
def test_what_command_lines_send_for_true_and_false_is_understood(said: Any, meant: bool) -> None:
    assert check.truth(said) is meant


@pytest.mark.parametrize("said", [None, 0, 1, "", "maybe", [], {}])
def test_nothing_else_is_taken_for_true_or_false(said: Any) -> None:
    assert check.truth(said) is None


def test_a_whole_number_has_only_the_digits_that_are_written_on_the_line() -> None:
    assert check.is_whole("007")
    assert not any(check.is_whole(text) for text in ("", "-1", "+1", "1.0", "²", "٣", " 1"))
    assert check.is_whole("99", 2)
    assert not check.is_whole("100", 2)


def test_what_may_be_null_is_otherwise_as_its_check_says() -> None:
    @shape.like(shape.text(1))
    def loud(name: str, value: Any) -> str:
        return f"{name}: {value.upper()}"

    maybe = check.or_null(loud)
    assert maybe("a", None) is None
    assert maybe("a", "x") == "a: X"
    assert check.record({"a": maybe}, ["a"]) == shape.under("a", shape.or_null(shape.text(1)))


def test_a_value_in_a_sentence_has_at_most_80_characters() -> None:
    assert check.short("x") == "'x'"
    assert len(check.short("x" * 78)) == len("'" + "x" * 78 + "'")
    assert check.short("x" * 79) == "'" + "x" * 76 + "…"
    assert len(check.short("x" * 1000)) == 78
