"""Bytes between a WebSocket and a TCP connection, with a real server and a real client."""

import asyncio
from collections.abc import Awaitable
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError

from siderite.core.websocket import SocketHandler
from siderite.core.websocket import carry
from siderite.core.websocket import refuse
from siderite.core.websocket import with_sockets


async def _nothing(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body"})


async def _never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    raise AssertionError


async def _wordy(scope: Any, receive: Any, send: Any) -> None:
    await refuse(receive, send, "über " * 50)


def _with_server(
    peer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    story: Callable[[str], Awaitable[None]],
    **more: SocketHandler,
) -> None:
    async def main() -> None:
        other = await asyncio.start_server(peer, "127.0.0.1", 0)
        port = other.sockets[0].getsockname()[1]

        async def handler(scope: Any, receive: Any, send: Any) -> None:
            await carry(scope, receive, send, await asyncio.open_connection("127.0.0.1", port))

        app = with_sockets(_nothing, {"way": handler, "closed": _wordy, **more})
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


def test_a_client_that_leaves_before_it_is_let_in_leaves_no_connection_behind() -> None:
    left, closed = asyncio.Event(), asyncio.Event()

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await left.wait()
        await reader.read()
        closed.set()
        writer.close()

    async def late(scope: Any, receive: Any, send: Any) -> None:
        other = await asyncio.open_connection("127.0.0.1", scope["query_string"].decode())
        while True:  # as a host that takes long to be reached
            try:
                await send({"type": "nothing that can be sent"})
            except RuntimeError:
                await asyncio.sleep(0.01)
            except OSError:
                break  # the client has left
        left.set()
        await carry(scope, receive, send, other)

    async def story(url: str) -> None:
        async with await asyncio.start_server(peer, "127.0.0.1", 0) as screen:
            port = screen.sockets[0].getsockname()[1]
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await connect(f"{url}/late?{port}")
            async with asyncio.timeout(20):
                await closed.wait()

    _with_server(_never, story, late=late)


def test_of_a_long_reason_in_any_language_as_much_is_told_as_fits() -> None:
    async def story(url: str) -> None:
        async with connect(f"{url}/closed") as socket:
            with pytest.raises(ConnectionClosedError, match=r"4403.*über über über"):
                await socket.recv()

    _with_server(_never, story)


def test_an_unknown_address_is_refused_with_a_reason() -> None:
    async def story(url: str) -> None:
        async with connect(f"{url}/elsewhere") as socket:
            with pytest.raises(ConnectionClosedError, match="no WebSocket at this address"):
                await socket.recv()

    _with_server(_never, story)
