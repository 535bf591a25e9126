"""Taking turns: within a process, changes of one machine are decided one after the other.

Without it a busy client could win every race against the worker of the same machine. Correctness
does not rest on it: the compare-and-swap of a commit does that, between processes too.
"""

import asyncio


class Turns:
    """A queue per machine; none is kept while nobody is in it."""

    def __init__(self) -> None:
        self.locks: dict[str, tuple[asyncio.Lock, int]] = {}

    def of(self, machine: str) -> "_Turn":
        """Wait for one's turn with a machine, first come first served: `async with turns.of(m)`."""
        return _Turn(self.locks, machine)


class _Turn:
    __slots__ = ("_lock", "_locks", "_machine")

    def __init__(self, locks: dict[str, tuple[asyncio.Lock, int]], machine: str) -> None:
        self._locks = locks
        self._machine = machine

    async def __aenter__(self) -> None:
        lock, count = self._locks.get(self._machine) or (asyncio.Lock(), 0)
        self._locks[self._machine] = (lock, count + 1)
        self._lock = lock
        try:
            await lock.acquire()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()
        self._leave()

    def _leave(self) -> None:
        lock, count = self._locks[self._machine]
        if count == 1:
            del self._locks[self._machine]
        else:
            self._locks[self._machine] = (lock, count - 1)
