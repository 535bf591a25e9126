"""An action that another interrupts ends on record, and leaves nothing behind."""

import asyncio
from typing import Any

import msgspec
import pytest

from siderite.compute.domain.job import Job
from siderite.compute.domain.power import Power
from siderite.compute.domain.shutdown import Shutdown
from siderite.compute.usecases import acting
from siderite.compute.usecases.acting import Ask
from siderite.compute.usecases.kinds import KINDS
from tests.compute.cloud import PATIENCE_S
from tests.compute.cloud import Cloud

SLOW = {"latency_s": {"*": 3600.0}}


def _used(cloud: Cloud) -> tuple[int, int]:
    limits = cloud.ask("GET", "/limits").json["limits"]["absolute"]
    return limits["totalInstancesUsed"], limits["totalRAMUsed"]


def _delete(cloud: Cloud, uuid: str) -> None:
    cloud.script(f"server:{uuid}", latency_s={"*": 3600.0, "destroy": 0.0})
    assert cloud.ask("DELETE", f"/servers/{uuid}").status == 204
    cloud.wait(uuid, lambda seen: seen["status"] == "GONE")


def _reset(cloud: Cloud, uuid: str, state: str = "active") -> None:
    cloud.guests.scripts.set(f"server:{uuid}", None)
    assert cloud.act(uuid, "os-resetState", {"state": state}).status == 202


@pytest.mark.parametrize("interrupt", [_delete, _reset])
def test_the_quota_forgets_a_size_that_a_server_never_had(both: Cloud, interrupt: Any) -> None:
    before = _used(both)
    uuid = both.boot()
    both.script(f"server:{uuid}", **SLOW)
    larger = both.make_flavor(ram=2048, vcpus=2)
    assert both.act(uuid, "resize", {"flavorRef": larger}).status == 202
    assert _used(both)[1] == before[1] + 2048
    interrupt(both, uuid)
    if interrupt is _reset:
        assert _used(both)[1] == before[1] + 512
        _delete(both, uuid)
    assert _used(both) == before
    last = next(one for one in both.actions(uuid) if one["action"] == "resize")
    assert (last["message"], last["events"][0]["result"]) == ("Error", "Error")
    assert "given up" in last["events"][0]["details"]
    moves = both.ask("GET", f"/os-migrations?instance_uuid={uuid}").json["migrations"]
    assert all(one["status"] == "cancelled" for one in moves)


def test_the_quota_forgets_it_too_when_a_resize_breaks(lite: Cloud) -> None:
    before = _used(lite)
    uuid = lite.boot()
    lite.script(f"server:{uuid}", fail={"finish": "disk full"})
    assert lite.act(uuid, "resize", {"flavorRef": lite.make_flavor(ram=2048)}).status == 202
    lite.until(uuid, "ERROR")
    assert _used(lite)[1] == before[1] + 512
    _delete(lite, uuid)
    assert _used(lite) == before


@pytest.mark.parametrize("interrupt", [_delete, _reset])
def test_an_image_that_will_not_be_filled_goes(lite: Cloud, interrupt: Any) -> None:
    uuid = lite.boot()
    lite.script(f"server:{uuid}", **SLOW)
    image = lite.act(uuid, "createImage", {"name": "half"}).json["image_id"]
    assert lite.app.ask("GET", f"/image/v2/images/{image}", version=None).status == 200
    interrupt(lite, uuid)
    assert lite.app.ask("GET", f"/image/v2/images/{image}", version=None).status == 404


def _phases(cloud: Cloud, uuid: str, *operations: str) -> list[str]:
    """What was announced of some operations, in order."""
    names = [kind.removeprefix("instance.") for kind, _ in cloud.facts(uuid)]
    return [name for name in names if name.rpartition(".")[0] in operations]


@pytest.mark.parametrize("interrupt", [_delete, _reset])
def test_what_was_announced_as_begun_is_announced_as_given_up(lite: Cloud, interrupt: Any) -> None:
    uuid = lite.boot()
    lite.script(f"server:{uuid}", guest="ignores")
    assert lite.act(uuid, "os-stop").status == 202
    lite.wait(uuid, lambda seen: "asked to shut down" in str(seen["wait_reason"]))
    interrupt(lite, uuid)
    told = _phases(lite, uuid, "power_off", "shutdown")
    assert told == ["power_off.start", "shutdown.start", "shutdown.error", "power_off.error"]
    why = next(data for kind, data in lite.facts(uuid) if kind == "instance.power_off.error")
    assert "given up" in why["fault"]["nova_object.data"]["exception_message"]


