"""Stories are told on both databases; hashing is cheap except where it is the point."""

import pytest

from siderite.identity import passwords


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return "sqlite://"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(autouse=True)
def cheap_scrypt(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real cost is 50 ms for each hash."""
    if request.module.__name__ != "tests.identity.test_passwords":
        monkeypatch.setattr(passwords, "_LOG2_N", 4)
