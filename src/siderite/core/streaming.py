"""Answers that come bit by bit, as long as there is something to say. Called by `core.http`.

The next chunk is asked for when the last one was taken, so that what waits for a client is one
chunk and what the server's socket holds. A client that leaves ends its answer; one that stays and
does not read is cut.
"""

import asyncio
from collections.abc import AsyncGenerator
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from siderite.core import metrics
from siderite.core.log import get_logger

log = get_logger("streaming")

Chunks = AsyncGenerator[bytes, None]
PATIENCE_S = 20.0
"""How long a client may take to read a piece of a chunk, or as much of what waits before it."""
PIECE = 64 * 1024
"""How much of a chunk is sent at a time: a line that carries little carries that much in time."""
Unread = Callable[[], int]
"""How many bytes of what was sent wait for the client. Some systems take no more for a client that
reads, if slowly, until it has read a MiB of it.
"""
UNREAD = "siderite.unread"
"""Where a scope has it, if its server tells."""


async def pour(
    chunks: Chunks,
    receive: Any,
    send: Any,
    *,
    silent: bool = False,
    unread: Unread = int,
    patience_s: float = PATIENCE_S,
) -> None:
    """Send the chunks until they end, or the client leaves or does not read on; none if silent."""
    if silent:
        await chunks.aclose()
        await send({"type": "http.response.body", "body": b""})
        return
    leaving = asyncio.create_task(_left(receive))
    sending = asyncio.create_task(_send(chunks, send, unread, patience_s))
    try:
        with metrics.stream():
            await asyncio.wait((leaving, sending), return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        sending.cancel()
        _, why = await asyncio.gather(leaving, sending, return_exceptions=True)
    if isinstance(why, _Slow):
        metrics.stream_cut()
        log.info("cut a client that does not read on", patience_s=patience_s)
    elif isinstance(why, Exception):
        log.warning("an answer broke off", error=repr(why))


class _Slow(Exception):
    """The client does not read on."""


async def _send(chunks: Chunks, send: Any, unread: Unread, patience_s: float) -> None:
    async with aclosing(chunks):
        async for chunk in chunks:
            for at in range(0, len(chunk), PIECE):
                piece = chunk[at : at + PIECE]
                await _within(patience_s, unread, send, {"body": piece, "more_body": True})
    await _within(patience_s, unread, send, {"body": b""})


async def _within(patience_s: float, unread: Unread, send: Any, message: dict[str, Any]) -> None:
    left = unread()
    while True:
        try:
            async with asyncio.timeout(patience_s):
                await send({"type": "http.response.body", **message})
                return
        except TimeoutError as why:
            before, left = left, unread()
            if before - left < PIECE:
                raise _Slow from why
            # Nothing of it was sent: servers wait for room before they take it.


async def _left(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
