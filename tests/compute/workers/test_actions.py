"""Every action of a server, on simulated hosts: where it leads, what it leaves on record."""

import json
from hashlib import sha256
from typing import Any

import pytest
from msgspec.structs import replace

from siderite.wiring import own_images
from tests.compute.cloud import Cloud


def _last(cloud: Cloud, uuid: str) -> tuple[str, str | None, list[str]]:
    action = cloud.actions(uuid)[0]
    return action["action"], action["message"], [event["result"] for event in action["events"]]


@pytest.mark.parametrize(
    ("there", "status", "power", "back"),
    [
        ("pause", "PAUSED", 3, "unpause"),
        ("suspend", "SUSPENDED", 7, "resume"),
        ("os-stop", "SHUTOFF", 4, "os-start"),
    ],
)
def test_there_and_back(both: Cloud, there: str, status: str, power: int, back: str) -> None:
    uuid = both.boot()
    assert both.act(uuid, there).status == 202
    assert both.until(uuid, status)["OS-EXT-STS:power_state"] == power
    assert _last(both, uuid) == (there.removeprefix("os-"), None, ["Success"])
    assert both.act(uuid, back).status == 202
    assert both.until(uuid, "ACTIVE")["OS-EXT-STS:power_state"] == 1
    assert _last(both, uuid) == (back.removeprefix("os-"), None, ["Success"])


@pytest.mark.parametrize("kind", ["SOFT", "HARD"])
def test_a_server_is_rebooted(lite: Cloud, kind: str) -> None:
    uuid = lite.boot()
    assert lite.act(uuid, "reboot", {"type": kind}).status == 202
    assert lite.until(uuid, "ACTIVE")["OS-EXT-STS:power_state"] == 1
    assert _last(lite, uuid) == ("reboot", None, ["Success"])


def test_a_hard_reboot_wakes_what_was_stopped(lite: Cloud) -> None:
    uuid = lite.boot()
    lite.act(uuid, "os-stop")
    lite.until(uuid, "SHUTOFF")
    assert lite.act(uuid, "reboot", {"type": "SOFT"}).status == 409
    assert lite.act(uuid, "reboot", {"type": "HARD"}).status == 202
    lite.until(uuid, "ACTIVE")


def test_a_server_is_rescued_and_comes_back(both: Cloud) -> None:
    uuid = both.boot()
    answer = both.act(uuid, "rescue", {"adminPass": "secret"})
    assert (answer.status, answer.json) == (200, {"adminPass": "secret"})
    home = both.until(uuid, "RESCUE")["OS-EXT-SRV-ATTR:host"]
    assert both.guests.seen(uuid, home).memory == sha256(b"secret").hexdigest()
    assert both.act(uuid, "unrescue").status == 202
    both.until(uuid, "ACTIVE")


