"""An action that another interrupts ends on record, and leaves nothing behind."""

from typing import Any

import pytest

from tests.compute.cloud import Cloud

SLOW = {"latency_s": {"*": 3600.0}}


def _used(cloud: Cloud) -> tuple[int, int]:
    limits = cloud.ask("GET", "/limits").json["limits"]["absolute"]
    return limits["totalInstancesUsed"], limits["totalRAMUsed"]


def _delete(cloud: Cloud, uuid: str) -> None:
    cloud.script(f"server:{uuid}", latency_s={"*": 3600.0, "destroy": 0.0})
    assert cloud.ask("DELETE", f"/servers/{uuid}").status == 204
    cloud.wait(uuid, lambda seen: seen["status"] == "GONE")


def _reset(cloud: Cloud, uuid: str) -> None:
    assert cloud.act(uuid, "os-resetState", {"state": "active"}).status == 202
    cloud.guests.scripts.set(f"server:{uuid}", None)


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
