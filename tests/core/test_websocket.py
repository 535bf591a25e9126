"""Bytes between a WebSocket and a TCP connection, with a real server and a real client."""

import asyncio
from collections.abc import Awaitable
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError

from siderite.core.websocket import carry
from siderite.core.websocket import with_sockets


async def _nothing(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body"})


def _with_server(
    peer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    story: Callable[[str], Awaitable[None]],
) -> None:
    async def main() -> None:
        other = await asyncio.start_server(peer, "127.0.0.1", 0)
        port = other.sockets[0].getsockname()[1]

        async def handler(scope: Any, receive: Any, send: Any) -> None:
            await carry(scope, receive, send, await asyncio.open_connection("127.0.0.1", port))

        app = with_sockets(_nothing, {"way": handler})
        options = uvicorn.Config(
            app, port=0, ws="websockets-sansio", lifespan="off", log_config=None
        )
        server = uvicorn.Server(options)
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        try:
            async with asyncio.timeout(60):
                address = server.servers[0].sockets[0].getsockname()
                await story(f"ws://127.0.0.1:{address[1]}")
        finally:
            server.should_exit = True
            await serving
            other.close()
            await asyncio.sleep(0)  # who was let in just now has a chance to be shown out

    asyncio.run(main())


def test_bytes_are_carried_both_ways_and_either_end_may_close() -> None:
    async def echo_until_bye(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (data := await reader.read(1000)) and data != b"bye":
            writer.write(data.upper())
            await writer.drain()
        writer.close()

    async def story(url: str) -> None:
        async with connect(f"{url}/way", subprotocols=["binary"]) as socket:  # type: ignore[list-item]
            assert socket.subprotocol == "binary"
            await socket.send(b"hello")
            assert await socket.recv() == b"HELLO"
            await socket.send("text")
            assert await socket.recv() == b"TEXT"
            await socket.send(b"bye")
            assert [message async for message in socket] == []

    _with_server(echo_until_bye, story)


def test_a_large_answer_arrives_whole() -> None:
    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"x" * 3_000_000)
        await writer.drain()
        writer.close()

    async def story(url: str) -> None:
        async with connect(f"{url}/way") as socket:
            pieces = [len(message) async for message in socket]
        assert sum(pieces) == 3_000_000

    _with_server(pour, story)


def test_an_unknown_address_is_refused_with_a_reason() -> None:
    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise AssertionError

    async def story(url: str) -> None:
        async with connect(f"{url}/elsewhere") as socket:
            with pytest.raises(ConnectionClosedError, match="no WebSocket at this address"):
                await socket.recv()

    _with_server(never, story)
