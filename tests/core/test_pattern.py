"""Patterns of users: as elsewhere, but none takes long."""

import re

import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from siderite.core.errors import Invalid
from siderite.core.pattern import is_in
from siderite.core.pattern import is_in_a_word
from siderite.core.pattern import pattern

PATTERNS = (
    "^web[0-9]+$", "a|b", "a(1|3)", "(web|db)-[a-c]{2,3}$", "^$", "x*", "(a*)*b", "(a|aa)+$",
    "[^0-9]+-", r"\d{2}", "[a-]", "[]a]", "a{2}", "a?b+", "(?:ab)*c$", "^(a|b)*$", r"\.",
    r"[\d-]x", "A[B-D]", "a+?b", r"\D-", "(^|-)1", "b{2,}",
)  # fmt: skip


@settings(derandomize=True, max_examples=200)
@given(st.sampled_from(PATTERNS), st.text("ab13-.webdcxD", max_size=9))
def test_it_finds_what_any_other_does(wanted: str, text: str) -> None:
    elsewhere = re.search(wanted.replace("$", r"\Z"), text, re.IGNORECASE)
    assert is_in(wanted, text) == (elsewhere is not None)


@pytest.mark.parametrize(
    "text",
    ["(", "a)", "*", "a{3,1}", "a{9999}", "[a", r"\1", "(?=a)", "\\", "a" * 300, "a**",
     "(a{200}){200}", "[b-a]"],
)  # fmt: skip
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        pattern(text)


def test_none_is_made_to_look_at_a_character_twice() -> None:
    """Backtracking would take longer than anybody waits."""
    assert not is_in("(a*)*(a|a)*(a?){50}b$", "a" * 255)
    assert not is_in("(a|b)*a(a|b){200}c", "ab" * 120)


def test_the_ends_of_a_word_are_ends() -> None:
    words = "10.0.0.1 10.0.0.20 fd00::1"
    assert is_in_a_word("^10.0.0.2.$", words)
    assert not is_in_a_word("^10.0.0.2$", words)
    assert not is_in_a_word("1 10", words.split(" ", maxsplit=1)[0])
