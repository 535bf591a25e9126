"""Requests that go only where a `Guard` lets them. Imported with httpx by those who call others."""

import httpx

from siderite.core.guard import Guard


class GuardedTransport(httpx.AsyncBaseTransport):
    """Connects to the checked address, under the name that was asked for."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._inner = httpx.AsyncHTTPTransport(
            limits=httpx.Limits(max_connections=32, max_keepalive_connections=8)
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        host = request.url.host
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        *others, last = await self._guard.resolve(host, port)
        request.extensions = {**request.extensions, "sni_hostname": host}
        asked = request.url
        for address in others:
            request.url = asked.copy_with(host=address)
            try:
                return await self._inner.handle_async_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue  # nothing was sent: another may be up
        request.url = asked.copy_with(host=last)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()
