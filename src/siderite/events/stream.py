"""The log as an endless answer: what one reader of a stream is sent, and when."""

import asyncio
from collections.abc import Awaitable
from collections.abc import Callable

from siderite.core.errors import Gone
from siderite.core.errors import Unavailable
from siderite.core.eventlog import Entry
from siderite.core.eventlog import Wanted
from siderite.core.streaming import Chunks
from siderite.events import views
from siderite.events.hub import Hub

KEEP_ALIVE_S = 15.0
_AWAY_S = 1.0
"""How soon the log is read again for a reader who is behind, while the database is away."""


async def follow(
    hub: Hub,
    wanted: Wanted,
    after: int,
    *,
    is_welcome: Callable[[], Awaitable[bool]],
    told: Callable[[Entry], Entry] | None = None,
    keep_alive_s: float = KEEP_ALIVE_S,
) -> Chunks:
    """Wanted facts after a number, then each as it comes, until the hub closes, the log goes back,
    what the reader has not had is pruned, or the reader is no longer welcome, which is asked as
    often as a quiet stream gives a sign of life. They are `told` so, if that is not all.
    """
    clock = asyncio.get_running_loop().time
    asked = spoke = clock()
    era = hub.era
    with hub.reader():
        yield views.alive(after)
        while not hub.is_closed and hub.era == era:
            text = b""
            try:
                async with asyncio.timeout_at(spoke + keep_alive_s):
                    # A reader far behind would otherwise keep all others waiting.
                    await asyncio.sleep(0)
                    text, after = await hub.more(wanted, after, told)
            except TimeoutError:
                text = views.alive(after)
            except Gone:
                return  # who comes again after the last number is told
            except Unavailable:  # the hub tells of it
                await asyncio.sleep(_AWAY_S)
            if clock() - asked >= keep_alive_s:
                asked = clock()
                if not await is_welcome():
                    return
            if text:
                spoke = clock()
                yield text
        if hub.era != era and hub.agreed is not None and hub.agreed < after:
            yield views.alive(hub.agreed)  # who comes again begins there, and misses nothing
