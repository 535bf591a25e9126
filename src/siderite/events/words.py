"""A resource's document as words to find it by: pure functions.

Text is cut at white space; a word with other characters inside (`r01-n01`, a MAC, a UUID) is known
whole, without them, and by its parts. A field's value is one more word, made of both, so that
`provision_state=active` is found as quickly as a word is.
"""

import re
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from operator import itemgetter
from typing import Any

LONGEST = 64
MOST = 2000
_LONGEST_KEPT = 255
"""The length of what is kept in mind: a field may have a MiB, and the words of that ten times."""
_NESTED = (dict, list)
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
        return {
            name: _bare(inner) if type(inner) in _NESTED else inner for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_bare(inner) for inner in value]
    return value


def of(doc: dict[str, Any]) -> str:
    """All its words, once each, with spaces between them."""
    found: dict[str, None] = {}
    _gather("", doc, found)
    return " ".join(found)


def _gather(path: str, value: dict[str, Any] | list[Any], found: dict[str, None]) -> None:
    """The words of each simple value inside; those of a list have the list's own path. What has
    many comes last: there may be no room for all of its own, but for those of the others.
    """
    named = value.items() if isinstance(value, dict) else (("", inner) for inner in value)
    nested = []
    for name, inner in named:
        where = f"{path}.{name}" if path and name else name or path
        kind = type(inner)
        if kind in _NESTED:
            nested.append((len(inner), where, inner))
        elif len(found) < MOST:
            is_long = len(where) > _LONGEST_KEPT or (kind is str and len(inner) > _LONGEST_KEPT)
            more = (_of_scalar if is_long else _of_known)(where, inner, kind.__name__)
            found.update(islice(more.items(), MOST - len(found)))
    for _, where, inner in sorted(nested, key=itemgetter(0)):
        _gather(where, inner, found)


def _of_scalar(path: str, value: Any, kind: str) -> dict[str, None]:
    """The words of one field's value; `kind` keeps 1, 1.0 and true apart."""
    found = [of_field(path, value)]
    if kind in ("str", "int", "float"):
        text = str(value)[: MOST * LONGEST]
        found += asked(text)
        found += (part[:LONGEST] for part in _PART.findall(text.lower()))
    return dict.fromkeys(found)


_of_known = lru_cache(2048)(_of_scalar)  # most fields of most resources are alike


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
