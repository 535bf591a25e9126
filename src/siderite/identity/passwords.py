"""Passwords: scrypt with a salt, in a thread, two at a time (each takes 16 MiB and some 50 ms).

The stored text says its own parameters: `s1$14$8$1$salt$hash` is scheme s1 (scrypt) with n = 2 **
14, r = 8 and p = 1; a later scheme gets a new first word, and old texts stay readable.
"""

import asyncio
import base64
import hashlib
import hmac
import secrets

MAX_LENGTH = 4096
_SCHEME = "s1"
_LOG2_N, _R, _P = 14, 8, 1
_SALT_BYTES = 16
_AT_ONCE = 2


class Passwords:
    """Makes and checks hashes without holding up the event loop."""

    def __init__(self) -> None:
        self._turn = asyncio.Semaphore(_AT_ONCE)

    async def hash(self, password: str) -> str:
        """The text to store for a password."""
        async with self._turn:
            return await asyncio.to_thread(_hash, password)

    async def matches(self, password: str, stored: str | None) -> bool:
        """Whether it is right. Without a stored hash it takes as long, and never is."""
        async with self._turn:
            return await asyncio.to_thread(_matches, password, stored)


def _hash(password: str) -> str:
    salt = secrets.token_bytes(_SALT_BYTES)
    digest = _scrypt(password, salt, _LOG2_N, _R, _P)
    return "$".join((_SCHEME, str(_LOG2_N), str(_R), str(_P), _text(salt), _text(digest)))


def _matches(password: str, stored: str | None) -> bool:
    if len(password) > MAX_LENGTH:
        password, stored = "", None
    if stored is None:
        _scrypt(password, b"nobody", _LOG2_N, _R, _P)
        return False
    scheme, log2_n, r, p, salt, digest = stored.split("$")
    if scheme != _SCHEME:
        raise ValueError("a stored password has a scheme that this version does not know")
    found = _scrypt(password, base64.b64decode(salt), int(log2_n), int(r), int(p))
    return hmac.compare_digest(found, base64.b64decode(digest))


def _scrypt(password: str, salt: bytes, log2_n: int, r: int, p: int) -> bytes:
    secret = password.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(secret, salt=salt, n=2**log2_n, r=r, p=p, maxmem=2**26, dklen=32)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
