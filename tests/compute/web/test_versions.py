"""What a server shows at each microversion: exactly Nova's keys, and none of our own below ours."""

import pytest

from tests.compute.cloud import Cloud

BASE = {
    "id", "name", "status", "tenant_id", "user_id", "created", "updated", "hostId", "accessIPv4",
    "accessIPv6", "addresses", "flavor", "image", "links", "metadata", "key_name", "config_drive",
    "progress", "OS-DCF:diskConfig", "OS-EXT-AZ:availability_zone", "OS-EXT-STS:task_state",
    "OS-EXT-STS:vm_state", "OS-EXT-STS:power_state", "OS-SRV-USG:launched_at",
    "OS-SRV-USG:terminated_at", "os-extended-volumes:volumes_attached", "security_groups",
}  # fmt: skip
ADMIN = {
    "OS-EXT-SRV-ATTR:" + name: since
    for since, names in {
        1: ("host", "hypervisor_hostname", "instance_name"),
        3: ("hostname", "kernel_id", "launch_index", "ramdisk_id", "reservation_id",
            "root_device_name", "user_data"),
    }.items()
    for name in names
} | {"host_status": 16}  # fmt: skip
ADDED = {
    "locked": 9, "description": 19, "tags": 26, "trusted_image_certificates": 63,
    "server_groups": 71, "locked_reason": 73, "OS-EXT-SRV-ATTR:hostname": 90,
    "pinned_availability_zone": 96, "scheduler_hints": 100, "wait_reason": 900, "deadline": 900,
}  # fmt: skip
VERSIONS = [1, 2, 3, 9, 16, 19, 26, 46, 47, 62, 63, 71, 73, 89, 90, 96, 97, 98, 100, 104, 900, 901]


@pytest.fixture(scope="module")
def one(lite: Cloud) -> tuple[Cloud, str, str]:
    _, token, _ = lite.app.person("member")
    return lite, token, lite.boot(token=token)


def test_a_server_that_runs_has_a_root_device(one: tuple[Cloud, str, str]) -> None:
    """Clients that look at it, such as gophercloud's, do not count on a null there."""
    cloud, _, uuid = one
    shown = cloud.ask("GET", f"/servers/{uuid}", version=3).json["server"]
    assert shown["OS-EXT-SRV-ATTR:root_device_name"] == "/dev/vda"
    assert shown["OS-EXT-SRV-ATTR:kernel_id"] == shown["OS-EXT-SRV-ATTR:ramdisk_id"] == ""


@pytest.mark.parametrize("version", VERSIONS)
def test_the_keys_are_those_of_the_version(one: tuple[Cloud, str, str], version: int) -> None:
    cloud, token, uuid = one
    mine = BASE | {key for key, since in ADDED.items() if since <= version}
    shown = cloud.ask("GET", f"/servers/{uuid}", token=token, version=version).json["server"]
    assert set(shown) == mine
    page = cloud.ask("GET", "/servers/detail", token=token, version=version).json["servers"]
    assert set(next(one for one in page if one["id"] == uuid)) == mine - {"server_groups"}
    admin = cloud.ask("GET", f"/servers/{uuid}", version=version).json["server"]
    more = {key for key, since in ADMIN.items() if since <= version}
    assert set(admin) == mine | more | ({"refusals"} if version >= 900 else set())


def test_the_flavor_is_a_link_and_later_itself(one: tuple[Cloud, str, str]) -> None:
    cloud, _, uuid = one
    assert set(cloud.show(uuid, version=46)["flavor"]) == {"id", "links"}
    assert set(cloud.show(uuid, version=47)["flavor"]) == {
        "vcpus", "ram", "disk", "ephemeral", "swap", "original_name", "extra_specs",
    }  # fmt: skip
    assert set(cloud.show(uuid, version=97)["image"]) == {"id", "links"}
    assert set(cloud.show(uuid, version=98)["image"]) == {"id", "links", "properties"}


def test_links_carry_the_project_if_the_request_did(one: tuple[Cloud, str, str]) -> None:
    cloud, token, uuid = one
    plain = cloud.ask("GET", f"/servers/{uuid}", token=token).json["server"]
    project = plain["tenant_id"]
    assert [link["href"].partition("/compute/")[2] for link in plain["links"]] == [
        f"v2.1/servers/{uuid}", f"servers/{uuid}",
    ]  # fmt: skip
    within = cloud.ask("GET", f"/{project}/servers/{uuid}", token=token).json["server"]
    assert [link["href"].partition("/compute/")[2] for link in within["links"]] == [
        f"v2.1/{project}/servers/{uuid}", f"{project}/servers/{uuid}",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("action", "since", "until"),
    [("trigger_crash_dump", 17, 1000), ("os-getVNCConsole", 1, 5), ("addFixedIp", 1, 43)],
)
def test_an_action_is_there_from_version_to_version(
    one: tuple[Cloud, str, str], action: str, since: int, until: int
) -> None:
    cloud, _, uuid = one
    for version in (1, 5, 6, 16, 17, 43, 44, 104):
        answer = cloud.act(uuid, action, None if since > 1 else {"type": "novnc"}, version=version)
        assert (answer.status == 404) == (not since <= version <= until), (version, answer)


def test_networks_must_be_named_from_2_37(one: tuple[Cloud, str, str]) -> None:
    cloud, token, _ = one
    body = {"server": {"name": "n", "flavorRef": cloud.flavor, "imageRef": cloud.image}}
    assert cloud.ask("POST", "/servers", body, token=token, version=36).status == 202
    assert cloud.ask("POST", "/servers", body, token=token, version=37).status == 400
