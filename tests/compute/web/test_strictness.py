"""What is asked for is kept as asked for, or refused: nothing is taken and then forgotten."""

import asyncio
import json
import re
from typing import Any

import pytest

from siderite.compute.web.routes import ROUTES
from siderite.core.http import Route
from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud


@pytest.fixture(scope="module")
def one(lite: Cloud) -> tuple[Cloud, str]:
    return lite, lite.boot()


@pytest.mark.parametrize(
    ("key", "version", "value"),
    [
        ("trusted_image_certificates", 104, 5),
        ("trusted_image_certificates", 104, [5]),
        ("trusted_image_certificates", 104, []),
        ("personality", 56, {"a": 1}),
        ("personality", 56, [{"path": "/a", "contents": "?"}]),
    ],
)
def test_a_rebuild_leaves_no_record_that_cannot_be_read(
    one: tuple[Cloud, str], key: str, version: int, value: Any
) -> None:
    cloud, uuid = one
    body = {"imageRef": cloud.image, key: value}
    assert cloud.act(uuid, "rebuild", body, version=version).status == 400
    assert cloud.ask("GET", f"/servers/{uuid}/metadata").status == 200


@pytest.mark.parametrize("version", [1, 74])
def test_before_2_75_a_changed_server_shows_addresses_in_short(
    one: tuple[Cloud, str], version: int
) -> None:
    cloud, uuid = one
    answers = [cloud.ask("PUT", f"/servers/{uuid}", {"server": {}}, version=version)]
    answers.append(cloud.act(uuid, "rebuild", {"imageRef": cloud.image}, version=version))
    for answer in answers:
        (shown,) = answer.json["server"]["addresses"]["private"]
        assert set(shown) == {"addr", "version"}
    assert [answer.status for answer in answers] == [200, 202]
    cloud.until(uuid, "ACTIVE")


@pytest.mark.parametrize(
    ("version", "networks", "status"),
    [
        (31, [{"uuid": "private", "tag": "a"}], 400),
        (32, [{"uuid": "private", "tag": "a"}], 202),
        (37, [{"uuid": "private", "tag": "a"}], 400),
        (42, [{"uuid": "private", "tag": "a"}], 202),
        (36, "none", 400),
        (37, "none", 202),
    ],
)
def test_tags_of_networks_come_and_go_with_versions(
    lite: Cloud, version: int, networks: Any, status: int
) -> None:
    server = {"name": "n", "flavorRef": lite.flavor, "imageRef": lite.image, "networks": networks}
    answer = lite.ask("POST", "/servers", {"server": server}, version=version)
    assert answer.status == status, answer


def test_a_block_device_says_nothing_that_nobody_knows(lite: Cloud) -> None:
    device = {"uuid": lite.image, "boot_index": 0, "source_type": "image",
              "destination_type": "local", "delete_on_termination": True}  # fmt: skip
    for more, version, status in (
        ({}, 1, 202), ({"nonsense": 1}, 1, 400), ({"boot_index": "0"}, 104, 202),
        ({"volume_type": "fast"}, 66, 400), ({"source_type": "disc"}, 104, 400),
        ({"tag": "a"}, 33, 400), ({"tag": "a"}, 42, 202),
    ):  # fmt: skip
        server: dict[str, Any] = {"name": "n", "flavorRef": lite.flavor}
        if version > 36:
            server["networks"] = "none"
        body = {"server": {**server, "block_device_mapping_v2": [{**device, **more}]}}
        answer = lite.ask("POST", "/servers", body, version=version)
        assert answer.status == status, (more, answer)


def test_there_is_one_security_group_and_no_other(one: tuple[Cloud, str]) -> None:
    cloud, uuid = one
    server = {"name": "n", "flavorRef": cloud.flavor, "imageRef": cloud.image, "networks": "none"}
    (group,) = cloud.ask("GET", f"/servers/{uuid}/os-security-groups").json["security_groups"]
    assert (group["name"], len(group["rules"])) == ("default", 2)
    assert cloud.show(uuid)["security_groups"] == [{"name": "default"}]
    assert "security_groups" not in cloud.show(cloud.boot(networks="none"))
    for name, status in (("default", 202), (group["id"], 202), ("web", 400)):
        body = {"server": {**server, "security_groups": [{"name": name}]}}
        assert cloud.ask("POST", "/servers", body).status == status, name
    for action, name, status in (
        ("addSecurityGroup", "default", 202), ("addSecurityGroup", group["id"], 202),
        ("addSecurityGroup", "web", 404), ("removeSecurityGroup", "default", 409),
    ):  # fmt: skip
        assert cloud.act(uuid, action, {"name": name}).status == status, (action, name)
    left = cloud.act(uuid, "removeSecurityGroup", {"name": "default"})
    assert "name it among the groups" in str(left.json)


