"""The HTTP edge: a request, a response, a table of routes, and one place where errors become
answers.

Bare ASGI with a trie of path segments: on the build machine a framework's own request and routing
cost as much again as all that we do for a GET (docs/decisions/0003). Each API is a `Service` that
says how it negotiates versions, who is asking, and what its error bodies look like.
"""

import re
import time
from collections.abc import AsyncIterator
from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import Protocol
from urllib.parse import parse_qsl

import msgspec

from siderite.core import metrics
from siderite.core.errors import Busy
from siderite.core.errors import Conflict
from siderite.core.errors import Invalid
from siderite.core.errors import MethodNotAllowed
from siderite.core.errors import NotFound
from siderite.core.errors import SideriteError
from siderite.core.errors import TooLarge
from siderite.core.errors import Unavailable
from siderite.core.ids import new_request_id
from siderite.core.json_body import parse_json
from siderite.core.log import get_logger
from siderite.core.shape import Shape
from siderite.core.store import Duplicate
from siderite.core.store import Lost
from siderite.core.streaming import UNREAD
from siderite.core.streaming import Chunks
from siderite.core.streaming import pour
from siderite.core.who import NOBODY
from siderite.core.who import Authenticator
from siderite.core.who import Who

log = get_logger("http")

Headers = list[tuple[bytes, bytes]]
__all__ = ["Authenticator", "Who"]

MIB = 1024 * 1024
NO_CONTENT = 204
ANSWER = "siderite.answer"
"""In a scope: what sends a whole answer at once (status, headers, body), and says if it did."""
JSON = (b"content-type", b"application/json")
_LENGTH = re.compile(r"[0-9]{1,18}\Z")


class Response:
    """Status, headers and body; with `chunks`, a body that comes bit by bit (`core.streaming`)."""

    __slots__ = ("body", "chunks", "headers", "status")

    def __init__(
        self, body: bytes = b"", status: int = 200, headers: Headers | None = None
    ) -> None:
        self.body = body
        self.status = status
        self.headers = [] if headers is None else headers
        self.chunks: Chunks | None = None


_encode = msgspec.json.Encoder().encode


def reply(value: Any, status: int = 200, headers: Headers | None = None) -> Response:
    """A value as JSON."""
    return Response(_encode(value), status, [JSON, *(headers or ())])


def raw(body: bytes, status: int = 200, headers: Headers | None = None) -> Response:
    """JSON that is rendered already."""
    return Response(body, status, [JSON, *(headers or ())])


class Request:
    """One request. Header names are lower case bytes; the query is parsed when asked for."""

    __slots__ = (
        "_query", "_receive", "base", "method", "params", "path", "request_id", "scope", "version",
        "who",
    )  # fmt: skip

    def __init__(self, scope: Any, receive: Any, path: str, base: str = "") -> None:
        self.scope = scope
        self._receive = receive
        self.method: str = scope["method"]
        self.path = path
        self.params: tuple[str, ...] = ()
        self.version = 0
        self.who = NOBODY
        self.request_id = new_request_id()
        self.base = base
        self._query: list[tuple[str, str]] | None = None

    def header(self, name: bytes) -> str | None:
        """The first header of this name."""
        for key, value in self.scope["headers"]:
            if key == name:
                return value.decode("latin-1")  # type: ignore[no-any-return]
        return None

    @property
    def query(self) -> list[tuple[str, str]]:
        """The query's pairs, in order."""
        if self._query is None:
            text = self.scope["query_string"]
            try:
                self._query = (
                    parse_qsl(
                        text.decode("ascii"),
                        keep_blank_values=True,
                        max_num_fields=100,
                        errors="strict",
                    )
                    if text
                    else []
                )
            except ValueError as why:
                raise Invalid(
                    "The query string is not URL-encoded UTF-8, or has over 100 fields."
                ) from why
            if b"%00" in text:
                raise Invalid("The query string has a NUL character, which nothing can match.")
        return self._query

    @property
    def length(self) -> int:
        """How many bytes the body is said to have; 0 if nothing is said of it."""
        declared = self.header(b"content-length") or ""
        return int(declared) if _LENGTH.match(declared) else 0

    async def body(self, limit: int = MIB) -> bytes:
        """The whole body, refused as soon as it is known to be over the limit."""
        if self.length > limit:
            raise _too_large(limit)
        chunks, size, more = [], 0, True
        while more:
            chunk, more = await self._piece()
            size += len(chunk)
            if size > limit:
                raise _too_large(limit)
            chunks.append(chunk)
        return b"".join(chunks)

    async def pieces(self) -> AsyncIterator[bytes]:
        """A large body as it arrives: nothing is read ahead of the caller, and nothing kept."""
        more = True
        while more:
            chunk, more = await self._piece()
            yield chunk

    async def _piece(self) -> tuple[bytes, bool]:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise Invalid("The connection was closed before the body was complete.")
        return message.get("body", b""), message.get("more_body", False)

    async def json(self, limit: int = MIB) -> Any:
        """The body as JSON; malformed, too deep or not UTF-8 is the caller's mistake."""
        return parse_json(await self.body(limit))


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"The body is over {limit // 1024} KiB, the limit of this address.")


Handler = Callable[[Any, Request], Awaitable[Response]]


class Route(msgspec.Struct, frozen=True):
    """One line of a service's table of contents. `{x}` in the path is a parameter; `policy` names
    who may; `takes` and `gives` are the forms of the bodies of a request and of a success, `media`
    what a success is if not JSON; `since` and `until` the first and last version that has it.
    """

    method: str
    path: str
    handler: Handler
    policy: str = "public"
    since: int = 0
    takes: Shape | None = None
    gives: Shape | None = None
    media: str = "application/json"
    until: int = 9999


