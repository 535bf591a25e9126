"""The HTTP server around the application, and its listener."""

import asyncio
import contextlib
import fcntl
import signal
import socket
import struct
import termios
from collections.abc import Callable
from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from siderite.core.config import Config
from siderite.core.http import ANSWER
from siderite.core.log import get_logger
from siderite.core.streaming import UNREAD
from siderite.core.websocket import with_sockets
from siderite.events import Hub
from siderite.wiring.connections import most_connections
from siderite.wiring.program import Program

log = get_logger("http")

WS_MESSAGE_BYTES = 1024 * 1024
HEAD_BYTES = 128 * 1024
"""Of a request line and its headers; the parser itself knows no limit."""
HEAD_S = 60.0
"""How long a client may take to send them."""
SILENCE_S = 60.0
"""How long it may be silent in the middle of a body: by then it is likely to be gone."""
BODY_BYTES_PER_S = 1024
"""How fast a body has to come, after such a time: of an image, too."""
UNREAD_S = 60.0
"""After what time an answer has to have been read as fast, as far as it waits here."""
SLOW_S = 5.0
"""After what time it has to where connections are scarce."""
LARGE = 64 * 1024
"""Of an answer: not copied once more to have it in one piece."""
_REFUSAL = (
    b"HTTP/1.1 %s\r\ncontent-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n"
    b"%s\r\n%s"
)
_LATER = b"retry-after: 2\r\n"
"""Only where time mends it: a client that obeys would send what is refused here once more."""
_FULL = b"This server has as many connections as it may have (max_connections); try again later."
_LATE = b"The request took too long to arrive; look at the network, and send it again."


class _Unread:
    """What waits for the client of a connection, which has to read it in time: a connection that is
    closed waits for that, too.
    """

    def __init__(self, transport: asyncio.Transport, now: float) -> None:
        self._transport = transport
        self._size = 0  # at the last look that counts
        self._since = now

    def size(self) -> int:
        """How much there is of what does not fit into the system's buffer; with what is in there,
        as that is large, and takes more only when a good part of it is free again.
        """
        kept = self._transport.get_write_buffer_size()
        if not kept:
            return 0
        with contextlib.suppress(OSError, ValueError):
            file = self._transport.get_extra_info("socket").fileno()
            kept += struct.unpack("i", fcntl.ioctl(file, termios.TIOCOUTQ, bytes(4)))[0]
        return kept

    def is_left(self, now: float) -> bool:
        """Whether the client does not read it, or more slowly than a body may come."""
        size, before, took = self.size(), self._size, now - self._since
        if 0 < size <= before and took <= UNREAD_S:
            return False
        self._size, self._since = size, now
        return 0 < size <= before and before - size < took * BODY_BYTES_PER_S


