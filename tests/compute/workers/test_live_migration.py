"""What can be said to a live migration under way: how far is it, end it, hurry."""

from collections.abc import Iterator
from typing import Any

import pytest

from siderite.compute.domain.power import Power
from tests.compute.cloud import Cloud
from tests.compute.workers.moves import claims
from tests.compute.workers.moves import disabled
from tests.compute.workers.moves import down
from tests.compute.workers.moves import home_of
from tests.compute.workers.moves import in_one_place
from tests.compute.workers.moves import tidy_up


@pytest.fixture
def moving(both: Cloud) -> Iterator[str]:
    """A server whose live migration takes an hour."""
    uuid = both.boot()
    _begin(both, uuid)
    yield uuid
    both.guests.scripts.set(f"server:{uuid}", None)


def _begin(cloud: Cloud, uuid: str) -> None:
    cloud.script(f"server:{uuid}", latency_s={"live_migrate": (3600.0, 3600.0)})
    where = {"host": None, "block_migration": "auto"}
    assert cloud.act(uuid, "os-migrateLive", where).status == 202
    cloud.wait(uuid, lambda seen: "busy with live_migrate" in str(seen["wait_reason"]))


def _migration(cloud: Cloud, uuid: str) -> dict[str, Any]:
    (one,) = cloud.ask("GET", f"/servers/{uuid}/migrations").json["migrations"]
    shown = cloud.ask("GET", f"/servers/{uuid}/migrations/{one['id']}")
    assert shown.json["migration"] == one
    return dict(one)


def _status(cloud: Cloud, uuid: str) -> str:
    listed = cloud.ask("GET", f"/os-migrations?instance_uuid={uuid}").json["migrations"]
    return str(listed[0]["status"])


def test_it_can_be_seen_how_far_a_migration_is(both: Cloud, moving: str) -> None:
    seen = _migration(both, moving)
    assert seen["status"] == "running"
    assert seen["memory_total_bytes"] == 512 << 20
    assert seen["memory_remaining_bytes"] == 512 << 20
    assert seen["memory_processed_bytes"] == 0


def test_one_under_way_has_its_address_in_the_list_of_all(both: Cloud, moving: str) -> None:
    def listed(version: int) -> dict[str, Any]:
        path = f"/os-migrations?instance_uuid={moving}"
        (one,) = both.ask("GET", path, version=version).json["migrations"]
        return dict(one)

    assert "links" not in listed(22)
    own, bookmark = listed(23)["links"]
    where = f"/servers/{moving}/migrations/{_migration(both, moving)['id']}"
    assert own["rel"] == "self"
    assert own["href"].endswith("/compute/v2.1" + where)
    assert bookmark["href"].endswith("/compute" + where)
    both.ask("DELETE", where)
    both.until(moving, "ACTIVE")
    assert "links" not in listed(104)


def test_an_aborted_migration_leaves_the_server_where_it_was(both: Cloud, moving: str) -> None:
    before = both.show(moving)["OS-EXT-SRV-ATTR:host"]
    room = both.claimed()
    path = f"/servers/{moving}/migrations/{_migration(both, moving)['id']}"
    assert both.ask("DELETE", path, version=24).status == 202
    seen = both.until(moving, "ACTIVE")
    assert seen["OS-EXT-SRV-ATTR:host"] == before
    assert both.guests.where(moving) == [before]
    assert _status(both, moving) == "cancelled"
    assert sum(row[-1] for row in both.claimed()) == sum(row[-1] for row in room) - 1
    actions = {one["action"]: one for one in both.actions(moving)}
    assert actions["live_migration_cancel"]["message"] is None
    assert "aborted" in actions["live-migration"]["events"][0]["details"]
    told = [kind for kind, _ in both.facts(moving, "instance.live_migration_abort.end")]
    assert told.index("instance.live_migration_abort.start") < told.index(
        "instance.live_migration.error"
    )
    again = both.ask("DELETE", path)
    assert again.status == 400
    assert "cancelled" in again.json["badRequest"]["message"]


