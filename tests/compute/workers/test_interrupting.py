"""An action that another interrupts ends on record, and leaves nothing behind."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from siderite.compute.domain.job import Job
from siderite.compute.domain.power import Power
from siderite.compute.domain.shutdown import Shutdown
from siderite.compute.usecases.server import acting
from siderite.compute.usecases.server import due
from siderite.compute.usecases.server import resetting
from siderite.compute.usecases.server.acting import Ask
from siderite.compute.usecases.server.kinds import KINDS
from siderite.core.transition import Cause
from siderite.wiring.own_images import OwnImages
from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud
from tests.compute.workers.moves import counted
from tests.compute.workers.moves import delete
from tests.compute.workers.moves import during
from tests.compute.workers.moves import home_of
from tests.compute.workers.moves import in_one_place
from tests.compute.workers.moves import reset
from tests.compute.workers.moves import until

UNWANTED = "SELECT 1 FROM work WHERE machine = ? AND kind = 'unwanted'"
SLOW = {"latency_s": {"*": 3600.0}}


@pytest.mark.parametrize("interrupt", [delete, reset])
def test_the_quota_forgets_a_size_that_a_server_never_had(both: Cloud, interrupt: Any) -> None:
    before = counted(both)
    uuid = both.boot()
    both.script(f"server:{uuid}", **SLOW)
    larger = both.make_flavor(ram=2048, vcpus=2)
    assert both.act(uuid, "resize", {"flavorRef": larger}).status == 202
    assert counted(both)[1] == before[1] + 2048
    interrupt(both, uuid)
    if interrupt is reset:
        assert counted(both)[1] == before[1] + 512
        delete(both, uuid)
    assert counted(both) == before
    last = next(one for one in both.actions(uuid) if one["action"] == "resize")
    assert (last["message"], last["events"][0]["result"]) == ("Error", "Error")
    assert "given up" in last["events"][0]["details"]
    moves = both.ask("GET", f"/os-migrations?instance_uuid={uuid}").json["migrations"]
    assert all(one["status"] == "cancelled" for one in moves)


def test_the_quota_forgets_it_too_when_a_resize_breaks(lite: Cloud) -> None:
    before = counted(lite)
    uuid = lite.boot()
    lite.script(f"server:{uuid}", fail={"finish": "disk full"})
    assert lite.act(uuid, "resize", {"flavorRef": lite.make_flavor(ram=2048)}).status == 202
    lite.until(uuid, "ERROR")
    assert counted(lite)[1] == before[1] + 512
    delete(lite, uuid)
    assert counted(lite) == before


@pytest.mark.parametrize("interrupt", [delete, reset])
def test_an_image_that_will_not_be_filled_goes(lite: Cloud, interrupt: Any) -> None:
    uuid = lite.boot()
    lite.script(f"server:{uuid}", **SLOW)
    image = lite.act(uuid, "createImage", {"name": "half"}).json["image_id"]
    assert lite.app.ask("GET", f"/image/v2/images/{image}", version=None).status == 200
    interrupt(lite, uuid)
    assert lite.app.ask("GET", f"/image/v2/images/{image}", version=None).status == 404


def test_an_image_that_will_not_be_filled_goes_though_whoever_asked_is_killed_right_after_the_reset(
    lite: Cloud,
) -> None:
    uuid = lite.boot()
    lite.script(f"server:{uuid}", **SLOW)
    image = lite.act(uuid, "createImage", {"name": "half"}).json["image_id"]
    context, who = lite.app.app.program.compute.context, due.SYSTEM
    lite.app.run(resetting.reset(context, uuid, "error", who=who, cause=Cause()))
    until(lite, uuid, UNWANTED, 0)
    assert lite.app.ask("GET", f"/image/v2/images/{image}", version=None).status == 404


def _shelved_images(cloud: Cloud, name: str) -> list[str]:
    found = cloud.app.ask("GET", f"/image/v2/images?name={name}-shelved", version=None)
    return [str(one["id"]) for one in found.json["images"]]


@pytest.mark.parametrize("interrupt", [delete, reset])
def test_an_image_that_a_shelved_server_would_have_come_back_from_goes_though_it_is_filled(
    lite: Cloud, interrupt: Any
) -> None:
    uuid = lite.boot(name=f"shelf-{interrupt.__name__}")
    lite.script(f"server:{uuid}", **SLOW)
    assert lite.act(uuid, "shelve").status == 202
    lite.wait(uuid, lambda seen: "busy with snapshot" in (seen["wait_reason"] or ""))
    (image,) = _shelved_images(lite, f"shelf-{interrupt.__name__}")
    formats = [
        {"op": "add", "path": f"/{key}", "value": value}
        for key, value in (("disk_format", "raw"), ("container_format", "bare"))
    ]
    patch = {"content-type": "application/openstack-images-v2.1-json-patch"}
    path = f"/image/v2/images/{image}"
    assert lite.app.ask("PATCH", path, formats, version=None, headers=patch).status == 200
    octets = {"content-type": "application/octet-stream"}
    filled = lite.app.ask("PUT", f"{path}/file", b"disk", version=None, headers=octets)
    assert filled.status == 204
    interrupt(lite, uuid)
    assert lite.app.ask("GET", path, version=None).status == 404


def test_a_server_that_is_shelved_twice_has_one_image(lite: Cloud) -> None:
    uuid = lite.boot(name="twice")
    lite.script(f"server:{uuid}", fail={"destroy": "disk is stuck"})
    for _ in range(2):
        assert lite.act(uuid, "shelve").status == 202
        lite.until(uuid, "SHELVED")
        (image,) = _shelved_images(lite, "twice")
        reset(lite, uuid)
        lite.script(f"server:{uuid}", fail={"destroy": "disk is stuck"})
    lite.guests.scripts.set(f"server:{uuid}", None)
    delete(lite, uuid)
    assert lite.app.ask("GET", f"/image/v2/images/{image}", version=None).status == 404


def test_an_image_that_a_deletion_was_to_discard_goes_with_the_next_one(tmp_path: Path) -> None:
    with cloud(tmp_path, hosts=1, reclaim_interval_s=3600) as soft:
        uuid = soft.boot()
        soft.script(f"server:{uuid}", **SLOW)
        image = soft.act(uuid, "createImage", {"name": "half"}).json["image_id"]
        assert soft.ask("DELETE", f"/servers/{uuid}").status == 204
        during(soft, uuid, "soft-deleting")
        soft.script(f"server:{uuid}", fail={"destroy": "disk is stuck"})
        assert soft.act(uuid, "forceDelete").status == 202
        soft.until(uuid, "ERROR")  # also of one that fails
        assert soft.app.ask("GET", f"/image/v2/images/{image}", version=None).status == 404


def test_what_was_shelved_is_restored_as_that(tmp_path: Path) -> None:
    with cloud(tmp_path, hosts=1, reclaim_interval_s=3600, shelved_offload_time_s=3600) as soft:
        uuid = soft.boot()
        assert soft.act(uuid, "shelve").status == 202
        for status in ("SHELVED", "SHELVED_OFFLOADED"):
            soft.until(uuid, status)
            assert soft.ask("DELETE", f"/servers/{uuid}").status == 204
            soft.until(uuid, "SOFT_DELETED")
            assert soft.act(uuid, "restore").status == 202
            soft.until(uuid, status)
            soft.act(uuid, "shelveOffload")
        assert soft.act(uuid, "unshelve").status == 202
        soft.until(uuid, "ACTIVE")


def test_a_shelved_server_whose_state_was_reset_comes_back_from_its_image(lite: Cloud) -> None:
    uuid = lite.boot(name="lost")
    assert lite.act(uuid, "shelve").status == 202
    lite.until(uuid, "SHELVED_OFFLOADED")
    lite.script(f"server:{uuid}", **SLOW)
    assert lite.act(uuid, "unshelve").status == 202
    lite.wait(uuid, lambda seen: seen["OS-EXT-STS:task_state"] == "spawning")
    assert lite.act(uuid, "os-resetState", {"state": "active"}).status == 202
    refused = lite.act(uuid, "reboot", {"type": "HARD"})
    assert (
        refused.status == 409 and "reset to error" in refused.json["conflictingRequest"]["message"]
    )
    assert lite.act(uuid, "os-resetState", {"state": "error"}).status == 202
    lite.guests.scripts.set(f"server:{uuid}", None)
    assert lite.act(uuid, "unshelve", {"availability_zone": "nova"}).status == 202
    lite.until(uuid, "ACTIVE")
    in_one_place(lite, uuid, home_of(lite, uuid))
    until(lite, uuid, UNWANTED, 0)
    assert _shelved_images(lite, "lost") == []


def test_what_is_an_error_and_was_not_shelved_is_not_unshelved(lite: Cloud) -> None:
    uuid = lite.boot()
    assert lite.act(uuid, "os-resetState", {"state": "error"}).status == 202
    refused = lite.act(uuid, "unshelve")
    assert refused.status == 409
    assert "not shelved" in refused.json["conflictingRequest"]["message"]


def _phases(cloud: Cloud, uuid: str, *operations: str) -> list[str]:
    """What was announced of some operations, in order."""
    names = [kind.removeprefix("instance.") for kind, _ in cloud.facts(uuid)]
    return [name for name in names if name.rpartition(".")[0] in operations]


@pytest.mark.parametrize("interrupt", [delete, reset])
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
    delete(lite, uuid)
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


def test_a_reset_during_a_resize_gives_the_room_back(both: Cloud) -> None:
    uuid = both.boot()
    home, used = home_of(both, uuid), both.claimed()
    both.script(f"server:{uuid}", latency_s={"prepare": 3600.0})
    larger = both.make_flavor(ram=2048, vcpus=2)
    assert both.act(uuid, "resize", {"flavorRef": larger}).status == 202
    during(both, uuid, "resize_migrating")
    reset(both, uuid)
    in_one_place(both, uuid, home, used)
    assert both.act(uuid, "resize", {"flavorRef": larger}).status == 202
    both.until(uuid, "VERIFY_RESIZE")
    assert both.act(uuid, "revertResize").status == 202
    both.until(uuid, "ACTIVE")
    assert both.claimed() == used


def test_a_shelve_that_fails_leaves_no_image_behind(lite: Cloud) -> None:
    uuid = lite.boot(name="books")
    lite.script(f"server:{uuid}", fail={"snapshot": "disk full"})
    assert lite.act(uuid, "shelve").status == 202
    assert "disk full" in lite.settled(uuid)["fault"]["message"]
    assert _shelved_images(lite, "books") == []


@pytest.mark.parametrize(
    ("before", "action", "value"),
    [
        (None, "shelve", None), ("pause", "shelve", None), ("suspend", "shelve", None),
        (None, "reboot", {"type": "SOFT"}),
    ],
)  # fmt: skip
def test_a_server_whose_guest_was_shut_down_for_what_failed_then_is_stopped(
    lite: Cloud, before: str | None, action: str, value: Any
) -> None:
    uuid = lite.boot()
    if before is not None:
        assert lite.act(uuid, before).status == 202
        lite.settled(uuid)
    lite.script(f"server:{uuid}", fail={"snapshot": "disk full", "on": "no memory"})
    assert lite.act(uuid, action, value).status == 202
    seen = lite.until(uuid, "SHUTOFF")
    assert seen["OS-EXT-STS:power_state"] == 4
    lite.guests.scripts.set(f"server:{uuid}", None)
    assert lite.act(uuid, "os-start").status == 202
    lite.until(uuid, "ACTIVE")


def test_one_that_is_to_be_put_back_is_active_after_that(lite: Cloud) -> None:
    uuid = lite.boot(metadata={"power_policy": "record"})
    lite.script(f"server:{uuid}", fail={"snapshot": "disk full"})
    assert lite.act(uuid, "shelve").status == 202
    assert lite.until(uuid, "ACTIVE")["OS-EXT-STS:power_state"] == 4
    lite.app.run(lite.app.app.program.compute.sync.round())
    assert lite.until(uuid, "ACTIVE")["OS-EXT-STS:power_state"] == 1


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


@pytest.mark.parametrize("last", ["active", "error"])
def test_one_that_was_shelved_once_and_runs_again_is_restored_as_that(
    tmp_path: Path, last: str
) -> None:
    with cloud(tmp_path, hosts=1, reclaim_interval_s=3600, shelved_offload_time_s=3600) as soft:
        uuid = soft.boot()
        assert soft.act(uuid, "shelve").status == 202
        soft.until(uuid, "SHELVED")
        reset(soft, uuid)
        assert soft.act(uuid, "reboot", {"type": "HARD"}).status == 202
        soft.until(uuid, "ACTIVE")
        reset(soft, uuid, last)
        assert soft.ask("DELETE", f"/servers/{uuid}").status == 204
        soft.until(uuid, "SOFT_DELETED")
        assert soft.act(uuid, "restore").status == 202
        assert soft.settled(uuid)["status"] == "ACTIVE"


def test_one_that_is_interrupted_when_its_guest_has_just_left_comes_back_from_its_image(
    tmp_path: Path,
) -> None:
    with cloud(tmp_path, hosts=2, reclaim_interval_s=3600) as made:
        uuid = made.boot()
        home = home_of(made, uuid)
        made.script(f"server:{uuid}", latency_s={"destroy": 3600.0})
        assert made.act(uuid, "shelve").status == 202
        during(made, uuid, "shelving_offloading")
        made.guests.remove(uuid, home)  # and before that is written down
        assert made.ask("DELETE", f"/servers/{uuid}").status == 204
        made.until(uuid, "SOFT_DELETED")
        assert made.act(uuid, "restore").status == 202
        made.until(uuid, "SHELVED")
        assert made.act(uuid, "unshelve").status == 202
        made.until(uuid, "ACTIVE")
        in_one_place(made, uuid, home)


def test_one_that_is_deleted_at_the_very_end_of_its_unshelving_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its image goes when it is needed no more, and not a moment before."""
    remove = OwnImages.remove
    with cloud(tmp_path, hosts=1, reclaim_interval_s=3600) as made:
        uuid = made.boot(name="books")
        assert made.act(uuid, "shelve").status == 202
        made.until(uuid, "SHELVED_OFFLOADED")

        async def then_deleted(self: OwnImages, image: str) -> None:
            await remove(self, image)
            await made.app.app.ask("DELETE", f"/compute/v2.1/servers/{uuid}", version=None)

        monkeypatch.setattr(OwnImages, "remove", then_deleted)
        assert made.act(uuid, "unshelve").status == 202
        made.until(uuid, "SOFT_DELETED")
        monkeypatch.undo()
        assert made.act(uuid, "restore").status == 202
        made.until(uuid, "ACTIVE")
        assert len(made.guests.where(uuid)) == 1
        until(made, uuid, UNWANTED, 0)
        assert _shelved_images(made, "books") == []