class _Http(HttpToolsProtocol):
    """The server's protocol, which lets the application give whole answers at once; it takes
    requests that are neither endless nor everlasting, on at most so many connections.
    """

    def __init__(self, *args: Any, most: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self._most = most

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._heads = 0  # that are complete
        self._head_bytes = 0  # of the one that is not
        self._in_body = self._closes_after_body = False
        self._body_bytes = 0
        self._heard_at = self._body_since = self.loop.time()
        self._head_since: float | None = self._heard_at
        self.unread = _Unread(transport, self._heard_at)
        super().connection_made(transport)
        if len(self.connections) > self._most and not self._make_room():
            self._refuse(b"503 Service Unavailable", _FULL, _LATER)

    def _make_room(self) -> bool:
        """Close the connections that have been without a whole request for longest: a client that
        keeps one for later opens another, and who sends bit by bit should not keep others out.
        """
        now, waited_for = self.loop.time(), []
        for one in list[Any](self.connections):
            since = one.waited_for_since(now) if isinstance(one, _Http) else None
            if since is not None and one is not self and not one.transport.is_closing():
                waited_for.append((since, one))
        waited_for.sort(key=itemgetter(0))
        for _, one in waited_for[: max(1, self._most // 50)]:
            one.transport.close()
        return bool(waited_for)

    def waited_for_since(self, now: float) -> float | None:
        """Since when we wait for a request, or the rest of one that comes slowly; None if not."""
        if self._in_body:
            took = now - self._body_since
            is_slow = took > SLOW_S and self._body_bytes < took * BODY_BYTES_PER_S
            return self._body_since if is_slow and not self.flow.read_paused else None
        if self.cycle is None or self.cycle.response_complete:
            return self._heard_at if self._head_since is None else self._head_since
        return None

    def _refuse(self, status: bytes, why: bytes, headers: bytes = b"") -> None:
        self.transport.write(_REFUSAL % (status, len(why), headers, why))
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        heads, was_in_body = self._heads, self._in_body
        self._heard_at = self.loop.time()
        super().data_received(data)
        if was_in_body or self._in_body or self._heads != heads:
            self._body_bytes += len(data)
            return
        if self._head_since is None:
            self._head_since = self._heard_at
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            why = b"The request line and its headers are over %d KiB; send less." % (
                HEAD_BYTES // 1024
            )
            self._refuse(b"431 Request Header Fields Too Large", why)

    def on_headers_complete(self) -> None:
        self._heads += 1
        self._head_bytes, self._head_since, self._in_body = 0, None, True
        self._body_bytes, self._body_since = 0, self._heard_at
        super().on_headers_complete()
        # The task that answers has not run yet.
        self.scope[ANSWER] = partial(_answer, self.cycle, self.close)  # type: ignore[literal-required]
        self.scope[UNREAD] = self.unread.size  # type: ignore[literal-required]

    def on_message_complete(self) -> None:
        self._in_body = False
        super().on_message_complete()
        if self._closes_after_body:
            self.transport.close()

    def close(self, cycle: RequestResponseCycle) -> None:
        """Close after an answer; but if its request still comes, when all of it is there: a client
        that reads no answer before it has sent everything would be told of a lost connection.
        """
        is_sending = self._in_body and cycle is self.cycle and not cycle.waiting_for_100_continue
        if is_sending:
            self._closes_after_body = True
        else:
            self.transport.close()

    def handle_websocket_upgrade(self) -> None:
        """As the server's own does, which leaves a request that is no opening of a WebSocket (not a
        GET, or with a body) without an answer, and its connection open for ever.
        """
        super().handle_websocket_upgrade()
        socket_protocol: Any = self.transport.get_protocol()
        if not socket_protocol.handshake_initiated:  # all of it was there: it will not be
            self.send_400_response("This is no request that opens a WebSocket.")

    def on_response_complete(self) -> None:
        """As the server's own does, but who waits for the next request looks at the clock once a
        second (`is_late`) and not once for each: a timer that is set and taken back costs more.
        """
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self._heard_at = self.loop.time()
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())

    def is_late(self, now: float) -> bool:
        """Whether a request has been on its way for too long, or the next one is not asked for any
        more; what we do not read is not late.
        """
        if self.flow.read_paused:
            self._heard_at = self._body_since = now
            self._body_bytes = 0
        if self._in_body:
            may_take = SILENCE_S + self._body_bytes / BODY_BYTES_PER_S
            return now - self._heard_at > SILENCE_S or now - self._body_since > may_take
        if self._head_since is None and self.cycle is not None and self.cycle.response_complete:
            return now - self._heard_at > self.timeout_keep_alive
        return self._head_since is not None and now - self._head_since > HEAD_S

    def let_go(self) -> None:
        """Close what is late, with a word if it has begun to ask and was not answered yet."""
        cycle = self.cycle
        if self._in_body:
            is_unanswered = cycle is None or not cycle.response_started
        else:
            is_unanswered = self._head_bytes > 0 and (cycle is None or cycle.response_complete)
        if is_unanswered:
            self._refuse(b"408 Request Timeout", _LATE)
        self.transport.close()


def _answer(
    cycle: RequestResponseCycle,
    close: Callable[[RequestResponseCycle], None],
    status: int,
    headers: list[tuple[bytes, bytes]],
    body: bytes,
) -> bool:
    """Send a whole answer: what the server does for one that may come bit by bit, in one go and
    with one system call, which wakes the client once. False if it cannot be sent just now.
    """
    if cycle.flow.write_paused or cycle.disconnected:
        return False
    lines = [STATUS_LINE[status]]
    for name, value in headers:
        lines += (name, b": ", value, b"\r\n")
    if not cycle.keep_alive:
        lines.append(b"connection: close\r\n")
    head = b"".join(lines)
    if head.count(b"\n") != 1 + len(headers) + (not cycle.keep_alive):
        raise ValueError("a header with more than one line")
    if len(body) > LARGE:
        cycle.transport.writelines((head, b"\r\n", body))
    else:
        cycle.transport.write(b"%b\r\n%b" % (head, body))
    cycle.response_started = cycle.response_complete = True
    cycle.message_event.set()
    if not cycle.keep_alive:
        close(cycle)
    cycle.on_response()
    return True


class _Server(uvicorn.Server):
    """A server that says when it listens, and does not wait for those who follow the log."""

    def __init__(
        self, config: uvicorn.Config, ready: asyncio.Event, hub: Hub, hurry: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._hub = hub
        self._hurry = hurry
        self._unread: WeakKeyDictionary[Any, _Unread] = WeakKeyDictionary()  # of WebSockets

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
        """Let go of clients that send no request or read no answer, of streams that were given up,
        and when stopping of those that nobody reads: such a connection is closed when its client
        has read what is left, that is never.
        """
        now = asyncio.get_running_loop().time()
        for connection in list[Any](self.server_state.connections):
            if self._unread_of(connection, now).is_left(now):
                log.info("cut a client that does not read on", patience_s=UNREAD_S)
                connection.transport.abort()
            elif isinstance(connection, _Http) and connection.is_late(now):
                connection.let_go()
            cycle = getattr(connection, "cycle", None)  # a WebSocket has none
            if cycle is None or cycle.response_complete or not cycle.response_started:
                continue
            if connection.transport.is_closing() or (stopping and connection.flow.write_paused):
                connection.transport.abort()

    def _unread_of(self, connection: Any, now: float) -> _Unread:
        if isinstance(connection, _Http):
            return connection.unread
        if connection not in self._unread:
            self._unread[connection] = _Unread(connection.transport, now)
        return self._unread[connection]

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGINT and SIGTERM, and go on with closing up instead of dying of them. A second
        SIGTERM has others finish what is under way.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            loop.add_signal_handler(signal.SIGTERM, self._hurry)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit and sig == signal.SIGTERM:
            self._hurry()
            return
        super().handle_exit(sig, frame)


def listen(config: Config) -> socket.socket:
    """The listener: opened first, so that a port that is taken costs nothing else."""
    host, _, port = config.listen.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # There is one listener: every address is those of both kinds.
    both = host == "::" and socket.has_dualstack_ipv6()
    try:
        return socket.create_server(
            (host, int(port)), family=family, backlog=2048, dualstack_ipv6=both
        )
    except OSError as why:
        # Python repeats the address after what the system says.
        said = str(why.strerror).partition(" (while ")[0]
        raise RuntimeError(
            f"cannot listen on {config.listen}: {said}; choose another with --listen."
        ) from why


async def serve(program: Program, listener: socket.socket, ready: asyncio.Event) -> None:
    """Answer requests until told to stop."""
    options = uvicorn.Config(
        with_sockets(program.app, program.sockets), loop="uvloop",
        http=partial(_Http, most=most_connections(program.config)),  # type: ignore[arg-type]
        ws="websockets-sansio", ws_max_size=WS_MESSAGE_BYTES, ws_per_message_deflate=False,
        lifespan="off", access_log=False, log_config=None, server_header=False,
        proxy_headers=False, date_header=False,
        timeout_graceful_shutdown=5, timeout_keep_alive=75,
    )  # fmt: skip
    await _Server(options, ready, program.hub, program.worker.hurry).serve([listener])
