"""The program for tests of this room, on each database."""

import asyncio
from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.events.log import fact
from tests.events.log import tell
from tests.support.app import Application
from tests.support.app import Standing
from tests.support.app import running
from tests.support.app import standing


@pytest.fixture
def app(tmp_path: Path, database_url: str) -> Iterator[Standing]:
    """The program, with nothing going on beside requests."""
    with standing(tmp_path, database_url) as app:
        yield app


@pytest.fixture
def run(tmp_path: Path, database_url: str) -> Callable[..., None]:
    """Run a story with the whole program at work."""

    def begin(story: Callable[[Application], Awaitable[None]], **options: Any) -> None:
        async def all_of_it() -> None:
            async with running(tmp_path, database_url, work=True, **options) as app:
                await story(app)

        asyncio.run(all_of_it())

    return begin


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def one_fact(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Standing]:
    """The same with one fact in its log, shared by tests that change nothing."""
    with ExitStack() as stack:
        url = ""
        if request.param == "postgresql":
            url = stack.enter_context(request.getfixturevalue("lending").database())
        app = stack.enter_context(standing(tmp_path_factory.mktemp("one-fact"), url))
        app.run(tell(app.app, fact(1)))
        yield app
