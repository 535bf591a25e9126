"""A request's body as JSON, or a sentence about what is wrong with it: malformed, too deep, too
manifold, or with what no database stores.
"""

import re
from typing import Any

import msgspec

from siderite.core.errors import Invalid
from siderite.core.errors import TooLarge

MAX_DEPTH = 25
_LARGE = 1024 * 1024


def parse_json(text: bytes) -> Any:
    """The JSON of a body."""
    if not text:
        raise Invalid("The body is empty; this address needs a JSON body.")
    if len(text) > _LARGE and sum(map(text.count, _MARKS)) > _LARGE:
        raise TooLarge(
            "The body has too many parts: a large one is taken for what is long in it, such as a"
            " config drive, and may have no more than one of 1 MiB could."
        )
    if _is_deep(text):
        raise Invalid(f"The JSON body is nested over {MAX_DEPTH} levels deep.")
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as why:
        raise Invalid(f"The body is not valid JSON: {why}.") from why
    if b"\\u0000" in text and _NUL.search(text):
        raise Invalid("The body has a NUL character, which cannot be stored.")
    return value


_MARKS = (b"[", b"{", b",", b'"')
"""What each part of a body has one of: parsing takes time and room for each, and nobody else is
answered meanwhile.
"""
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BUT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_SQUARE = bytes.maketrans(b"{}", b"[]")


def _is_deep(text: bytes) -> bool:
    """Whether brackets nest too deep: only those outside strings, and none is left when innermost
    pairs were taken away as often as they may nest. What does not pair is left to the parser.
    """
    if text.count(b"[") + text.count(b"{") <= MAX_DEPTH:
        return False
    brackets = _STRING.sub(b"", text).translate(_SQUARE, _BUT_BRACKETS)
    for _ in range(MAX_DEPTH):
        brackets = brackets.replace(b"[]", b"")
    return b"[]" in brackets