def test_old_clients_are_told_where_the_image_service_has_the_image(
    lite: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be an image service elsewhere."""
    images = lite.app.app.program.app._services["compute"].images
    elsewhere = "http://images.example/v2/images/"
    monkeypatch.setattr(images, "address", lambda image, base: elsewhere + image)
    uuid = lite.boot()
    answer = lite.act(uuid, "createImage", {"name": "there"}, version=44)
    assert (answer.status, answer.headers["location"].startswith(elsewhere)) == (202, True)
    lite.settled(uuid)


def test_a_server_is_not_shut_down_for_a_rescue_with_an_image_that_has_no_data(lite: Cloud) -> None:
    uuid = lite.boot()
    made = lite.app.ask("POST", "/image/v2/images", {"name": "empty"}, version=None)
    refused = lite.act(uuid, "rescue", {"rescue_image_ref": made.json["id"]})
    assert refused.status == 400
    assert "is not active" in refused.json["badRequest"]["message"]
    assert lite.show(uuid)["status"] == "ACTIVE"


def test_what_a_rescue_and_an_image_were_asked_with_is_announced_from_the_start(
    lite: Cloud,
) -> None:
    uuid, image = lite.boot(), lite.make_image()
    assert lite.act(uuid, "createImage", {"name": "copy"}).status == 202
    told = lite.facts(uuid, "instance.snapshot.end")
    made = [data["snapshot_image_id"] for kind, data in told if ".snapshot." in kind]
    assert (len(made), len(set(made)), made[0] is None) == (2, 1, False)
    lite.until(uuid, "ACTIVE")
    assert lite.act(uuid, "rescue", {"rescue_image_ref": image}).status == 200
    told = lite.facts(uuid, "instance.rescue.end")
    assert [data["rescue_image_ref"] for kind, data in told if ".rescue." in kind] == [image] * 2


def test_an_image_that_takes_long_to_store_is_stored(
    lite: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_images, "_AGAIN_S", 0.0)  # asked again before it is begun
    uuid = lite.boot()
    made = lite.act(uuid, "createImage", {"name": "slow"}, version=45).json["image_id"]
    lite.facts(uuid, "instance.snapshot.end")
    shown = lite.app.ask("GET", f"/image/v2/images/{made}", version=None).json
    assert (shown["status"], shown["size"]) == ("active", 512)


def test_a_server_is_rebuilt_from_another_image(both: Cloud) -> None:
    uuid, image = both.boot(), both.make_image()
    answer = both.act(uuid, "rebuild", {"imageRef": image, "name": "anew"})
    assert answer.status == 202, answer
    assert answer.json["server"]["id"] == uuid
    assert answer.headers["location"].endswith(uuid)
    seen = both.until(uuid, "ACTIVE")
    assert (seen["image"]["id"], seen["name"]) == (image, "anew")


def test_a_rebuild_tells_of_user_data_once(lite: Cloud) -> None:
    uuid, said = lite.boot(), "IyEvYmluL3No"
    for version, more in ((74, False), (75, True), (96, True)):
        path, body = f"/servers/{uuid}/action", {"imageRef": lite.image, "user_data": said}
        answer = lite.ask("POST", path, {"rebuild": body}, version=version)
        assert answer.status == 202, answer
        shown = answer.json["server"]
        assert shown["user_data"] == said
        assert ("OS-EXT-SRV-ATTR:launch_index" in shown) is more
        assert "OS-EXT-SRV-ATTR:user_data" not in shown
        lite.until(uuid, "ACTIVE")


def test_an_ephemeral_disk_is_kept_or_the_rebuild_refused(
    lite: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid = lite.boot(flavorRef=lite.make_flavor(**{"OS-FLV-EXT-DATA:ephemeral": 1}))
    wish = {"imageRef": lite.image, "preserve_ephemeral": True}
    assert lite.act(uuid, "rebuild", wish).status == 202
    lite.until(uuid, "ACTIVE")
    cards = lite.app.app.program.compute.context.cards
    card = cards["simulated"]
    unable = replace(card, abilities=card.abilities - {"preserve_ephemeral"})
    monkeypatch.setitem(cards, "simulated", unable)  # type: ignore[arg-type] # a dict underneath
    assert lite.act(uuid, "rebuild", wish).status == 501
    assert lite.act(uuid, "rebuild", {**wish, "preserve_ephemeral": False}).status == 202
    assert lite.act(lite.boot(), "rebuild", wish).status == 202, "it has none to be kept"


def test_a_stopped_server_stays_stopped_when_rebuilt(lite: Cloud) -> None:
    uuid = lite.boot()
    lite.act(uuid, "os-stop")
    lite.until(uuid, "SHUTOFF")
    assert lite.act(uuid, "rebuild", {"imageRef": lite.image}).status == 202
    assert lite.until(uuid, "SHUTOFF")["OS-EXT-STS:power_state"] == 4


def test_a_resize_is_confirmed(both: Cloud) -> None:
    before = both.claimed()
    uuid, big = both.boot(), both.make_flavor(vcpus=3, ram=2048, disk=4)
    assert both.act(uuid, "resize", {"flavorRef": big}).status == 202
    seen = both.until(uuid, "VERIFY_RESIZE")
    assert (seen["flavor"]["vcpus"], seen["flavor"]["ram"]) == (3, 2048)
    assert seen["OS-EXT-STS:power_state"] == 1
    assert sum(row[1] for row in both.claimed()) == sum(row[1] for row in before) + 4
    assert both.act(uuid, "confirmResize").status == 204
    both.until(uuid, "ACTIVE")
    assert sum(row[1] for row in both.claimed()) == sum(row[1] for row in before) + 3
    assert len(both.guests.where(uuid)) == 1
    both.ask("DELETE", f"/servers/{uuid}")
    both.wait(uuid, lambda seen: seen["status"] == "GONE")
    assert both.claimed() == before


def test_a_resize_is_reverted(both: Cloud) -> None:
    before = both.claimed()
    uuid, big = both.boot(), both.make_flavor(vcpus=3, ram=2048, disk=4)
    home = both.show(uuid)["OS-EXT-SRV-ATTR:host"]
    usage = both.ask("GET", "/limits").json["limits"]["absolute"]["totalCoresUsed"]
    assert both.act(uuid, "resize", {"flavorRef": big}).status == 202
    both.until(uuid, "VERIFY_RESIZE")
    assert both.act(uuid, "revertResize").status == 202
    seen = both.until(uuid, "ACTIVE")
    assert (seen["flavor"]["vcpus"], seen["OS-EXT-SRV-ATTR:host"]) == (1, home)
    assert both.ask("GET", "/limits").json["limits"]["absolute"]["totalCoresUsed"] == usage
    assert both.guests.where(uuid) == [home]
    both.ask("DELETE", f"/servers/{uuid}")
    both.wait(uuid, lambda seen: seen["status"] == "GONE")
    assert both.claimed() == before


def test_a_stopped_server_is_resized_and_stays_stopped(lite: Cloud) -> None:
    uuid, big = lite.boot(), lite.make_flavor(vcpus=2)
    lite.act(uuid, "os-stop")
    lite.until(uuid, "SHUTOFF")
    lite.act(uuid, "resize", {"flavorRef": big})
    lite.until(uuid, "VERIFY_RESIZE")
    lite.act(uuid, "confirmResize")
    assert lite.until(uuid, "SHUTOFF")["OS-EXT-STS:power_state"] == 4


def test_a_migration_is_found_by_either_host(both: Cloud) -> None:
    uuid = both.boot()
    assert both.act(uuid, "migrate").status == 202
    both.until(uuid, "VERIFY_RESIZE")
    for host in both.hosts:
        path = f"/os-migrations?host={host}&instance_uuid={uuid}"
        assert len(both.ask("GET", path).json["migrations"]) == 1
    never = "changes-since=2090-01-01T00:00:00Z&changes-before=2001-01-01T00:00:00Z"
    assert both.ask("GET", f"/os-migrations?{never}").status == 400


def test_a_server_moves_to_another_host(both: Cloud) -> None:
    uuid = both.boot()
    home = both.show(uuid)["OS-EXT-SRV-ATTR:host"]
    assert both.act(uuid, "migrate").status == 202
    seen = both.until(uuid, "VERIFY_RESIZE")
    assert seen["OS-EXT-SRV-ATTR:host"] != home
    both.act(uuid, "confirmResize")
    both.until(uuid, "ACTIVE")
    assert both.guests.where(uuid) == [seen["OS-EXT-SRV-ATTR:host"]]
    assert _last(both, uuid)[0] == "confirmResize"


def test_a_server_moves_while_it_runs(both: Cloud) -> None:
    before = both.claimed()
    uuid = both.boot()
    home = both.show(uuid)["OS-EXT-SRV-ATTR:host"]
    body = {"host": None, "block_migration": "auto"}
    assert both.act(uuid, "os-migrateLive", body).status == 202
    seen = both.wait(uuid, lambda s: s["OS-EXT-SRV-ATTR:host"] != home)
    assert seen["status"] == "ACTIVE"
    both.ask("DELETE", f"/servers/{uuid}")
    both.wait(uuid, lambda seen: seen["status"] == "GONE")
    assert both.claimed() == before


def test_a_server_is_shelved_and_comes_back(both: Cloud) -> None:
    before = both.claimed()
    uuid = both.boot()
    assert both.act(uuid, "shelve").status == 202
    seen = both.until(uuid, "SHELVED_OFFLOADED")
    assert seen["OS-EXT-SRV-ATTR:host"] is None
    assert both.claimed() == before
    assert both.guests.where(uuid) == []
    assert both.act(uuid, "unshelve").status == 202
    both.until(uuid, "ACTIVE")
    assert both.claimed() != before


def test_a_place_to_come_back_to_must_be_there_and_allowed(lite: Cloud) -> None:
    _, token, _ = lite.app.person("member")
    uuid = lite.boot(token=token)
    home = lite.show(uuid)["OS-EXT-SRV-ATTR:host"]
    assert lite.act(uuid, "migrate", {"host": home}).status == 400
    assert lite.act(uuid, "shelve").status == 202
    lite.until(uuid, "SHELVED_OFFLOADED")
    assert lite.act(uuid, "unshelve", {"host": home}, token=token).status == 403
    assert lite.act(uuid, "unshelve", {"availability_zone": "nowhere"}).status == 400
    assert lite.show(uuid)["pinned_availability_zone"] is None
    assert lite.act(uuid, "unshelve", {"availability_zone": "nova"}, token=token).status == 202
    lite.until(uuid, "ACTIVE")


def test_a_server_becomes_an_image(both: Cloud) -> None:
    uuid = both.boot()
    answer = both.act(uuid, "createImage", {"name": "copy", "metadata": {"k": "v"}})
    assert answer.status == 202, answer
    image = answer.json["image_id"]
    both.settled(uuid)
    shown = both.app.ask("GET", f"/image/v2/images/{image}", version=None).json
    assert (shown["status"], shown["name"], shown["k"]) == ("active", "copy", "v")
    assert both.boot(imageRef=image)
    old = both.act(uuid, "createImage", {"name": "old"}, version=44)
    assert (old.status, old.body) == (202, b"")
    assert "/image/v2/images/" in old.headers["location"]


def test_of_each_kind_of_backup_the_newest_are_kept(lite: Cloud) -> None:
    uuid, made = lite.boot(), list[str]()
    for number in range(3):
        body = {"name": f"b{number}", "backup_type": "daily", "rotation": 2}
        answer = lite.act(uuid, "createBackup", body)
        assert answer.status == 202, answer
        made.append(answer.json["image_id"])
        lite.settled(uuid)
    found = [lite.app.ask("GET", f"/image/v2/images/{one}", version=None).status for one in made]
    assert found == [404, 200, 200]


def _protect(cloud: Cloud, image: str) -> None:
    patch = [{"op": "replace", "path": "/protected", "value": True}]
    headers = {"content-type": "application/openstack-images-v2.1-json-patch"}
    path = f"/image/v2/images/{image}"
    body = json.dumps(patch).encode()
    assert cloud.app.ask("PATCH", path, body, version=None, headers=headers).status == 200


def test_an_image_that_is_protected_holds_up_nothing(lite: Cloud) -> None:
    uuid = lite.boot()
    wish = {"name": "b", "backup_type": "daily", "rotation": 1}
    first, second = "", ""
    for _ in range(2):
        first, second = second, lite.act(uuid, "createBackup", wish).json["image_id"]
        lite.until(uuid, "ACTIVE")
        _protect(lite, second)
    assert lite.app.ask("GET", f"/image/v2/images/{first}", version=None).status == 200
    assert lite.act(uuid, "shelve").status == 202
    lite.until(uuid, "SHELVED_OFFLOADED")
    images = lite.app.ask("GET", "/image/v2/images", version=None).json["images"]
    _protect(lite, next(one["id"] for one in images if one["name"].endswith("-shelved")))
    assert lite.ask("DELETE", f"/servers/{uuid}").status == 204
    lite.wait(uuid, lambda seen: seen["status"] == "GONE")


def test_owners_are_not_told_which_host_it_is(lite: Cloud) -> None:
    _, token, _ = lite.app.person("member")
    uuid = lite.boot(token=token)
    home = lite.show(uuid)["OS-EXT-SRV-ATTR:host"]
    lite.script(f"server:{uuid}", latency_s={"pause": 3600.0})
    lite.act(uuid, "pause", token=token)
    busy = f"host {home} is busy with pause"
    lite.wait(uuid, lambda seen: seen["wait_reason"] == busy)
    for path in (f"/servers/{uuid}", "/servers/detail"):
        seen = lite.ask("GET", path, version=900, token=token).json
        shown = seen["server"] if "server" in seen else seen["servers"][0]
        assert shown["wait_reason"] == "its host is busy with pause"
    lite.act(uuid, "os-resetState", {"state": "active"})
    why = f"host {home} (qemu+ssh://me@192.0.2.1/system): its disk is full."
    lite.script(f"server:{uuid}", fail={"rescue": why})
    lite.act(uuid, "rescue", token=token)
    assert home in lite.until(uuid, "ERROR")["fault"]["message"]
    last = lite.actions(uuid)[0]["request_id"]
    for path in (
        f"/servers/{uuid}", "/servers/detail", f"/servers/{uuid}/os-instance-actions/{last}",
    ):  # fmt: skip
        for version in (104, 901):
            answer = lite.ask("GET", path, token=token, version=version)
            assert "its host: its disk is full" in str(answer.json)
            assert home not in str(answer.json)
            assert "192.0.2.1" not in str(answer.json)


def test_a_password_is_changed(lite: Cloud) -> None:
    uuid = lite.boot()
    assert lite.act(uuid, "changePassword", {"adminPass": "new"}).status == 202
    lite.until(uuid, "ACTIVE")
    assert _last(lite, uuid) == ("changePassword", None, ["Success"])


def test_an_administrator_says_what_state_it_is_in(lite: Cloud) -> None:
    uuid = lite.boot()
    assert lite.act(uuid, "os-resetState", {"state": "error"}).status == 202
    assert lite.show(uuid)["status"] == "ERROR"
    assert lite.act(uuid, "os-resetState", {"state": "active"}).status == 202
    assert lite.show(uuid)["status"] == "ACTIVE"
    assert lite.act(uuid, "os-resetState", {"state": "paused"}).status == 400


def test_a_locked_server_is_left_alone(lite: Cloud) -> None:
    _, token, _ = lite.app.person("member")
    uuid = lite.boot(token=token)
    assert lite.act(uuid, "lock", {"locked_reason": "mine"}, token=token).status == 202
    shown = lite.show(uuid)
    assert (shown["locked"], shown["locked_reason"]) == (True, "mine")
    answer = lite.act(uuid, "os-stop", token=token)
    assert answer.status == 409
    assert "is locked" in answer.json["conflictingRequest"]["message"]
    assert lite.ask("DELETE", f"/servers/{uuid}", token=token).status == 409
    assert lite.act(uuid, "unlock", token=token).status == 202
    assert lite.act(uuid, "lock").status == 202
    assert lite.act(uuid, "unlock", token=token).status == 409
    assert lite.act(uuid, "os-stop").status == 202


def test_a_server_leaves_a_host_that_is_down(both: Cloud) -> None:
    uuid = both.boot()
    home = both.show(uuid)["OS-EXT-SRV-ATTR:host"]
    assert both.act(uuid, "evacuate", {}).status == 400
    services = both.ask("GET", "/os-services", version=53).json["services"]
    ident = next(one["id"] for one in services if one["host"] == home)
    both.ask("PUT", f"/os-services/{ident}", {"forced_down": True}, version=53)
    try:
        answer = both.act(uuid, "evacuate", {}, version=94)
        assert answer.status == 200, answer
        seen = both.until(uuid, "ACTIVE")
        assert seen["OS-EXT-SRV-ATTR:host"] != home
    finally:
        both.ask("PUT", f"/os-services/{ident}", {"forced_down": False}, version=53)
    # What it left there is removed a moment later: so it does not come back before that.
    assert both.act(uuid, "migrate", {"host": home}).status == 202
    both.wait(uuid, lambda seen: "what was left of it on host" in (seen["wait_reason"] or ""))
    assert both.ask("DELETE", f"/servers/{uuid}").status == 204


def test_what_cannot_be_done_in_a_state_is_refused_in_words_that_clients_know(
    lite: Cloud,
) -> None:
    uuid = lite.boot()
    answer = lite.act(uuid, "os-start")
    assert answer.status == 409
    said, _, legal = answer.json["conflictingRequest"]["message"].partition(". Legal here: ")
    assert said == f"Cannot 'start' instance {uuid} while it is in vm_state active"
    assert {"stop", "reboot", "pause", "delete"} <= set(legal.removesuffix(".").split(", "))
    lite.script(f"server:{uuid}", latency_s={"pause": 20})
    lite.act(uuid, "pause")
    busy = lite.act(uuid, "os-stop")
    assert busy.status == 409
    assert "while it is in task_state pausing" in busy.json["conflictingRequest"]["message"]
    assert busy.headers["retry-after"]
    assert lite.act(uuid, "reboot", {"type": "HARD"}).status == 202
    lite.until(uuid, "ACTIVE")


@pytest.mark.parametrize(
    ("action", "value", "status"),
    [("pause", None, "ACTIVE"), ("os-stop", None, "ACTIVE"), ("rescue", {}, "ERROR")],
)
def test_a_failure_shows_on_the_server_and_its_action(
    lite: Cloud, action: str, value: Any, status: str
) -> None:
    uuid = lite.boot()
    lite.script(
        f"server:{uuid}", fail={"pause": "stuck", "off": "stuck", "rescue": "stuck"},
        guest="ignores",
    )  # fmt: skip
    if action == "os-stop":
        assert lite.act(uuid, action, {"shutdown_type": "HARD"}, version=901).status == 202
    else:
        lite.act(uuid, "os-resetState", {"state": "active"})
        if action == "rescue":
            lite.script(f"server:{uuid}", fail={"rescue": "stuck"})
        lite.act(uuid, action, value)
    seen = lite.until(uuid, status)
    assert "stuck" in seen["fault"]["message"]
    last = lite.actions(uuid)[0]
    assert (last["message"], last["events"][0]["result"]) == ("Error", "Error")
    assert "stuck" in last["events"][0]["details"]
    name = {"pause": "pause", "os-stop": "power_off", "rescue": "rescue"}[action]
    kinds = [kind for kind, _ in lite.facts(uuid, f"instance.{name}.error")]
    assert kinds[-1] == f"instance.{name}.error"
