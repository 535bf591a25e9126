"""A lean HTTP/1.1 client: one kept-alive connection, one request at a time, no headers looked at.

It must not be the bottleneck of what it measures; `ceiling` in `writes` says how far it goes
against the static app. Used by the workloads that write or wait; reads are wrk's.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from typing import cast

import httptools

from bench.address import Address


@dataclass(frozen=True, slots=True)
class Reply:
    """Status and body of an answer."""

    status: int
    body: bytes


class _Wire(asyncio.Protocol):
    """Feeds the parser and completes the one outstanding answer."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._parts: list[bytes] = []
        self._answer: asyncio.Future[Reply] | None = None

    def ask(self, data: bytes) -> asyncio.Future[Reply]:
        assert self.transport is not None and self._answer is None
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(data)
        return self._answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        reply = Reply(self._parser.get_status_code(), b"".join(self._parts))
        self._parts.clear()
        if not self._parser.should_keep_alive() and self.transport is not None:
            self.transport.close()
            self.transport = None
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            answer.set_result(reply)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("closed before the answer"))


class Client:
    """One connection to an address, made again when the server has closed it between requests."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._wire: _Wire | None = None
        host = {"Host": f"{address.host}:{address.port}"}
        lines = "".join(f"{name}: {value}\r\n" for name, value in (host | address.headers).items())
        self._headers = lines.encode()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._wire is not None and self._wire.transport is not None:
            self._wire.transport.close()

    async def send(
        self, method: str, path: str, body: bytes = b"", kind: str = "application/json"
    ) -> Reply:
        """The answer to one request; `path` is below the API's root."""
        data = self._encode(method, path, body, kind)
        if self._wire is not None and self._wire.transport is not None:
            # A server may close a connection that has been idle just as we use it: once more then,
            # as any client with a pool does.
            with suppress(ConnectionError):
                return await self._wire.ask(data)
        loop = asyncio.get_running_loop()
        address = self._address
        _, self._wire = await loop.create_connection(_Wire, address.host, address.port)
        return await self._wire.ask(data)

    def _encode(self, method: str, path: str, body: bytes, kind: str) -> bytes:
        head = b"%b %b HTTP/1.1\r\n%b" % (
            method.encode(),
            self._address.path(path).encode(),
            self._headers,
        )
        if not body:
            return head + b"\r\n"
        what = b"Content-Type: " + kind.encode()
        return b"%b%b\r\nContent-Length: %d\r\n\r\n%b" % (head, what, len(body), body)
