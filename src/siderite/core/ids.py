"""Making and recognising ids."""

import os
import re
import secrets

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z", re.I)


_pool: list[str] = []
"""Random bits that nobody had yet: many are asked of the system at a time."""
_AT_A_TIME = 256
os.register_at_fork(after_in_child=_pool.clear)


def random_hex() -> str:
    """128 random bits as 32 digits."""
    try:
        return _pool.pop()
    except IndexError:
        digits = os.urandom(16 * _AT_A_TIME).hex()
        _pool.extend([digits[at : at + 32] for at in range(32, len(digits), 32)])
        return digits[:32]


def new_uuid() -> str:
    """A random UUID (version 4); twice as quick as the standard library's object and its text."""
    h = random_hex()
    return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-{'89ab'[int(h[16], 16) & 3]}{h[17:20]}-{h[20:]}"


def new_request_id() -> str:
    """A request id in the form OpenStack tools expect."""
    return "req-" + new_uuid()


def new_secret(size: int = 32) -> str:
    """A random text of so many bytes that nobody guesses, and no command takes for an option."""
    text = "-"
    while text.startswith("-"):
        text = secrets.token_urlsafe(size)
    return text


def is_uuid(text: str) -> bool:
    """Whether the text is a UUID in its dashed form."""
    return _UUID.match(text) is not None
