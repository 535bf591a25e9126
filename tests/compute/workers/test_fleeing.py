"""A server whose host goes down in the middle of a move, or of a rebuild, can leave at once."""

from pathlib import Path
from typing import Any

import pytest

from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.power import Power
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.simulated.driver import _Simulated
from siderite.compute.usecases.server import leaving
from siderite.core.store import Op
from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud
from tests.compute.workers.moves import BEHIND
from tests.compute.workers.moves import CLAIMS
from tests.compute.workers.moves import LEFT
from tests.compute.workers.moves import claims
from tests.compute.workers.moves import counted
from tests.compute.workers.moves import disabled
from tests.compute.workers.moves import down
from tests.compute.workers.moves import during
from tests.compute.workers.moves import home_of
from tests.compute.workers.moves import tidy_up
from tests.compute.workers.moves import until

LIVE = {"host": None, "block_migration": "auto"}


def _moved(made: Cloud) -> tuple[str, str, str]:
    """A server that was brought to another host and not confirmed there, its old and new host."""
    uuid = made.boot()
    home = home_of(made, uuid)
    assert made.act(uuid, "migrate").status == 202
    made.until(uuid, "VERIFY_RESIZE")
    return uuid, home, home_of(made, uuid)


def _begin(made: Cloud, uuid: str, action: str, step: str) -> None:
    """Ask for something, and wait until this is being done for hours."""
    made.script(f"server:{uuid}", latency_s={step: 3600.0})
    values: dict[str, Any] = {
        "resize": {"flavorRef": made.make_flavor(ram=2048, vcpus=2)}, "os-migrateLive": LIVE,
        "rebuild": {"imageRef": made.image},
    }  # fmt: skip
    assert made.act(uuid, action, values.get(action)).status == 202
    made.wait(uuid, lambda seen: f"busy with {step}" in str(seen["wait_reason"]))


