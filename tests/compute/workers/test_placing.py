"""Servers find their hosts, or are told why not; a host that fails is left for another."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.simulated.driver import _Simulated
from siderite.core.ids import new_uuid
from tests.compute import crowd
from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud
from tests.compute.workers.moves import LEFT
from tests.compute.workers.moves import delete
from tests.compute.workers.moves import during
from tests.compute.workers.moves import home_of
from tests.compute.workers.moves import in_one_place
from tests.compute.workers.moves import reset
from tests.compute.workers.moves import until


def _service(cloud: Cloud, host: str, **fields: Any) -> None:
    services = cloud.ask("GET", "/os-services", version=53).json["services"]
    ident = next(one["id"] for one in services if one["host"] == host)
    assert cloud.ask("PUT", f"/os-services/{ident}", fields, version=53).status == 200


@contextmanager
def _one_more_host(cloud: Cloud, **options: Any) -> Iterator[str]:
    """A host that no other test is to have servers on."""
    host = cloud.add_host(**options)
    yield host
    _service(cloud, host, status="disabled")
    cloud.hosts.remove(host)


def test_without_room_a_server_is_an_error_that_says_per_host_why(both: Cloud) -> None:
    huge = both.make_flavor(vcpus=1000)
    uuid = both.create(flavorRef=huge)
    seen = both.until(uuid, "ERROR")
    assert seen["fault"]["message"].startswith("No valid host was found. Of ")
    assert "2 without room" in seen["fault"]["message"]
    assert seen["fault"]["code"] == 500
    assert set(seen["refusals"]) >= set(both.hosts)
    (action,) = both.actions(uuid)
    assert action["message"] == "Error"
    assert action["events"][0]["event"] == "conductor_schedule_and_build_instances"
    assert both.hosts[0] in action["events"][0]["traceback"]
    assert both.hosts[0] not in action["events"][0]["details"]
    kinds = [kind for kind, _ in both.facts(uuid, "compute_task.build_instances.error")]
    assert "scheduler.select_destinations.error" in kinds
    assert "compute_task.build_instances.error" in kinds
    assert both.ask("DELETE", f"/servers/{uuid}").status == 204
    both.wait(uuid, lambda seen: seen["status"] == "GONE")


@pytest.mark.parametrize(("pends", "hosts", "told"), [(False, 120, 100), (True, 1020, 1000)])
def test_of_very_many_hosts_an_error_tells_some_and_who_waits_more(
    tmp_path: Path, *, pends: bool, hosts: int, told: int
) -> None:
    with cloud(tmp_path, hosts=0, use_pending_state=pends) as made:
        ops = []
        for number in range(hosts):
            ops += [crowd.host(crowd.name(number)), crowd.offer(crowd.name(number))]
        made.app.run(made.app.app.program.store.commit(ops))
        uuid = made.create(flavorRef=made.make_flavor(vcpus=1000))
        seen = made.until(uuid, "PENDING" if pends else "ERROR")
        assert f"Of {hosts} hosts: {hosts} " in seen["fault"]["message"]
        assert len(seen["refusals"]) == told
        events = dict(made.facts(uuid, "compute_task.build_instances.error"))
        assert len(events["scheduler.select_destinations.error"]["refusals"]) == 100


def test_a_build_that_fails_is_tried_on_another_host(both: Cloud) -> None:
    for host in both.hosts:
        both.boot(host=host)  # so that the new one is the emptiest
    with _one_more_host(both) as first:
        both.script(f"host:{first}", fail={"spawn": "disk full"})
        before = both.claimed()
        uuid = both.create()
        seen = both.until(uuid, "ACTIVE")
        assert seen["OS-EXT-SRV-ATTR:host"] != first
        (action,) = both.actions(uuid)
        assert [event["result"] for event in action["events"]] == ["Error", "Success"]
        assert "disk full" in action["events"][0]["details"]
        assert both.guests.where(uuid) == [seen["OS-EXT-SRV-ATTR:host"]]
        both.guests.scripts.set(f"host:{first}", None)  # it may be mended, and gone to, later
        assert both.act(uuid, "migrate", {"host": first}).status == 202
        assert both.until(uuid, "VERIFY_RESIZE")["OS-EXT-SRV-ATTR:host"] == first
        both.ask("DELETE", f"/servers/{uuid}")
        both.wait(uuid, lambda seen: seen["status"] == "GONE")
        assert both.claimed() == before


def test_one_that_was_mended_goes_to_hosts_that_could_not_make_it(tmp_path: Path) -> None:
    with cloud(tmp_path, hosts=3) as made:
        made.script("all", fail={"spawn": "disk full"})
        uuid = made.create()
        made.until(uuid, "ERROR")
        here = home_of(made, uuid)
        made.guests.scripts.set("all", None)
        assert made.act(uuid, "rebuild", {"imageRef": made.image}).status == 202
        made.until(uuid, "ACTIVE")
        assert made.act(uuid, "migrate").status == 202
        made.until(uuid, "VERIFY_RESIZE")
        assert home_of(made, uuid) != here


def test_a_host_that_cannot_clear_away_what_it_could_not_make_keeps_a_server_from_no_other(
    both: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("siderite.compute.workers.leaving._AGAIN_S", 0.05)
    for host in both.hosts:
        both.boot(host=host)  # so that the new ones are the emptiest
    with _one_more_host(both) as first, _one_more_host(both) as second:
        for host in (first, second):
            both.script(f"host:{host}", fail={"spawn": "disk is stuck", "destroy": "it is stuck"})
        before = both.claimed()
        uuid = both.create()
        seen = both.until(uuid, "ACTIVE")
        assert seen["OS-EXT-SRV-ATTR:host"] not in (first, second)
        assert {first, second} <= set(both.guests.where(uuid))
        kinds = [kind for kind, _ in both.facts(uuid, "instance.create.end")]
        assert kinds.count("instance.create.start") == 3
        assert kinds.count("instance.create.error") == 2
        for host in (first, second):
            both.guests.scripts.set(f"host:{host}", None)
        in_one_place(both, uuid, seen["OS-EXT-SRV-ATTR:host"])
        delete(both, uuid)
        assert both.claimed() == before


def test_a_host_that_does_not_clear_away_in_time_keeps_a_server_from_no_other(
    both: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("siderite.compute.workers.placing._UNDONE_S", 0.3)
    monkeypatch.setattr("siderite.compute.workers.leaving._AGAIN_S", 0.05)
    for host in both.hosts:
        both.boot(host=host)  # so that the new one is the emptiest
    with _one_more_host(both) as first:
        before = both.claimed()
        both.script(f"host:{first}", fail={"spawn": "it is ill"}, latency_s={"destroy": 3})
        uuid = both.create()
        seen = both.until(uuid, "ACTIVE")
        assert seen["OS-EXT-SRV-ATTR:host"] != first
        assert first in both.guests.where(uuid)
        in_one_place(both, uuid, seen["OS-EXT-SRV-ATTR:host"])
        delete(both, uuid)
        assert both.claimed() == before


def _give_nodes(monkeypatch: pytest.MonkeyPatch, *nodes: str) -> None:
    """Hosts of bare metal have these nodes, each with what is on it."""
    for call in ("spawn", "destroy"):
        plain = getattr(_Simulated, call)

        async def there(
            part: _Simulated, at: At, guest: Guest, token: str, plain: Any = plain
        ) -> Any:
            return await plain(part, replace(at, host=guest.node), guest, token)

        monkeypatch.setattr(_Simulated, call, there)
    one = _Simulated.capacity

    async def several(part: _Simulated, at: At) -> Any:
        return [replace(offer, node=node) for offer in await one(part, at) for node in nodes]

    monkeypatch.setattr(_Simulated, "capacity", several)


def test_a_node_that_does_not_clear_away_in_time_does_so_while_another_of_its_host_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one waits for it: a bare metal service lets no two nodes carry one server."""
    monkeypatch.setattr("siderite.compute.workers.placing._UNDONE_S", 0.1)
    _give_nodes(monkeypatch, "node-1", "node-2")
    with cloud(tmp_path, hosts=0) as made:
        made.add_host("metal", resource_class="CUSTOM_GOLD")
        flavor, specs = made.make_flavor(), {"resources:CUSTOM_GOLD": "1"}
        made.ask("POST", f"/flavors/{flavor}/os-extra_specs", {"extra_specs": specs})
        made.script("host:node-1", fail={"spawn": "it is ill"}, latency_s={"destroy": 0.3})
        made.script("host:node-2", latency_s={"spawn": 3600.0})
        uuid = made.create(flavorRef=flavor)
        until(made, uuid, LEFT, 1)
        until(made, uuid, LEFT, 0)
        assert made.guests.where(uuid) == []
        seen = made.show(uuid)
        assert (seen["status"], seen["OS-EXT-SRV-ATTR:hypervisor_hostname"]) == ("BUILD", "node-2")


