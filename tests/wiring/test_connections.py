"""How many connections there may be."""

import resource

import pytest

from siderite.core.config import Config
from siderite.wiring import connections
from siderite.wiring.connections import SPARE_FILES
from siderite.wiring.connections import most_connections


@pytest.mark.parametrize(
    ("files", "option", "most"),
    [
        (1024, 5000, 1024 - SPARE_FILES),
        (100_000, 5000, 5000),
        (resource.RLIM_INFINITY, 5000, 5000),
        (64, 5000, 1),
    ],
)
def test_there_are_as_many_as_the_option_says_and_there_are_file_descriptors_for(
    monkeypatch: pytest.MonkeyPatch, files: int, option: int, most: int
) -> None:
    set_to = []
    monkeypatch.setattr(connections.resource, "getrlimit", lambda _: (256, files))
    monkeypatch.setattr(connections.resource, "setrlimit", lambda _, limits: set_to.append(limits))
    assert most_connections(Config(max_connections=option)) == most
    assert set_to == [(files, files)]
