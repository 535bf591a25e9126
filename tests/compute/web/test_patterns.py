"""Patterns as conditions: what a database is asked to look for, and what it is spared."""

import pytest

from siderite.compute.web.patterns import contains
from siderite.compute.web.patterns import word_contains
from siderite.core.errors import Invalid


@pytest.mark.parametrize("condition", [contains, word_contains])
@pytest.mark.parametrize(
    "text",
    ["((a?){30}){30}", "(((a?b?){9}){9}){9}", r"(\w*\d*){100}", "(a?){255}", "((.*){10}){20}z"],
)
def test_what_postgresql_would_look_at_for_minutes_is_refused(condition, text):
    with pytest.raises(Invalid, match="repeats too much"):
        condition("name", text, "postgresql")
    assert condition("name", text, "sqlite").slow


@pytest.mark.parametrize("condition", [contains, word_contains])
@pytest.mark.parametrize(
    "text",
    [
        r"^(web|db)-[0-9]{1,3}\.(prod|test)\.example\.org$", "[^.]{1,63}", "^.{64}$", "x+" * 100,
        "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "(\u00e4|\u20ac)+[a-\u20ac]{5}",
    ],
)  # fmt: skip
def test_other_patterns_are_postgresqls_to_look_for(condition, text):
    assert "~*" in condition("name", text, "postgresql").sql
