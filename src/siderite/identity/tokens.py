"""Token texts: 32 random bytes. The database only ever sees their hash."""

import hashlib

from siderite.core.ids import new_secret

MAX_LENGTH = 255


def new_token() -> str:
    """A new token's text."""
    return new_secret()


def new_audit_id() -> str:
    """An id by which a token can be spoken of without naming it."""
    return new_secret(16)


def token_hash(token: str) -> str | None:
    """What a token is found by; None for a text that cannot be one of ours."""
    if not token or len(token) > MAX_LENGTH or not token.isascii():
        return None
    return hashlib.sha256(token.encode()).hexdigest()
