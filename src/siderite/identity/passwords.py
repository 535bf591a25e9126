"""Passwords: scrypt with a salt, in threads of their own, two at a time (each takes 16 MiB and some
50 ms): whoever waits for a slow disk in other threads keeps nobody from logging in.

So a flood of logins could keep everybody out. Those who wait do so in a bounded queue that is fair
by name, and a password that was right a moment ago is known again without a turn: by a keyed hash
of it and of what is stored, with a key that lives as long as the process.

The stored text says its own parameters: `s1$14$8$1$salt$hash` is scheme s1 (scrypt) with n = 2 **
14, r = 8 and p = 1; a later scheme gets a new first word, and old texts stay readable.
"""

import asyncio
import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from siderite.core.fair_queue import FairQueue

MAX_LENGTH = 4096
_MAX_NAME = 255
_SCHEME = "s1"
_LOG2_N, _R, _P = 14, 8, 1
_SALT_BYTES = 16
_AT_ONCE = 2
_MOST_WAITING = 200
_KNOWN_FOR_S = 60.0
_MOST_KNOWN = 1000
T = TypeVar("T")
_FULL = "Too many people log in just now; try again in a moment."


class Passwords:
    """Makes and checks hashes without holding up the event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._queue = FairQueue(_AT_ONCE, _MOST_WAITING, _FULL)
        self._threads = ThreadPoolExecutor(_AT_ONCE, "password")
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._known: dict[bytes, float] = {}

    async def hash(self, password: str) -> str:
        """The text to store for a password."""
        async with self._queue.turn(""):
            return await self._in_a_thread(partial(_hash, password))

    async def matches(self, password: str, stored: str | None, name: str) -> bool:
        """Whether it is right for what is stored under a name. Without a stored hash it takes as
        long, and never is.
        """
        mark = self._mark(password, stored or "")
        if stored is not None and self._clock() < self._known.get(mark, 0.0):
            return True
        async with self._queue.turn(name[:_MAX_NAME]):
            is_right = await self._in_a_thread(partial(_matches, password, stored))
        if is_right:
            self._known.pop(mark, None)
            if len(self._known) >= _MOST_KNOWN:
                del self._known[next(iter(self._known))]
            self._known[mark] = self._clock() + _KNOWN_FOR_S
        return is_right

    async def _in_a_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _mark(self, password: str, stored: str) -> bytes:
        secret = password[: MAX_LENGTH + 1].encode("utf-8", "surrogatepass")
        return hashlib.blake2b(stored.encode() + b"\0" + secret, key=self._key).digest()


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
