"""Taking turns: within a process, changes of one machine are decided one after the other.

Without it a busy client could win every race against the worker of the same machine. Correctness
does not rest on it: the compare-and-swap of a commit does that, between processes too.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """A queue per machine; none is kept while nobody is in it."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def of(self, machine: str) -> AsyncIterator[None]:
        """Wait for one's turn with a machine, first come first served."""
        lock, count = self._locks.get(machine) or (asyncio.Lock(), 0)
        self._locks[machine] = (lock, count + 1)
        try:
            async with lock:
                yield
        finally:
            lock, count = self._locks[machine]
            if count == 1:
                del self._locks[machine]
            else:
                self._locks[machine] = (lock, count - 1)