def test_a_server_that_no_other_host_takes_leaves_nothing_behind(
    both: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("siderite.compute.workers.leaving._AGAIN_S", 0.05)
    flavor = both.make_flavor()
    specs = {"extra_specs": {"trait:CUSTOM_STUCK": "required"}}
    both.ask("POST", f"/flavors/{flavor}/os-extra_specs", specs)
    with _one_more_host(both, traits="CUSTOM_STUCK") as host:
        both.script(f"host:{host}", fail={"spawn": "disk is stuck", "destroy": "it is stuck"})
        uuid = both.create(flavorRef=flavor, networks="none")
        seen = both.until(uuid, "ERROR")
        assert "disk is stuck" in seen["fault"]["message"]
        assert both.guests.where(uuid) == [host]
        kinds = [kind for kind, _ in both.facts(uuid, "compute_task.build_instances.error")]
        assert kinds.count("instance.create.start") == kinds.count("instance.create.error") == 1
        both.guests.scripts.set(f"host:{host}", None)
        until(both, uuid, LEFT, 0)
        assert both.guests.where(uuid) == []
        delete(both, uuid)


def test_a_build_that_fails_everywhere_is_an_error(lite: Cloud) -> None:
    before = lite.claimed()
    lite.script("all", fail={"spawn": "no such image format"})
    try:
        uuid = lite.create()
        seen = lite.until(uuid, "ERROR")
    finally:
        lite.guests.scripts.set("all", None)
    assert "Exceeded maximum number of retries" in seen["fault"]["message"]
    assert "no such image format" in seen["fault"]["message"]
    lite.ask("DELETE", f"/servers/{uuid}")
    lite.wait(uuid, lambda seen: seen["status"] == "GONE")
    assert lite.claimed() == before


def test_an_administrator_names_the_host(both: Cloud) -> None:
    for host in both.hosts[:2]:
        uuid = both.boot(availability_zone=f"nova:{host}")
        assert both.show(uuid)["OS-EXT-SRV-ATTR:host"] == host
        uuid = both.boot(host=host)
        assert both.show(uuid)["OS-EXT-SRV-ATTR:host"] == host
    _, token, _ = both.app.person("member")
    body = {"name": "n", "flavorRef": both.flavor, "imageRef": both.image, "networks": "none",
            "availability_zone": f"nova:{both.hosts[0]}"}  # fmt: skip
    assert both.ask("POST", "/servers", {"server": body}, token=token).status == 403


def test_groups_keep_their_members_together_or_apart(both: Cloud) -> None:
    for policy, hosts in (("affinity", 1), ("anti-affinity", 2)):
        made = both.ask(
            "POST", "/os-server-groups", {"server_group": {"name": "g", "policy": policy}}
        )
        group = made.json["server_group"]["id"]
        uuids = [both.boot(hints={"group": group}) for _ in range(2)]
        assert len({both.show(uuid)["OS-EXT-SRV-ATTR:host"] for uuid in uuids}) == hosts
        assert both.show(uuids[0])["server_groups"] == [group]
        if policy == "anti-affinity":
            third = both.create(hints={"group": group})
            assert "group" in str(both.until(third, "ERROR")["refusals"])


@pytest.mark.parametrize("hint", ["same_host", "different_host"])
def test_a_hint_that_names_no_server_asks_for_nothing(both: Cloud, hint: str) -> None:
    both.boot(hints={hint: []})


def test_each_of_many_servers_that_a_hint_names_counts(both: Cloud) -> None:
    last = both.boot()
    others = [new_uuid() for _ in range(600)]
    uuid = both.boot(hints={"same_host": [*others, last]})
    assert home_of(both, uuid) == home_of(both, last)


def test_zones_and_aggregates_decide_where(lite: Cloud) -> None:
    made = lite.ask(
        "POST", "/os-aggregates", {"aggregate": {"name": "a", "availability_zone": "east"}}
    )
    number = made.json["aggregate"]["id"]
    host = lite.add_host()
    lite.ask("POST", f"/os-aggregates/{number}/action", {"add_host": {"host": host}})
    uuid = lite.boot(availability_zone="east")
    shown = lite.show(uuid)
    assert (shown["OS-EXT-SRV-ATTR:host"], shown["OS-EXT-AZ:availability_zone"]) == (host, "east")
    body = {"name": "n", "flavorRef": lite.flavor, "imageRef": lite.image, "networks": "none",
            "availability_zone": "west"}  # fmt: skip
    assert lite.ask("POST", "/servers", {"server": body}).status == 400
    lite.ask("DELETE", f"/servers/{uuid}")
    lite.wait(uuid, lambda seen: seen["status"] == "GONE")
    gone = lite.ask("POST", f"/os-aggregates/{number}/action", {"remove_host": {"host": host}})
    assert gone.status == 200, gone


@pytest.mark.parametrize("is_reset", [False, True])
def test_a_server_that_is_back_from_another_zone_shows_its_own(
    lite: Cloud, *, is_reset: bool
) -> None:
    uuid = lite.boot()
    home = home_of(lite, uuid)
    there = lite.add_host()
    fields = {"name": f"a {is_reset}", "availability_zone": "east"}
    number = lite.ask("POST", "/os-aggregates", {"aggregate": fields}).json["aggregate"]["id"]
    lite.ask("POST", f"/os-aggregates/{number}/action", {"add_host": {"host": there}})
    assert lite.act(uuid, "migrate", {"host": there}).status == 202
    assert lite.until(uuid, "VERIFY_RESIZE")["OS-EXT-AZ:availability_zone"] == "east"
    if is_reset:
        lite.script(f"server:{uuid}", latency_s={"revert": 3600.0})
    assert lite.act(uuid, "revertResize").status == 202
    if is_reset:
        during(lite, uuid, "resize_reverting")
        reset(lite, uuid)
    lite.until(uuid, "ACTIVE")
    in_one_place(lite, uuid, home)
    lite.ask("POST", f"/os-aggregates/{number}/action", {"remove_host": {"host": there}})
    assert lite.show(uuid)["OS-EXT-AZ:availability_zone"] == "nova"


def test_a_server_is_not_pinned_to_a_zone_that_it_may_go_back_from(lite: Cloud) -> None:
    uuid, slow = lite.boot(), lite.boot()
    there = lite.add_host()
    fields = {"name": "to be pinned", "availability_zone": "west"}
    number = lite.ask("POST", "/os-aggregates", {"aggregate": fields}).json["aggregate"]["id"]
    lite.ask("POST", f"/os-aggregates/{number}/action", {"add_host": {"host": there}})

    def pin(zone: str, server: str = uuid) -> int:
        body = {"server": {"pinned_availability_zone": zone}}
        return lite.ask("PUT", f"/servers/{server}", body).status

    lite.script(f"server:{slow}", latency_s={"prepare": 3600.0})
    for server in (slow, uuid):
        assert lite.act(server, "migrate", {"host": there}).status == 202
    during(lite, slow, "resize_migrating")
    assert pin("nova", slow) == 409
    assert lite.until(uuid, "VERIFY_RESIZE")["OS-EXT-AZ:availability_zone"] == "west"
    assert pin("west") == 409
    assert lite.act(uuid, "revertResize").status == 202
    assert lite.until(uuid, "ACTIVE")["pinned_availability_zone"] is None
    assert (pin("west"), pin("nova"), pin("nova")) == (409, 200, 200)


def _shown(cloud: Cloud, node: str) -> dict[str, Any]:
    """A hypervisor as elder and our own versions of the API show it."""
    shown: dict[str, Any] = {}
    for version in (87, 900):
        path = f"/os-hypervisors/detail?hypervisor_hostname_pattern={node}"
        (one,) = cloud.ask("GET", path, version=version).json["hypervisors"]
        shown |= one
    return shown


def test_bare_metal_goes_to_a_node_of_its_class_and_takes_it_whole(lite: Cloud) -> None:
    node = lite.add_host("metal-1", resource_class="CUSTOM_GOLD", traits="CUSTOM_FAST")
    flavor = lite.make_flavor(vcpus=64, ram=262144)
    specs = {"resources:CUSTOM_GOLD": "1", "trait:CUSTOM_FAST": "required"}
    lite.ask("POST", f"/flavors/{flavor}/os-extra_specs", {"extra_specs": specs})
    before = _shown(lite, node)
    first = lite.boot(flavorRef=flavor)
    assert lite.show(first)["OS-EXT-SRV-ATTR:host"] == node
    after = _shown(lite, node)
    for what in ("vcpus", "memory_mb", "local_gb"):
        assert (before[f"{what}_used"], after[f"{what}_used"]) == (0, after[what])
    assert (after["free_ram_mb"], after["free_disk_gb"]) == (0, 0)
    for what, size in (("vcpus", "vcpus"), ("ram_mib", "memory_mb"), ("disk_gib", "local_gb")):
        whole = after[size]
        assert before["room"][what] == {"limit": whole, "used": 0}
        assert after["room"][what] == {"limit": whole, "used": whole}
    second = lite.create(flavorRef=flavor)
    assert lite.until(second, "ERROR")["refusals"] == {node: "in use: by another server"}


def test_many_at_once_fill_the_hosts_and_never_overcommit(both: Cloud) -> None:
    with _one_more_host(both, vcpus=1, ram_mib=4096, disk_gib=100) as host:
        flavor = both.make_flavor(vcpus=1, ram=512)
        uuids = [both.create(flavorRef=flavor, host=host) for _ in range(7)]
        seen = [both.settled(uuid)["status"] for uuid in uuids]
        assert sorted(seen) == ["ACTIVE"] * 4 + ["ERROR"] * 3
        row = next(row for row in both.claimed() if row[0] == host)
        assert row[1:] == (4, 2048, 4, 4)
