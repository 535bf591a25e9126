"""Says again and again that this host is there."""

import asyncio
import contextlib

from siderite.baremetal.usecases import conductors
from siderite.baremetal.usecases.context import Context
from siderite.core.log import get_logger

log = get_logger("presence")


async def stay(ctx: Context, groups: str) -> None:
    """Until cancelled; then say that it goes. `groups` are those whose nodes it serves."""
    try:
        while True:
            try:
                await conductors.beat(ctx, groups)
            except Exception as why:
                log.warning("cannot say that this host is there", error=repr(why))
            await asyncio.sleep(conductors.BEAT_S)
    finally:
        with contextlib.suppress(Exception):
            await conductors.leave(ctx)
