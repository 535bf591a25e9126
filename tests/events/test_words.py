"""The words of a resource's document, and what is kept in mind of them."""

import sys

import pytest

from siderite.events import words


@pytest.mark.parametrize(("length", "is_kept"), [(60, True), (100_000, False)])
def test_a_long_text_is_not_kept_after_its_words_were_found(length: int, is_kept: bool) -> None:
    text = "wrought iron " * (length // 13)
    doc = {"extra": {"note": text}}
    before = sys.getrefcount(text)
    found = words.of(doc)
    assert {"wrought", "iron"} <= set(found.split())
    assert (sys.getrefcount(text) > before) is is_kept
