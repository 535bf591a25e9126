"""A client that asks again and again how things are, for many who wait.

So that polling is neither the load nor the brake, it pauses three times as long as its last request
took (between 5 ms and 1 s): a quarter of one connection's time, whoever answers.
"""

import asyncio
from abc import ABC
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Generic
from typing import Self
from typing import TypeVar

_PAUSE_FACTOR = 3
_PAUSE_MIN_S, _PAUSE_MAX_S = 0.005, 1.0

S = TypeVar("S")


class Polling(ABC, Generic[S]):
    """Polls while it is open."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[Callable[[S], bool], asyncio.Future[None]]] = {}
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    async def _poll(self) -> None:
        """Ask for ever, and show what was seen to `_look`."""

    @abstractmethod
    def _failure(self, uuid: str, seen: S) -> Exception | None:
        """Why what was seen will never be what is waited for, if so."""

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._poll())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def until(self, uuid: str, reached: Callable[[S], bool]) -> None:
        """Back when it is there; raises when it has failed."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[uuid] = (reached, future)
        await future

    def _look(self, uuid: str, seen: S) -> None:
        reached, future = self._waiting[uuid]
        if reached(seen):
            del self._waiting[uuid]
            future.set_result(None)
        elif (failure := self._failure(uuid, seen)) is not None:
            del self._waiting[uuid]
            future.set_exception(failure)


async def rest(took_s: float = 0.0) -> None:
    """The pause after a request that took so long."""
    await asyncio.sleep(min(max(took_s * _PAUSE_FACTOR, _PAUSE_MIN_S), _PAUSE_MAX_S))
