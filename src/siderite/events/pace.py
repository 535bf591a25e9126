"""How readers of the log that may be late leave the loop to those that may not."""

import asyncio
import time

LONGEST_S = 1.0


async def breath(patience: float) -> None:
    """Pause so many times as long as the loop is busy with others: hardly at all if it is idle."""
    began = time.perf_counter()
    await asyncio.sleep(0)
    busy_s = time.perf_counter() - began
    await asyncio.sleep(min(LONGEST_S, patience * busy_s))
