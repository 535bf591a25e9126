"""The HTTP server: requests that do not end."""

import asyncio
from types import SimpleNamespace

import pytest
import uvicorn

from siderite.wiring import server


@pytest.fixture
def limits(monkeypatch):
    monkeypatch.setattr(server, "HEAD_BYTES", 4096)
    monkeypatch.setattr(server, "HEAD_S", 0.0)
    monkeypatch.setattr(server, "SILENCE_S", 0.0)


async def small(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def told(*pieces):
    """What the server answers to these bytes, and closes with or when it looks."""

    async def story():
        options = uvicorn.Config(
            small, http=server._Http, lifespan="off", log_config=None, access_log=False
        )
        hub = SimpleNamespace(close=lambda: None)
        serving = server._Server(options, asyncio.Event(), hub)
        options.load()
        serving.lifespan = options.lifespan_class(options)
        listener = server.listen(SimpleNamespace(listen="127.0.0.1:0"))
        await serving.startup([listener])
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.02)
            serving._cut()
            async with asyncio.timeout(20):
                return await reader.read()
        finally:
            writer.close()
            await serving.shutdown([listener])

    return asyncio.run(story())


def test_a_head_without_end_is_refused(limits):
    pieces = [b"GET / HTTP/1.1\r\nx: ", *[b"a" * 1000] * 5]
    assert told(*pieces).startswith(b"HTTP/1.1 431 ")


def test_a_head_that_does_not_come_is_not_waited_for_for_ever(limits):
    assert told() == b""
    assert told(b"GET / HTTP/1.1\r\nx: ") == b""


def test_a_client_that_falls_silent_within_a_body_is_let_go_of(limits):
    assert told(b"POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\nabc") == b""


def test_large_bodies_and_many_requests_at_once_are_no_large_heads(limits):
    post = b"POST / HTTP/1.1\r\ncontent-length: 50000\r\n\r\n" + b"x" * 50_000
    many = b"GET / HTTP/1.1\r\n\r\n" * 400 + b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n"
    answer = told(post, post[:100], post[100:], many)
    assert answer.count(b"HTTP/1.1 204 ") == 403