def test_metadata_can_be_removed_when_there_is_more_than_may_be(lite: Cloud) -> None:
    uuid = lite.boot(metadata={"a": "1", "b": "2", "c": "3"})
    project = lite.show(uuid)["tenant_id"]
    limit = {"quota_set": {"metadata_items": 1}}
    assert lite.ask("PUT", f"/os-quota-sets/{project}", limit).status == 200
    try:
        assert lite.ask("DELETE", f"/servers/{uuid}/metadata/a").status == 204
        added = lite.ask("POST", f"/servers/{uuid}/metadata", {"metadata": {"d": "4"}})
        assert added.status == 403
    finally:
        lite.ask("DELETE", f"/os-quota-sets/{project}")


def test_a_host_to_evacuate_to_must_be_there(one: tuple[Cloud, str]) -> None:
    cloud, uuid = one
    assert cloud.act(uuid, "evacuate", {"host": "nowhere"}).status == 404


def test_an_interface_that_the_host_refuses_is_not_on_record(lite: Cloud) -> None:
    uuid = lite.boot()
    path = f"/servers/{uuid}/os-interface"
    lite.script(f"server:{uuid}", fail={"attach": "no slot is free"})
    before = lite.ask("GET", path).json
    assert lite.ask("POST", path, {"interfaceAttachment": {}}).status == 409
    assert lite.ask("GET", path).json == before
    told = [kind for kind, _ in lite.facts(uuid, "instance.interface_detach.end")]
    assert [kind.removeprefix("instance.interface_") for kind in told if "interface" in kind] == [
        "attach.start", "attach.end", "detach.start", "detach.end",
    ]  # fmt: skip
    action = lite.actions(uuid)[0]
    assert (action["action"], action["message"]) == ("attach_interface", "Error")
    assert action["events"][0]["event"] == "compute_attach_interface"
    assert action["events"][0]["result"] == "Error"


def test_an_interface_is_detached_once(lite: Cloud) -> None:
    uuid = lite.boot()
    path = f"/servers/{uuid}/os-interface"
    port = lite.ask("GET", path).json["interfaceAttachments"][0]["port_id"]
    lite.script(f"server:{uuid}", latency_s={"detach": 0.1})

    async def both() -> list[int]:
        asked = (
            lite.app.app.ask("DELETE", f"/compute/v2.1{path}/{port}", version=None)
            for _ in range(2)
        )
        return sorted(answer.status for answer in await asyncio.gather(*asked))

    assert lite.app.run(both()) == [202, 404]
    told = [kind for kind, _ in lite.facts(uuid, "instance.interface_detach.end")]
    assert told.count("instance.interface_detach.end") == 1


def test_an_interface_that_takes_a_while_is_waited_for(lite: Cloud) -> None:
    uuid = lite.boot()
    path = f"/servers/{uuid}/os-interface"
    lite.script(f"server:{uuid}", latency_s={"attach": 0.1, "detach": 0.1})
    made = lite.ask("POST", path, {"interfaceAttachment": {}})
    assert made.status == 200
    assert len(lite.ask("GET", path).json["interfaceAttachments"]) == 2
    port = made.json["interfaceAttachment"]["port_id"]
    assert lite.ask("DELETE", f"{path}/{port}").status == 202
    assert len(lite.ask("GET", path).json["interfaceAttachments"]) == 1


