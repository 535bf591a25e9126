"""Operators in extra specs say of a host's aggregates what they say in Nova."""

import pytest

from siderite.compute.domain.spec_operators import meets


@pytest.mark.parametrize(
    ("wish", "met", "unmet"),
    [
        ("true", "true", "True"),
        ("", "", "true"),
        ("two words", "two words", "two"),
        ("<none> x", "<none> x", "x"),
        ("= 4", "8", "3"),
        (">= 4", "4.0", "3.9"),
        ("<= 4", "4", "five"),
        ("== 4", "4.0", "5"),
        ("!= 4", "5", "4.0"),
        ("s== 4", "4", "4.0"),
        ("s!= ssd", "hdd", "ssd"),
        ("s< b", "a", "b"),
        ("s<= b", "b", "c"),
        ("s> b", "c", "b"),
        ("s>= b", "b", "a"),
        ("<in> ssd", "fast-ssd", "hdd"),
        ("<all-in> aes avx", "aes,avx2", "aes,mmx"),
        ("<or> east <or> west", "west", "north"),
        ("<or> east <or> west", "east", "<or>"),
    ],
)
def test_a_value_is_held_against_the_operator(wish: str, met: str, unmet: str) -> None:
    assert meets(met, wish)
    assert not meets(unmet, wish)


@pytest.mark.parametrize("wish", ["<or>", "<in>", "<all-in>", ">=", "s==", ">= many"])
@pytest.mark.parametrize("value", ["", "4", "many", ">=", "<or>"])
def test_an_operator_without_what_it_needs_is_met_by_nothing(wish: str, value: str) -> None:
    assert not meets(value, wish)
