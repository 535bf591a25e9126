"""The addresses outside every API: whether the process is well, and its metrics."""

import asyncio
import math
import time
from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

from siderite.core import metrics
from siderite.core import shape
from siderite.core import work
from siderite.core.clock import now
from siderite.core.errors import SideriteError
from siderite.core.errors import Unavailable
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import Routes
from siderite.core.http import raw
from siderite.core.http import reply
from siderite.core.store import Store

_WELL = {"status": "ok"}
_TRY = """
INSERT INTO leases (name, owner, until) VALUES ('health', ?, ?)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until RETURNING 1
"""
"""A commit that matters to nobody."""
_WEIGHT = "." * 65536
"""What a disk must take that has refused something: the little that still fits proves nothing."""

_OFTEN_S = 10.0
_PATIENCE_S = 5.0
"""How long a database may take: whoever asks gives up sooner than a statement does."""


def _places(base: str) -> dict[str, str]:
    return {
        "identity": f"{base}/identity/v3",
        "baremetal": f"{base}/baremetal",
        "compute": f"{base}/compute/v2.1",
        "image": f"{base}/image",
        "events": f"{base}/events/v1/events",
        "openapi": f"{base}/openapi.json",
        "console": f"{base}/console/",
    }


def _document() -> shape.Json:
    """The form of an OpenAPI document is OpenAPI's to say."""
    keys = ("openapi", "info", "servers", "tags", "paths", "components")
    return shape.record(dict.fromkeys(keys, shape.ANYTHING), keys)


class HealthService:
    """The service at `/`."""

    name = "root"

    def __init__(
        self,
        store: Store,
        measures: Sequence[Callable[[], Awaitable[None]]] = (),
        describe: Callable[[], Any] = dict,
    ) -> None:
        self._store = store
        self._measures = measures
        self._describe = describe
        self._described: bytes | None = None
        self._tried = -math.inf
        self._troubles = 0
        self.routes = Routes(
            [
                Route("GET", "/", HealthService.root, gives=lambda: shape.wire(_places(""))),
                Route("GET", "/healthz", HealthService.healthz, gives=lambda: shape.wire(_WELL)),
                Route("GET", "/livez", HealthService.livez, gives=lambda: shape.wire(_WELL)),
                Route("GET", "/metrics", HealthService.metrics, media="text/plain"),
                Route("GET", "/openapi.json", HealthService.openapi, gives=_document),
            ]
        )

    async def prepare(self, request: Request, route: Route) -> None:
        """Nothing here is secret, and nothing is negotiated."""

    def finish(self, request: Request, response: Response) -> None:
        response.headers.append((b"x-openstack-request-id", request.request_id.encode()))

    def error(self, request: Request, error: SideriteError) -> Response:
        return reply({"error": {"code": error.code, "message": error.sentence}}, error.status)

    async def root(self, request: Request) -> Response:
        """GET /: where the APIs are."""
        return reply(_places(request.base))

    async def healthz(self, request: Request) -> Response:
        """GET /healthz: 200 if the database answers and takes commits. That is tried now and then,
        and each time while it is in doubt: what found nothing to write needs no room on a disk.
        """
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._try()
        except TimeoutError as why:
            raise Unavailable(
                f"The database has not answered for {_PATIENCE_S:g} seconds: see to its server or"
                " disk."
            ) from why
        return reply(_WELL)

    async def _try(self) -> None:
        await self._store.fetch("SELECT 1")
        moment = time.monotonic()  # as a clock that is set back would put it off
        troubles = self._store.troubles
        is_in_doubt = troubles != self._troubles
        if is_in_doubt or moment - self._tried > _OFTEN_S:
            self._tried = -math.inf
            for weight in (_WEIGHT, "") if is_in_doubt else ("",):
                await self._store.write(_TRY, (weight, now()))
            self._tried, self._troubles = moment, troubles

    async def livez(self, request: Request) -> Response:
        """GET /livez: 200 as long as the process answers, whatever its database does."""
        return reply(_WELL)

    async def openapi(self, request: Request) -> Response:
        """GET /openapi.json: every address of this process, in OpenAPI 3.1."""
        if self._described is None:
            self._described = await asyncio.to_thread(lambda: reply(self._describe()).body)
        return raw(self._described)

    async def metrics(self, request: Request) -> Response:
        """GET /metrics, as Prometheus reads it."""
        due = await work.unclaimed(self._store, now())
        metrics.queue(*await work.depth(self._store), due)
        for measure in self._measures:
            await measure()
        body, kind = metrics.page()
        return Response(body, 200, [(b"content-type", kind.encode())])
