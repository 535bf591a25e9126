"""What the checks of all products' requests have in common.

Each product refuses in the sentences that clients of its API know, so each has its own checks
(`web/forms.py`); here is what they decide by, and what they do not say anything about themselves.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from siderite.core import shape

Check = Callable[[str, Any], Any]
"""Gives the value of a field of this name in its proper form, or raises an error about it."""

_TRUTHS = {
    **dict.fromkeys(("true", "1", "yes", "on", "t", "y"), True),
    **dict.fromkeys(("false", "0", "no", "off", "f", "n"), False),
}
_MOST_SHOWN = 80


def truth(value: Any) -> bool | None:
    """True or false, also as the words that command lines send; None for anything else."""
    if isinstance(value, str):
        return _TRUTHS.get(value.strip().lower())
    return value if isinstance(value, bool) else None


def is_whole(text: str, digits: int = 18) -> bool:
    """Whether this is a whole number of so many digits: only 0 to 9, as `int` takes no others such
    as those that are written above the line.
    """
    return text.isascii() and text.isdigit() and len(text) <= digits


def or_null(check: Check) -> Check:
    """What the check says, or null."""

    @shape.like(shape.or_null(shape.of(check)))
    def checked(name: str, value: Any) -> Any:
        return None if value is None else check(name, value)

    return checked


def record(checks: Mapping[str, Check], required: Iterable[str] = ()) -> shape.Json:
    """The form of an object whose fields have these checks."""
    return shape.record({name: shape.of(one) for name, one in checks.items()}, list(required))


def short(value: Any) -> str:
    """A value as it is shown in a sentence."""
    shown = repr(value)
    return shown if len(shown) <= _MOST_SHOWN else shown[: _MOST_SHOWN - 3] + "…"