def test_an_image_must_fit_on_the_disk(lite: Cloud) -> None:
    uuid = lite.boot(flavorRef=lite.make_flavor(disk=3))
    image = lite.act(uuid, "createImage", {"name": "of-three"}).json["image_id"]
    lite.until(uuid, "ACTIVE")
    shown = lite.app.ask("GET", f"/image/v2/images/{image}", version=None).json
    assert (shown["min_disk"], shown["status"]) == (3, "active")
    server = {"name": "n", "flavorRef": lite.flavor, "imageRef": image, "networks": "none"}
    assert lite.ask("POST", "/servers", {"server": server}).status == 400
    assert lite.act(lite.boot(), "rebuild", {"imageRef": image}).status == 400
    assert lite.act(uuid, "rebuild", {"imageRef": image}).status == 202


def test_a_server_shows_those_properties_of_its_image_that_matter_to_it(lite: Cloud) -> None:
    image = lite.make_image(os_shutdown_timeout="5", hw_disk_bus="scsi", colour="blue")
    shown = lite.show(lite.create(imageRef=image))["image"]["properties"]
    assert shown == {"os_shutdown_timeout": "5", "hw_disk_bus": "scsi"}


def test_from_2_102_no_address_takes_what_it_does_not_know(one: tuple[Cloud, str]) -> None:
    cloud, uuid = one
    for path in (
        f"/servers/{uuid}", f"/servers/{uuid}/metadata", f"/flavors/{cloud.flavor}",
        f"/servers/{uuid}/migrations", "/servers", "/os-aggregates", "/limits",
        "/os-quota-class-sets/default", "/os-instance_usage_audit_log",
    ):  # fmt: skip
        assert cloud.ask("GET", f"{path}?x=1", version=74).status == 200, path
    for route in ROUTES:
        if route.method != "GET" or route.policy == "public" or not _has(route, 102):
            continue
        path = re.sub(r"{\w+}", uuid, route.path.removeprefix("/v2.1"))
        assert cloud.ask("GET", f"{path}?x=1", version=102).status == 400, path


def _has(route: Route, version: int) -> bool:
    return route.since <= version <= route.until


@pytest.mark.parametrize(
    ("path", "since"),
    [
        ("/os-hypervisors?hypervisor_hostname=h", 53),
        ("/os-hypervisors/detail?hypervisor_hostname=h", 53),
        ("/os-migrations?source=h", 59),
        ("/os-migrations?changes-before=2026-01-01T00:00:00Z", 59),
        ("/os-migrations?user_id=u", 59),
    ],
)
def test_lists_that_changed_their_arguments_took_no_others_from_then_on(
    lite: Cloud, path: str, since: int
) -> None:
    assert lite.ask("GET", path, version=since - 1).status == 200
    assert lite.ask("GET", path, version=since).status == 400


def test_what_a_version_does_not_have_is_missing_whoever_asks(lite: Cloud) -> None:
    _, member, _ = lite.app.person("member")
    assert lite.ask("GET", "/os-hosts", token=member, version=42).status == 403
    assert lite.ask("GET", "/os-hosts", token=member, version=43).status == 404
    assert lite.ask("GET", "/hosts", token=member, version=104).status == 404


def test_a_small_network_is_filled_to_the_last_address(tmp_path: Any) -> None:
    with cloud(tmp_path, hosts=0, networks="tiny=user@10.9.0.0/26") as small:
        size = 64 - 18
        server = {"name": "n", "flavorRef": small.flavor, "imageRef": small.image,
                  "networks": "auto"}  # fmt: skip

        def ask(least: int, most: int) -> int:
            body = {"server": {**server, "min_count": least, "max_count": most}}
            return small.ask("POST", "/servers", body).status

        def names() -> list[str]:
            found = small.ask("GET", "/servers").json["servers"]
            return [one["name"] for one in found]

        assert ask(size + 1, size + 1) == 400, "too few for all"
        gone = "SELECT count(*) FROM servers WHERE deleted = 0 AND task_state <> 'deleting'"
        assert small.app.run(small.app.app.program.store.fetch(gone)) == [(0,)]
        for uuid in [one["id"] for one in small.ask("GET", "/servers").json["servers"]]:
            small.wait(uuid, lambda seen: seen["status"] == "GONE")
        assert ask(1, size + 1) == 202, "as many as there are addresses for, in whole commits"
        made = len(names())
        assert 25 <= made <= size
        for _ in range(size - made):
            assert ask(1, 1) == 202
        assert len(names()) == size
        assert ask(1, 1) == 400
        fixed = {**server, "networks": [{"uuid": "tiny", "fixed_ip": "10.9.0.17"}]}
        assert small.ask("POST", "/servers", {"server": fixed}).status == 400


