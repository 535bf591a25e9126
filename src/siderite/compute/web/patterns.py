"""Patterns in the filters of lists, as conditions. Most are plain words, which the database finds
by itself; what takes more is a regular expression (`core.pattern`).
"""

import re

from siderite.core.pattern import not_known
from siderite.core.pattern import pattern
from siderite.core.pattern import states
from siderite.core.store.table import Where

_PLAIN = re.compile(r"\^?(?:[^\\^$.|?*+()\[\]{}]|\\[^A-Za-z0-9]|\.\*|\.(?![?*+{]))*\$?\Z")

_MOST_STATES = 256
"""With so many PostgreSQL takes a tenth of a second at the most."""


def contains(column: str, text: str, dialect: str) -> Where:
    """A pattern somewhere in a column."""
    if _PLAIN.match(text):
        start, inner, end = _parts(text)
        like = f"{'' if start else '%'}{inner}{'' if end else '%'}"
        return Where(f"lower({column}) LIKE lower(?) ESCAPE '!'", (like,))
    pattern(text)
    if dialect == "sqlite":
        return Where(f"has_pattern(?, {column})", (text,), slow=True)
    _check(text)
    return Where(f"{column} ~* ?", (text,))


def word_contains(column: str, text: str, dialect: str) -> Where:
    """A pattern somewhere in one of the words of a column, which spaces part."""
    if _PLAIN.match(text) and ".*" not in text:
        start, inner, end = _parts(text)
        like = f"%{' ' if start else ''}{inner}{' ' if end else ''}%"
        return Where(f"lower(' ' || {column} || ' ') LIKE lower(?) ESCAPE '!'", (like,))
    pattern(text)
    if dialect == "sqlite":
        return Where(f"word_has_pattern(?, {column})", (text,), slow=True)
    _check(text)
    words = f"unnest(string_to_array({column}, ' ')) AS word"
    return Where(f"EXISTS (SELECT 1 FROM {words} WHERE word ~* ?)", (text,))  # noqa: S608


def _check(text: str) -> None:
    """PostgreSQL's own regular expressions go by states, and one that has many takes it minutes."""
    if states(text) > _MOST_STATES:
        raise not_known(text, "it repeats too much; shorten it, or say .* in place of a count")


def _parts(text: str) -> tuple[bool, str, bool]:
    """Whether a plain pattern begins at the start, what it says, whether it ends at the end."""
    start = text.startswith("^")
    inner = text[1:] if start else text
    end = inner.endswith("$") and not inner.endswith("\\$")
    inner = inner[:-1] if end else inner
    out, at = list[str](), 0
    while at < len(inner):
        letter = inner[at]
        if inner.startswith(".*", at):
            out.append("%")
            at += 2
            continue
        if letter == ".":
            out.append("_")
        else:
            if letter == "\\":
                at += 1
                letter = inner[at]
            out.append("!" + letter if letter in "%_!" else letter)
        at += 1
    return start, "".join(out), end
