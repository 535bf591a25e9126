"""Kernels and ramdisks that are had by http or https. Imported with httpx by `ramdisks` when there
is something to fetch.

What an operator configured is fetched from wherever it is. What a node's `driver_info` names is
fetched only from where the guard lets it: what was fetched is served, and who may set it need not
be somebody who reaches all that this machine does. Redirects are followed here, one by one: each is
checked as the first address was, and none leads from https back to http.
"""

import asyncio
from http import HTTPStatus
from pathlib import Path

import httpx

from siderite.baremetal.domain.secrets import mask
from siderite.baremetal.drivers.agent.iso import NoRamdisk
from siderite.core.guard import Guard
from siderite.core.guard import Refused
from siderite.core.guarded_http import BadRedirect
from siderite.core.guarded_http import GuardedTransport
from siderite.core.guarded_http import followed

MOST_BYTES = 4 * 2**30
"""Larger than any kernel or ramdisk: a machine has to have room for it in its memory."""
SILENCE_S = 60.0
"""How long a server may take to send more."""
ANSWER_S = 150.0
"""How long an answer may take to begin, redirects aside."""
REDIRECTS = 5
_CHUNK = 1 << 20
_PASSING = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)
"""Answers of a file server that may be others later, as may those with 5xx."""
# As it is: what is unpacked on the way may become as large as it likes.
_HEADERS = {"accept-encoding": "identity"}


async def download(source: str, to: Path, guard: Guard | None) -> None:
    """Have the file at `to`, whole or not at all; NoRamdisk if it cannot be had. Without a guard it
    may be anywhere.
    """
    part, shown = to.with_name(to.name + ".part"), mask(source)
    try:
        async with _client(guard) as client:
            answer = await _final(client, source, shown)
            try:
                await _save(answer, part, shown)
            finally:
                await answer.aclose()
        part.rename(to)
    except Refused as why:
        option = "" if guard is None else f"; an operator can allow it with {guard.option}"
        raise NoRamdisk(f"{shown} cannot be fetched: {why}{option}") from why
    except httpx.HTTPError as why:
        raise NoRamdisk(f"{shown} cannot be fetched: {type(why).__name__}", passing=True) from why
    finally:
        await asyncio.to_thread(part.unlink, missing_ok=True)


def _client(guard: Guard | None) -> httpx.AsyncClient:
    if guard is None:
        return httpx.AsyncClient(timeout=SILENCE_S, follow_redirects=True)
    return httpx.AsyncClient(
        transport=GuardedTransport(guard), timeout=SILENCE_S, follow_redirects=False,
        trust_env=False,
    )  # fmt: skip


async def _final(client: httpx.AsyncClient, source: str, shown: str) -> httpx.Response:
    """The answer at the end of all redirects."""
    url: httpx.URL | str = source
    for _ in range(REDIRECTS + 1):
        answer = await _ask(client, url, shown)
        if answer.is_success:
            return answer
        await answer.aclose()
        if not answer.has_redirect_location:
            status = answer.status_code
            passing = status in _PASSING or answer.is_server_error
            raise NoRamdisk(f"{shown} answers HTTP {status}", passing=passing)
        try:
            url = followed(httpx.URL(url), answer.headers["location"])
        except BadRedirect as why:
            raise NoRamdisk(f"{shown} is redirected {why}") from why
    raise NoRamdisk(f"{shown} is redirected more than {REDIRECTS} times: give the final address")


async def _ask(client: httpx.AsyncClient, url: httpx.URL | str, shown: str) -> httpx.Response:
    try:
        asked = client.build_request("GET", url, headers=_HEADERS)
        async with asyncio.timeout(ANSWER_S):
            return await client.send(asked, stream=True)
    except OSError as why:
        reason = why.strerror or type(why).__name__
        raise NoRamdisk(f"{shown} cannot be fetched: {reason}", passing=True) from why
    except (httpx.InvalidURL, ValueError) as why:
        raise NoRamdisk(f"{shown} is no address that can be called") from why


async def _save(answer: httpx.Response, part: Path, shown: str) -> None:
    size = 0
    with part.open("wb") as file:
        async for piece in answer.aiter_raw(_CHUNK):
            size += len(piece)
            if size > MOST_BYTES:
                most = MOST_BYTES // 2**20
                raise NoRamdisk(f"{shown} has more than the {most} MiB that are fetched for a boot")
            await asyncio.to_thread(file.write, piece)