class _WrongMethod(MethodNotAllowed):
    """The path is there, but not for this method; `takes` are those it is there for."""

    def __init__(self, sentence: str, takes: str) -> None:
        super().__init__(sentence)
        self.takes = takes


class _Fork:
    __slots__ = ("any", "methods", "named")

    def __init__(self) -> None:
        self.named: dict[str, _Fork] = {}
        self.any: _Fork | None = None
        self.methods: dict[str, Route] = {}


class Routes:
    """Finds a route by its path's segments."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self.routes = tuple(routes)
        self._root = _Fork()
        for route in routes:
            fork = self._root
            for part in route.path.strip("/").split("/"):
                if part.startswith("{"):
                    fork.any = fork.any or _Fork()
                    fork = fork.any
                elif part:
                    fork = fork.named.setdefault(part, _Fork())
            if route.method in fork.methods:
                raise ValueError(f"{route.method} {route.path} is there twice")
            fork.methods[route.method] = route

    def find(self, method: str, path: str) -> tuple[Route, tuple[str, ...]]:
        """The route and its parameters, or why there is none. The server has decoded the path."""
        fork: _Fork | None = self._root
        params: list[str] = []
        for part in path.split("/"):
            if not part:
                continue
            assert fork is not None  # noqa: S101
            named = fork.named.get(part)
            if named is None:
                params.append(part)
                fork = fork.any
            else:
                fork = named
            if fork is None or "\x00" in part:
                raise NotFound(f"There is nothing at {_shown(path)}.")
        assert fork is not None  # noqa: S101
        route = fork.methods.get(method)
        if route is None:
            if not fork.methods:
                raise NotFound(f"There is nothing at {_shown(path)}.")
            heads = ["HEAD"] if "GET" in fork.methods else []
            takes = ", ".join(sorted([*fork.methods, *heads]))
            raise _WrongMethod(
                f"{method[:20]} is not possible at {_shown(path)}; it takes {takes}.", takes
            )
        return route, tuple(params)


def _shown(path: str) -> str:
    return "/" + path.strip("/")[:200]


class Service(Protocol):
    """An API at a path prefix."""

    name: str
    routes: Routes

    async def prepare(self, request: Request, route: Route) -> None:
        """Negotiate the version, find out who asks, refuse what the policy refuses."""
        ...

    def finish(self, request: Request, response: Response) -> None:
        """Add the headers that every answer carries."""
        ...

    def error(self, request: Request, error: SideriteError) -> Response:
        """The API's own form of an error."""
        ...


class App:
    """The ASGI application: prefix, route, handler, answer."""

    def __init__(self, services: dict[str, Service], public_url: str) -> None:
        self._services = services
        self._public_url = public_url

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        began = time.perf_counter()
        path: str = scope["path"]
        prefix, _, rest = path[1:].partition("/")
        service = self._services.get(prefix)
        if service is None:
            service, rest = self._services[""], path
        request = Request(scope, receive, rest, self._public_url)
        response = await self._answer(service, request)
        service.finish(request, response)
        body, headers = response.body, response.headers
        if response.chunks is not None:
            metrics.request(service.name, "GET", response.status, time.perf_counter() - began)
            await send(
                {"type": "http.response.start", "status": response.status, "headers": headers}
            )
            is_head, unread = request.method == "HEAD", scope.get(UNREAD, int)
            await pour(response.chunks, receive, send, silent=is_head, unread=unread)
            return
        if response.status != NO_CONTENT:
            headers.append((b"content-length", b"%d" % len(body)))
        if request.method == "HEAD":
            body = b""
        status = response.status
        if ANSWER not in scope or not scope[ANSWER](status, headers, body):
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body})
        took = time.perf_counter() - began
        metrics.request(service.name, _method(request.method), response.status, took)
        if request.method != "GET":
            log.info(
                "answered",
                service=service.name,
                method=request.method,
                path=path[:300],
                status=response.status,
                ms=round(took * 1000, 2),
                user=request.who.user or None,
                request_id=request.request_id,
            )

    async def _answer(self, service: Service, request: Request) -> Response:
        try:
            method = "GET" if request.method == "HEAD" else request.method
            route, request.params = service.routes.find(method, request.path)
            await service.prepare(request, route)
            return await route.handler(service, request)
        except SideriteError as error:
            return _refusal(service, request, error)
        except Duplicate as clash:
            taken = Conflict(f"There is one with this {clash.column} already.")
            return _refusal(service, request, taken)
        except Lost:
            return _refusal(service, request, Busy())
        except Exception as why:
            log.error(
                "request failed",
                service=service.name,
                method=request.method,
                path=request.path[:300],
                request_id=request.request_id,
                error=repr(why),
                trace=why,
            )
            if isinstance(why, OSError):
                return _refusal(service, request, Unavailable())
            return _refusal(service, request, SideriteError())


def _refusal(service: Service, request: Request, error: SideriteError) -> Response:
    response = service.error(request, error)
    # python-ironicclient falls over this header: it would show that, not our sentence, nor retry.
    falls = (request.header(b"user-agent") or "").startswith("python-ironicclient")
    if error.retry_after_s is not None and not falls:
        response.headers.append((b"retry-after", b"%d" % error.retry_after_s))
    if isinstance(error, _WrongMethod):
        response.headers.append((b"allow", error.takes.encode()))
    return response


def _method(name: str) -> str:
    return name if name in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD") else "other"
