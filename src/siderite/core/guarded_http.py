"""Requests that go only where a `Guard` lets them. Imported with httpx by those who call others."""

import asyncio
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
    """Connects to the checked address, under the name that was asked for."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._inner: dict[str, httpx.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        host = request.url.host
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        *others, last = await self._guard.resolve(host, port)
        request.extensions = {**request.extensions, "sni_hostname": host}
        asked = request.url
        inner = await self._for(asked.scheme)
        for address in others:
            request.url = asked.copy_with(host=address)
            try:
                return await inner.handle_async_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue  # nothing was sent: another may be up
        request.url = asked.copy_with(host=last)
        return await inner.handle_async_request(request)

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