@pytest.mark.parametrize(
    ("action", "step"),
    [
        ("migrate", "prepare"), ("migrate", "finish"), ("os-migrateLive", "live_migrate"),
        ("rebuild", "rebuild"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_server_does_not_wait_for_what_its_hosts_end_interrupted(
    lite: Cloud, action: str, step: str, *, elsewhere: bool
) -> None:
    """Whether it comes to where a move led, or to another host."""
    uuid = lite.boot()
    home = home_of(lite, uuid)
    _begin(lite, uuid, action, step)
    (there,) = set(claims(lite, uuid)) - {home} or {next(h for h in lite.hosts if h != home)}
    if step in ("finish", "live_migrate"):
        lite.guests.make(uuid, there, Power.RUNNING)  # so far it is, which nobody knows
    refuge = lite.add_host() if elsewhere else there
    lite.guests.scripts.set(f"server:{uuid}", None)
    with down(lite, home):
        assert lite.act(uuid, "evacuate", {"host": refuge}, version=94).status == 200
        assert lite.until(uuid, "ACTIVE")["OS-EXT-SRV-ATTR:host"] == refuge
        until(lite, uuid, LEFT, 0)
        assert claims(lite, uuid) == [refuge]
        assert lite.guests.seen(uuid, refuge).power is Power.RUNNING
        assert sorted(lite.guests.where(uuid)) == sorted([home, refuge])
    tidy_up(lite)
    until(lite, uuid, BEHIND, 0)
    assert lite.guests.where(uuid) == [refuge]
    given_up = lite.actions(uuid)[1]
    assert "evacuate was asked for" in given_up["events"][0]["details"]
    moves = lite.ask("GET", f"/os-migrations?instance_uuid={uuid}").json["migrations"]
    told = ["completed"] if action == "rebuild" else ["completed", "cancelled"]
    assert [one["status"] for one in moves] == told


def test_one_that_fled_from_a_resize_has_its_size_and_waits_for_nothing_on_the_host_that_is_down(
    both: Cloud,
) -> None:
    uuid, before = both.boot(), counted(both)
    home = home_of(both, uuid)
    others = [host for host in both.hosts if host != home]
    with disabled(both, *others):  # so that it is resized where it is
        _begin(both, uuid, "resize", "finish")
        assert claims(both, uuid) == [home, home]
    both.guests.scripts.set(f"server:{uuid}", None)
    with down(both, home):
        assert both.act(uuid, "evacuate", {}, version=94).status == 200
        assert both.until(uuid, "ACTIVE")["OS-EXT-SRV-ATTR:host"] != home
        assert (counted(both), both.show(uuid)["flavor"]["ram"]) == (before, 512)
        assert len(claims(both, uuid)) == 1
        until(both, uuid, LEFT, 1)
        assert both.act(uuid, "reboot", {"type": "HARD"}).status == 202
        both.until(uuid, "ACTIVE")
    refuge = home_of(both, uuid)
    tidy_up(both)
    until(both, uuid, LEFT, 0)
    until(both, uuid, BEHIND, 0)
    assert (both.guests.where(uuid), claims(both, uuid)) == ([refuge], [refuge])


@pytest.fixture
def two(tmp_path: Path) -> Any:
    """A cloud of two hosts."""
    with cloud(tmp_path) as made:
        yield made


def test_an_evacuation_is_begun_anew_only_if_the_host_that_it_leads_to_is_down_too(
    two: Cloud,
) -> None:
    uuid = two.boot()
    home = home_of(two, uuid)
    first, second = next(name for name in two.hosts if name != home), two.add_host()
    with down(two, home):
        two.script(f"server:{uuid}", latency_s={"spawn": 3600.0})
        assert two.act(uuid, "evacuate", {"host": first}, version=94).status == 200
        during(two, uuid, "rebuild_spawning")
        assert two.act(uuid, "evacuate", {}, version=94).status == 409
        with down(two, first):
            two.guests.scripts.set(f"server:{uuid}", None)
            assert two.act(uuid, "evacuate", {}, version=94).status == 200
            assert two.until(uuid, "ACTIVE")["OS-EXT-SRV-ATTR:host"] == second
        until(two, uuid, LEFT, 0)
        until(two, uuid, CLAIMS, 1)


@pytest.mark.parametrize("offload_time_s", [0, 3600])
def test_a_server_that_is_stored_as_an_image_leaves_a_host_that_is_down(
    tmp_path: Path, offload_time_s: int
) -> None:
    """It can be unshelved elsewhere then; nothing but its image is needed for that."""
    with cloud(tmp_path, shelved_offload_time_s=offload_time_s) as made:
        uuid = made.boot()
        home = home_of(made, uuid)
        if not offload_time_s:
            made.script(f"server:{uuid}", latency_s={"destroy": 3600.0})
        assert made.act(uuid, "shelve").status == 202
        if offload_time_s:
            made.until(uuid, "SHELVED")
        else:
            made.wait(uuid, lambda seen: "busy with destroy" in str(seen["wait_reason"]))
        with down(made, home):
            made.guests.scripts.set(f"server:{uuid}", None)
            if offload_time_s:
                assert made.act(uuid, "shelveOffload").status == 202
            else:
                op = Op("UPDATE work SET due = 0 WHERE machine = ?", (uuid,))
                made.app.run(made.app.app.program.store.commit([op]))
            made.until(uuid, "SHELVED_OFFLOADED")
            assert (claims(made, uuid), made.guests.where(uuid)) == ([], [home])
            assert made.act(uuid, "unshelve").status == 202
            refuge = made.until(uuid, "ACTIVE")["OS-EXT-SRV-ATTR:host"]
        tidy_up(made)
        until(made, uuid, BEHIND, 0)
        assert made.guests.where(uuid) == [refuge] != [home]


@pytest.mark.parametrize("end", ["confirmResize", "os-resetState"])
def test_a_server_that_has_moved_does_not_wait_for_the_host_that_it_came_from(
    lite: Cloud, end: str
) -> None:
    uuid, home, there = _moved(lite)
    with down(lite, home):
        asked = lite.act(uuid, end, {"state": "active"} if end == "os-resetState" else None)
        assert asked.status in (202, 204)
        lite.until(uuid, "ACTIVE")
        assert lite.act(uuid, "reboot", {"type": "HARD"}).status == 202
        lite.until(uuid, "ACTIVE")
        assert claims(lite, uuid) == [there]
        assert sorted(lite.guests.where(uuid)) == sorted([home, there])
    tidy_up(lite)
    until(lite, uuid, BEHIND, 0)
    assert lite.guests.where(uuid) == [there]


def test_a_server_whose_new_host_is_down_is_told_to_go_back_to_its_disk_and_does(
    lite: Cloud,
) -> None:
    """To have it reset would be to confirm the move: its disk would go with that."""
    uuid, home, there = _moved(lite)
    with down(lite, there):
        told = lite.act(uuid, "evacuate", {}, version=94)
        assert (told.status, "revertResize" in str(told.json)) == (409, True)
        assert lite.act(uuid, "revertResize").status == 202
        assert lite.until(uuid, "ACTIVE")["OS-EXT-SRV-ATTR:host"] == home
        assert claims(lite, uuid) == [home]
    tidy_up(lite)
    until(lite, uuid, BEHIND, 0)
    assert lite.guests.where(uuid) == [home]


@pytest.mark.parametrize(
    ("action", "step"), [("migrate", "finish"), ("os-migrateLive", "live_migrate")]
)
def test_a_move_that_was_given_up_does_not_hold_a_server_up_if_it_led_to_a_host_that_is_down(
    lite: Cloud, action: str, step: str
) -> None:
    uuid = lite.boot()
    home = home_of(lite, uuid)
    _begin(lite, uuid, action, step)
    (there,) = set(claims(lite, uuid)) - {home}
    with down(lite, there):
        lite.guests.scripts.set(f"server:{uuid}", None)
        assert lite.act(uuid, "os-resetState", {"state": "error"}).status == 202
        assert lite.act(uuid, "reboot", {"type": "HARD"}).status == 202
        assert lite.until(uuid, "ACTIVE")["OS-EXT-SRV-ATTR:host"] == home
    tidy_up(lite)
    until(lite, uuid, BEHIND, 0)
    assert (lite.guests.where(uuid), claims(lite, uuid)) == ([home], [home])


def test_what_an_earlier_move_left_is_claimed_until_it_is_gone_though_another_one_fails(
    lite: Cloud,
) -> None:
    uuid, home, there = _moved(lite)
    lite.script(f"server:{uuid}", latency_s={"confirm": 3600.0})
    assert lite.act(uuid, "os-resetState", {"state": "active"}).status == 202
    with down(lite, there):
        assert lite.act(uuid, "os-migrateLive", LIVE).status == 202
        assert "is unavailable" in lite.until(uuid, "ACTIVE")["fault"]["message"]
        assert sorted(claims(lite, uuid)) == sorted([home, there])
    lite.guests.scripts.set(f"server:{uuid}", None)
    assert lite.ask("DELETE", f"/servers/{uuid}").status == 204
    lite.until(uuid, "GONE")
    assert (lite.guests.where(uuid), claims(lite, uuid)) == ([], [])


def test_nothing_stays_of_one_that_is_deleted_after_it_fled_from_a_move(lite: Cloud) -> None:
    """Its place at the other end of the move was free as soon as it had another one."""
    uuid = lite.boot()
    home, third = home_of(lite, uuid), lite.add_host()
    _begin(lite, uuid, "migrate", "finish")
    (there,) = set(claims(lite, uuid)) - {home}
    refuge = next(host for host in (*lite.hosts, third) if host not in (home, there))
    lite.guests.make(uuid, there, Power.SHUTDOWN)
    with down(lite, home):
        lite.script(f"server:{uuid}", latency_s={"destroy": 3600.0})
        assert lite.act(uuid, "evacuate", {"host": refuge}, version=94).status == 200
        lite.until(uuid, "ACTIVE")
        until(lite, uuid, f"{LEFT} AND reason LIKE '%busy with destroy'", 1)
    lite.guests.scripts.set(f"server:{uuid}", None)
    lite.guests._db.execute("DELETE FROM runs")
    assert lite.ask("DELETE", f"/servers/{uuid}").status == 204
    lite.until(uuid, "GONE")
    tidy_up(lite)
    until(lite, uuid, LEFT, 0)
    until(lite, uuid, BEHIND, 0)
    assert lite.guests.where(uuid) == []


def test_what_cannot_be_removed_in_a_day_is_removed_when_its_host_is_back(
    lite: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaving, "PATIENCE_S", 0.0)
    uuid, home, there = _moved(lite)
    lite.script(f"host:{home}", unreachable=True)
    asked: list[str] = []
    confirm = _Simulated.confirm

    async def noted(part: _Simulated, at: At, guest: Guest, token: str) -> Outcome:
        asked.append(at.host)
        return await confirm(part, at, guest, token)

    monkeypatch.setattr(_Simulated, "confirm", noted)
    assert lite.act(uuid, "os-resetState", {"state": "active"}).status == 202
    until(lite, uuid, LEFT, 0)
    assert asked == [there]  # which on shared storage can give up the way back as well
    lite.guests.scripts.set(f"host:{home}", None)
    tidy_up(lite)
    until(lite, uuid, BEHIND, 0)
    assert (lite.guests.where(uuid), claims(lite, uuid)) == ([there], [there])


def test_one_that_flees_while_it_goes_back_leaves_nothing_at_either_end(lite: Cloud) -> None:
    uuid = lite.boot()
    assert lite.act(uuid, "migrate").status == 202
    lite.until(uuid, "VERIFY_RESIZE")
    there, third = home_of(lite, uuid), lite.add_host()
    lite.script(f"server:{uuid}", latency_s={"revert": 3600.0})
    assert lite.act(uuid, "revertResize").status == 202
    lite.wait(uuid, lambda seen: "busy with revert" in str(seen["wait_reason"]))
    with down(lite, there):
        assert lite.act(uuid, "os-resetState", {"state": "error"}).status == 202
        assert lite.act(uuid, "evacuate", {"host": third}, version=94).status == 200
        lite.until(uuid, "ACTIVE")
    lite.guests.scripts.set(f"server:{uuid}", None)
    tidy_up(lite)
    until(lite, uuid, LEFT, 0)
    until(lite, uuid, BEHIND, 0)
    assert lite.guests.where(uuid) == [third]


def test_where_a_live_migration_led_nothing_of_a_server_that_fled_stays(
    lite: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long that host is away: its guest there would run on beside the one that counts."""
    monkeypatch.setattr(leaving, "PATIENCE_S", 0.0)
    uuid = lite.boot()
    home, third = home_of(lite, uuid), lite.add_host()
    _begin(lite, uuid, "os-migrateLive", "live_migrate")
    (there,) = set(claims(lite, uuid)) - {home}
    refuge = next(host for host in (*lite.hosts, third) if host not in (home, there))
    lite.guests.make(uuid, there, Power.RUNNING)
    lite.guests.scripts.set(f"server:{uuid}", None)
    with down(lite, home), down(lite, there):
        assert lite.act(uuid, "evacuate", {"host": refuge}, version=94).status == 200
        lite.until(uuid, "ACTIVE")
        until(lite, uuid, LEFT, 0)
    tidy_up(lite)
    until(lite, uuid, BEHIND, 0)
    assert lite.guests.where(uuid) == [refuge]


def test_a_server_does_not_flee_while_it_may_run_where_a_move_led(lite: Cloud) -> None:
    uuid = lite.boot()
    home, third = home_of(lite, uuid), lite.add_host()
    _begin(lite, uuid, "os-migrateLive", "live_migrate")
    (there,) = set(claims(lite, uuid)) - {home}
    refuge = next(host for host in (*lite.hosts, third) if host not in (home, there))
    lite.guests.make(uuid, there, Power.RUNNING)
    lite.guests.scripts.set(f"server:{uuid}", None)
    lite.script(f"host:{there}", fail={"off": "its process does not end"})
    with down(lite, home):
        assert lite.act(uuid, "evacuate", {"host": refuge}, version=94).status == 200
        said = lite.settled(uuid)["fault"]["message"]
        assert ("does not end; if" in said, lite.guests.seen(uuid, refuge)) == (True, None)
        lite.guests.scripts.set(f"host:{there}", None)
        assert lite.act(uuid, "evacuate", {"host": refuge}, version=94).status == 200
        assert lite.until(uuid, "ACTIVE")["OS-EXT-SRV-ATTR:host"] == refuge


def test_a_server_with_two_claims_on_a_host_that_is_down_can_be_deleted(both: Cloud) -> None:
    uuid = both.boot()
    home = home_of(both, uuid)
    with disabled(both, *(host for host in both.hosts if host != home)):
        _begin(both, uuid, "resize", "finish")
        assert claims(both, uuid) == [home, home]
    both.guests.scripts.set(f"server:{uuid}", None)
    with down(both, home):
        assert both.ask("DELETE", f"/servers/{uuid}").status == 204
        both.until(uuid, "GONE")
        assert claims(both, uuid) == []
    tidy_up(both)
    until(both, uuid, BEHIND, 0)
    assert both.guests.where(uuid) == []
