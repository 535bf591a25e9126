"""Stories are told on both databases; hashing passwords is cheap."""

import asyncio
from collections.abc import Awaitable
from collections.abc import Callable
from pathlib import Path

import pytest

from siderite.identity import passwords
from tests.compute.records.world import World
from tests.compute.records.world import world

Tell = Callable[[Callable[[World], Awaitable[None]]], None]


@pytest.fixture(autouse=True)
def cheap_scrypt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real cost is 50 ms for each hash."""
    monkeypatch.setattr(passwords, "_LOG2_N", 4)


@pytest.fixture(params=["sqlite", "postgresql"])
def tell(request: pytest.FixtureRequest, tmp_path: Path) -> Tell:
    """Tells a story, on each database."""
    db = "" if request.param == "sqlite" else request.getfixturevalue("postgres_url")

    def told(story: Callable[[World], Awaitable[None]]) -> None:
        async def begin() -> None:
            async with world(tmp_path, db) as here:
                await story(here)

        asyncio.run(begin())

    return told
