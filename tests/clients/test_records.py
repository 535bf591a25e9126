"""Keypairs, quotas, groups, aggregates and usage, with the `openstack` command and openstacksdk."""

import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.clients.shell import Shell
from tests.clients.test_images import cloud  # noqa: F401 - a fixture

pytestmark = pytest.mark.filterwarnings(
    "ignore::PendingDeprecationWarning", "ignore::openstack.warnings.OpenStackDeprecationWarning"
)
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHQ9dGh1bWJzIHVwIGZvciB0ZXN0IGtleXMgMTIz someone@here"


@pytest.fixture
def name() -> str:
    """A name that no other test has."""
    return f"r-{uuid.uuid4().hex[:8]}"


def test_keypairs(openstack: Shell, name: str, tmp_path: Path) -> None:
    public = tmp_path / "key.pub"
    public.write_text(KEY + "\n")
    made = openstack.json("keypair", "create", name, "--public-key", str(public))
    assert made["fingerprint"]
    assert openstack.json("keypair", "show", name)["name"] == name
    assert name in openstack.column("Name", "keypair", "list")
    assert "already exists" in openstack.refused(
        "keypair", "create", name, "--public-key", str(public)
    )
    openstack("keypair", "delete", name)
    private = tmp_path / "private"
    openstack("keypair", "create", name, "--private-key", str(private))
    assert "PRIVATE KEY" in private.read_text()
    openstack("keypair", "delete", name)
    assert name not in openstack.column("Name", "keypair", "list")


def test_quotas_and_limits(openstack: Shell, name: str) -> None:
    project = openstack.json("project", "create", name)["id"]
    openstack("quota", "set", project, "--cores", "7", "--instances", "-1")
    shown = {
        row["Resource"]: row["Limit"]
        for row in openstack.json("quota", "show", "--compute", project)
    }
    assert (shown["cores"], shown["instances"]) == (7, -1)
    openstack("quota", "delete", "--compute", project)
    shown = {
        row["Resource"]: row["Limit"]
        for row in openstack.json("quota", "show", "--compute", project)
    }
    assert shown["cores"] == 20
    told = openstack.json("limits", "show", "--absolute", "--project", project)
    assert {row["Name"]: row["Value"] for row in told}["max_total_cores"] == 20


def test_server_groups(openstack: Shell, name: str) -> None:
    made = openstack.json(
        "server", "group", "create", name, "--policy", "anti-affinity",
        "--rule", "max_server_per_host=2",
    )  # fmt: skip
    assert made["policy"] == "anti-affinity"
    assert name in openstack.column("Name", "server", "group", "list")
    assert openstack.json("server", "group", "show", name)["id"] == made["id"]
    openstack("server", "group", "delete", name)
    assert name not in openstack.column("Name", "server", "group", "list")


def test_aggregates_and_zones(openstack: Shell, name: str) -> None:
    openstack("aggregate", "create", name, "--zone", name, "--property", "ssd=true")
    shown = openstack.json("aggregate", "show", name)
    assert (shown["availability_zone"], shown["properties"]) == (name, {"ssd": "true"})
    openstack("aggregate", "set", name, "--property", "x=y")
    openstack("aggregate", "unset", name, "--property", "ssd")
    assert openstack.json("aggregate", "show", name)["properties"] == {"x": "y"}
    assert name in openstack.column("Name", "aggregate", "list")
    openstack("aggregate", "delete", name)
    openstack("availability", "zone", "list", "--compute", "--long")


def test_usage_services_and_hypervisors_are_listed(openstack: Shell) -> None:
    openstack("usage", "list")
    openstack("usage", "show")
    openstack("compute", "service", "list")
    openstack("hypervisor", "list", "--long")
    shown = openstack.column("Host Name", "host", "list")
    assert shown == openstack.column("Host", "compute", "service", "list")
    assert "could not be found" in openstack.refused("host", "show", "none")


def test_the_sdk_speaks_to_all_of_them(cloud: Any, name: str) -> None:  # noqa: F811
    compute = cloud.compute
    key = compute.create_keypair(name=name, public_key=KEY)
    assert compute.find_keypair(name).fingerprint == key.fingerprint
    assert name in {one.name for one in compute.keypairs()}
    compute.delete_keypair(key)
    group = compute.create_server_group(name=name, policy="affinity")
    assert compute.get_server_group(group.id).policy == "affinity"
    compute.delete_server_group(group)
    aggregate = compute.create_aggregate(name=name, availability_zone=name)
    compute.set_aggregate_metadata(aggregate, {"a": "b"})
    assert compute.get_aggregate(aggregate.id).metadata["a"] == "b"
    cloud.update_aggregate(name, availability_zone=None)
    assert compute.get_aggregate(aggregate.id).availability_zone is None
    compute.delete_aggregate(aggregate)
    # Other tests give the project of all of them more room, before or after.
    cores = compute.get_limits().absolute.total_cores
    assert cores in (20, -1)
    assert cloud.get_compute_quotas(cloud.current_project_id).cores == cores
    list(compute.hypervisors(details=True))
    list(compute.services())
    list(compute.availability_zones(details=True))
    list(compute.usages())


def test_the_sdk_tags_projects_and_finds_images_by_way_of_compute(cloud: Any, name: str) -> None:  # noqa: F811
    project = cloud.identity.create_project(name=name)
    project.set_tags(cloud.identity, ["a", "b"])
    project.add_tag(cloud.identity, "c")
    project.remove_tag(cloud.identity, "a")
    assert project.check_tag(cloud.identity, "c")
    assert cloud.identity.get_project(project.id).tags == ["b", "c"]
    cloud.identity.delete_project(project)
    image = cloud.image.create_image(name, disk_format="raw", container_format="bare")
    assert cloud.compute.find_image(name).id == image.id
    assert image.id in {one.id for one in cloud.compute.images()}
    assert cloud.compute.get_image(image.id).status == "SAVING"
    cloud.compute.delete_image(image.id)
    assert cloud.image.find_image(name) is None


def test_networks_are_listed_and_shown(openstack: Shell, cloud: Any) -> None:  # noqa: F811
    network = openstack.json("network", "show", "private")
    assert openstack.column("Name", "network", "list") == ["private"]
    assert openstack.column("Network", "subnet", "list") == [network["id"]]
    assert openstack.json("subnet", "show", "private")["cidr"] == "10.88.0.0/16"
    assert openstack.column("Name", "security", "group", "list") == ["default"]
    openstack("port", "list")
    openstack("quota", "show")
    openstack("availability", "zone", "list")
    openstack("extension", "list", "--network")
    assert cloud.network.find_network("private").id == network["id"]
    assert [one.name for one in cloud.list_networks()] == ["private"]
    assert cloud.list_floating_ips() == []
