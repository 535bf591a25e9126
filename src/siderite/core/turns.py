"""Taking turns: within a process, changes of one machine are decided one after the other.

Without it a busy client could win every race against the worker of the same machine. Correctness
does not rest on it: the compare-and-swap of a commit does that, between processes too.
"""

import asyncio
from collections import deque

_Queue = deque["asyncio.Future[None]"]


class Turns:
    """A queue per machine; none is kept while nobody waits, nor anything while nobody is at it."""

    def __init__(self) -> None:
        self.queues: dict[str, _Queue | None] = {}

    def of(self, machine: str) -> "_Turn":
        """Wait for one's turn with a machine, first come first served: `async with turns.of(m)`."""
        return _Turn(self.queues, machine)


class _Turn:
    __slots__ = ("_machine", "_queues")

    def __init__(self, queues: dict[str, _Queue | None], machine: str) -> None:
        self._queues = queues
        self._machine = machine

    async def __aenter__(self) -> None:
        queues, machine = self._queues, self._machine
        if machine not in queues:
            queues[machine] = None
            return
        queue = queues[machine]
        if queue is None:
            queue = queues[machine] = deque()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except BaseException:
            if not turn.cancel() and not turn.cancelled():
                self._pass_on()  # it was ours already
            raise

    async def __aexit__(self, *_: object) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        queue = self._queues[self._machine]
        while queue:
            turn = queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self._queues[self._machine]
