"""The HTTP server: requests that do not end."""

import asyncio
import socket
from contextlib import AsyncExitStack
from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace

import pytest
import uvicorn

from siderite.core.config import Config
from siderite.core.http import ANSWER
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


async def at_once(scope, receive, send):
    """Answers with the path, the first of them late."""
    path = scope["path"].encode()
    await asyncio.sleep(0.05 if path == b"/1" else 0.0)
    headers = [(b"content-length", b"%d" % len(path)), (b"x", scope["query_string"])]
    if path == b"/split":
        headers.append((b"x", b"a\r\nset-cookie: b"))
    assert scope[ANSWER](200, headers, b"" if scope["method"] == "HEAD" else path)


async def large(scope, receive, send):
    body = b"x" * 2**24  # more than a system keeps for its client
    headers = [(b"content-length", b"%d" % len(body))]
    if not scope[ANSWER](200, headers, body):
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


UPGRADE = (
    b"GET / HTTP/1.1\r\nhost: h\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
    b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n"
)


class Hearing(server._Http):
    """Notes what it has heard, and whether that is all."""

    def __init__(self, *args, heard, **options):
        super().__init__(*args, **options)
        self._noted = heard

    def connection_made(self, transport):
        super().connection_made(transport)
        self._noted.has_begun = True

    def data_received(self, data):
        super().data_received(data)
        self._noted.text += data

    def connection_lost(self, exc):
        super().connection_lost(exc)
        self._noted.is_over = True


@asynccontextmanager
async def serving(most=100, app=small, http=server._Http):
    """A server, and where it listens."""
    options = uvicorn.Config(
        app, http=partial(http, most=most), lifespan="off", log_config=None,
        access_log=False, ws="websockets-sansio",
        timeout_graceful_shutdown=5,  # as in the program: a test that failed ends, too
    )  # fmt: skip
    hub = SimpleNamespace(close=lambda: None)
    made = server._Server(options, asyncio.Event(), hub, lambda: None)
    options.load()
    made.lifespan = options.lifespan_class(options)
    listener = server.listen(SimpleNamespace(listen="127.0.0.1:0"))
    await made.startup([listener])
    try:
        yield made, listener.getsockname()
    finally:
        await made.shutdown([listener])


def told(*pieces, app=small):
    """What the server answers to these bytes, and closes with or when it looks."""

    async def story():
        heard, sent = SimpleNamespace(text=b"", has_begun=False, is_over=False), b""
        http = partial(Hearing, heard=heard)
        async with serving(app=app, http=http) as (made, address), asyncio.timeout(30):
            reader, writer = await asyncio.open_connection(*address)
            try:
                while not heard.has_begun:
                    await asyncio.sleep(0.01)
                for piece in pieces:
                    sent += piece
                    writer.write(piece)
                    await writer.drain()
                    while heard.text != sent and not heard.is_over:
                        await asyncio.sleep(0.01)
                made._cut()
                return await reader.read()
            finally:
                writer.close()

    return asyncio.run(story())


def test_a_head_without_end_is_refused(limits):
    pieces = [b"GET / HTTP/1.1\r\nx: ", *[b"a" * 1000] * 5]
    assert told(*pieces).startswith(b"HTTP/1.1 431 ")


def test_a_head_that_does_not_come_is_not_waited_for_for_ever(limits):
    assert told() == b""
    assert told(b"GET / HTTP/1.1\r\nx: ").startswith(b"HTTP/1.1 408 ")


def test_who_is_to_blame_is_not_told_to_try_the_same_again_later(limits):
    for pieces in ([b"GET / HTTP/1.1\r\nx: "], [b"GET / HTTP/1.1\r\nx: ", *[b"a" * 1000] * 5]):
        head, _, why = told(*pieces).partition(b"\r\n\r\n")
        assert b"retry-after" not in head.lower()
        assert b"; " in why, "what to do"
        assert b"content-length: %d" % len(why) in head


def test_a_client_that_falls_silent_within_a_body_is_let_go_of(limits):
    answer = told(b"POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\nabc")
    assert answer.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(("sent", "is_late"), [(1, True), (100_000, False)])
def test_a_body_that_trickles_is_not_waited_for_though_it_never_falls_silent(sent, is_late):
    async def story():
        async with serving() as (made, address):
            _, writer = await asyncio.open_connection(*address)
            writer.write(b"POST / HTTP/1.1\r\ncontent-length: 999999\r\n\r\n" + b"x" * sent)
            async with asyncio.timeout(30):
                while not any(one._body_bytes >= sent for one in made.server_state.connections):
                    await asyncio.sleep(0.01)
            [connection] = made.server_state.connections
            now = connection._body_since + server.SILENCE_S + 1
            connection._heard_at = now - 1  # the last byte has only just come
            assert connection.is_late(now) is is_late
            assert (connection.waited_for_since(now) is not None) is is_late
            writer.close()

    asyncio.run(story())


