"""A move that is given up, or fails, leaves neither a claim nor a guest at its other end."""

import asyncio
from typing import Any

import pytest

from siderite.compute.domain.power import Power
from tests.compute.cloud import PATIENCE_S
from tests.compute.cloud import Cloud

HOUR = 3600.0


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


def _reset(cloud: Cloud, uuid: str, state: str = "active") -> None:
    cloud.guests.scripts.set(f"server:{uuid}", None)
    assert cloud.act(uuid, "os-resetState", {"state": state}).status == 202


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
    lite.script(f"server:{uuid}", latency_s={step: HOUR})
    assert lite.act(uuid, "migrate").status == 202
    _during(lite, uuid, task)
    assert len(_claims(lite, uuid)) == 2
    _reset(lite, uuid, state)
    _in_one_place(lite, uuid, home, used)
    assert lite.show(uuid)["status"] == state.upper()


def test_a_reset_during_a_resize_gives_the_room_back(both: Cloud) -> None:
    uuid = both.boot()
    home, used = _home(both, uuid), both.claimed()
    both.script(f"server:{uuid}", latency_s={"prepare": HOUR})
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
    lite.script(f"server:{uuid}", latency_s={"revert": HOUR})
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
    lite.script(f"server:{uuid}", latency_s={"live_migrate": HOUR})
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
