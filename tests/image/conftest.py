"""Stories are told on both databases."""

from pathlib import Path

import pytest

from tests.image.world import world
from tests.support.stories import Tell
from tests.support.stories import teller


@pytest.fixture(params=["sqlite", "postgresql"])
def tell(request: pytest.FixtureRequest, tmp_path: Path) -> Tell:
    """Tells a story, on each database."""
    db = "" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    return teller(lambda: world(tmp_path, db))


@pytest.fixture
def tell_once(tmp_path: Path) -> Tell:
    """Tells a story in which the database plays no part."""
    return teller(lambda: world(tmp_path, ""))
