"""Servers with the unmodified `openstack` command and openstacksdk."""

import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openstack as sdk
import pytest

from tests.clients.shell import Shell
from tests.support.server import Server

# The SDK warns of its own future.
pytestmark = pytest.mark.filterwarnings(
    "ignore::PendingDeprecationWarning", "ignore::openstack.warnings.OpenStackDeprecationWarning"
)

_names = itertools.count(1)
PATIENCE_S = 60.0
NEWEST = {"OpenStack-API-Version": "compute 2.900"}


@pytest.fixture(scope="session")
def cloud(server: Server, openstack: Shell, tmp_path_factory: pytest.TempPathFactory) -> "Cloud":
    """Hosts, an image and flavors, made by the commands themselves where there is one."""
    for name in ("sim-a", "sim-b"):
        body = {"host": {"name": name, "uri": "simulated:"}}
        made = server.api.post(
            "/compute/v2.1/hosts", json=body, headers={**server.headers(), **NEWEST}
        )
        assert made.status_code in (201, 409), made.text
    disk = tmp_path_factory.mktemp("images") / "disk.raw"
    Path(disk).write_bytes(b"\0" * 512)
    openstack("image", "create", "disk", "--file", str(disk), "--disk-format", "raw", "--public")
    openstack("flavor", "create", "tiny", "--ram", "64", "--disk", "1", "--vcpus", "1")
    openstack("flavor", "create", "small", "--ram", "128", "--disk", "2", "--vcpus", "2")
    project = openstack.json("token", "issue")["project_id"]
    openstack("quota", "set", "--instances", "200", "--cores", "-1", "--ram", "-1", project)
    return Cloud(openstack, server)


class Cloud:
    """The command, and the plain API to look at servers while they change."""

    def __init__(self, openstack: Shell, server: Server) -> None:
        self.run = openstack
        self.server = server

    def boot(self, *words: str) -> str:
        """The id of a server that runs."""
        name = f"s{next(_names)}"
        made = self.run.json(
            "server", "create", "--image", "disk", "--flavor", "tiny", *words, name
        )
        self.until(made["id"], "ACTIVE")
        return str(made["id"])

    def show(self, uuid: str) -> dict[str, Any]:
        """A server as administrators see it."""
        headers = {**self.server.headers(), "OpenStack-API-Version": "compute 2.100"}
        answer = self.server.api.get(f"/compute/v2.1/servers/{uuid}", headers=headers)
        shown: dict[str, Any] = answer.json()["server"]
        return shown

    def until(self, uuid: str, status: str) -> dict[str, Any]:
        """The server, once it has this status and no task. `--wait` would look every other
        second.
        """
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            seen = self.show(uuid)
            if seen["status"] == status and seen["OS-EXT-STS:task_state"] is None:
                return seen
            time.sleep(0.02)
        raise AssertionError(f"{uuid} is {seen['status']}, not {status}")


def test_a_server_is_created_listed_shown_and_deleted(cloud: Cloud) -> None:
    run = cloud.run
    words = ("--property", "a=b", "--tag", "blue", "--description", "mine", "--wait", "first")
    made = run.json("server", "create", "--image", "disk", "--flavor", "tiny", *words)
    assert made["status"] == "ACTIVE"
    uuid = made["id"]
    shown = run.json("server", "show", "first")
    assert shown["properties"] == {"a": "b"}
    assert (shown["tags"], shown["description"]) == (["blue"], "mine")
    assert shown["addresses"]["private"]
    assert uuid in run.column("ID", "server", "list", "--all-projects", "--long")
    assert uuid in run.column("ID", "server", "list", "--status", "ACTIVE", "--tags", "blue")
    assert run.column("ID", "server", "list", "--name", "first") == [uuid]
    run("server", "delete", "--wait", uuid)
    assert uuid not in run.column("ID", "server", "list")


def test_a_server_without_a_network_and_with_a_key(cloud: Cloud, tmp_path: Path) -> None:
    cloud.run("keypair", "create", "--private-key", str(tmp_path / "key"), "key")
    shown = cloud.show(cloud.boot("--no-network", "--key-name", "key"))
    assert (shown["addresses"], shown["key_name"]) == ({}, "key")


