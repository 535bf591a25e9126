"""Tests that are stories: coroutines that are given a world to happen in."""

import asyncio
from collections.abc import Awaitable
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

Tell = Callable[[Callable[[Any], Awaitable[None]]], None]


def teller(world: Callable[[], AbstractAsyncContextManager[Any]]) -> Tell:
    """Has each story happen in a world of its own."""

    def told(story: Callable[[Any], Awaitable[None]]) -> None:
        async def begin() -> None:
            async with world() as here:
                await story(here)

        asyncio.run(begin())

    return told
