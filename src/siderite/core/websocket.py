"""WebSockets, as far as a console needs them: bytes to and from a TCP connection.

Bare ASGI, as `core.http` is. Neither side is read faster than the other takes it.
"""

import asyncio
import contextlib
from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

SocketHandler = Callable[[Any, Any, Any], Awaitable[None]]
"""An ASGI application."""

_PIECE = 64 * 1024
_REFUSED = 4403
_GONE = 1001
_REASON_BYTES = 123
"""More does not fit into the frame that closes."""
_BINARY = "binary"


def with_sockets(app: SocketHandler, sockets: Mapping[str, SocketHandler]) -> SocketHandler:
    """The application, with handlers for WebSockets by the first word of their path."""

    async def both(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "websocket":
            await app(scope, receive, send)
            return
        handler = sockets.get(scope["path"][1:].partition("/")[0])
        if handler is None:
            await refuse(receive, send, "There is no WebSocket at this address.")
        else:
            await handler(scope, receive, send)

    return both


async def refuse(receive: Any, send: Any, reason: str) -> None:
    """Close before anything was said; a browser's script is told why."""
    await receive()
    await send({"type": "websocket.accept"})
    short = reason.encode()[:_REASON_BYTES].decode(errors="ignore")
    await send({"type": "websocket.close", "code": _REFUSED, "reason": short})


async def carry(
    scope: Any, receive: Any, send: Any, to: tuple[asyncio.StreamReader, asyncio.StreamWriter]
) -> None:
    """Accept, and carry bytes both ways until either side ends."""
    reader, writer = to
    try:
        await receive()
        offered = _BINARY if _BINARY in scope.get("subprotocols", ()) else None
        await send({"type": "websocket.accept", "subprotocol": offered})
        await _both_ways(receive, send, reader, writer)
    finally:
        writer.close()  # also where the client has left while we came to it
        with contextlib.suppress(Exception):
            await send({"type": "websocket.close", "code": _GONE})


async def _both_ways(
    receive: Any, send: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    ways = (
        asyncio.create_task(_inward(receive, writer)),
        asyncio.create_task(_outward(reader, send)),
    )
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _inward(receive: Any, writer: asyncio.StreamWriter) -> None:
    while True:
        message = await receive()
        if message["type"] != "websocket.receive":
            return
        writer.write(message.get("bytes") or (message.get("text") or "").encode())
        await writer.drain()


async def _outward(reader: asyncio.StreamReader, send: Any) -> None:
    while data := await reader.read(_PIECE):
        await send({"type": "websocket.send", "bytes": data})
