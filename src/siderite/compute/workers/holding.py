"""Keeps the lease of a piece of work while a driver is at it in this process: no other may begin
it, nor what it would be in the way of. (Work on servers does so too, and shows how far it is.)
"""

import asyncio
from collections.abc import Awaitable
from collections.abc import Callable

from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.compute.workers.hands import Hands


async def to_its_end(hands: Hands, ask: Callable[[], Awaitable[Outcome]], until: float) -> Outcome:
    """What came of it. What goes on at this time, when the process is to stop or when the lease is
    lost, is called off.
    """
    call_off: Callable[[], Awaitable[None]] | None = None
    try:
        while True:
            outcome = await ask()
            call_off = outcome.call_off if isinstance(outcome, Wait) else None
            if not isinstance(outcome, Wait) or call_off is None:
                return outcome
            if hands.ctx.door.is_draining or hands.ctx.door.clock() >= until:
                await call_off()
                return Wait(outcome.reason, outcome.again_in)
            await asyncio.sleep(outcome.again_in)
    except BaseException:
        if call_off is not None:
            await call_off()
        raise
