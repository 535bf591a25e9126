"""One installation for all tests of a module; each test makes the servers it speaks of."""

from collections.abc import Iterator

import pytest

from siderite.compute.drivers.simulated import driver
from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud


@pytest.fixture(scope="package", autouse=True)
def soon() -> Iterator[None]:
    """A host that does not answer is asked again soon."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "_UNREACHABLE_S", 0.1)
        yield


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cloud]:
    """The program on each database, with work going on."""
    data = tmp_path_factory.mktemp("data")
    if request.param == "sqlite":
        with cloud(data) as made:
            yield made
        return
    lending = request.getfixturevalue("lending")
    with lending.database() as url, cloud(data, url) as made:
        yield made


@pytest.fixture(scope="module")
def lite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """The program on SQLite only, where the database makes no difference."""
    with cloud(tmp_path_factory.mktemp("data")) as made:
        yield made
