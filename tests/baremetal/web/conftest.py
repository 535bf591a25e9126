"""One installation for all tests of a module; each test makes the nodes it speaks of."""

from collections.abc import Iterator

import pytest

from siderite.identity import passwords
from tests.support.app import Standing
from tests.support.app import standing


@pytest.fixture(scope="module")
def cheap_scrypt() -> Iterator[None]:
    """The real cost is 50 ms for each hash."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_LOG2_N", 4)
        yield


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def app(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, cheap_scrypt: None
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
def lite(tmp_path_factory: pytest.TempPathFactory, cheap_scrypt: None) -> Iterator[Standing]:
    """The program on SQLite only, where the database makes no difference."""
    with standing(tmp_path_factory.mktemp("data")) as made:
        yield made
