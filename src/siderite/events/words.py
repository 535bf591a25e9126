"""A resource's document as words to find it by: pure functions.

Text is cut at white space; a word with other characters inside (`r01-n01`, a MAC, a UUID) is known
whole, without them, and by its parts. A field's value is one more word, made of both, so that
`provision_state=active` is found as quickly as a word is.
"""

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

LONGEST = 64
MOST = 2000
_PART = re.compile(r"[^\W_]+")


def data(payload: Any) -> dict[str, Any]:
    """The fields in a versioned payload, objects inside it included."""
    found = _bare(payload)
    return found if isinstance(found, dict) else {}


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        for name in value:
            if name.endswith("_object.data"):
                return _bare(value[name])
        return {name: _bare(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_bare(inner) for inner in value]
    return value


def of(doc: dict[str, Any]) -> str:
    """All its words, once each, with spaces between them."""
    found: dict[str, None] = {}
    for path, value in _scalars("", doc):
        found[of_field(path, value)] = None
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            for word in asked(str(value)):
                found[word] = None
            for part in _PART.findall(str(value).lower()):
                found[part[:LONGEST]] = None
        if len(found) > MOST:
            break
    return " ".join(found)


def asked(text: str) -> list[str]:
    """The words of a question: each whole, without what is neither letter nor digit."""
    whole = ("".join(_PART.findall(word)) for word in text.lower().split())
    return [word[:LONGEST] for word in whole if word]


def of_field(path: str, value: Any) -> str:
    """The word that stands for a field's value."""
    said = f"{path}={_text(value)}".lower().encode()
    return "f" + blake2b(said, digest_size=10).hexdigest()


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _scalars(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Each simple value and the path to it; those of a list have the list's."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _scalars(f"{path}.{name}" if path else str(name), inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _scalars(path, inner)
    else:
        yield path, value
