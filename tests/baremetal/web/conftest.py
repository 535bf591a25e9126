"""One installation for all tests of a module; each test makes the nodes it speaks of."""

from collections.abc import Iterator

import pytest

from tests.support.app import Standing
from tests.support.app import standing


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def app(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Standing]:
    """The program on each database; nothing goes on beside the requests."""
    data = tmp_path_factory.mktemp("data")
    if request.param == "sqlite":
        with standing(data) as made:
            yield made
        return
    lending = request.getfixturevalue("lending")
    with lending.database() as url, standing(data, url) as made:
        yield made


@pytest.fixture(scope="module")
def lite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    """The program on SQLite only, where the database makes no difference."""
    with standing(tmp_path_factory.mktemp("data")) as made:
        yield made
