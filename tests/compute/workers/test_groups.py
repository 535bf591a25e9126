"""Members of a strict group that are placed at the same moment, as by several processes."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from collections.abc import Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from siderite.compute.usecases.placement import placing
from siderite.core.turns import Turns
from tests.compute.cloud import Cloud

TRIALS = 5


@pytest.fixture
def strangers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Workers that know nothing of each other, and find their places at the same moment."""
    takes_turns, finds = Turns.of, placing.find_place

    @asynccontextmanager
    async def of(self: Turns, machine: str) -> AsyncIterator[None]:
        if machine.startswith("group:"):
            yield
            return
        async with takes_turns(self, machine):
            yield

    async def find_place(*args: Any, **how: Any) -> Any:
        found = await finds(*args, **how)
        await asyncio.sleep(0.005)  # time for the others to find the same
        return found

    monkeypatch.setattr(Turns, "of", of)
    monkeypatch.setattr(placing, "find_place", find_place)
    yield


def _group(cloud: Cloud, policy: str, **rules: int) -> str:
    body = {"name": "g", "policy": policy, **({"rules": rules} if rules else {})}
    made = cloud.ask("POST", "/os-server-groups", {"server_group": body})
    return str(made.json["server_group"]["id"])


def _together(cloud: Cloud, group: str, count: int) -> list[dict[str, Any]]:
    """So many servers of a group, asked for in one request."""
    wish = {
        "name": "s", "flavorRef": cloud.flavor, "imageRef": cloud.image, "networks": "none",
        "min_count": count, "max_count": count, "return_reservation_id": True,
    }  # fmt: skip
    body = {"server": wish, "os:scheduler_hints": {"group": group}}
    answer = cloud.ask("POST", "/servers", body)
    assert answer.status == 202, answer
    which = f"/servers?reservation_id={answer.json['reservation_id']}"
    uuids = [one["id"] for one in cloud.ask("GET", which).json["servers"]]
    seen = [cloud.settled(uuid) for uuid in uuids]
    cloud.ask("DELETE", f"/os-server-groups/{group}")  # a project may have few
    return seen


def _hosts(seen: list[dict[str, Any]]) -> Counter[str]:
    return Counter(
        one["OS-EXT-SRV-ATTR:host"] for one in seen if one["OS-EXT-SRV-ATTR:host"] is not None
    )


def test_two_that_are_placed_at_once_never_share_a_host(both: Cloud, strangers: None) -> None:
    for _ in range(TRIALS):
        seen = _together(both, _group(both, "anti-affinity"), 3)
        assert sorted(_hosts(seen).values()) == [1, 1], seen
        assert sorted(one["status"] for one in seen) == ["ACTIVE", "ACTIVE", "ERROR"]


def test_no_more_than_the_rule_says_are_on_a_host(both: Cloud, strangers: None) -> None:
    for _ in range(TRIALS):
        seen = _together(both, _group(both, "anti-affinity", max_server_per_host=2), 4)
        assert sorted(_hosts(seen).values()) == [2, 2], seen


def test_two_that_are_placed_at_once_are_never_parted(both: Cloud, strangers: None) -> None:
    for _ in range(TRIALS):
        seen = _together(both, _group(both, "affinity"), 3)
        assert list(_hosts(seen).values()) == [3], seen


def test_two_that_move_at_once_do_not_move_to_one_host(both: Cloud, strangers: None) -> None:
    """A host counts from the claim on, not only once the server is there."""
    third = both.add_host()
    group = _group(both, "anti-affinity")
    uuids = [both.boot(host=host, hints={"group": group}) for host in both.hosts[:2]]
    for uuid in uuids:
        assert both.act(uuid, "migrate", {}).status == 202
    seen = [both.settled(uuid) for uuid in uuids]
    assert sorted(one["status"] for one in seen) == ["ACTIVE", "VERIFY_RESIZE"]
    assert _hosts(seen)[third] == 1
    # What may come back has its old host still: no third member goes there.
    assert both.settled(both.create(hints={"group": group}))["status"] == "ERROR"
    ident = next(
        one["id"] for one in both.ask("GET", "/os-services").json["services"]
        if one["host"] == third
    )  # fmt: skip
    both.ask("PUT", f"/os-services/{ident}", {"status": "disabled"})


def test_a_server_is_not_shown_in_a_group_that_is_gone(both: Cloud) -> None:
    group = _group(both, "soft-affinity")
    uuid = both.create(hints={"group": group})
    both.until(uuid, "ACTIVE")
    assert both.show(uuid)["server_groups"] == [group]
    assert both.ask("DELETE", f"/os-server-groups/{group}").status == 204
    assert both.show(uuid)["server_groups"] == []
    renamed = both.ask("PUT", f"/servers/{uuid}", {"server": {"name": "other"}})
    assert renamed.json["server"]["server_groups"] == []
    assert both.show(uuid)["scheduler_hints"] == {"group": group}, "as it was asked for"


def test_a_group_that_is_on_its_way_is_waited_for(lite: Cloud) -> None:
    group = _group(lite, "affinity")
    first = lite.boot(hints={"group": group})
    assert lite.act(first, "migrate", {}).status == 202
    assert lite.settled(first)["status"] == "VERIFY_RESIZE"
    second = lite.create(hints={"group": group})
    seen = lite.wait(second, lambda seen: "on its way" in str(seen["wait_reason"]))
    assert first in seen["wait_reason"]
    assert lite.act(first, "revertResize").status == 202
    lite.until(second, "ACTIVE")
    there = {lite.show(uuid)["OS-EXT-SRV-ATTR:host"] for uuid in (first, second)}
    assert len(there) == 1
