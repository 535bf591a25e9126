"""Servers of hosts that are down: those that flee, back to where they came from too, and those that
are deleted.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.power import Power
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.simulated import driver
from siderite.compute.usecases.server import evacuating
from siderite.compute.usecases.server import listing
from siderite.compute.workers import placing
from siderite.core.store import Op
from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud
from tests.compute.workers.moves import BEHIND
from tests.compute.workers.moves import claims
from tests.compute.workers.moves import down
from tests.compute.workers.moves import home_of
from tests.compute.workers.moves import tidy_up
from tests.compute.workers.moves import until

FIRST = "removed first"


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Cloud]:
    """A cloud of two hosts."""
    with cloud(tmp_path) as made:
        yield made


def fled(made: Cloud) -> tuple[str, str, str]:
    """A server that was evacuated, the host that it left itself behind on, and where it is."""
    uuid = made.boot()
    home = home_of(made, uuid)
    with down(made, home):
        assert made.act(uuid, "evacuate", {}, version=94).status == 200
        made.until(uuid, "ACTIVE")
        tidy_up(made, in_s=3600.0)
    assert sorted(made.guests.where(uuid)) == sorted([home, home_of(made, uuid)])
    return uuid, home, home_of(made, uuid)


@pytest.mark.parametrize("action", ["resize", "migrate"])
def test_what_would_bring_a_server_away_from_a_host_that_is_down_is_refused(
    two: Cloud, action: str
) -> None:
    """It would wait for hours."""
    uuid, larger = two.boot(), two.make_flavor(ram=1024)
    home, asked = home_of(two, uuid), {"flavorRef": larger} if action == "resize" else None
    with down(two, home):
        refused = two.act(uuid, action, asked)
        assert refused.status == 409
        assert "its host is down" in refused.json["conflictingRequest"]["message"]
        assert two.show(uuid)["OS-EXT-STS:task_state"] is None
        assert two.act(uuid, "evacuate", {}, version=94).status == 200
        two.until(uuid, "ACTIVE")
    assert two.act(uuid, action, asked).status == 202
    two.settled(uuid)


@pytest.mark.parametrize(
    ("action", "value", "name"),
    [("createImage", {"name": "half"}, "half"), ("shelve", None, "s-shelved")],
)
def test_an_image_that_waits_for_a_host_that_is_down_does_not_keep_its_server_there(
    two: Cloud, action: str, value: Any, name: str
) -> None:
    uuid = two.boot(name="s")
    home = home_of(two, uuid)
    with down(two, home):
        assert two.act(uuid, action, value).status == 202
        assert _images(two, name) == 1
        assert two.act(uuid, "evacuate", {}, version=94).status == 200
        two.until(uuid, "ACTIVE")
        assert home_of(two, uuid) != home
        until(two, uuid, "SELECT 1 FROM work WHERE machine = ? AND kind = 'unwanted'", 0)
    assert _images(two, name) == 0, "nobody fills it any more"


def _images(made: Cloud, name: str) -> int:
    found = made.app.ask("GET", f"/image/v2/images?name={name}", version=None)
    return len(found.json["images"])


def test_a_guest_is_not_left_on_a_host_that_was_down_a_moment_ago(two: Cloud) -> None:
    uuid = two.boot()
    home, hands = home_of(two, uuid), two.app.app.program.compute.watch._hands
    hands.known.clear()
    with down(two, home):
        two.app.run(hands.host(home))  # it is remembered so
    two.script(f"server:{uuid}", latency_s={"destroy": 3600.0})
    assert two.ask("DELETE", f"/servers/{uuid}").status == 204
    two.wait(uuid, lambda seen: "busy with destroy" in (seen.get("wait_reason") or seen["status"]))


def unheard(made: Cloud, host: str) -> None:
    """Nobody has asked the host for long, as after an outage of our own."""
    program = made.app.app.program
    asking = program.compute.watch._hands.asking

    async def long_ago() -> None:
        async with asking.turn:
            op = Op("UPDATE hosts SET seen_at = 1000 WHERE name = ?", (host,))
            await program.store.commit([op])
            asking.at.clear()

    made.app.run(long_ago())


def test_a_host_that_was_only_not_asked_keeps_its_servers(
    two: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def yes(*_: object) -> None:
        """It had not been heard of when this was asked for."""

    monkeypatch.setattr(evacuating, "check_is_down", yes)
    uuid = two.boot()
    home = home_of(two, uuid)
    unheard(two, home)
    assert two.act(uuid, "evacuate", {}, version=94).status == 200
    two.settled(uuid)
    assert (two.show(uuid)["status"], home_of(two, uuid)) == ("ACTIVE", home)
    assert list(two.guests.where(uuid)) == [home]


def test_a_host_that_does_not_answer_either_when_it_is_asked_is_left(two: Cloud) -> None:
    uuid = two.boot()
    home = home_of(two, uuid)
    two.script(f"host:{home}", unreachable=True)
    unheard(two, home)
    assert two.act(uuid, "evacuate", {}, version=94).status == 200
    two.until(uuid, "ACTIVE")
    two.settled(uuid)
    assert home_of(two, uuid) != home


def test_a_host_that_is_forced_down_is_shown_as_down_though_it_is_disabled_too(two: Cloud) -> None:
    uuid = two.boot()
    services = two.ask("GET", "/os-services").json["services"]
    path = next(
        f"/os-services/{one['id']}" for one in services if one["host"] == home_of(two, uuid)
    )
    assert two.ask("PUT", path, {"status": "disabled", "forced_down": True}).status == 200
    statuses = two.app.run(listing.host_statuses(two.app.app.program.compute.context))
    assert statuses[home_of(two, uuid)] == "DOWN"
    assert two.ask("PUT", path, {"forced_down": False}).status == 200
    statuses = two.app.run(listing.host_statuses(two.app.app.program.compute.context))
    assert statuses[home_of(two, uuid)] == "MAINTENANCE"


def test_what_is_left_where_a_server_flees_to_is_removed_before_it_comes(two: Cloud) -> None:
    uuid, first, second = fled(two)
    two.guests.set_power(uuid, first, Power.CRASHED)
    with down(two, second):
        assert two.act(uuid, "evacuate", {}, version=94).status == 200
        two.wait(uuid, lambda seen: FIRST in (seen["wait_reason"] or ""))
        assert claims(two, uuid) == [second]
        tidy_up(two)
        two.until(uuid, "ACTIVE")
        assert home_of(two, uuid) == first
        assert two.guests.seen(uuid, first).power is Power.RUNNING, "it was made anew"
    tidy_up(two)
    until(two, uuid, BEHIND, 0)
    assert two.guests.where(uuid) == [first]


def test_a_group_that_is_to_stay_together_flees_to_one_host(two: Cloud) -> None:
    two.add_host()
    body = {"server_group": {"name": "g", "policy": "affinity"}}
    group = two.ask("POST", "/os-server-groups", body).json["server_group"]["id"]
    uuids = [two.boot(hints={"group": group}) for _ in range(3)]
    home = home_of(two, uuids[0])
    with down(two, home):
        for uuid in uuids:
            assert two.act(uuid, "evacuate", {}, version=94).status == 200
        for uuid in uuids:
            two.until(uuid, "ACTIVE")
        (refuge,) = {home_of(two, uuid) for uuid in uuids}
        assert refuge != home


def test_one_whose_group_is_up_elsewhere_flees_to_it_or_not_at_all(two: Cloud) -> None:
    two.add_host()
    body = {"server_group": {"name": "g", "policy": "affinity"}}
    group = two.ask("POST", "/os-server-groups", body).json["server_group"]["id"]
    uuids = [two.boot(hints={"group": group}) for _ in range(2)]
    home = home_of(two, uuids[0])
    with down(two, home):
        assert two.act(uuids[0], "evacuate", {}, version=94).status == 200
        two.until(uuids[0], "ACTIVE")
        refuge = home_of(two, uuids[0])
        services = two.ask("GET", "/os-services", version=53).json["services"]
        path = next(f"/os-services/{one['id']}" for one in services if one["host"] == refuge)
        two.ask("PUT", path, {"status": "disabled"}, version=53)
        assert two.act(uuids[1], "evacuate", {}, version=94).status == 200
        two.settled(uuids[1])
        assert home_of(two, uuids[1]) == home
        assert "of its group" in str(two.actions(uuids[1])[0])


def test_what_it_left_is_not_removed_while_the_server_is_unshelved_elsewhere(two: Cloud) -> None:
    """On storage that hosts share, its new disk may be in the folder that is cleared."""
    uuid, first, second = fled(two)
    assert two.act(uuid, "shelve").status == 202
    two.until(uuid, "SHELVED_OFFLOADED")
    two.script(f"host:{second}", unreachable=True)
    assert two.act(uuid, "unshelve", {"host": second}).status == 202
    two.wait(uuid, lambda seen: seen["OS-EXT-STS:task_state"] == "spawning")
    tidy_up(two)
    until(two, uuid, BEHIND + " AND reason = 'the server is spawning'", 1)
    assert two.guests.where(uuid) == [first]
    two.guests.scripts.set(f"host:{second}", None)
    two.until(uuid, "ACTIVE")
    tidy_up(two)
    until(two, uuid, BEHIND, 0)
    assert two.guests.where(uuid) == [second]


@pytest.mark.parametrize("held_by", ["pause", "suspend", "rescue"])
def test_one_that_cannot_leave_its_state_is_told_how_to_flee(two: Cloud, held_by: str) -> None:
    uuid = two.boot()
    assert two.act(uuid, held_by).status in (200, 202)
    two.settled(uuid)
    home = home_of(two, uuid)
    with down(two, home):
        refused = two.act(uuid, "evacuate", {}, version=94)
        assert refused.status == 409
        assert "reset to error" in refused.json["conflictingRequest"]["message"]
        assert two.act(uuid, "os-resetState", {"state": "error"}).status == 202
        assert two.act(uuid, "evacuate", {}, version=94).status == 200
        two.until(uuid, "ACTIVE")
        assert home_of(two, uuid) != home


def test_a_place_without_anything_left_is_preferred(two: Cloud) -> None:
    uuid, _, second = fled(two)
    third = two.add_host()
    for _ in range(3):
        two.boot(host=third)  # so that there is more room where something is left
    with down(two, second):
        assert two.act(uuid, "evacuate", {}, version=94).status == 200
        two.until(uuid, "ACTIVE")
        assert home_of(two, uuid) == third


def test_what_cannot_be_removed_in_time_is_taken_over_and_not_removed_later(
    two: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placing, "_TIDIED_S", 0.0)
    uuid, first, second = fled(two)
    with down(two, second):
        assert two.act(uuid, "evacuate", {}, version=94).status == 200
        two.until(uuid, "ACTIVE")
        assert home_of(two, uuid) == first
        until(two, uuid, BEHIND, 1)  # only on the second
    tidy_up(two)
    until(two, uuid, BEHIND, 0)
    assert two.guests.where(uuid) == [first]


def test_a_server_of_a_host_that_is_gone_for_good_can_be_deleted_and_then_the_host(
    two: Cloud,
) -> None:
    uuid, used = two.boot(), two.ask("GET", "/limits").json
    home = home_of(two, uuid)
    services = two.ask("GET", "/os-services", version=53).json["services"]
    path = next(f"/os-services/{one['id']}" for one in services if one["host"] == home)
    two.script(f"host:{home}", unreachable=True)
    assert two.ask("DELETE", f"/servers/{uuid}").status == 204
    two.wait(uuid, lambda seen: home in (seen["wait_reason"] or ""))
    assert two.ask("DELETE", path, version=53).status == 409
    assert two.ask("PUT", path, {"forced_down": True}, version=53).status == 200
    two.until(uuid, "GONE")
    assert two.ask("GET", "/limits").json != used, "it is not counted any more"
    assert two.ask("DELETE", path, version=53).status == 204


def test_what_was_deleted_while_its_host_was_down_goes_when_that_is_back(two: Cloud) -> None:
    uuid = two.boot()
    home = home_of(two, uuid)
    with down(two, home):
        assert two.ask("DELETE", f"/servers/{uuid}").status == 204
        two.until(uuid, "GONE")
        tidy_up(two)
        assert two.guests.where(uuid) == [home]
    tidy_up(two)
    until(two, uuid, BEHIND, 0)
    assert two.guests.where(uuid) == []


@pytest.mark.parametrize("is_restored", [False, True])
def test_what_can_be_restored_waits_for_no_host_that_is_down_and_is_off_when_that_is_back(
    tmp_path: Path, *, is_restored: bool
) -> None:
    with cloud(tmp_path, hosts=1, reclaim_interval_s=3600) as made:
        uuid = made.boot()
        home = home_of(made, uuid)
        with down(made, home):
            assert made.ask("DELETE", f"/servers/{uuid}").status == 204
            shown = made.until(uuid, "SOFT_DELETED")
            assert shown["OS-EXT-STS:power_state"] == Power.NOSTATE
            tidy_up(made)
            until(made, uuid, BEHIND, 1)
            assert made.guests.seen(uuid, home).power is Power.RUNNING
            if is_restored:
                assert made.act(uuid, "restore").status == 202
        if is_restored:
            made.until(uuid, "ACTIVE")
        tidy_up(made)
        until(made, uuid, BEHIND, 0)
        power = made.guests.seen(uuid, home).power
        assert power is (Power.RUNNING if is_restored else Power.SHUTDOWN)
        assert made.settled(uuid)["status"] == ("ACTIVE" if is_restored else "SOFT_DELETED")


def test_what_an_evacuation_that_was_given_up_has_started_runs_on_beside_no_other(
    two: Cloud,
) -> None:
    """On storage that hosts share both would write to one disk."""
    uuid = two.boot()
    home = home_of(two, uuid)
    first, second = next(name for name in two.hosts if name != home), two.add_host()
    with down(two, home):
        two.script(f"host:{first}", latency_s={"spawn": 3600.0, "destroy": 3600.0})
        assert two.act(uuid, "evacuate", {"host": first}, version=94).status == 200
        two.wait(uuid, lambda seen: "busy with spawn" in str(seen["wait_reason"]))
        two.guests.make(uuid, first, Power.RUNNING)  # and before that is written down
        assert two.act(uuid, "os-resetState", {"state": "error"}).status == 202
        assert two.act(uuid, "evacuate", {"host": second}, version=94).status == 200
        two.until(uuid, "ACTIVE")
        powers = {host: two.guests.seen(uuid, host).power for host in (first, second)}
        assert powers == {first: Power.SHUTDOWN, second: Power.RUNNING}


@pytest.mark.parametrize("action", ["evacuate", "unshelve"])
def test_a_guest_is_told_the_zone_that_it_comes_to(
    two: Cloud, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    told, spawn = [], driver._Simulated.spawn

    async def noted(part: Any, at: At, guest: Guest, token: str) -> Outcome:
        told.append(guest.availability_zone)
        return await spawn(part, at, guest, token)

    uuid = two.boot()
    home = home_of(two, uuid)
    there = next(host for host in two.hosts if host != home)
    fields = {"name": "a", "availability_zone": "east"}
    number = two.ask("POST", "/os-aggregates", {"aggregate": fields}).json["aggregate"]["id"]
    two.ask("POST", f"/os-aggregates/{number}/action", {"add_host": {"host": there}})
    monkeypatch.setattr(driver._Simulated, "spawn", noted)
    if action == "unshelve":
        assert two.act(uuid, "shelve").status == 202
        two.until(uuid, "SHELVED_OFFLOADED")
        assert two.act(uuid, "unshelve", {"host": there}).status == 202
        assert two.until(uuid, "ACTIVE")["OS-EXT-AZ:availability_zone"] == "east"
    else:
        with down(two, home):
            assert two.act(uuid, "evacuate", {}, version=94).status == 200
            assert two.until(uuid, "ACTIVE")["OS-EXT-AZ:availability_zone"] == "east"
    assert set(told) == {"east"}
