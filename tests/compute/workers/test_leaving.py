"""A move that is given up, or fails, leaves nothing at its other end."""

import pytest

from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.power import Power
from siderite.compute.domain.power_truth import Verdict
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.simulated import driver
from siderite.compute.store import SERVERS
from siderite.compute.usecases.server import due
from siderite.compute.usecases.server import power_truth
from siderite.compute.usecases.server.power_truth import Reading
from siderite.core.store import Op
from tests.compute.cloud import Cloud
from tests.compute.workers.moves import CLAIMS
from tests.compute.workers.moves import LEFT
from tests.compute.workers.moves import claims
from tests.compute.workers.moves import counted
from tests.compute.workers.moves import delete
from tests.compute.workers.moves import during
from tests.compute.workers.moves import home_of
from tests.compute.workers.moves import in_one_place
from tests.compute.workers.moves import reset
from tests.compute.workers.moves import until


@pytest.mark.parametrize("state", ["active", "error"])
@pytest.mark.parametrize(
    ("step", "task"), [("prepare", "resize_migrating"), ("finish", "resize_finish")]
)
def test_a_reset_during_a_migration_undoes_it(
    lite: Cloud, step: str, task: str, state: str
) -> None:
    uuid = lite.boot()
    home, used = home_of(lite, uuid), lite.claimed()
    lite.script(f"server:{uuid}", latency_s={step: 3600.0})
    assert lite.act(uuid, "migrate").status == 202
    during(lite, uuid, task)
    assert len(claims(lite, uuid)) == 2
    reset(lite, uuid, state)
    in_one_place(lite, uuid, home, used)
    assert lite.show(uuid)["status"] == state.upper()


def test_a_reset_of_a_resized_server_is_a_confirmation(lite: Cloud) -> None:
    uuid = lite.boot()
    home = home_of(lite, uuid)
    assert lite.act(uuid, "migrate").status == 202
    lite.until(uuid, "VERIFY_RESIZE")
    there = home_of(lite, uuid)
    assert there != home
    reset(lite, uuid)
    in_one_place(lite, uuid, there)
    assert lite.act(uuid, "migrate").status == 202
    lite.until(uuid, "VERIFY_RESIZE")
    assert sorted(claims(lite, uuid)) == sorted([home, there])


def test_a_reset_during_a_revert_lets_it_end(lite: Cloud) -> None:
    uuid = lite.boot()
    home, used = home_of(lite, uuid), lite.claimed()
    larger = lite.make_flavor(ram=2048)
    limits = lite.ask("GET", "/limits").json
    assert lite.act(uuid, "resize", {"flavorRef": larger}).status == 202
    lite.until(uuid, "VERIFY_RESIZE")
    lite.script(f"server:{uuid}", latency_s={"revert": 3600.0})
    assert lite.act(uuid, "revertResize").status == 202
    during(lite, uuid, "resize_reverting")
    reset(lite, uuid)
    in_one_place(lite, uuid, home, used)
    assert lite.show(uuid)["flavor"]["ram"] == 512
    assert lite.ask("GET", "/limits").json == limits


@pytest.mark.parametrize("is_faster", [False, True])
def test_a_reset_during_a_live_migration_ends_it(lite: Cloud, *, is_faster: bool) -> None:
    uuid = lite.boot()
    home, used = home_of(lite, uuid), dict((one[0], one) for one in lite.claimed())
    lite.script(f"server:{uuid}", latency_s={"live_migrate": 3600.0})
    wish = {"host": None, "block_migration": "auto"}
    assert lite.act(uuid, "os-migrateLive", wish).status == 202
    during(lite, uuid, "migrating")
    until(lite, uuid, CLAIMS, 2)
    (there,) = set(claims(lite, uuid)) - {home}
    if is_faster:
        lite.guests.make(uuid, there, Power.RUNNING)
        lite.guests.remove(uuid, home)
    reset(lite, uuid)
    if is_faster:
        (count, larger) = (used[home][1:], used[there][1:])
        one = (1, 512, 1, 1)
        used[home] = (home, *(have - less for have, less in zip(count, one, strict=True)))
        used[there] = (there, *(have + more for have, more in zip(larger, one, strict=True)))
    in_one_place(lite, uuid, there if is_faster else home, sorted(used.values()))