FILE = {"path": "/etc/x", "contents": "eA=="}
LARGE = {"path": "/etc/x", "contents": "eHh4" * 3414}


@pytest.mark.parametrize(
    ("fields", "version"),
    [
        ({"metadata": {f"k{n}": "v" for n in range(129)}}, 104),
        ({"personality": [FILE] * 6}, 56),
        ({"personality": [LARGE]}, 56),
    ],
)
def test_a_server_is_made_and_rebuilt_within_the_limits_that_are_shown(
    one: tuple[Cloud, str], fields: dict[str, Any], version: int
) -> None:
    cloud, uuid = one
    body = {"name": "n", "flavorRef": cloud.flavor, "imageRef": cloud.image, "networks": "auto"}
    made = cloud.ask("POST", "/servers", {"server": {**body, **fields}}, version=version)
    assert made.status == 403, made
    anew = cloud.act(uuid, "rebuild", {"imageRef": cloud.image, **fields}, version=version)
    assert anew.status == 403, anew


@pytest.mark.parametrize("place", ["host", "hypervisor_hostname"])
def test_a_host_to_be_made_on_must_be_there(one: tuple[Cloud, str], place: str) -> None:
    cloud, _ = one
    body = {"name": "n", "flavorRef": cloud.flavor, "imageRef": cloud.image, "networks": "none"}
    for where, status in (("nowhere", 400), (cloud.hosts[0], 202)):
        made = cloud.ask("POST", "/servers", {"server": {**body, place: where}})
        assert made.status == status, made
    both = {"host": cloud.hosts[0], "hypervisor_hostname": cloud.hosts[1]}
    assert cloud.ask("POST", "/servers", {"server": {**body, **both}}).status == 400


@pytest.mark.parametrize("path", ["/os-hypervisors/1", "/os-services/1"])
def test_numbers_are_no_names_where_uuids_are(one: tuple[Cloud, str], path: str) -> None:
    cloud, _ = one
    verb, body = ("GET", {}) if "hyper" in path else ("PUT", {"status": "enabled"})
    assert cloud.ask(verb, path, body).status == 400
    assert cloud.ask("DELETE", "/os-services/1").status == 400


ROOT = {"boot_index": 0, "source_type": "image", "destination_type": "local"}
BLANK = {"boot_index": -1, "source_type": "blank", "destination_type": "local"}
SWAP = {**BLANK, "guest_format": "swap"}


@pytest.mark.parametrize(
    ("devices", "status"),
    [
        ([{**BLANK, "volume_size": 2}], 202),
        ([{**BLANK, "volume_size": "1"}, {**SWAP, "volume_size": 64}], 202),
        ([BLANK, SWAP], 202),
        ([{**BLANK, "volume_size": 3}], 400),
        ([BLANK, BLANK], 400),
        ([{**BLANK, "volume_size": "x"}], 400),
        ([{**BLANK, "volume_size": []}], 400),
        ([{**SWAP, "volume_size": 65}], 400),
        ([ROOT], 400),
    ],
)
def test_disks_that_the_flavor_does_not_have_are_not_promised(
    one: tuple[Cloud, str], devices: list[dict[str, Any]], status: int
) -> None:
    cloud, _ = one
    flavor = cloud.make_flavor(**{"swap": 64, "OS-FLV-EXT-DATA:ephemeral": 2})
    both = [{"uuid": cloud.image, **device} for device in (ROOT, *devices)]
    for other in both[1:]:
        if other["source_type"] == "blank":
            del other["uuid"]
    body = {"name": "n", "flavorRef": flavor, "networks": "none", "block_device_mapping_v2": both}
    made = cloud.ask("POST", "/servers", {"server": body})
    assert made.status == status, made
    if status == 202 and devices:
        body["flavorRef"] = cloud.flavor
        assert cloud.ask("POST", "/servers", {"server": body}).status == 400


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("trait:HW_CPU_X86_AVX2", "required", 200),
        ("trait:HW_CPU_X86_AVX2", "require", 400),
        ("trait:lower", "required", 400),
        ("resources:CUSTOM_GOLD", "1", 200),
        ("resources:CUSTOM_GOLD", "one", 400),
        ("hw:cpu_policy", "nope", 400),
        ("hw:mem_page_size", "2MB", 200),
        ("hw:cpu_polcy", "dedicated", 400),
        ("hw:numa_cpus.0", "0-3,^2", 200),
        ("hw:numa_cpus", "0", 400),
        ("hw:tpm_model", "tpm-crb", 200),
        ("hw:cpu_realtime", "perhaps", 400),
        ("anything:else", "goes", 200),
    ],
)
def test_extra_specs_that_mean_nothing_are_refused(
    lite: Cloud, name: str, value: str, status: int
) -> None:
    path = f"/flavors/{lite.make_flavor()}/os-extra_specs"
    for version, wanted in ((86, status), (85, 200)):
        for verb, where, body in (
            ("POST", path, {"extra_specs": {name: value}}), ("PUT", f"{path}/{name}", {name: value})
        ):  # fmt: skip
            assert lite.ask(verb, where, body, version=version).status == wanted


