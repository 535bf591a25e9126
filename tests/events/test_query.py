"""Whether two globs can match the same text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siderite.events.query import overlap

GLOBS = st.text("ab.*?", max_size=6)


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("*", True),
        ("baremetal.*", True),
        ("*.end", True),
        ("b*.node.*d", True),
        ("baremetal.node.create.end", True),
        ("?aremetal.node.create.en?", True),
        ("baremetal.node.create.ended", False),
        ("baremetal.node", False),
        ("baremetal", False),
        ("instance.*", False),
    ],
)
def test_a_type_is_compared_with_the_forms_there_are(glob, expected):
    assert overlap(glob, "baremetal.*.*.end") is expected
    assert overlap("baremetal.*.*.end", glob) is expected


def matches(glob, text):
    return re.fullmatch(re.escape(glob).replace(r"\*", ".*").replace(r"\?", "."), text) is not None


@given(GLOBS, GLOBS, st.text("ab.", max_size=6))
def test_globs_that_match_the_same_text_overlap(one, other, text):
    if matches(one, text) and matches(other, text):
        assert overlap(one, other)


@given(GLOBS, st.text("ab.", max_size=6))
def test_a_glob_and_a_plain_text_overlap_when_the_one_matches_the_other(glob, text):
    assert overlap(glob, text) is matches(glob, text)
