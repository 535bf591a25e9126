"""What a flavor's extra spec says of a value, which may begin with an operator: `>= 4`, `<in> ssd`,
`<or> east <or> west`. Without one, or with a word that is none, the value must be the same. Pure.
"""

import operator
from collections.abc import Callable
from collections.abc import Mapping

_NUMBERS: Mapping[str, Callable[[float, float], bool]] = {
    "=": operator.ge, "==": operator.eq, "!=": operator.ne, ">=": operator.ge, "<=": operator.le,
}  # fmt: skip
"""`=` is what it is in Nova: at least so much."""
_TEXTS: Mapping[str, Callable[[str, str], bool]] = {
    "s==": operator.eq, "s!=": operator.ne, "s<": operator.lt, "s<=": operator.le,
    "s>": operator.gt, "s>=": operator.ge, "<in>": operator.contains,
}  # fmt: skip


def meets(value: str, wish: str) -> bool:
    """Whether a value is as it is wished. One that is to be a number and is none, is not."""
    word, *words = wish.split() or [""]
    if word == "<or>":
        return value in words[::2]
    if word == "<all-in>":
        return bool(words) and all(part in value for part in words)
    if word in _TEXTS:
        return bool(words) and _TEXTS[word](value, words[0])
    if word in _NUMBERS:
        return bool(words) and _compared(value, words[0], _NUMBERS[word])
    return value == wish


def _compared(value: str, wish: str, compare: Callable[[float, float], bool]) -> bool:
    try:
        return compare(float(value), float(wish))
    except ValueError:
        return False
