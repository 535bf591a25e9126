"""Tokens that open a server's console, for a while and for whoever holds them."""

from hashlib import sha256

import msgspec

from siderite.compute.domain.server import Server
from siderite.compute.store import SERVERS
from siderite.compute.usecases.context import Context
from siderite.core.ids import new_secret
from siderite.core.store import Op


class Opened(msgspec.Struct, frozen=True):
    """What a token opens."""

    server: Server
    protocol: str


async def issue(ctx: Context, server: Server, protocol: str) -> str:
    """A new token; those whose time is over are forgotten."""
    token = new_secret()
    now = ctx.door.clock()
    await ctx.door.store.commit(
        [
            Op("DELETE FROM console_tokens WHERE expires < ?", (now,)),
            Op(
                "INSERT INTO console_tokens (digest, server, protocol, expires)"
                " VALUES (?, ?, ?, ?)",
                (_digest(token), server.uuid, protocol, now + ctx.settings.console_token_ttl_s),
            ),
        ]
    )
    return token


async def redeem(ctx: Context, token: str) -> Opened | None:
    """What the token opens; None if it is not known, too old, or its server is gone."""
    rows = await ctx.door.store.fetch(
        "SELECT server, protocol FROM console_tokens WHERE digest = ? AND expires >= ?",
        (_digest(token), ctx.door.clock()),
    )
    server = await SERVERS.get(ctx.door.store, str(rows[0][0])) if rows else None
    if server is None or server.deleted:
        return None
    return Opened(server, str(rows[0][1]))


def _digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()
