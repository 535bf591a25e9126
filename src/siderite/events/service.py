"""The event log over HTTP: pages of it, and the same as server-sent events."""

from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace

import msgspec

from siderite.core import eventlog
from siderite.core.auth import identify
from siderite.core.errors import Conflict
from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.errors import SideriteError
from siderite.core.errors import Unauthorized
from siderite.core.errors import Unavailable
from siderite.core.eventlog import Entry
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import Routes
from siderite.core.http import raw
from siderite.core.http import reply
from siderite.core.project import is_own
from siderite.core.streaming import Chunks
from siderite.core.who import Authenticator
from siderite.events import named
from siderite.events import query
from siderite.events import reports
from siderite.events import views
from siderite.events.discretion import Discretion
from siderite.events.hub import Hub
from siderite.events.monitor import Monitor
from siderite.events.retention import Retention
from siderite.events.search import Search
from siderite.events.stream import KEEP_ALIVE_S
from siderite.events.stream import follow
from siderite.events.webhooks import web
from siderite.events.webhooks.web import Webhooks

_READERS = frozenset({"reader", "member", "admin", "service"})
_STREAM = "text/event-stream"


class Ways(msgspec.Struct, frozen=True):
    """The ways out of the log that keep something of their own."""

    webhooks: Webhooks
    monitor: Monitor
    search: Search
    retention: Retention


class EventsService:
    """The service at `/events`. `known` are the forms of event types that there are, as globs; one
    user has at most `streams` open.
    """

    name = "events"

    def __init__(
        self,
        hub: Hub,
        who: Authenticator,
        *,
        known: Sequence[str],
        ways: Ways,
        streams: int,
        discretion: Discretion,
    ) -> None:
        self._hub = hub
        self._who = who
        self._known = known
        self._most_streams = streams
        self._discretion = discretion
        self._streams: Counter[str] = Counter()  # that are open, by user
        self._keep_alive_s = KEEP_ALIVE_S
        self.webhooks = ways.webhooks
        self.monitor = ways.monitor
        self.search = ways.search
        self.retention = ways.retention
        self.routes = Routes(ROUTES)

    async def prepare(self, request: Request, route: Route) -> None:
        request.who = await identify(request, self._who, basic=True)
        if not request.who.roles & _READERS:
            raise Forbidden("Events need the role reader; ask an administrator for it.")
        query.check_project(request.who)

    def finish(self, request: Request, response: Response) -> None:
        response.headers.append((b"x-openstack-request-id", request.request_id.encode()))
        response.headers.append((b"vary", b"Accept, X-Auth-Token"))

    def error(self, request: Request, error: SideriteError) -> Response:
        response = reply({"error": {"code": error.code, "message": error.sentence}}, error.status)
        if isinstance(error, Unauthorized):
            response.headers.append((b"www-authenticate", b'Basic realm="Siderite events"'))
        return response

    async def events(self, request: Request) -> Response:
        """GET /v1/events: what came after a number, or the newest."""
        asked = await self._asked(request)
        newest = await eventlog.newest(self._hub.store)
        if _STREAM in (request.header(b"accept") or "").lower():
            return await self._stream(request, asked, newest)
        if asked.last is not None:
            found = await eventlog.tail(self._hub.store, asked.wanted, last=asked.last, end=newest)
            return raw(views.page(self._told(request, found), newest))
        query.not_beyond(asked.after, newest)
        entries, reached = await eventlog.page(
            self._hub.store,
            asked.wanted,
            after=asked.after,
            limit=asked.limit or query.USUAL_LIMIT,
            end=newest,
        )
        await query.not_pruned(self._hub.store, asked.after)  # now: all that was read was whole
        return raw(views.page(self._told(request, entries), reached))

    def _told(self, request: Request, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Facts as the caller may know them."""
        return entries if request.who.sees_all else [*map(self._discretion.of, entries)]

    async def _asked(self, request: Request) -> query.Asked:
        asked = query.parse(request, known=self._known)
        wanted = asked.wanted
        if wanted.resource is None:
            return asked
        found = await named.resource(
            self._hub.store, self.search, wanted.resource, project=wanted.project
        )
        return msgspec.structs.replace(asked, wanted=replace(wanted, resource=found))

    async def _stream(self, request: Request, asked: query.Asked, newest: int) -> Response:
        if asked.limit is not None:
            raise Invalid("A stream has no limit; leave it out, or ask for application/json.")
        if asked.last is not None:
            raise Invalid("A stream has no last; read that page first, and stream after its next.")
        # A browser that lost its stream asks at the same address again, and says this in addition.
        last = request.header(b"last-event-id")
        after = asked.after if last is None else query.number("Last-Event-ID", last)
        query.not_beyond(after, newest)
        await query.not_pruned(self._hub.store, after)
        whose, told = request.who.user_id, None if request.who.sees_all else self._discretion.of
        if self._streams[whose] >= self._most_streams:
            raise Conflict(
                f"You have {self._most_streams} streams open already, a quarter of all connections"
                " (max_connections); close one first."
            )

        async def is_welcome() -> bool:
            try:
                now = await identify(request, self._who, basic=True)
            except Unavailable:
                return True  # nobody can tell just now
            except SideriteError:
                return False
            may = now.sees_all or (told is not None and is_own(now, asked.wanted.project))
            return may and bool(now.roles & _READERS)

        headers = [
            (b"content-type", _STREAM.encode()),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),
        ]
        response = Response(headers=headers)
        chunks = follow(
            self._hub,
            asked.wanted,
            after,
            is_welcome=is_welcome,
            told=told,
            keep_alive_s=self._keep_alive_s,
        )
        response.chunks = self._counted(whose, chunks)
        await anext(response.chunks)  # it counts from now on: others may be asked for meanwhile
        return response

    async def _counted(self, whose: str, chunks: Chunks) -> Chunks:
        """A stream, as one of its user's while it is open: nobody takes all connections, which are
        others' too. Its first chunk is empty.
        """
        self._streams[whose] += 1
        try:
            yield b""
            async with aclosing(chunks):
                async for chunk in chunks:
                    yield chunk
        finally:
            self._streams[whose] -= 1
            if not self._streams[whose]:
                del self._streams[whose]


ROUTES = (
    Route("GET", "/v1/events", EventsService.events, "reader", gives=views.form),
    *reports.ROUTES,
    *web.ROUTES,
)