def test_a_connection_that_is_kept_for_the_next_request_is_kept_for_so_long_only():
    async def story():
        async with serving() as (made, address), asyncio.timeout(30):
            reader, writer = await asyncio.open_connection(*address)
            for _ in range(2):
                writer.write(b"GET / HTTP/1.1\r\n\r\n")
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 204 ")
                made._cut()
            [connection] = made.server_state.connections
            answered, patience = connection._heard_at, connection.timeout_keep_alive
            assert not connection.is_late(answered + patience - 0.1)
            assert connection.is_late(answered + patience + 0.1)
            connection._heard_at -= patience + 1
            made._cut()
            assert await reader.read() == b""  # closed, without a word
            writer.close()

    asyncio.run(story())


def test_a_newcomer_takes_the_place_of_who_has_asked_nothing_for_longest():
    async def story():
        async with serving(most=2) as (made, address), AsyncExitStack() as stack:

            async def client(text, is_seen=bool):
                reader, writer = await asyncio.open_connection(*address)
                stack.callback(writer.close)
                writer.write(text)
                while not is_seen([one._in_body for one in made.server_state.connections]):
                    await asyncio.sleep(0.01)
                return reader, writer

            head = b"POST / HTTP/1.1\r\ncontent-length: 1\r\n\r\n"
            async with asyncio.timeout(30):
                slow, _ = await client(b"GET / HTTP/1.1\r\nx: ")
                busy, more = await client(head, any)
                third, _ = await client(head + b"x")
                assert await third.readuntil(b"\r\n") == b"HTTP/1.1 204 No Content\r\n"
                assert await slow.read() == b"", "it was let go of"
                await client(
                    head, lambda seen: seen == [True, True]
                )  # in the place of the third, which is answered
                refused, _ = await client(head)
                answer = await refused.read()
                assert answer.startswith(b"HTTP/1.1 503 ")
                assert b"\r\nretry-after: 2\r\n" in answer
                more.write(b"x")
                assert await busy.readuntil(b"\r\n") == b"HTTP/1.1 204 No Content\r\n"

    asyncio.run(story())


@pytest.mark.parametrize("requests", [1, 2])
def test_a_client_that_does_not_read_its_answer_is_cut_and_what_waits_for_it_let_go_of(requests):
    """The second request is one that cannot be answered as long as the first answer waits."""

    async def story():
        async with serving(app=large, most=1) as (made, address), asyncio.timeout(30):
            _, writer = await asyncio.open_connection(*address, limit=1024)
            writer.write(b"GET / HTTP/1.1\r\n\r\n" * requests)
            while not [one for one in made.server_state.connections if one.unread.size()]:
                await asyncio.sleep(0.01)
            [connection] = made.server_state.connections
            now = connection._heard_at
            connection.let_go()  # as it is when it asks for nothing more: all that waits stays
            other, other_writer = await asyncio.open_connection(*address)
            answer = await other.read()
            assert answer.startswith(b"HTTP/1.1 503 "), "it has no place of one that is closing"
            assert not connection.unread.is_left(now)
            assert not connection.unread.is_left(now + server.UNREAD_S - 1)
            connection.unread._since -= 2 * server.UNREAD_S
            made._cut()
            while made.server_state.connections or made.server_state.tasks:
                await asyncio.sleep(0.01)
            writer.close()
            other_writer.close()

    asyncio.run(story())


def test_a_client_that_reads_its_answer_slowly_gets_all_of_it():
    class Line:
        """A transport from which the client takes what a body may have at the least."""

        size = 2 * int(server.UNREAD_S) * server.BODY_BYTES_PER_S

        def get_write_buffer_size(self):
            return self.size

        def get_extra_info(self, _):
            raise OSError

    line = Line()
    unread = server._Unread(line, 0.0)
    assert not unread.is_left(0.0)
    for second in range(1, 2 * int(server.UNREAD_S)):
        line.size -= server.BODY_BYTES_PER_S
        assert not unread.is_left(float(second))


def test_a_console_whose_client_does_not_read_on_ends():
    """Its keep-alive closes it, which waits for the client as well; and nobody else gets to it."""
    is_over = asyncio.Event()

    async def endless(scope, receive, send):
        await receive()
        await send({"type": "websocket.accept"})
        try:
            while True:
                await send({"type": "websocket.send", "bytes": bytes(2**20)})
        finally:
            is_over.set()

    async def story():
        async with serving(app=endless) as (made, address), asyncio.timeout(30):
            _, writer = await asyncio.open_connection(*address, limit=1024)
            writer.write(UPGRADE)
            while not [one for one in made.server_state.connections if hasattr(one, "writable")]:
                await asyncio.sleep(0.01)
            [connection] = made.server_state.connections
            while connection.writable.is_set():
                await asyncio.sleep(0.01)
            connection.keepalive_timeout()
            made._cut()
            made._unread[connection]._since -= 2 * server.UNREAD_S
            made._cut()
            await is_over.wait()
            assert not made.server_state.connections
            writer.close()

    asyncio.run(story())


