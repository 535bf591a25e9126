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


def test_a_document_has_no_more_words_for_having_them_in_one_text() -> None:
    many = " ".join(f"w{n}" for n in range(100_000))
    found = words.of({"a": "first", "extra": {"note": many, "more": many[::-1]}, "b": "last"})
    assert len(found.split()) == words.MOST
    assert {"first", "w0", "w1000"} <= set(found.split())


def test_what_has_many_words_leaves_room_for_those_of_the_other_fields() -> None:
    rack = {f"slot-{n}": f"disk-{n}" for n in range(3000)}
    doc = {"extra": rack, "properties": {"cpu_arch": "x86_64"}, "provision_state": "active"}
    found = words.of(doc).split()
    assert len(found) == words.MOST
    assert {
        "active", "x8664", "disk0", words.of_field("provision_state", "active"),
        words.of_field("properties.cpu_arch", "x86_64"),
    } <= set(found)  # fmt: skip
