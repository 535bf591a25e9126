"""One server and one client for all tests here; each test has nodes of its own."""

from collections.abc import Iterator

import pytest

from tests.clients.nodes import Nodes
from tests.clients.shell import Shell
from tests.clients.shell import running_shell
from tests.support.server import Server
from tests.support.server import running_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The real program, on SQLite."""
    with running_server(tmp_path_factory.mktemp("clients")) as server:
        yield server


@pytest.fixture(scope="session")
def openstack(server: Server) -> Iterator[Shell]:
    """The `openstack` command, logged in by OS_CLOUD=siderite."""
    with running_shell(server) as shell:
        yield shell


@pytest.fixture
def nodes(server: Server) -> Iterator[Nodes]:
    """Nodes of the test's own, removed after it."""
    nodes = Nodes(server)
    yield nodes
    nodes.remove()
