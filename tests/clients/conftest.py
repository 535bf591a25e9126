"""One server and one client for all tests here; each test has nodes of its own."""

import os
from collections.abc import Iterator
from typing import Any

import openstack as sdk
import pytest
from ironicclient import client
from ironicclient.common import filecache
from keystoneauth1 import session as sessions
from keystoneauth1.identity import v3

from tests.clients.nodes import Connect
from tests.clients.nodes import Nodes
from tests.clients.shell import Shell
from tests.clients.shell import running_shell
from tests.support.server import Server
from tests.support.server import running_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The real program, on SQLite."""
    options = {"image_import_allow": "127.0.0.1"}
    with running_server(tmp_path_factory.mktemp("clients"), options=options) as server:
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


@pytest.fixture(scope="module")
def connect(server: Server) -> Iterator[Connect]:
    """Makes the client of a version."""
    auth = v3.Password(
        f"{server.url}/identity/v3", username="admin", password=server.password,
        user_domain_id="default", project_name="admin", project_domain_id="default",
    )  # fmt: skip
    session = sessions.Session(auth=auth)

    def connect(version: str) -> Any:
        return client.get_client("1", session=session, os_ironic_api_version=version)

    # The client remembers versions in the user's home; here, in the test's.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filecache, "CACHE_DIR", str(server.data.parent))
        patch.setattr(filecache, "CACHE_FILENAME", str(server.data.parent / "versions.dbm"))
        yield connect
    session.session.close()


@pytest.fixture
def baremetal(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The proxy, configured by the clouds.yaml that the server wrote."""
    for name in set(os.environ) - set(server.client_environment()):
        monkeypatch.delenv(name)
    for name, value in server.client_environment().items():
        monkeypatch.setenv(name, value)
    cloud = sdk.connect(cloud="siderite")
    yield cloud.baremetal
    cloud.close()
