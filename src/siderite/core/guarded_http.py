"""Requests that go only where a `Guard` lets them. Imported with httpx by those who call others."""

import asyncio
from functools import partial

import httpx

from siderite.core.guard import Guard


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
