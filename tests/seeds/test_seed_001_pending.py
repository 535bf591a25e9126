"""Seed 001: a server for which there is no room waits, PENDING, in the care of a service outside.

Each test names the promise that it is about. The service outside is in tests/reaper, what compute
does about them by itself in tests/compute/workers/test_pending.py.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from siderite.compute.store import SERVERS
from siderite.core.config import Config
from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud

PENDING = 900
LAST_OLD = 104


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def full(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cloud]:
    """A cloud without a host, whose operator wants PENDING."""
    data = tmp_path_factory.mktemp("data")
    options = {"hosts": 0, "use_pending_state": True}
    if request.param == "sqlite":
        with cloud(data, **options) as made:
            yield made
        return
    lending = request.getfixturevalue("lending")
    with lending.database() as url, cloud(data, url, **options) as made:
        yield made


def waiting(full: Cloud, **fields) -> str:
    """A server that found no host."""
    uuid = full.create(**fields)
    full.wait(uuid, lambda server: server["status"] == "PENDING")
    return uuid


def test_the_option_defaults_to_false() -> None:
    assert Config().use_pending_state is False


def test_without_the_option_the_server_is_an_error(tmp_path) -> None:
    with cloud(tmp_path, hosts=0) as made:
        uuid = made.create()
        made.wait(uuid, lambda server: server["status"] == "ERROR")
        assert made.show(uuid, version=PENDING)["OS-EXT-STS:vm_state"] == "error"


def test_the_new_microversion_shows_pending_and_earlier_ones_error(full: Cloud) -> None:
    uuid = waiting(full)
    new, old = full.show(uuid, version=PENDING), full.show(uuid, version=LAST_OLD)
    assert (new["status"], new["OS-EXT-STS:vm_state"]) == ("PENDING", "pending")
    assert (old["status"], old["OS-EXT-STS:vm_state"]) == ("ERROR", "error")
    for version, status in ((PENDING, "PENDING"), (LAST_OLD, "ERROR"), (1, "ERROR")):
        listed = full.ask("GET", "/servers/detail", version=version).json["servers"]
        [shown] = [one for one in listed if one["id"] == uuid]
        assert (shown["status"], shown["OS-EXT-STS:vm_state"]) == (status, status.lower())
    assert new["OS-EXT-STS:task_state"] is None


def test_it_is_a_progress_status_and_to_earlier_versions_it_is_none(full: Cloud) -> None:
    uuid = waiting(full)
    assert full.show(uuid, version=PENDING)["progress"] == 0
    assert "progress" not in full.show(uuid, version=LAST_OLD)


@pytest.mark.parametrize("query", ["status=ERROR", "status=error", "vm_state=error"])
def test_to_earlier_versions_it_is_among_the_errors_in_filters_too(full: Cloud, query: str) -> None:
    uuid = waiting(full)
    path = f"/servers?all_tenants=1&{query}"
    old = full.ask("GET", path, version=LAST_OLD).json["servers"]
    assert uuid in [one["id"] for one in old]
    new = full.ask("GET", path, version=PENDING).json["servers"]
    assert uuid not in [one["id"] for one in new]


def test_the_new_version_finds_it_by_its_status(full: Cloud) -> None:
    uuid = waiting(full)
    for query in ("status=PENDING", "vm_state=pending"):
        found = full.ask("GET", f"/servers?all_tenants=1&{query}", version=PENDING).json["servers"]
        assert uuid in [one["id"] for one in found]
    old = full.ask("GET", "/servers?all_tenants=1&vm_state=pending", version=LAST_OLD)
    assert old.json["servers"] == []
    # A status that Nova does not know is refused since 2.38.
    assert full.ask("GET", "/servers?status=PENDING", version=LAST_OLD).status == 400


def test_only_no_valid_host_leads_there(full: Cloud) -> None:
    host = full.add_host()
    full.script(f"host:{host}", fail={"spawn": "the disk is full"})
    try:
        uuid = full.create()
        full.wait(uuid, lambda server: server["status"] == "ERROR")
        assert full.show(uuid, version=PENDING)["OS-EXT-STS:vm_state"] == "error"
    finally:
        full.script(f"host:{host}")
        full.ask("DELETE", f"/hosts/{host}", version=PENDING)


def test_the_reasons_are_on_the_action_and_for_administrators_on_the_server(full: Cloud) -> None:
    uuid = waiting(full)
    shown = full.show(uuid, version=PENDING)
    assert "No valid host was found" in shown["fault"]["message"]
    assert "refusals" in shown
    last = full.actions(uuid)[0]
    assert (last["action"], last["message"]) == ("create", "Error")
    assert "No valid host was found" in last["events"][-1]["details"]


def test_instance_update_and_select_destinations_announce_it(full: Cloud) -> None:
    uuid = waiting(full)

    names: list[str] = []
    for _ in range(500):  # PostgreSQL gives facts their places a little later
        names = [name for name, _ in full.facts(uuid)]
        if "scheduler.select_destinations.error" in names:
            break
        full.app.run(asyncio.sleep(0.02))
    start = names.index("scheduler.select_destinations.start")
    assert names[start + 1] == "scheduler.select_destinations.error"
    assert names.index("instance.update") < len(names)
    states = [data["state"] for name, data in full.facts(uuid) if name == "instance.update"]
    assert states[-1] == "pending"


def test_rebuild_builds_it_with_the_whole_request_kept(full: Cloud) -> None:
    uuid = waiting(
        full, metadata={"for": "later"}, tags=["kept"], user_data="aGVsbG8=", description="mine",
        adminPass="told to its user",
    )  # fmt: skip
    host = full.add_host()
    try:
        answer = full.act(
            uuid, "rebuild", {"description": None, "imageRef": full.image}, version=PENDING
        )
        assert answer.status == 202, answer
        assert answer.json["server"]["status"] in ("BUILD", "ACTIVE")
        assert "adminPass" not in answer.json["server"]
        server = full.until(uuid, "ACTIVE")
        record = full.app.run(SERVERS.get(full.app.app.program.store, uuid))
        assert record is not None
        assert record.request.admin_password == "told to its user"
        assert server["metadata"] == {"for": "later"}
        assert server["tags"] == ["kept"]
        assert server["OS-EXT-SRV-ATTR:user_data"] == "aGVsbG8="
        assert server["OS-EXT-SRV-ATTR:host"] == host
        assert server["addresses"]
        assert [one["action"] for one in full.actions(uuid)] == ["rebuild", "create"]
    finally:
        full.ask("DELETE", f"/servers/{uuid}")
        full.wait(uuid, lambda server: server["status"] == "GONE")
        full.ask("DELETE", f"/hosts/{host}", version=PENDING)


def test_its_block_devices_hints_and_networks_are_kept_too(full: Cloud) -> None:
    devices = [
        {"source_type": "image", "destination_type": "local", "uuid": full.image, "boot_index": 0},
        {"source_type": "blank", "destination_type": "local", "volume_size": 1, "boot_index": -1},
    ]
    flavor = full.make_flavor(**{"OS-FLV-EXT-DATA:ephemeral": 1})
    uuid = waiting(
        full, flavorRef=flavor, block_device_mapping_v2=devices, hints={"reservation": "r1"}
    )
    host = full.add_host()
    try:
        full.act(uuid, "rebuild", {"imageRef": full.image}, version=PENDING)
        full.until(uuid, "ACTIVE")
        kept = full.app.run(SERVERS.get(full.app.app.program.store, uuid))
        assert kept is not None
        assert kept.request.block_devices == devices
        assert kept.request.hints == {"reservation": "r1"}
        assert kept.request.networks == "auto"
    finally:
        removed(full, uuid, host)


def test_rebuild_takes_a_new_image_and_its_quota_is_checked_again(full: Cloud) -> None:
    uuid = waiting(full)
    project = full.show(uuid)["tenant_id"]
    host = full.add_host()
    other = full.make_image()
    try:
        limit = {"quota_set": {"instances": 0, "force": True}}
        assert full.ask("PUT", f"/os-quota-sets/{project}", limit).status == 200
        refused = full.act(uuid, "rebuild", {"imageRef": other}, version=PENDING)
        assert refused.status == 403, refused
        assert full.show(uuid, version=PENDING)["status"] == "PENDING"
        assert full.ask("DELETE", f"/os-quota-sets/{project}").status == 202
        assert full.act(uuid, "rebuild", {"imageRef": other}, version=PENDING).status == 202
        assert full.until(uuid, "ACTIVE")["image"]["id"] == other
    finally:
        full.ask("DELETE", f"/os-quota-sets/{project}")
        removed(full, uuid, host)


def removed(full: Cloud, uuid: str, host: str) -> None:
    """The cloud is as it was."""
    full.ask("DELETE", f"/servers/{uuid}")
    full.wait(uuid, lambda server: server["status"] == "GONE")
    full.ask("DELETE", f"/hosts/{host}", version=PENDING)


def test_no_reply_to_an_earlier_version_speaks_of_it(full: Cloud) -> None:
    """Create, rebuild, update, groups, usage, limits: whatever shows a server."""
    group = full.ask(
        "POST", "/os-server-groups", {"server_group": {"name": "g", "policy": "affinity"}}
    )
    ident = group.json["server_group"]["id"]
    body = {
        "name": "old", "flavorRef": full.flavor, "imageRef": full.image, "networks": "auto",
    }  # fmt: skip
    document = {"server": body, "os:scheduler_hints": {"group": ident}}
    made = full.ask("POST", "/servers", document)
    uuid = made.json["server"]["id"]
    full.wait(uuid, lambda server: server["status"] == "PENDING")
    project = full.show(uuid)["tenant_id"]
    replies = [
        made,
        full.ask("GET", f"/servers/{uuid}"),
        full.ask("GET", "/servers/detail?all_tenants=1"),
        full.ask("PUT", f"/servers/{uuid}", {"server": {"name": "new"}}),
        full.ask("GET", f"/os-server-groups/{ident}"),
        full.ask("GET", "/os-server-groups"),
        full.ask("GET", f"/os-simple-tenant-usage/{project}"),
        full.ask("GET", "/os-simple-tenant-usage?detailed=1"),
        full.ask("GET", "/limits"),
        full.ask("GET", f"/servers/{uuid}/os-instance-actions"),
        full.act(uuid, "rebuild", {"imageRef": full.image}),
    ]
    for reply in replies:
        assert reply.status < 300, reply
        assert b'"pending"' not in reply.body.lower(), reply
    assert replies[4].json["server_group"]["members"] == [uuid]
    usages = replies[6].json["tenant_usage"]["server_usages"]
    assert uuid not in [one["instance_id"] for one in usages], "it never ran"
    assert replies[-1].json["server"]["status"] in ("BUILD", "ERROR")
    full.wait(uuid, lambda server: server["status"] == "PENDING")


def test_to_earlier_versions_it_sorts_among_the_errors(full: Cloud) -> None:
    first, second, third = waiting(full), waiting(full), waiting(full)
    full.act(second, "os-resetState", {"state": "error"})
    mine = (first, second, third)

    def order(version: int) -> list[str]:
        found = list[str]()
        order = "sort_key=vm_state&sort_dir=asc&sort_key=created_at&sort_dir=asc"
        path, marker = f"/servers?all_tenants=1&limit=2&{order}", ""
        while page := full.ask("GET", path + marker, version=version).json["servers"]:
            found += [one["id"] for one in page]
            marker = f"&marker={found[-1]}"
        return [uuid for uuid in found if uuid in mine]

    assert order(LAST_OLD) == [first, second, third]
    assert order(PENDING) == [second, first, third]


def test_its_user_sees_the_fault_at_every_version(full: Cloud) -> None:
    uuid = waiting(full)
    for version in (1, LAST_OLD, PENDING):
        assert "No valid host" in full.show(uuid, version=version)["fault"]["message"]


def test_the_notification_of_the_scheduler_has_the_request(full: Cloud) -> None:
    uuid = waiting(full, hints={"reservation": "r2"})
    told = dict(full.facts(uuid, "scheduler.select_destinations.error"))
    spec = told["scheduler.select_destinations.error"]
    assert spec["instance_uuid"] == uuid
    assert spec["flavor"]["nova_object.data"]["memory_mb"] == 512
    assert spec["scheduler_hints"] == {"reservation": ["r2"]}
    assert "refusals" in spec


def test_a_rebuild_that_finds_no_room_leaves_it_pending(full: Cloud) -> None:
    uuid = waiting(full)
    assert full.act(uuid, "rebuild", {"imageRef": full.image}, version=PENDING).status == 202
    full.wait(uuid, lambda server: server["status"] == "PENDING")
    assert [one["message"] for one in full.actions(uuid)] == ["Error", "Error"]


def test_reset_state_makes_it_an_error(full: Cloud) -> None:
    uuid = waiting(full)
    assert full.act(uuid, "os-resetState", {"state": "error"}).status == 202
    shown = full.show(uuid, version=PENDING)
    assert (shown["status"], shown["OS-EXT-STS:vm_state"]) == ("ERROR", "error")


def test_its_user_can_delete_it_and_what_follows_is_no_error(full: Cloud) -> None:
    uuid = waiting(full)
    assert full.ask("DELETE", f"/servers/{uuid}").status == 204
    full.wait(uuid, lambda server: server["status"] == "GONE")
    assert full.act(uuid, "rebuild", {"imageRef": full.image}, version=PENDING).status == 404
    assert full.act(uuid, "os-resetState", {"state": "error"}).status == 404


def test_nothing_else_can_be_done_to_it_and_earlier_versions_are_told_of_an_error(
    full: Cloud,
) -> None:
    uuid = waiting(full)
    for action, value in (
        ("os-start", None), ("os-stop", None), ("pause", None), ("shelve", None),
        ("suspend", None), ("rescue", None), ("migrate", None), ("createImage", {"name": "i"}),
        ("resize", {"flavorRef": full.flavor}), ("os-resetState", {"state": "active"}),
    ):  # fmt: skip
        for version, state in ((LAST_OLD, "error"), (PENDING, "pending")):
            answer = full.act(uuid, action, value, version=version)
            assert answer.status == 409, answer
            said = answer.json["conflictingRequest"]["message"]
            assert said.partition(". ")[0].endswith(f"in vm_state {state}"), said
    meta = full.ask("POST", f"/servers/{uuid}/metadata", {"metadata": {"a": "b"}})
    said = meta.json["conflictingRequest"]["message"]
    assert said.partition(". ")[0].endswith("in vm_state error"), said
    assert full.show(uuid, version=PENDING)["status"] == "PENDING"


def test_what_is_only_a_record_can_be_changed(full: Cloud) -> None:
    uuid = waiting(full)
    renamed = full.ask("PUT", f"/servers/{uuid}", {"server": {"name": "n"}}, version=PENDING)
    assert renamed.json["server"]["status"] == "PENDING"
    assert full.ask("PUT", f"/servers/{uuid}/tags", {"tags": ["t"]}).status == 200
    assert full.act(uuid, "lock").status == 202
    assert full.act(uuid, "unlock").status == 202


def test_only_an_administrator_gives_it_up_or_takes_care_of_it(full: Cloud) -> None:
    _, member, _ = full.app.person("member")
    uuid = full.create(token=member)
    full.wait(uuid, lambda server: server["status"] == "PENDING")
    for action, value in (
        ("os-resetState", {"state": "error"}),
        ("siderite-claimPending", {"keeper": "me", "seconds": 60}),
    ):
        assert full.act(uuid, action, value, token=member, version=PENDING).status == 403
    assert "refusals" not in full.ask(
        "GET", f"/servers/{uuid}", token=member, version=PENDING
    ).json["server"]  # fmt: skip


def test_the_versions_between_novas_and_ours_do_not_exist(full: Cloud) -> None:
    assert full.ask("GET", "/servers", version=899).status == 406


@pytest.mark.parametrize("move", ["BUILD | PENDING", "PENDING | BUILD", "PENDING | ERROR"])
def test_the_moves_are_documented_with_who_is_responsible_for_the_server(move: str) -> None:
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "how-to" / "free-room-for-pending-servers.md").read_text()
    assert f"| {move} |" in page
    assert "responsible" in page
    assert "use_pending_state" in page
