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
    return _teller(tmp_path, db)


@pytest.fixture
def tell_once(tmp_path: Path) -> Tell:
    """Tells a story in which the database plays no part."""
    return _teller(tmp_path, "")


def _teller(folder: Path, db: str) -> Tell:
    def told(story: Callable[[World], Awaitable[None]]) -> None:
        async def begin() -> None:
            async with world(folder, db) as here:
                await story(here)

        asyncio.run(begin())

    return told
