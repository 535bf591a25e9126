"""The HTTP server around the application, and its listener."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Iterator
from functools import partial
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from siderite.core.config import Config
from siderite.core.http import HOLD
from siderite.core.websocket import with_sockets
from siderite.events import Hub
from siderite.wiring.program import Program

WS_MESSAGE_BYTES = 1024 * 1024
HEAD_BYTES = 128 * 1024
"""Of a request line and its headers; the parser itself knows no limit."""
HEAD_S = 60.0
"""How long a client may take to send them."""
SILENCE_S = 60.0
"""How long it may be silent in the middle of a body: by then it is likely to be gone."""
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%s"
)


class _Joining:
    """A transport that can hold back the head of an answer until its body comes: both go out with
    one system call, and wake the client once.
    """

    __slots__ = ("_head", "_is_held", "_transport", "_write")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._write = transport.write
        self._is_held = False
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def hold(self) -> None:
        """The next thing that is written goes out with the one after it."""
        self._is_held = True

    def write(self, data: bytes) -> None:
        if self._is_held:
            self._is_held, self._head = False, data
            return
        if self._head:
            data, self._head = self._head + data, b""
        self._write(data)

    def close(self) -> None:
        if self._head:
            self.write(b"")
        self._transport.close()


class _Http(HttpToolsProtocol):
    """The server's protocol over such a transport, of which the application is told; it takes heads
    of requests that are neither endless nor everlasting.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        joining: Any = _Joining(transport)
        self._hold = joining.hold
        self._heads = 0  # that are complete
        self._head_bytes = 0  # of the one that is not
        self._in_body = False
        self._heard_at = self.loop.time()
        self._head_since: float | None = self.loop.time()
        super().connection_made(joining)

    def data_received(self, data: bytes) -> None:
        heads, was_in_body = self._heads, self._in_body
        self._heard_at = self.loop.time()
        super().data_received(data)
        if was_in_body or self._in_body or self._heads != heads:
            return
        if self._head_since is None:
            self._head_since = self._heard_at
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            why = b"The request line and its headers are over %d KiB." % (HEAD_BYTES // 1024)
            self.transport.write(_TOO_LARGE % (len(why), why))
            self.transport.close()

    def on_headers_complete(self) -> None:
        self._heads += 1
        self._head_bytes, self._head_since, self._in_body = 0, None, True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_body = False
        super().on_message_complete()

    def is_late(self, now: float) -> bool:
        """Whether a request has been on its way for too long; what we do not read is not late."""
        if self.flow.read_paused:
            self._heard_at = now
        if self._in_body:
            return now - self._heard_at > SILENCE_S
        return self._head_since is not None and now - self._head_since > HEAD_S

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope[HOLD] = self._hold  # type: ignore[literal-required]


class _Server(uvicorn.Server):
    """A server that says when it listens, and does not wait for those who follow the log."""

    def __init__(self, config: uvicorn.Config, ready: asyncio.Event, hub: Hub) -> None:
        super().__init__(config)
        self._ready = ready
        self._hub = hub

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._hub.close()
        cut = asyncio.get_running_loop().call_later(0.3, partial(self._cut, stopping=True))
        await super().shutdown(sockets)
        cut.cancel()

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:
            self._cut()
        return await super().on_tick(counter)

    def _cut(self, *, stopping: bool = False) -> None:
        """Let go of clients that send no request, of streams that were given up, and when stopping
        of those that nobody reads: such a connection is closed when its client has read what is
        left, that is never.
        """
        now = asyncio.get_running_loop().time()
        for connection in list[Any](self.server_state.connections):
            if isinstance(connection, _Http) and connection.is_late(now):
                connection.transport.close()
            cycle = getattr(connection, "cycle", None)  # a WebSocket has none
            if cycle is None or cycle.response_complete or not cycle.response_started:
                continue
            if connection.transport.is_closing() or (stopping and connection.flow.write_paused):
                connection.transport.abort()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGINT and SIGTERM, and go on with closing up instead of dying of them."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)


def listen(config: Config) -> socket.socket:
    """The listener: opened first, so that a port that is taken costs nothing else."""
    host, _, port = config.listen.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), int(port)), family=family, backlog=2048)
    except OSError as why:
        raise RuntimeError(
            f"cannot listen on {config.listen}: {why.strerror}; choose another with --listen."
        ) from why


async def serve(program: Program, listener: socket.socket, ready: asyncio.Event) -> None:
    """Answer requests until told to stop."""
    options = uvicorn.Config(
        with_sockets(program.app, program.sockets), loop="uvloop", http=_Http,
        ws="websockets-sansio", ws_max_size=WS_MESSAGE_BYTES, ws_per_message_deflate=False,
        lifespan="off", access_log=False, log_config=None, server_header=False,
        proxy_headers=False, date_header=False,
        timeout_graceful_shutdown=5, timeout_keep_alive=75,
    )  # fmt: skip
    await _Server(options, ready, program.hub).serve([listener])
