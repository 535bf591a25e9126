"""A compute API as the sender of external events sees it."""

import asyncio
from typing import TYPE_CHECKING
from typing import Any
from typing import Protocol

from siderite.baremetal.usecases.power.tell_compute import Answer
from siderite.baremetal.usecases.power.tell_compute import Update
from siderite.core.errors import SideriteError
from siderite.core.ids import new_request_id

if TYPE_CHECKING:
    import httpx

TIMEOUT_S = 10.0
_VERSION = "2.76"
"""The version that brought power-update."""

_OK = 300
_OWN_FAULT = range(400, 500)
_NOT_FOR_GOOD = frozenset({401, 403, 404, 405, 407, 408, 409, 413, 421, 423, 425, 429, 431})
"""Answers to a whole request that another day, or another configuration, may change."""
_NO_SERVER = b"No instances found"
"""What older Novas say, to the whole request, of a server that they do not know. Any other 404 is
that of a wrong address.
"""


class Tokens(Protocol):
    """Where tokens for the other side come from."""

    async def get(self) -> str:
        """One that is good, as far as we know."""
        ...

    def forget(self) -> None:
        """The last one was not taken."""
        ...


class NotNow(Exception):
    """It could not be told now; the text says why."""


class ComputeApi:
    """One compute service at an address. httpx is imported when there is something to tell."""

    def __init__(self, endpoint: str, tokens: Tokens) -> None:
        self._url = endpoint.rstrip("/") + "/os-server-external-events"
        self._tokens = tokens
        self._http: httpx.AsyncClient | None = None

    async def tell(self, update: Update) -> Answer:
        """Send a power-update; `NotNow` if what came of it is not known or not final."""
        import httpx  # noqa: PLC0415 - most installations tell nobody

        event = {"name": "power-update", "server_uuid": update.server, "tag": update.tag}
        try:
            reply = await self._client().post(
                self._url,
                json={"events": [event]},
                headers=await self._headers(update),
            )
        except httpx.TimeoutException:
            raise NotNow(f"{self._url} did not answer within {TIMEOUT_S:g} s") from None
        except httpx.HTTPError as why:
            raise NotNow(f"{self._url} cannot be reached: {why}") from why
        if reply.status_code < _OK:
            return _answer(_event(reply))
        if reply.status_code == 404 and _NO_SERVER in reply.content:  # noqa: PLR2004
            return Answer(reply.status_code, _REASONS[reply.status_code])
        if reply.status_code == 401:  # noqa: PLR2004
            self._tokens.forget()
        if reply.status_code in _OWN_FAULT and reply.status_code not in _NOT_FOR_GOOD:
            return Answer(reply.status_code, f"the request was refused: {reply.text[:200]}")
        raise NotNow(f"{self._url} answered {reply.status_code}")

    async def keep_open(self) -> None:
        """Until cancelled; then connections are let go of."""
        try:
            await asyncio.Event().wait()
        finally:
            if self._http is not None:
                await self._http.aclose()

    def _client(self) -> "httpx.AsyncClient":
        import httpx  # noqa: PLC0415

        if self._http is None:
            self._http = httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False)
        return self._http

    async def _headers(self, update: Update) -> dict[str, str]:
        try:
            token = await self._tokens.get()
        except SideriteError as why:
            raise NotNow(why.sentence) from why
        return {
            "OpenStack-API-Version": f"compute {_VERSION}",
            "X-OpenStack-Nova-API-Version": _VERSION,
            "X-OpenStack-Request-ID": update.request_id or new_request_id(),
            **({"X-Auth-Token": token} if token else {}),
        }


def _event(reply: "httpx.Response") -> Any:
    try:
        return reply.json()["events"][0]
    except (ValueError, LookupError, TypeError):
        raise NotNow("the answer is not that of a compute service; check the address") from None


def _answer(event: Any) -> Answer:
    code = event.get("code", 200) if isinstance(event, dict) else None
    if not isinstance(code, int):
        raise NotNow("the answer is not that of a compute service; check the address")
    if code < _OK:
        return Answer(code)
    if code in _OWN_FAULT:
        return Answer(code, _REASONS.get(code, f"the compute service answered {code}"))
    raise NotNow(f"the compute service answered {code} for the event")


_REASONS = {
    400: "the compute service does not understand it",
    404: "the compute service knows no such server",
    422: "the server is not on any host",
}
