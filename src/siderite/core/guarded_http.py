"""Requests that go only where a `Guard` lets them. Imported with httpx by those who call others."""

import asyncio
from collections.abc import Mapping
from functools import partial

import httpx

from siderite.core.guard import Guard


class BadRedirect(ValueError):
    """An answer leads where nobody shall follow: the text says from where to where."""


def followed(url: httpx.URL, location: str) -> httpx.URL:
    """Where a redirect leads: to plain http or https, and not from https back to http."""
    try:
        to = url.join(location)
    except (httpx.InvalidURL, ValueError) as why:
        raise BadRedirect("to what is no address") from why
    is_plain = to.userinfo in (b"", url.userinfo)  # on the same host it stays as it is
    if to.scheme not in ("http", "https") or not to.host or not is_plain:
        raise BadRedirect("to what is no plain http or https address")
    if url.scheme == "https" and to.scheme == "http":
        raise BadRedirect("from https to http, where anybody may change it")
    return to


class GuardedTransport(httpx.AsyncBaseTransport):
    """Connects to the checked address, under the name that was asked for. Of several, each has its
    part of the time that there is to connect, and the one that was reached last is first.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._inner: dict[str, httpx.AsyncHTTPTransport] = {}
        self._reached: dict[str, str] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        host, asked = request.url.host, request.url
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        found = await self._guard.resolve(host, port)
        found.sort(key=lambda address: address != self._reached.get(host))
        timeout = _parted(request.extensions.get("timeout"), len(found))
        request.extensions = {**request.extensions, "sni_hostname": host, "timeout": timeout}
        inner = await self._for(asked.scheme)
        for address in found[:-1]:
            request.url = asked.copy_with(host=address)
            try:
                answer = await inner.handle_async_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue  # nothing was sent: another may be up
            self._reached[host] = address
            return answer
        request.url = asked.copy_with(host=found[-1])
        answer = await inner.handle_async_request(request)
        self._reached[host] = found[-1]
        return answer

    async def _for(self, scheme: str) -> httpx.AsyncHTTPTransport:
        """What carries requests of a kind. Only https needs certificates, which take a while."""
        if scheme not in self._inner:
            limits = httpx.Limits(max_connections=32, max_keepalive_connections=8)
            made = partial(httpx.AsyncHTTPTransport, verify=scheme == "https", limits=limits)
            self._inner.setdefault(scheme, await asyncio.to_thread(made))
        return self._inner[scheme]

    async def aclose(self) -> None:
        for inner in self._inner.values():
            await inner.aclose()


def _parted(timeout: Mapping[str, float | None] | None, parts: int) -> dict[str, float | None]:
    """The limits of a request, with the time to connect for each of several attempts."""
    limits = dict(timeout or {})
    connect_s = limits.get("connect")
    return limits if connect_s is None else {**limits, "connect": connect_s / parts}