def test_a_migration_to_a_host_that_fell_silent_is_aborted_at_once(
    both: Cloud, moving: str
) -> None:
    """The guest runs on where it is; what the other host has of it goes when that answers again."""
    home, room = home_of(both, moving), both.claimed()
    (there,) = set(claims(both, moving)) - {home}
    both.guests.make(moving, there, Power.RUNNING)
    both.script(f"host:{there}", unreachable=True)
    path = f"/servers/{moving}/migrations/{_migration(both, moving)['id']}"
    assert both.ask("DELETE", path, version=24).status == 202
    assert both.until(moving, "ACTIVE")["OS-EXT-SRV-ATTR:host"] == home
    assert (_status(both, moving), claims(both, moving)) == ("cancelled", [home])
    assert sum(row[-1] for row in both.claimed()) == sum(row[-1] for row in room) - 1
    done = next(one for one in both.actions(moving) if one["action"] == "live-migration")
    assert f"host {there} does not answer" in done["events"][0]["details"]
    both.guests.scripts.set(f"host:{there}", None)
    tidy_up(both)
    in_one_place(both, moving, home)


@pytest.mark.parametrize("how", ["abort", "reset"])
def test_a_paused_guest_too_is_not_held_up_by_a_host_that_fell_silent(
    lite: Cloud, how: str
) -> None:
    uuid = lite.boot()
    assert lite.act(uuid, "pause").status == 202
    lite.until(uuid, "PAUSED")
    home = home_of(lite, uuid)
    _begin(lite, uuid)
    (there,) = set(claims(lite, uuid)) - {home}
    with down(lite, there):
        if how == "abort":
            path = f"/servers/{uuid}/migrations/{_migration(lite, uuid)['id']}"
            assert lite.ask("DELETE", path, version=24).status == 202
            lite.until(uuid, "PAUSED")
        else:
            assert lite.act(uuid, "os-resetState", {"state": "active"}).status == 202
            assert lite.act(uuid, "reboot", {"type": "HARD"}).status == 202
            lite.until(uuid, "ACTIVE")
    lite.guests.scripts.set(f"server:{uuid}", None)
    tidy_up(lite)
    in_one_place(lite, uuid, home)


def test_a_forced_migration_is_over_soon(both: Cloud, moving: str) -> None:
    before = both.show(moving)["OS-EXT-SRV-ATTR:host"]
    path = f"/servers/{moving}/migrations/{_migration(both, moving)['id']}/action"
    assert both.ask("POST", path, {"force_complete": None}, version=22).status == 202
    seen = both.until(moving, "ACTIVE")
    assert seen["OS-EXT-SRV-ATTR:host"] != before
    assert _status(both, moving) == "completed"
    assert "live_migration_force_complete" in {one["action"] for one in both.actions(moving)}
    both.facts(moving, "instance.live_migration_force_complete.end")


@pytest.mark.parametrize(("then", "last"), [("reset", "force_complete"), ("abort", "abort")])
def test_what_a_migration_was_told_ends_in_the_log_though_it_is_not_heeded(
    both: Cloud, moving: str, then: str, last: str
) -> None:
    both.script(f"server:{moving}", unreachable=True)
    path = f"/servers/{moving}/migrations/{_migration(both, moving)['id']}"
    assert both.ask("POST", f"{path}/action", {"force_complete": None}).status == 202
    if then == "abort":
        assert both.ask("DELETE", path).status == 202
    else:
        assert both.act(moving, "os-resetState", {"state": "active"}).status == 202
    both.until(moving, "ACTIVE")
    ends = {"force_complete": "error", "abort": "end"}
    kinds = [kind for kind, _ in both.facts(moving, f"instance.live_migration_{last}.{ends[last]}")]
    told = [kind for kind in kinds if kind.startswith("instance.live_migration_")]
    force = [f"instance.live_migration_force_complete.{phase}" for phase in ("start", "error")]
    abort = [f"instance.live_migration_abort.{phase}" for phase in ("start", "end")]
    assert told == (force + abort if then == "abort" else force)


def test_a_migration_is_aborted_however_its_servers_uuid_is_written(
    both: Cloud, moving: str
) -> None:
    path = f"/servers/{moving.upper()}/migrations/{_migration(both, moving)['id']}"
    assert both.ask("DELETE", path, version=24).status == 202
    both.until(moving, "ACTIVE")
    assert _status(both, moving) == "cancelled"


