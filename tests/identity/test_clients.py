"""Unmodified clients against a real listener."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import openstack
import pytest
import uvicorn
from keystoneauth1 import exceptions
from keystoneauth1 import session as sessions
from keystoneauth1.identity import generic
from keystoneauth1.identity import v3

from siderite.core.store import open_store
from siderite.core.store.migrations import migrate
from siderite.identity import Identity
from tests.identity.world import PASSWORD
from tests.identity.world import application

WHO: dict[str, Any] = {"username": "admin", "password": PASSWORD, "user_domain_id": "default"}


@pytest.fixture
def listener() -> Iterator[str]:
    """The URL of an installation that listens on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        url = f"http://127.0.0.1:{door.getsockname()[1]}"
        servers: list[uvicorn.Server] = []

        async def serve() -> None:
            store = await open_store("sqlite://")
            await migrate(store)
            identity = Identity(store, token_ttl_s=3600)
            await identity.first_start(PASSWORD)
            config = uvicorn.Config(application(identity, url), lifespan="off", log_config=None)
            servers.append(uvicorn.Server(config))
            await servers[0].serve(sockets=[door])
            await store.close()

        thread = threading.Thread(target=asyncio.run, args=(serve(),))
        thread.start()
        yield url
        servers[0].should_exit = True
        thread.join(20)


@pytest.mark.parametrize("path", ["/identity", "/identity/", "/identity/v3", "/identity/v3/"])
def test_keystoneauth_logs_in_validates_and_reads_the_catalogue(listener: str, path: str) -> None:
    auth = generic.Password(
        listener + path, project_name="admin", project_domain_name="Default", **WHO
    )
    session = sessions.Session(auth=auth)
    token = session.get_token()
    access = auth.get_access(session)
    assert access.role_names == ["admin", "manager", "member", "reader"]
    assert access.project_name == "admin"
    assert access.service_catalog.url_for("baremetal", "internal") == listener + "/baremetal"
    identity: dict[str, Any] = {
        "service_type": "identity",
        "interface": "admin",
        "region_name": "RegionOne",
    }
    shown = session.get(
        "/auth/tokens", endpoint_filter=identity, headers={"X-Subject-Token": token}
    )
    assert shown.json()["token"]["user"]["name"] == "admin"
    found = session.get_endpoint_data(**identity)
    assert found is not None
    assert found.api_version == (3, 14)
    session.delete("/auth/tokens", endpoint_filter=identity, headers={"X-Subject-Token": token})
    # The client meets a 401, gets another token by itself and repeats.
    assert session.get("/users", endpoint_filter=identity).status_code == 200
    session.session.close()


def test_keystoneauth_knows_the_other_scopes(listener: str) -> None:
    url = listener + "/identity/v3"
    session = sessions.Session()
    system = v3.Password(url, system_scope="all", **WHO)
    assert system.get_access(session).system_scoped
    unscoped = v3.Password(url, unscoped=True, **WHO)
    assert not unscoped.get_access(session).scoped
    rescoped = v3.Token(
        url, unscoped.get_token(session) or "", project_name="admin", project_domain_id="default"
    )
    assert rescoped.get_access(session).project_name == "admin"
    wrong = v3.Password(url, username="admin", password="wrong", user_domain_id="default")
    with pytest.raises(exceptions.Unauthorized, match="check both and try again"):
        wrong.get_token(session)
    session.session.close()


# The SDK warns of its own future at every connection.
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_the_sdk_makes_a_project_a_user_and_a_grant(listener: str) -> None:
    cloud = openstack.connection.Connection(
        auth={**WHO, "auth_url": listener + "/identity", "project_name": "admin",
              "project_domain_id": "default"},
        region_name="RegionOne",
    )  # fmt: skip
    identity: Any = cloud.identity
    project = identity.create_project(name="lab", domain_id="default", description="A lab.")
    user = identity.create_user(name="mia", password=PASSWORD, default_project_id=project.id)
    role = identity.find_role("member")
    identity.assign_project_role_to_user(project, user, role)
    assert identity.validate_user_has_project_role(project, user, role)
    assert [one.id for one in identity.user_projects(user)] == [project.id]
    assert identity.find_project("lab").id == project.id
    assert identity.find_user("no-such") is None
    assignments = list(identity.role_assignments(user_id=user.id))
    assert [one.scope["project"]["id"] for one in assignments] == [project.id]
    assert identity.update_user(user, is_enabled=False).is_enabled is False
    assert {one.service_id for one in identity.endpoints()} == {s.id for s in identity.services()}
    identity.unassign_project_role_from_user(project, user, role)
    identity.delete_user(user)
    identity.delete_project(project)
    assert [one.name for one in identity.projects()] == ["admin", "service"]
    cloud.close()
