"""Names are looked up in threads of their own: with a name server that does not answer, each takes
half a minute, and whatever else is done in threads would wait for it, logins too.

A name that is being looked up is not looked up beside that, so that one which never ends has one
thread, however often it is asked for; and only so many are under way at a time. Those can be the
names of one client, whose name server never answers: so a name that was found lately stays found.
Called by the guard of what clients have us call (`core.guard`).
"""

import asyncio
import contextlib
import socket
from threading import Thread

LOOK_UP_S = 5.0
MOST = 32
KNOWN_S = 3600.0
"""How long what was found is good for while nothing newer can be had."""
_MOST_KNOWN = 1000
_NOT_THERE = (socket.EAI_NONAME, socket.EAI_NODATA)


class LookUps:
    """What is being looked up, by name."""

    def __init__(self) -> None:
        self._under_way: dict[str, asyncio.Future[list[str]]] = {}
        self._known: dict[str, tuple[float, list[str]]] = {}

    async def of(self, host: str) -> list[str]:
        """The addresses of a host; OSError if it has none, TimeoutError if nobody says."""
        now = asyncio.get_running_loop().time()
        try:
            found = await self._looked_up(host)
        except OSError as why:  # a TimeoutError is one
            since, known = self._known.get(host, (-KNOWN_S, []))
            if now - since >= KNOWN_S or why.errno in _NOT_THERE:
                raise
            return known
        self._known.pop(host, None)
        if len(self._known) >= _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[host] = (now, found)
        return found

    async def _looked_up(self, host: str) -> list[str]:
        asked = self._under_way.get(host)
        if asked is None:
            if len(self._under_way) >= MOST:
                raise OSError("too many names are being looked up: the name server is slow")
            asked = self._begin(host)
        async with asyncio.timeout(LOOK_UP_S):
            return await asyncio.shield(asked)

    def _begin(self, host: str) -> asyncio.Future[list[str]]:
        loop = asyncio.get_running_loop()
        asked: asyncio.Future[list[str]] = loop.create_future()

        def over(found: list[str], why: BaseException | None) -> None:
            del self._under_way[host]
            if why is None:
                asked.set_result(found)
            else:
                asked.set_exception(why)
                asked.exception()  # perhaps nobody waits for it any more

        def look() -> None:
            found: list[str] = []
            why: BaseException | None = None
            try:
                every = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
                found = [str(address[4][0]) for address in every]
            except Exception as error:
                why = error
            with contextlib.suppress(RuntimeError):  # the loop may be closed by now
                loop.call_soon_threadsafe(over, found, why)

        # Nothing waits for its end: not the end of the process either.
        Thread(target=look, name="look-up", daemon=True).start()
        self._under_way[host] = asked
        return asked
