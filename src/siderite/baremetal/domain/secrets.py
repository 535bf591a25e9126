"""What is secret in a node's free-form fields, and how it is shown instead.

By the name of the key, at any depth, or by the `name` that a `value` stands beside, as a setting's
does; a config drive is hidden whole, as text or as an object. In text, what follows `password=`,
the password in a URL, and the part of a boot file's address that lets one read it.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

MASK = "******"
_ANY = "any-secret"

_SECRET = re.compile(
    r"pass(word|wd|phrase)?$|passw|admin_pass|pswd|pwd$|token|secret|configdrive|config_drive|"
    r"private_key|encrypted_key|(ssl|tls|api|auth|priv|access|client|ssh|kg|fernet)_?keys?(_|$)|"
    r"image_url|credential|community",
    re.IGNORECASE,
)
_NOT_SECRET = frozenset({"agent_token_required", "agent_secret_token_pregenerated"})
_IN_TEXT = re.compile(r"""(password["']?\s*[=:]\s*)("[^"]*"|'[^']*'|\S+)""", re.IGNORECASE)
_IN_URL = re.compile(r"(://[^/\s:]*:)[^/\s]+(?=@)")
"""Up to the last `@` before the path: names and passwords may have some of their own."""

_BOOT_FILES = "/boot/v1/files/"
_IN_BOOT_FILE = re.compile(rf"({_BOOT_FILES}[^/\s]+/)[^/\s]+")


_LONGEST_KEPT = 255
"""The length of names that are kept in mind: clients may write some of a MiB, each another one."""


def is_secret(key: str) -> bool:
    """Whether what has this name is secret."""
    return (_is_known_secret if len(key) <= _LONGEST_KEPT else _is_secret)(key)


def _is_secret(key: str) -> bool:
    return key not in _NOT_SECRET and _SECRET.search(key) is not None


_is_known_secret = lru_cache(4096)(_is_secret)


def _hides(value: dict[str, Any], key: str) -> bool:
    """Whether what stands at this key is secret."""
    if key == "value" and isinstance(name := value.get("name"), str):
        return is_secret(name)
    return is_secret(str(key))


def mask(value: Any) -> Any:
    """The value with everything secret in it masked; the same object if nothing was."""
    if isinstance(value, dict):
        out = None
        for key, inner in value.items():
            if inner is not None and _hides(value, key):
                new: Any = MASK
            else:
                new = mask(inner)
            if new is not inner:
                out = dict(value) if out is None else out
                out[key] = new
        return value if out is None else out
    if isinstance(value, list):
        masked = [mask(inner) for inner in value]
        return masked if any(a is not b for a, b in zip(masked, value, strict=True)) else value
    if isinstance(value, str):
        return _text(value)
    return value


def _text(value: str) -> str:
    if "password" in value.lower():
        value = _IN_TEXT.sub(r"\1" + MASK, value)
    if "@" in value and "://" in value:
        value = _IN_URL.sub(r"\1" + MASK, value)
    if _BOOT_FILES in value:
        value = _IN_BOOT_FILE.sub(r"\1" + MASK, value)
    return value


def hidden(value: Any) -> list[str]:
    """The texts that a mask would hide whole."""
    if isinstance(value, dict):
        found: list[str] = []
        for key, inner in value.items():
            found += _texts(inner) if _hides(value, key) else hidden(inner)
        return found
    return [text for inner in value for text in hidden(inner)] if isinstance(value, list) else []


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return [text for inner in items for text in _texts(inner)]
    return [value] if isinstance(value, str) and value else []


def without(text: str, hidden: Iterable[str]) -> str:
    """What somebody else said, with these secrets masked."""
    for secret in sorted(hidden, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


class NothingBehind(Exception):
    """A mask was written where there is no secret that it could stand for; the text says where."""


def unmasked(before: Any, after: Any, where: str) -> Any:
    """What a client wrote, with the secrets that its masks stand for: who reads a value and writes
    it back, changed elsewhere, leaves them as they are. A text is whole: who changes one writes
    the secrets in it, too.
    """
    return _unmasked(before, after, where) if _has_mask(after) else after


def _has_mask(value: Any) -> bool:
    if isinstance(value, str):
        return MASK in value
    inner = value.values() if isinstance(value, dict) else value
    return isinstance(value, dict | list) and any(map(_has_mask, inner))


def _unmasked(before: Any, after: Any, where: str) -> Any:
    if isinstance(after, dict):
        known = before if isinstance(before, dict) else {}
        return {
            key: _behind(known.get(key), f"{where}/{key}")
            if inner == MASK and _hides(after, key)
            else _unmasked(known.get(key), inner, f"{where}/{key}")
            for key, inner in after.items()
        }
    if isinstance(after, list):
        items = before if isinstance(before, list) and len(before) == len(after) else ()
        return [
            _unmasked(items[at] if items else None, inner, f"{where}/{at}")
            for at, inner in enumerate(after)
        ]
    if isinstance(after, str) and MASK in after:
        if isinstance(before, str) and _text(before) == after:
            return before
        if _has_lost_one(after):
            raise NothingBehind(where)
    return after


def _has_lost_one(text: str) -> bool:
    """Whether a mask stands in a text where a secret would."""
    tried = text.replace(MASK, _ANY)
    return _text(tried).count(_ANY) < tried.count(_ANY)


def _behind(secret: Any, where: str) -> Any:
    if secret is None:
        raise NothingBehind(where)
    return secret
