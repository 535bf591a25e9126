"""Data read from an address that a client gave: by http or https, and from where the guard lets it.

Imported with httpx when there is something to fetch. Redirects are followed here, one by one: each
is checked as the first address was, and none leads from https back to http.
"""

import asyncio
from collections.abc import AsyncGenerator
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

import httpx

from siderite.core.guard import Guard
from siderite.core.guard import Refused
from siderite.core.guarded_http import BadRedirect
from siderite.core.guarded_http import GuardedTransport
from siderite.core.guarded_http import followed
from siderite.image.domain.task import Broken
from siderite.image.domain.task import Hopeless

SILENCE_S = 60.0
"""How long a server may take to send more."""
ANSWER_S = 150.0
"""How long an answer may take to begin: headers that trickle for ever hold a place as data would,
and a name may have an address or two that nobody is at.
"""
REDIRECTS = 5
_AGAIN = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
# As it is: what a browser would unpack has another checksum than its maker published.
_HEADERS = {"accept-encoding": "identity", "user-agent": "siderite-image-import"}


class Download:
    """An answer that has begun: its length if it says so, and its data."""

    def __init__(self, answer: httpx.Response) -> None:
        self._answer = answer
        length = answer.headers.get("content-length", "")
        self.length = int(length) if length.isascii() and length.isdigit() else None

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The data as it comes."""
        try:
            async for piece in self._answer.aiter_raw():
                yield piece
        except httpx.TransportError as why:
            raise Broken(f"The download broke off: {_words(why)}.") from why


@asynccontextmanager
async def download(guard: Guard, uri: str) -> AsyncIterator[Download]:
    """Begin a download; ended when left."""
    async with httpx.AsyncClient(
        transport=GuardedTransport(guard), timeout=SILENCE_S, follow_redirects=False,
        trust_env=False,
    ) as client:  # fmt: skip
        answer = await _final(client, uri)
        try:
            yield Download(answer)
        finally:
            await answer.aclose()


async def _final(client: httpx.AsyncClient, uri: str) -> httpx.Response:
    """The answer at the end of all redirects."""
    url = httpx.URL(uri)
    for _ in range(REDIRECTS + 1):
        answer = await _ask(client, url)
        if not answer.has_redirect_location:
            return await _taken(answer)
        await answer.aclose()
        try:
            url = followed(url, answer.headers["location"])
        except BadRedirect as why:
            raise Hopeless(f"{url.host} redirects {why}.") from why
    raise Hopeless(f"It was redirected more than {REDIRECTS} times; give the final address.")


async def _ask(client: httpx.AsyncClient, url: httpx.URL) -> httpx.Response:
    try:
        asked = client.build_request("GET", url, headers=_HEADERS)
        async with asyncio.timeout(ANSWER_S):
            return await client.send(asked, stream=True)
    except Refused as why:
        raise Hopeless(f"{why}.") from why
    except (httpx.HTTPError, OSError, TimeoutError) as why:
        raise Broken(f"{url.host} does not answer: {_words(why)}.") from why
    except (httpx.InvalidURL, ValueError) as why:  # a host that no name can be
        raise Hopeless(f"{url.host[:80]!r} cannot be called: {_words(why)}.") from why


async def _taken(answer: httpx.Response) -> httpx.Response:
    if answer.status_code == HTTPStatus.OK:
        return answer
    await answer.aclose()
    sentence = f"The server answered {answer.status_code} in place of 200."
    if answer.is_server_error or answer.status_code in _AGAIN:
        raise Broken(sentence)
    raise Hopeless(sentence)


def _words(why: Exception) -> str:
    return str(why)[:200] or type(why).__name__