def test_large_bodies_and_many_requests_at_once_are_no_large_heads(limits):
    post = b"POST / HTTP/1.1\r\ncontent-length: 50000\r\n\r\n" + b"x" * 50_000
    many = b"GET / HTTP/1.1\r\n\r\n" * 400 + b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n"
    answer = told(post, post[:100], post[100:], many)
    assert answer.count(b"HTTP/1.1 204 ") == 403


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("POST", ""),
        ("HEAD", ""),
        ("GET", "content-length: 1\r\n"),
        ("GET", "transfer-encoding: chunked\r\n"),
        ("GET", "x: y\r\n" * 300),
    ],
)
def test_what_cannot_open_a_websocket_is_answered_and_keeps_no_connection(method, more):
    asked = (
        f"{method} / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
        f"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
    )
    assert told(asked.encode()).startswith(b"HTTP/1.1 400 ")


def test_whole_answers_come_in_the_order_of_the_requests():
    asked = b"".join(b"GET /%d?n HTTP/1.1\r\n\r\n" % n for n in (1, 2))
    last = b"HEAD /3 HTTP/1.1\r\nconnection: close\r\n\r\n"
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx: %b\r\n%b\r\n%b"
    assert told(asked, last, app=at_once) == b"".join((
        answer % (b"n", b"", b"/1"), answer % (b"n", b"", b"/2"),
        answer % (b"", b"connection: close\r\n", b""),
    ))  # fmt: skip


def test_who_sends_everything_before_reading_hears_a_refusal_that_came_meanwhile():
    size = 20_000_000
    head = b"PUT /refused HTTP/1.1\r\nconnection: close\r\ncontent-length: %d\r\n%b\r\n"

    def ask(address):
        with socket.create_connection(address, timeout=30) as sending:
            sending.sendall(head % (size, b""))
            sending.sendall(b"x" * size)
            heard = b""
            while part := sending.recv(4096):
                heard += part
            return heard

    def ask_first(address):
        """Who waits for a word before sending needs none of this."""
        with socket.create_connection(address, timeout=30) as sending:
            sending.sendall(head % (size, b"expect: 100-continue\r\n"))
            heard = b""
            while part := sending.recv(4096):
                heard += part
            return heard

    async def story():
        async with serving(app=at_once) as (_, address):
            return [await asyncio.to_thread(one, address) for one in (ask, ask_first)]

    for answer in asyncio.run(story()):
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert answer.endswith(b"/refused")


def test_who_was_answered_and_does_not_send_the_rest_is_not_answered_again(limits):
    head = b"PUT /early HTTP/1.1\r\ncontent-length: 100\r\n\r\n"
    answer = told(head, b"some of it", app=at_once)
    assert answer.endswith(b"/early")


def test_a_header_cannot_make_another_one():
    answer = told(b"GET /split HTTP/1.1\r\nconnection: close\r\n\r\n", app=at_once)
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert b"set-cookie" not in answer


@pytest.mark.parametrize(
    ("address", "path", "query"),
    [
        ("/plain/path", "/plain/path", ""),
        ("/a?b=c%2Cd&e=f/g?h", "/a", "b=c%2Cd&e=f/g?h"),
        ("/?", "/", ""),
        ("/enc%6fded%20path?q", "/encoded path", "q"),
        ("http://there:80/absolute?q", "/absolute", "q"),
        ("/a#b", "/a", ""),
    ],
)
def test_an_address_is_understood_however_it_is_written(address, path, query):
    asked = f"GET {address} HTTP/1.1\r\nconnection: close\r\n\r\n"
    head, _, body = told(asked.encode(), app=at_once).partition(b"\r\n\r\n")
    assert body == path.encode()
    assert b"x: %b\r\n" % query.encode() in head


@pytest.mark.parametrize("address", ["/\xff", "nothing", "/a b"])
def test_an_address_that_cannot_be_understood_is_refused(address):
    asked = f"GET {address} HTTP/1.1\r\nconnection: close\r\n\r\n"
    assert told(asked.encode("latin-1"), app=at_once).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("near", ["127.0.0.1", "::1"])
def test_every_address_with_ipv6_is_every_address_without_it_too(near):
    with server.listen(Config(listen="[::]:0")) as listener:
        socket.create_connection((near, listener.getsockname()[1]), timeout=10).close()