def test_a_resize_to_less_of_any_disk_is_refused(lite: Cloud) -> None:
    with_more = lite.make_flavor(**{"OS-FLV-EXT-DATA:ephemeral": 2})
    uuid = lite.boot(flavorRef=with_more)
    for fields in ({"disk": 0, "OS-FLV-EXT-DATA:ephemeral": 2}, {"disk": 4}):
        answer = lite.act(uuid, "resize", {"flavorRef": lite.make_flavor(**fields)})
        assert answer.status == 400, answer
        assert "smaller disk" in answer.json["badRequest"]["message"]
    assert lite.show(uuid)["status"] == "ACTIVE"


def test_a_zone_is_not_renamed_under_its_servers(lite: Cloud) -> None:
    host = lite.add_host()
    made = {"aggregate": {"name": "a", "availability_zone": "zone-a"}}
    path = f"/os-aggregates/{lite.ask('POST', '/os-aggregates', made).json['aggregate']['id']}"
    assert lite.ask("POST", f"{path}/action", {"add_host": {"host": host}}).status == 200
    uuid = lite.boot(availability_zone="zone-a")
    renamed = {"aggregate": {"availability_zone": "zone-b"}}
    changed = {"set_metadata": {"metadata": {"availability_zone": None}}}
    assert lite.ask("PUT", path, renamed).status == 400
    assert lite.ask("POST", f"{path}/action", changed).status == 400
    assert lite.ask("PUT", path, {"aggregate": {"name": "b"}}).status == 200
    lite.ask("DELETE", f"/servers/{uuid}")
    lite.wait(uuid, lambda seen: seen["status"] == "GONE")
    assert lite.ask("PUT", path, renamed).status == 200
    assert lite.ask("POST", f"{path}/action", {"remove_host": {"host": host}}).status == 200
    assert lite.ask("DELETE", path).status == 200
    lite.ask("DELETE", f"/hosts/{host}", version="2.900")


def test_a_snapshot_of_a_server_whose_image_says_much_can_be_changed(lite: Cloud) -> None:
    uuid = lite.boot(imageRef=lite.make_image(**{f"p{n}": "x" for n in range(128)}))
    metadata = {f"m{n}": "y" for n in range(128)}
    wish: dict[str, Any] = {"name": "s", "metadata": metadata | {"one": "more"}}
    assert lite.act(uuid, "createImage", wish).status == 400
    wish |= {"backup_type": "daily", "rotation": 1}
    assert lite.act(uuid, "createBackup", wish).status == 400
    made = lite.act(uuid, "createImage", {"name": "s", "metadata": metadata})
    assert made.status == 202, made
    lite.settled(uuid)

    def patch(op: str, name: str) -> int:
        body = json.dumps([{"op": op, "path": f"/{name}", "value": "v"}]).encode()
        kind = {"content-type": "application/openstack-images-v2.1-json-patch"}
        path = f"/image/v2/images/{made.json['image_id']}"
        return lite.app.ask("PATCH", path, body, version=None, headers=kind).status

    asked = (("replace", "name"), ("replace", "m0"), ("remove", "m1"), ("add", "m2x"), ("add", "z"))
    assert [patch(*one) for one in asked] == [200, 200, 200, 400, 400]