def test_a_server_goes_there_and_back(cloud: Cloud) -> None:
    uuid = cloud.boot()
    for there, status, back in (
        ("stop", "SHUTOFF", "start"),
        ("pause", "PAUSED", "unpause"),
        ("suspend", "SUSPENDED", "resume"),
        ("rescue", "RESCUE", "unrescue"),
        ("shelve", "SHELVED_OFFLOADED", "unshelve"),
    ):
        cloud.run("server", there, uuid)
        cloud.until(uuid, status)
        cloud.run("server", back, uuid)
        cloud.until(uuid, "ACTIVE")


def test_a_server_is_rebooted_rebuilt_resized_and_moved(cloud: Cloud) -> None:
    uuid, run = cloud.boot(), cloud.run
    run("server", "reboot", uuid)
    cloud.until(uuid, "ACTIVE")
    run("server", "reboot", "--hard", uuid)
    cloud.until(uuid, "ACTIVE")
    run("server", "rebuild", "--image", "disk", uuid)
    cloud.until(uuid, "ACTIVE")
    run("server", "resize", "--flavor", "small", uuid)
    cloud.until(uuid, "VERIFY_RESIZE")
    run("server", "resize", "confirm", uuid)
    seen = cloud.until(uuid, "ACTIVE")
    assert seen["flavor"]["original_name"] == "small"
    home = seen["OS-EXT-SRV-ATTR:host"]
    run("server", "migrate", uuid)
    cloud.until(uuid, "VERIFY_RESIZE")
    run("server", "migration", "revert", uuid)
    assert cloud.until(uuid, "ACTIVE")["OS-EXT-SRV-ATTR:host"] == home
    run("server", "migrate", "--live-migration", uuid)
    assert cloud.until(uuid, "ACTIVE")["OS-EXT-SRV-ATTR:host"] != home
    assert len(run.json("server", "migration", "list")) >= 3


def test_a_server_is_set_locked_and_made_an_image_of(cloud: Cloud) -> None:
    uuid, run = cloud.boot(), cloud.run
    run("server", "set", "--name", "renamed", "--property", "k=v", "--tag", "t", uuid)
    shown = cloud.show(uuid)
    assert (shown["name"], shown["metadata"], shown["tags"]) == ("renamed", {"k": "v"}, ["t"])
    run("server", "unset", "--property", "k", "--tag", "t", uuid)
    run("server", "lock", "--reason", "keep", uuid)
    assert cloud.show(uuid)["locked_reason"] == "keep"
    run("server", "unlock", uuid)
    run("server", "image", "create", "--name", "copy", uuid)
    cloud.until(uuid, "ACTIVE")
    assert run.json("image", "show", "copy")["status"] == "active"
    run("server", "set", "--state", "error", "--auto-approve", uuid)
    assert cloud.show(uuid)["status"] == "ERROR"


def test_events_and_console_are_shown(cloud: Cloud) -> None:
    uuid, run = cloud.boot(), cloud.run
    (event,) = run.json("server", "event", "list", uuid)
    assert event["Action"] == "create"
    shown = run.json("server", "event", "show", uuid, event["Request ID"])
    assert shown["events"][0]["result"] == "Success"
    assert "login:" in run("console", "log", "show", uuid)


def test_the_state_of_the_cloud_is_shown(cloud: Cloud) -> None:
    run = cloud.run
    assert {"sim-a", "sim-b"} <= set(run.column("Hypervisor Hostname", "hypervisor", "list"))
    assert "nova-compute" in run.column("Binary", "compute", "service", "list")
    assert run.json("quota", "show", "--compute")
    assert run.json("limits", "show", "--absolute")
    assert run.json("usage", "show") is not None
    assert "nova" in run.column("Zone Name", "availability", "zone", "list", "--compute")


def test_what_cannot_be_is_refused_with_the_services_own_words(cloud: Cloud) -> None:
    uuid, run = cloud.boot(), cloud.run
    assert "while it is in vm_state active" in run.refused("server", "start", uuid)
    assert "nothing" in run.refused("server", "show", "nothing")
    run("flavor", "create", "huge", "--ram", "64", "--disk", "1", "--vcpus", "100000")
    words = ("server", "create", "--image", "disk", "--flavor", "huge", "too-big")
    made = run.json(*words)
    assert "No valid host" in cloud.until(made["id"], "ERROR")["fault"]["message"]