def test_what_is_no_migration_under_way_cannot_be_told_anything(both: Cloud, moving: str) -> None:
    path = f"/servers/{moving}/migrations"
    number = _migration(both, moving)["id"]
    assert both.ask("DELETE", f"{path}/{number}", version=23).status == 404
    assert both.ask("DELETE", f"{path}/999999").status == 404
    assert both.ask("DELETE", f"{path}/x").status == 404
    for body in ({}, {"force_complete": 1}, {"other": None}):
        assert both.ask("POST", f"{path}/{number}/action", body).status == 400
    still = both.boot()
    assert both.act(still, "migrate", {}).status == 202
    both.until(still, "VERIFY_RESIZE")
    cold = both.ask("GET", f"/os-migrations?instance_uuid={still}").json["migrations"][0]["id"]
    assert both.ask("DELETE", f"/servers/{still}/migrations/{cold}").status == 400
    assert both.ask("DELETE", f"/servers/{moving}/migrations/{cold}").status == 404
    _, token, _ = both.app.person("member")
    assert both.ask("DELETE", f"{path}/{number}", token=token).status == 403


def test_diagnostics_come_in_a_standard_form(lite: Cloud) -> None:
    uuid = lite.boot()
    seen = lite.ask("GET", f"/servers/{uuid}/diagnostics", version=48).json
    assert set(seen) == {
        "state", "driver", "hypervisor", "hypervisor_os", "uptime", "config_drive", "num_cpus",
        "num_disks", "num_nics", "memory_details", "cpu_details", "disk_details", "nic_details",
    }  # fmt: skip
    assert (seen["state"], seen["num_cpus"], seen["memory_details"]["maximum"]) == (
        "running", 1, 512,
    )  # fmt: skip
    # Closed lists: clients that check replies know no others.
    assert seen["driver"] in {"libvirt", "xenapi", "vmwareapi", "ironic", "hyperv"}
    old = lite.ask("GET", f"/servers/{uuid}/diagnostics", version=47).json
    assert "vda_read" in old
    assert old["memory"] == 512 * 1024
    _, token, _ = lite.app.person("member")
    assert lite.ask("GET", f"/servers/{uuid}/diagnostics", token=token).status == 403
    huge = lite.create(flavorRef=lite.make_flavor(vcpus=1000))
    lite.until(huge, "ERROR")
    assert lite.ask("GET", f"/servers/{huge}/diagnostics").status == 409


@pytest.mark.parametrize(
    ("action", "status", "word"),
    [("os-stop", "SHUTOFF", "shutdown"), ("pause", "PAUSED", "paused")],
)
def test_a_guest_that_does_not_run_has_no_diagnostics(
    lite: Cloud, action: str, status: str, word: str
) -> None:
    uuid = lite.boot()
    assert lite.act(uuid, action).status == 202
    lite.until(uuid, status)
    for version in (47, 48):
        refused = lite.ask("GET", f"/servers/{uuid}/diagnostics", version=version)
        assert refused.status == 409
        told = refused.json["conflictingRequest"]["message"]
        assert told.startswith(
            f"Cannot 'get_diagnostics' instance {uuid} while it is in power state {word}."
        )


def test_what_cannot_be_migrated_live_is_told_so_at_once_up_to_version_2_33_and_later_after_that(
    both: Cloud,
) -> None:
    """Also from a host that is down; and it does not wait for that host."""
    uuid = both.boot()
    home = home_of(both, uuid)
    other = next(host for host in both.hosts if host != home)
    old = {"host": None, "block_migration": True}
    with down(both, home):
        refused = both.act(uuid, "os-migrateLive", old, version=33)
        assert refused.status == 400, refused
        assert f"service of {home} is unavailable" in refused.json["badRequest"]["message"]
        assert both.act(uuid, "os-migrateLive", old, version=34).status == 202
        both.until(uuid, "ACTIVE")
        (event,) = both.actions(uuid)[0]["events"]
        assert event["result"] == "Error"
        assert f"service of {home} is unavailable" in event["details"]
    with down(both, other):
        named = both.act(uuid, "os-migrateLive", {**old, "host": other}, version=33)
        assert (named.status, other in str(named.json)) == (400, True)
    with disabled(both, *(host for host in both.hosts if host != home)):
        for host in (None, home):
            refused = both.act(uuid, "os-migrateLive", {**old, "host": host}, version=33)
            assert refused.status == 400
            assert "No valid host" in refused.json["badRequest"]["message"]
    assert both.act(uuid, "os-migrateLive", old, version=33).status == 202
    both.until(uuid, "ACTIVE")
    assert home_of(both, uuid) == other
