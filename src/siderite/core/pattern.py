"""Regular expressions that users write, by RE2: it looks at each character once, so that no pattern
can be made to take long. What can only be found by backtracking (look-arounds, back-references) is
refused. In filters letters match in either case, anywhere in the text.
"""

from functools import lru_cache
from typing import Any

from siderite.core.errors import Invalid

MOST_CHARACTERS = 255


def not_known(text: str, why: str) -> Invalid:
    """A pattern is none that is known here."""
    return Invalid(
        f"The pattern {text[:80]!r} is not a regular expression that is known here: {why}."
    )


@lru_cache(64)
def pattern(text: str, *, any_case: bool = True, most: int = MOST_CHARACTERS) -> Any:
    """A pattern, if it is one and has at most so many characters."""
    if len(text) > most:
        raise not_known(text, f"it is over {most} characters")
    return _compiled(text, text, any_case=any_case)


@lru_cache(64)
def states(text: str) -> int:
    """How many states a pattern has, by bytes: what takes no time here can take others the cube of
    them, as each of `((a?){30}){30}` may be passed by.
    """
    form = "".join(min(letter, "\xff") for letter in text)
    return int(_compiled(text, form.encode("latin-1"), any_case=True).programsize)


def _compiled(text: str, form: str | bytes, *, any_case: bool) -> Any:
    import re2  # noqa: PLC0415 - few ever need it

    options = re2.Options()
    options.case_sensitive = not any_case
    options.never_capture = True
    options.log_errors = False
    if isinstance(form, bytes):
        options.encoding = re2.Options.Encoding.LATIN1
    try:
        return re2.compile(form, options)
    except re2.error as why:
        raise not_known(text, why.args[0].decode(errors="replace")) from why


def is_in(text: str, column: str | None) -> bool:
    """Whether a text holds a pattern."""
    return column is not None and pattern(text).search(column) is not None


def is_in_a_word(text: str, column: str | None) -> bool:
    """Whether one of the words of a text holds a pattern."""
    return column is not None and any(map(pattern(text).search, column.split(" ")))
