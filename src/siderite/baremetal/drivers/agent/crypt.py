"""Passwords as Linux keeps them: SHA-512 crypt (`$6$`), which Python itself has no more.

As specified by Ulrich Drepper, "Unix crypt using SHA-256 and SHA-512", with its default of 5000
rounds. It takes some milliseconds, and more for long passwords: call it from a thread.
"""

import secrets
from hashlib import sha512

_ALPHABET = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ROUNDS = 5000
_SIZE = 64
_SALT = 16
_THIRD = 21


def sha512_crypt(password: str, salt: str | None = None) -> str:
    """The password's hash, with a salt of its own unless one is given."""
    grain = salt or "".join(secrets.choice(_ALPHABET) for _ in range(_SALT))
    word, sand = password.encode(), grain.encode()
    digest = _begin(word, sand)
    of_word = _stretched(sha512(word * len(word)).digest(), len(word))
    of_salt = _stretched(sha512(sand * (16 + digest[0])).digest(), len(sand))
    for turn in range(_ROUNDS):
        parts = [of_word if turn % 2 else digest]
        if turn % 3:
            parts.append(of_salt)
        if turn % 7:
            parts.append(of_word)
        parts.append(digest if turn % 2 else of_word)
        digest = sha512(b"".join(parts)).digest()
    return f"$6${grain}${_written(digest)}"


def _begin(word: bytes, sand: bytes) -> bytes:
    other = sha512(word + sand + word).digest()
    parts = [word, sand, _stretched(other, len(word))]
    left = len(word)
    while left:
        parts.append(other if left & 1 else word)
        left >>= 1
    return sha512(b"".join(parts)).digest()


def _stretched(digest: bytes, size: int) -> bytes:
    return (digest * (size // _SIZE + 1))[:size]


def _written(digest: bytes) -> str:
    """Three bytes make four letters, in an order of its own."""
    text = []
    first, second, third = 0, _THIRD, 2 * _THIRD
    for _ in range(_THIRD):
        text.append(_letters(digest[first] << 16 | digest[second] << 8 | digest[third], 4))
        first, second, third = second + 1, third + 1, first + 1
    return "".join(text) + _letters(digest[_SIZE - 1], 2)


def _letters(value: int, count: int) -> str:
    return "".join(_ALPHABET[value >> 6 * place & 63] for place in range(count))