def test_a_build_that_is_given_up_is_announced_only_if_it_was_begun(lite: Cloud) -> None:
    """Begun: it had a host. What was not begun does not fail."""
    lite.script("all", latency_s={"spawn": 3600.0})
    uuid = lite.create()
    lite.wait(uuid, lambda seen: seen.get("OS-EXT-STS:task_state") == "spawning")
    lite.guests.scripts.set("all", None)
    _delete(lite, uuid)
    assert _phases(lite, uuid, "create") == ["create.start", "create.error"]


def test_each_host_that_a_build_is_tried_on_is_a_build_of_its_own(lite: Cloud) -> None:
    lite.script("all", fail={"spawn": "no disk"})
    uuid = lite.create()
    lite.until(uuid, "ERROR")
    lite.guests.scripts.set("all", None)
    told = _phases(lite, uuid, "create")
    assert told[:2] == ["create.start", "create.error"]
    assert told == told[:2] * (len(told) // 2)
    assert len(told) > 2


def test_an_offload_that_fails_is_announced_as_that(lite: Cloud) -> None:
    uuid = lite.boot()
    lite.script(f"server:{uuid}", fail={"destroy": "disk is stuck"})
    assert lite.act(uuid, "shelve").status == 202
    lite.settled(uuid)
    lite.guests.scripts.set(f"server:{uuid}", None)
    told = _phases(lite, uuid, "shelve", "shelve_offload")
    assert told == ["shelve.start", "shelve.end", "shelve_offload.start", "shelve_offload.error"]


def test_one_in_build_that_is_being_deleted_goes_whatever_an_administrator_says(
    lite: Cloud,
) -> None:
    """Its owner's wish is not undone by whoever gives it up."""
    lite.script("all", latency_s={"spawn": 3600.0, "destroy": 3600.0})
    uuid = lite.create()
    half = lite.wait(uuid, lambda seen: "busy with spawn" in (seen.get("wait_reason") or ""))
    lite.guests.make(uuid, half["OS-EXT-SRV-ATTR:host"], Power.RUNNING)  # so that there is a wait
    assert lite.ask("DELETE", f"/servers/{uuid}").status == 204
    for state in ("error", "active"):
        refused = lite.act(uuid, "os-resetState", {"state": state})
        assert refused.status == 409, refused
    lite.guests.scripts.set("all", None)
    assert lite.show(uuid)["OS-EXT-STS:task_state"] == "deleting"


# Moves: the other end

CLAIMS = "SELECT host FROM claims WHERE server = ? ORDER BY host"
LEFT = "SELECT 1 FROM work WHERE machine = ? AND kind = 'left'"


def _claims(cloud: Cloud, uuid: str) -> list[str]:
    rows = cloud.app.run(cloud.app.app.program.store.fetch(CLAIMS, (uuid,)))
    return [str(row[0]) for row in rows]


def _until(cloud: Cloud, uuid: str, sql: str, count: int) -> None:
    async def look() -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(await cloud.app.app.program.store.fetch(sql, (uuid,))) != count:
                await asyncio.sleep(0.01)

    cloud.app.run(look())


def _in_one_place(cloud: Cloud, uuid: str, host: str, used: Any = None) -> None:
    """Wait until the server has one claim and one guest, both here."""
    _until(cloud, uuid, LEFT, 0)
    assert _claims(cloud, uuid) == [host]
    assert cloud.guests.where(uuid) == [host]
    assert used is None or cloud.claimed() == used
    assert cloud.show(uuid)["OS-EXT-SRV-ATTR:host"] == host


def _home(cloud: Cloud, uuid: str) -> str:
    return str(cloud.show(uuid)["OS-EXT-SRV-ATTR:host"])


def _during(cloud: Cloud, uuid: str, task: str) -> None:
    cloud.wait(uuid, lambda seen: seen["OS-EXT-STS:task_state"] == task)


@pytest.mark.parametrize("state", ["active", "error"])
@pytest.mark.parametrize(
    ("step", "task"), [("prepare", "resize_migrating"), ("finish", "resize_finish")]
)
def test_a_reset_during_a_migration_undoes_it(
    lite: Cloud, step: str, task: str, state: str
) -> None:
    uuid = lite.boot()
    home, used = _home(lite, uuid), lite.claimed()
    lite.script(f"server:{uuid}", latency_s={step: 3600.0})
    assert lite.act(uuid, "migrate").status == 202
    _during(lite, uuid, task)
    assert len(_claims(lite, uuid)) == 2
    _reset(lite, uuid, state)
    _in_one_place(lite, uuid, home, used)
    assert lite.show(uuid)["status"] == state.upper()


def test_a_reset_during_a_resize_gives_the_room_back(both: Cloud) -> None:
    uuid = both.boot()
    home, used = _home(both, uuid), both.claimed()
    both.script(f"server:{uuid}", latency_s={"prepare": 3600.0})
    larger = both.make_flavor(ram=2048, vcpus=2)
    assert both.act(uuid, "resize", {"flavorRef": larger}).status == 202
    _during(both, uuid, "resize_migrating")
    _reset(both, uuid)
    _in_one_place(both, uuid, home, used)
    assert both.act(uuid, "resize", {"flavorRef": larger}).status == 202
    both.until(uuid, "VERIFY_RESIZE")
    assert both.act(uuid, "revertResize").status == 202
    both.until(uuid, "ACTIVE")
    assert both.claimed() == used


def test_a_reset_of_a_resized_server_is_a_confirmation(lite: Cloud) -> None:
    uuid = lite.boot()
    home = _home(lite, uuid)
    assert lite.act(uuid, "migrate").status == 202
    lite.until(uuid, "VERIFY_RESIZE")
    there = _home(lite, uuid)
    assert there != home
    _reset(lite, uuid)
    _in_one_place(lite, uuid, there)
    assert lite.act(uuid, "migrate").status == 202
    lite.until(uuid, "VERIFY_RESIZE")
    assert sorted(_claims(lite, uuid)) == sorted([home, there])


def test_a_reset_during_a_revert_lets_it_end(lite: Cloud) -> None:
    uuid = lite.boot()
    home, used = _home(lite, uuid), lite.claimed()
    larger = lite.make_flavor(ram=2048)
    limits = lite.ask("GET", "/limits").json
    assert lite.act(uuid, "resize", {"flavorRef": larger}).status == 202
    lite.until(uuid, "VERIFY_RESIZE")
    lite.script(f"server:{uuid}", latency_s={"revert": 3600.0})
    assert lite.act(uuid, "revertResize").status == 202
    _during(lite, uuid, "resize_reverting")
    _reset(lite, uuid)
    _in_one_place(lite, uuid, home, used)
    assert lite.show(uuid)["flavor"]["ram"] == 512
    assert lite.ask("GET", "/limits").json == limits


@pytest.mark.parametrize("is_faster", [False, True])
def test_a_reset_during_a_live_migration_ends_it(lite: Cloud, *, is_faster: bool) -> None:
    uuid = lite.boot()
    home, used = _home(lite, uuid), dict((one[0], one) for one in lite.claimed())
    lite.script(f"server:{uuid}", latency_s={"live_migrate": 3600.0})
    wish = {"host": None, "block_migration": "auto"}
    assert lite.act(uuid, "os-migrateLive", wish).status == 202
    _during(lite, uuid, "migrating")
    _until(lite, uuid, CLAIMS, 2)
    (there,) = set(_claims(lite, uuid)) - {home}
    if is_faster:
        lite.guests.make(uuid, there, Power.RUNNING)
        lite.guests.remove(uuid, home)
    _reset(lite, uuid)
    if is_faster:
        (count, larger) = (used[home][1:], used[there][1:])
        one = (1, 512, 1, 1)
        used[home] = (home, *(have - less for have, less in zip(count, one, strict=True)))
        used[there] = (there, *(have + more for have, more in zip(larger, one, strict=True)))
    _in_one_place(lite, uuid, there if is_faster else home, sorted(used.values()))


def test_what_is_asked_after_a_reset_waits_until_the_move_is_settled(lite: Cloud) -> None:
    """Neither waits for the other for ever."""
    uuid = lite.boot()
    larger = lite.make_flavor(ram=2048)
    lite.script(f"server:{uuid}", latency_s={"finish": 3600.0, "revert": 0.3})
    assert lite.act(uuid, "resize", {"flavorRef": larger}).status == 202
    _during(lite, uuid, "resize_finish")
    assert lite.act(uuid, "os-resetState", {"state": "active"}).status == 202
    assert lite.act(uuid, "resize", {"flavorRef": larger}).status == 202
    lite.script(f"server:{uuid}", latency_s={"revert": 0.3})
    lite.until(uuid, "VERIFY_RESIZE")
    assert lite.act(uuid, "confirmResize").status == 204
    lite.until(uuid, "ACTIVE")
    _in_one_place(lite, uuid, _home(lite, uuid))


@pytest.mark.parametrize("step", ["prepare", "finish", "revert"])
def test_a_resize_that_breaks_is_undone_so_that_a_reboot_mends_the_server(
    lite: Cloud, step: str
) -> None:
    uuid = lite.boot()
    home, used, limits = _home(lite, uuid), lite.claimed(), _used(lite)
    lite.script(f"server:{uuid}", fail={step: "disk full"})
    assert lite.act(uuid, "resize", {"flavorRef": lite.make_flavor(ram=2048)}).status == 202
    if step == "revert":
        lite.until(uuid, "VERIFY_RESIZE")
        assert lite.act(uuid, "revertResize").status == 202
    lite.until(uuid, "ERROR")
    lite.guests.scripts.set(f"server:{uuid}", None)
    if step != "revert":  # which is tried again only after a while
        _in_one_place(lite, uuid, home, used)
        assert lite.act(uuid, "reboot", {"type": "HARD"}).status == 202
        lite.until(uuid, "ACTIVE")
        _reset(lite, uuid)  # there is no move any more that this would confirm or undo
        assert (lite.claimed(), _used(lite)) == (used, limits)
    lefts = lite.app.run(lite.app.app.program.store.fetch(LEFT, (uuid,)))
    assert len(lefts) == (1 if step == "revert" else 0)


def test_a_shelve_that_fails_leaves_no_image_behind(lite: Cloud) -> None:
    uuid = lite.boot(name="books")
    lite.script(f"server:{uuid}", fail={"snapshot": "disk full"})
    assert lite.act(uuid, "shelve").status == 202
    assert "disk full" in lite.settled(uuid)["fault"]["message"]
    images = lite.app.ask("GET", "/image/v2/images?name=books-shelved", version=None)
    assert images.json["images"] == []


def test_a_server_that_cannot_be_unshelved_leaves_nothing_behind(lite: Cloud) -> None:
    uuid = lite.boot()
    assert lite.act(uuid, "shelve").status == 202
    lite.until(uuid, "SHELVED_OFFLOADED")
    used = lite.claimed()
    lite.script(f"server:{uuid}", fail={"spawn": "disk full"})
    assert lite.act(uuid, "unshelve").status == 202
    assert "disk full" in lite.until(uuid, "SHELVED_OFFLOADED")["fault"]["message"]
    _until(lite, uuid, LEFT, 0)
    assert (lite.guests.where(uuid), lite.claimed()) == ([], used)


def test_a_failed_evacuation_leaves_nothing_behind(lite: Cloud) -> None:
    uuid = lite.boot()
    home, used = _home(lite, uuid), lite.claimed()
    services = lite.ask("GET", "/os-services", version=53).json["services"]
    ident = next(one["id"] for one in services if one["host"] == home)
    lite.ask("PUT", f"/os-services/{ident}", {"forced_down": True}, version=53)
    lite.script(f"server:{uuid}", fail={"spawn": "disk full"})
    try:
        assert lite.act(uuid, "evacuate", {}, version=94).status == 200
        lite.settled(uuid)
    finally:
        lite.ask("PUT", f"/os-services/{ident}", {"forced_down": False}, version=53)
    _in_one_place(lite, uuid, home, used)


@pytest.mark.parametrize(("action", "value"), [("createImage", {"name": "i"}), ("shelve", None)])
def test_an_image_of_a_server_that_goes_while_it_is_asked_for_goes_too(
    lite: Cloud, monkeypatch: pytest.MonkeyPatch, action: str, value: Any
) -> None:
    uuid = lite.boot()
    images = lite.app.app.program.app._services["compute"].images
    make, made = images.make, list[str]()

    async def made_too_late(*asked: Any, **how: Any) -> str:
        made.append(await make(*asked, **how))
        gone = await lite.app.app.ask("DELETE", f"/compute/v2.1/servers/{uuid}", version=None)
        assert gone.status == 204
        async with asyncio.timeout(30):
            while gone.status != 404:
                gone = await lite.app.app.ask("GET", f"/compute/v2.1/servers/{uuid}", version=None)
                await asyncio.sleep(0.01)
        return made[0]

    monkeypatch.setattr(images, "make", made_too_late)
    assert lite.act(uuid, action, value).status == 404
    left = lite.app.ask("GET", f"/image/v2/images/{made[0]}", version=None)
    assert left.status == 404


def test_a_hard_rescue_that_overrides_a_soft_one_has_the_last_word_on_the_image(
    lite: Cloud,
) -> None:
    uuid, image = lite.boot(), lite.make_image()
    lite.script(f"server:{uuid}", guest="ignores")
    assert lite.act(uuid, "rescue", {}, version=901).status == 200
    lite.wait(uuid, lambda seen: "asked to shut down" in str(seen["wait_reason"]))
    wish = {"rescue_image_ref": image, "shutdown_type": "HARD"}
    assert lite.act(uuid, "rescue", wish, version=901).status == 200
    lite.until(uuid, "RESCUE")
    told = [data for kind, data in lite.facts(uuid) if kind == "instance.rescue.end"]
    assert [one["rescue_image_ref"] for one in told] == [image]


def test_a_hard_request_comes_too_late_once_the_guest_is_down() -> None:
    job = Job(op="o", action="rescue", request_id="r", began="", shutdown=Shutdown())
    wish = Ask("rescue", is_hard=True)
    assert acting._is_still_asked(job, KINDS["rescue"], wish)
    over = msgspec.structs.replace(job, shutdown=Shutdown(ended="clean"))
    assert not acting._is_still_asked(over, KINDS["rescue"], wish)