@pytest.fixture
def connection(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """openstacksdk, configured by the clouds.yaml that the server wrote."""
    for name in set(os.environ) - set(server.client_environment()):
        monkeypatch.delenv(name)
    for name, value in server.client_environment().items():
        monkeypatch.setenv(name, value)
    connection = sdk.connect(cloud="siderite")
    yield connection
    connection.close()


def test_the_sdks_cloud_layer_boots_a_server_with_an_address(cloud: Cloud, connection: Any) -> None:
    made = connection.create_server(
        "by-sdk", image="disk", flavor="tiny", wait=True, auto_ip=False, timeout=60
    )
    assert made.status == "ACTIVE"
    assert made.private_v4 or made.addresses["private"]
    assert connection.delete_server(made.id, wait=True, timeout=60)


def test_the_sdks_compute_layer_leads_a_server_through_its_life(
    cloud: Cloud, connection: Any
) -> None:
    compute = connection.compute
    image = connection.image.find_image("disk")
    flavor = compute.find_flavor("tiny")
    made = compute.create_server(
        name="by-proxy", image_id=image.id, flavor_id=flavor.id, networks="auto"
    )
    server = compute.wait_for_server(made, wait=60, interval=0.1)
    compute.stop_server(server)
    compute.wait_for_server(server, status="SHUTOFF", wait=60, interval=0.1)
    compute.start_server(server)
    compute.wait_for_server(server, wait=60, interval=0.1)
    compute.set_server_metadata(server, k="v")
    assert compute.get_server(server.id).metadata == {"k": "v"}
    assert [one.action for one in compute.server_actions(server)] == ["start", "stop", "create"]
    assert [one.net_id for one in compute.server_interfaces(server)]
    assert compute.get_server_console_output(server)["output"]
    compute.delete_server(server)
    compute.wait_for_delete(server, wait=60, interval=0.1)


def test_a_live_migration_is_listed_forced_and_aborted(cloud: Cloud) -> None:
    run, api, headers = cloud.run, cloud.server.api, cloud.server.headers()
    version = ("--os-compute-api-version", "2.80")
    slow = {"latency_s": {"live_migrate": [600.0, 600.0]}}
    for verb, end in ((("force", "complete"), "completed"), (("abort",), "cancelled")):
        uuid = cloud.boot()
        path = f"/simulated-hosts/v1/scripts/server:{uuid}"
        api.put(path, json=slow, headers=headers).raise_for_status()
        run(*version, "server", "migrate", "--live-migration", uuid)
        found: list[Any] = []
        deadline = time.monotonic() + PATIENCE_S
        while not found and time.monotonic() < deadline:
            found = run.json(*version, "server", "migration", "list", "--server", uuid)
        (one,) = found
        assert one["Status"] == "running"
        run(*version, "server", "migration", *verb, uuid, str(one["Id"]))
        cloud.until(uuid, "ACTIVE")
        (after,) = run.json(*version, "server", "migration", "list", "--server", uuid)
        assert after["Status"] == end
        api.delete(path, headers=headers).raise_for_status()
    said = run.json(*version, "server", "show", "--diagnostics", uuid)
    assert said["state"] == "running"


def test_hosts_of_an_aggregate_get_an_image_ahead(cloud: Cloud) -> None:
    run = cloud.run
    made = run.json("aggregate", "create", "ahead")
    run("aggregate", "add", "host", "ahead", "sim-a")
    run("aggregate", "cache", "image", "ahead", "disk")
    log = f"/events/v1/events?resource={made['uuid']}"
    deadline = time.monotonic() + 30.0
    told: list[str] = []
    while "aggregate.cache_images.progress" not in told:
        assert time.monotonic() < deadline, told
        found = cloud.server.api.get(log, headers=cloud.server.headers()).json()["events"]
        told = [one["event_type"] for one in found]
    run("aggregate", "remove", "host", "ahead", "sim-a")
    run("aggregate", "delete", "ahead")