@pytest.mark.parametrize("has_arrived", [False, True])
def test_a_live_migration_that_fails_leaves_the_server_in_one_place(
    lite: Cloud, monkeypatch: pytest.MonkeyPatch, *, has_arrived: bool
) -> None:
    uuid = lite.boot()
    home = home_of(lite, uuid)

    async def fails(_: object, at: At, guest: Guest, to: At, token: str) -> Outcome:
        lite.guests.make(uuid, to.host, Power.RUNNING if has_arrived else Power.SHUTDOWN)
        if has_arrived:
            lite.guests.remove(uuid, home)
        return Failed("the connection broke")

    monkeypatch.setattr(driver._Simulated, "live_migrate", fails)
    wish = {"host": None, "block_migration": "auto"}
    assert lite.act(uuid, "os-migrateLive", wish).status == 202
    assert "the connection broke" in str(lite.settled(uuid)["fault"])
    until(lite, uuid, LEFT, 0)
    (where,) = lite.guests.where(uuid)
    assert (where == home) is not has_arrived
    in_one_place(lite, uuid, where)


def test_a_guest_that_is_gone_counts_as_off_only_where_no_move_is_open(
    lite: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have arrived at the other end, though its migration failed."""
    uuid = lite.boot()

    async def fails(_: object, at: At, guest: Guest, to: At, token: str) -> Outcome:
        return Failed("the connection broke")

    async def aborts(_: object, at: At, guest: Guest, to: At, token: str) -> Outcome:
        return Wait("the other host is away", 3600.0)

    async def unknown(_: object, at: At, guest: Guest) -> Power:
        return Power.NOSTATE

    for name, deed in (("live_migrate", fails), ("abort", aborts), ("state", unknown)):
        monkeypatch.setattr(driver._Simulated, name, deed)
    wish = {"host": None, "block_migration": "auto"}
    assert lite.act(uuid, "os-migrateLive", wish).status == 202
    assert "the connection broke" in str(lite.settled(uuid)["fault"])
    assert _gone(lite, uuid) is Verdict.NOTHING
    assert lite.show(uuid)["status"] == "ACTIVE"
    other = lite.boot()
    assert _gone(lite, other) is Verdict.POWERED_OFF
    assert lite.show(other)["status"] == "SHUTOFF"


def _gone(cloud: Cloud, uuid: str) -> Verdict:
    """Its host says that it has no such guest."""
    program = cloud.app.app.program

    async def look() -> Verdict:
        ((version,),) = await program.store.fetch(
            "SELECT version FROM servers WHERE uuid = ?", (uuid,)
        )
        gone = Reading(Power.SHUTDOWN, is_gone=True)
        return await power_truth.found(program.compute.context, uuid, version, gone)

    return cloud.app.run(look())


def test_what_is_asked_after_a_reset_waits_until_the_move_is_settled(lite: Cloud) -> None:
    """Neither waits for the other for ever."""
    uuid = lite.boot()
    larger = lite.make_flavor(ram=2048)
    lite.script(f"server:{uuid}", latency_s={"finish": 3600.0, "revert": 0.3})
    assert lite.act(uuid, "resize", {"flavorRef": larger}).status == 202
    during(lite, uuid, "resize_finish")
    assert lite.act(uuid, "os-resetState", {"state": "active"}).status == 202
    assert lite.act(uuid, "resize", {"flavorRef": larger}).status == 202
    lite.script(f"server:{uuid}", latency_s={"revert": 0.3})
    lite.until(uuid, "VERIFY_RESIZE")
    assert lite.act(uuid, "confirmResize").status == 204
    lite.until(uuid, "ACTIVE")
    in_one_place(lite, uuid, home_of(lite, uuid))


@pytest.mark.parametrize("step", ["prepare", "finish", "revert"])
def test_a_resize_that_breaks_is_undone_so_that_a_reboot_mends_the_server(
    lite: Cloud, step: str
) -> None:
    uuid = lite.boot()
    home, used, limits = home_of(lite, uuid), lite.claimed(), counted(lite)
    lite.script(f"server:{uuid}", fail={step: "disk full"})
    assert lite.act(uuid, "resize", {"flavorRef": lite.make_flavor(ram=2048)}).status == 202
    if step == "revert":
        lite.until(uuid, "VERIFY_RESIZE")
        assert lite.act(uuid, "revertResize").status == 202
    lite.until(uuid, "ERROR")
    lite.guests.scripts.set(f"server:{uuid}", None)
    if step != "revert":  # which is tried again only after a while
        in_one_place(lite, uuid, home, used)
        assert lite.act(uuid, "reboot", {"type": "HARD"}).status == 202
        lite.until(uuid, "ACTIVE")
        reset(lite, uuid)  # there is no move any more that this would confirm or undo
        assert (lite.claimed(), counted(lite)) == (used, limits)
    lefts = lite.app.run(lite.app.app.program.store.fetch(LEFT, (uuid,)))
    assert len(lefts) == (1 if step == "revert" else 0)


def _migrations(cloud: Cloud, uuid: str) -> list[str]:
    found = cloud.ask("GET", f"/os-migrations?instance_uuid={uuid}").json["migrations"]
    return [one["status"] for one in found]


def test_a_move_is_confirmed_by_a_reset_and_by_a_deletion(lite: Cloud) -> None:
    for end in (reset, delete):
        uuid = lite.boot()
        assert lite.act(uuid, "migrate").status == 202
        lite.until(uuid, "VERIFY_RESIZE")
        assert _migrations(lite, uuid) == ["finished"]
        end(lite, uuid)
        assert _migrations(lite, uuid) == ["confirmed"]


def test_a_deletion_that_fails_leaves_a_moved_server_in_one_place(lite: Cloud) -> None:
    uuid = lite.boot()
    used = counted(lite)
    assert lite.act(uuid, "resize", {"flavorRef": lite.make_flavor(ram=1024)}).status == 202
    lite.until(uuid, "VERIFY_RESIZE")
    there = home_of(lite, uuid)
    lite.script(f"server:{uuid}", fail={"destroy": "disk is stuck"})
    assert lite.ask("DELETE", f"/servers/{uuid}").status == 204
    lite.until(uuid, "ERROR")
    lite.guests.scripts.set(f"server:{uuid}", None)
    in_one_place(lite, uuid, there)
    assert counted(lite)[1] == used[1] + 512
    assert lite.act(uuid, "reboot", {"type": "HARD"}).status == 202
    lite.until(uuid, "ACTIVE")


def test_a_deletion_that_fails_during_a_move_undoes_it(lite: Cloud) -> None:
    uuid = lite.boot()
    home, claimed, used = home_of(lite, uuid), lite.claimed(), counted(lite)
    lite.script(f"server:{uuid}", latency_s={"finish": 3600.0}, fail={"destroy": "disk is stuck"})
    assert lite.act(uuid, "resize", {"flavorRef": lite.make_flavor(ram=1024)}).status == 202
    during(lite, uuid, "resize_finish")
    assert lite.ask("DELETE", f"/servers/{uuid}").status == 204
    lite.until(uuid, "ERROR")
    in_one_place(lite, uuid, home, claimed)
    assert counted(lite) == used


def test_a_server_that_cannot_be_unshelved_leaves_nothing_behind(lite: Cloud) -> None:
    uuid = lite.boot()
    assert lite.act(uuid, "shelve").status == 202
    lite.until(uuid, "SHELVED_OFFLOADED")
    used = lite.claimed()
    lite.script(f"server:{uuid}", fail={"spawn": "disk full"})
    assert lite.act(uuid, "unshelve").status == 202
    assert "disk full" in lite.until(uuid, "SHELVED_OFFLOADED")["fault"]["message"]
    until(lite, uuid, LEFT, 0)
    assert (lite.guests.where(uuid), lite.claimed()) == ([], used)


def test_what_an_attempt_left_is_removed_before_the_next_one_comes_there(lite: Cloud) -> None:
    uuid = lite.boot()
    there = home_of(lite, uuid)
    assert lite.act(uuid, "shelve").status == 202
    lite.until(uuid, "SHELVED_OFFLOADED")
    lite.script(f"server:{uuid}", fail={"spawn": "disk full", "destroy": "disk busy"})
    assert lite.act(uuid, "unshelve", {"host": there}).status == 202
    lite.settled(uuid)
    until(lite, uuid, LEFT, 1)
    lite.script(f"server:{uuid}", fail={"destroy": "disk busy"})
    assert lite.act(uuid, "unshelve", {"host": there}).status == 202
    lite.wait(uuid, lambda seen: "removed first" in str(seen["wait_reason"]))
    lite.guests.scripts.set(f"server:{uuid}", None)
    now = Op("UPDATE work SET due = 0 WHERE machine = ? AND kind = 'left'", (uuid,))
    lite.app.run(lite.app.app.program.store.commit([now]))
    lite.until(uuid, "ACTIVE")
    in_one_place(lite, uuid, there)


def test_a_server_leaves_a_host_that_went_down_in_the_middle_of_an_action(lite: Cloud) -> None:
    uuid = lite.boot()
    home = home_of(lite, uuid)
    services = lite.ask("GET", "/os-services", version=53).json["services"]
    ident = next(one["id"] for one in services if one["host"] == home)
    lite.script(f"host:{home}", unreachable=True)
    lite.ask("PUT", f"/os-services/{ident}", {"forced_down": True}, version=53)
    try:
        assert lite.act(uuid, "os-stop").status == 202
        during(lite, uuid, "powering-off")
        told = lite.act(uuid, "evacuate", {"onSharedStorage": False}, version=13)
        assert told.status == 200, told
        assert lite.until(uuid, "ACTIVE")["OS-EXT-SRV-ATTR:host"] != home
        record = lite.app.run(SERVERS.get(lite.app.app.program.store, uuid))
        assert record is not None
        assert record.request.admin_password == told.json["adminPass"]
    finally:
        lite.guests.scripts.set(f"host:{home}", None)
        lite.ask("PUT", f"/os-services/{ident}", {"forced_down": False}, version=53)
    stop = next(one for one in lite.actions(uuid) if one["action"] == "stop")
    assert (stop["message"], stop["events"][0]["result"]) == ("Error", "Error")


def test_a_failed_evacuation_leaves_nothing_behind(lite: Cloud) -> None:
    uuid = lite.boot()
    home, used = home_of(lite, uuid), lite.claimed()
    services = lite.ask("GET", "/os-services", version=53).json["services"]
    ident = next(one["id"] for one in services if one["host"] == home)
    lite.ask("PUT", f"/os-services/{ident}", {"forced_down": True}, version=53)
    lite.script(f"server:{uuid}", fail={"spawn": "disk full"})
    try:
        assert lite.act(uuid, "evacuate", {}, version=94).status == 200
        lite.settled(uuid)
    finally:
        lite.ask("PUT", f"/os-services/{ident}", {"forced_down": False}, version=53)
    in_one_place(lite, uuid, home, used)


def test_a_server_that_is_deleted_after_a_failed_evacuation_leaves_nothing_behind(
    lite: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("siderite.compute.workers.leaving._AGAIN_S", 0.05)
    uuid = lite.boot()
    home = home_of(lite, uuid)
    services = lite.ask("GET", "/os-services", version=53).json["services"]
    ident = next(one["id"] for one in services if one["host"] == home)
    lite.ask("PUT", f"/os-services/{ident}", {"forced_down": True}, version=53)
    lite.script(f"server:{uuid}", fail={"spawn": "disk full", "destroy": "disk is stuck"})
    try:
        assert lite.act(uuid, "evacuate", {}, version=94).status == 200
        lite.settled(uuid)
    finally:
        lite.ask("PUT", f"/os-services/{ident}", {"forced_down": False}, version=53)
    assert len(lite.guests.where(uuid)) == 2
    delete(lite, uuid)
    until(lite, uuid, LEFT, 0)
    assert (lite.guests.where(uuid), claims(lite, uuid)) == ([], [])


@pytest.mark.parametrize("state", ["active", "error"])
def test_a_reset_of_a_deletion_that_ended_a_live_migration_leaves_the_server_in_one_place(
    lite: Cloud, state: str
) -> None:
    uuid = lite.boot()
    home, used = home_of(lite, uuid), lite.claimed()
    lite.script(f"server:{uuid}", latency_s={"live_migrate": 3600.0, "destroy": 3600.0})
    wish = {"host": None, "block_migration": "auto"}
    assert lite.act(uuid, "os-migrateLive", wish).status == 202
    until(lite, uuid, CLAIMS, 2)
    assert lite.ask("DELETE", f"/servers/{uuid}").status == 204
    lite.wait(uuid, lambda seen: "busy with destroy" in (seen["wait_reason"] or ""))
    reset(lite, uuid, state)
    in_one_place(lite, uuid, home, used)


def test_a_reset_of_a_deletion_that_ended_a_revert_has_it_reverted(lite: Cloud) -> None:
    uuid = lite.boot()
    home, used = home_of(lite, uuid), lite.claimed()
    assert lite.act(uuid, "resize", {"flavorRef": lite.make_flavor(ram=2048)}).status == 202
    lite.until(uuid, "VERIFY_RESIZE")
    lite.script(f"server:{uuid}", latency_s={"revert": 3600.0, "destroy": 3600.0})
    assert lite.act(uuid, "revertResize").status == 202
    during(lite, uuid, "resize_reverting")
    assert lite.ask("DELETE", f"/servers/{uuid}").status == 204
    lite.wait(uuid, lambda seen: "busy with destroy" in (seen["wait_reason"] or ""))
    reset(lite, uuid)
    in_one_place(lite, uuid, home, used)
    assert lite.show(uuid)["flavor"]["ram"] == 512


def test_a_deleted_server_is_remembered_while_it_may_be_left_on_a_host_that_is_down(
    both: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = both.app.app.program.compute.context
    evacuated, other = both.boot(), both.boot()
    delete(both, other)
    home = home_of(both, evacuated)
    services = both.ask("GET", "/os-services", version=53).json["services"]
    ident = next(one["id"] for one in services if one["host"] == home)
    both.script(f"host:{home}", unreachable=True)
    both.ask("PUT", f"/os-services/{ident}", {"forced_down": True}, version=53)
    try:
        assert both.act(evacuated, "evacuate", {}, version=94).status == 200
        both.until(evacuated, "ACTIVE")
        delete(both, evacuated)
        now = context.door.clock()
        with monkeypatch.context() as patch:
            later = context.settings.deleted_servers_keep_s + 60.0
            patch.setattr(context.door, "clock", lambda: now + later)
            both.app.run(due.forget_old(context))
        known = [both.app.run(SERVERS.get(context.door.store, one)) for one in (evacuated, other)]
        assert [one is not None for one in known] == [True, False]
    finally:
        both.guests.scripts.set(f"host:{home}", None)
        both.ask("PUT", f"/os-services/{ident}", {"forced_down": False}, version=53)


@pytest.mark.parametrize("is_reset", [False, True])
def test_a_server_that_goes_before_a_build_that_failed_is_undone_leaves_nothing_behind(
    lite: Cloud, *, is_reset: bool
) -> None:
    lite.script("all", fail={"spawn": "disk is stuck"}, latency_s={"destroy": 3600.0})
    uuid = lite.create()
    lite.wait(uuid, lambda seen: "busy with destroy" in str(seen["wait_reason"]))
    assert len(lite.guests.where(uuid)) == 1  # its disk
    lite.guests.scripts.set("all", None)
    if is_reset:
        assert lite.act(uuid, "os-resetState", {"state": "error"}).status == 202
    assert lite.ask("DELETE", f"/servers/{uuid}").status == 204
    lite.wait(uuid, lambda seen: seen["status"] == "GONE")
    until(lite, uuid, LEFT, 0)
    assert lite.guests.where(uuid) == []
