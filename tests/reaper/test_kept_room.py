"""The reaper has room kept that it makes, and does not count on what is kept for others."""

import asyncio
from typing import Any

import pytest

from siderite.core.store import Op
from siderite.reaper import Reaper
from siderite.reaper import Refused
from siderite.reaper import Rules
from siderite.reaper import reaper as reaping
from tests.reaper.test_serving import CHEAP
from tests.reaper.test_serving import Direct
from tests.reaper.test_serving import Full
from tests.reaper.test_serving import full as full_cloud
from tests.reaper.test_turns import gold as gold_cloud

full, gold = full_cloud, gold_cloud


class Greedy(Direct):
    """Whoever has preemptible servers asks for another one as soon as one is gone."""

    def __init__(self, made: Full) -> None:
        super().__init__(made)
        self._body = {
            "name": "again", "flavorRef": made.flavor, "imageRef": made.image, "networks": "none",
            "metadata": CHEAP,
        }  # fmt: skip
        self.tasks: list[asyncio.Task[Any]] = []

    async def _again(self, uuid: str) -> None:
        gone = f"/servers/detail?all_tenants=1&deleted=true&uuid={uuid}"
        while not (await self.ask("GET", gone))["servers"]:
            await asyncio.sleep(0)
        await self.ask("POST", "/servers", {"server": self._body})

    async def act(self, server: str, action: str, value: Any = None) -> Any:
        answer = await super().act(server, action, value)
        if action == "forceDelete":
            self.tasks.append(asyncio.create_task(self._again(server)))
        return answer


def test_who_went_and_comes_again_does_not_get_the_room_before_the_one_it_went_for(
    full: Full, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reaping, "POLL_S", 0.3)
    cheap, uuid, api = full.fill(), full.pends(), Greedy(full)
    full.run(Reaper(api, Rules(name="one")).round())
    assert full.status(uuid) == "ACTIVE"
    assert sorted(full.status(one) for one in cheap) == ["ACTIVE"] * 3 + ["GONE"]
    assert len(api.tasks) == 1


def kept(cloud: Full, uuid: str, node: str) -> None:
    """Another reaper makes room for a server."""
    care = {"keeper": "another", "seconds": 60, "making_room": True, "node": node}
    assert cloud.act(uuid, "siderite-claimPending", care, version=901).status == 200


def test_what_is_kept_for_another_is_not_counted_on_nor_is_anybody_given_up_for_want_of_it(
    full: Full,
) -> None:
    full.fill()
    large = full.make_flavor(ram=2048)
    theirs, mine = full.pends(flavorRef=large), full.pends(flavorRef=large)
    kept(full, theirs, full.hosts[0])
    reaper = full.reaper()
    full.run(reaper.round())
    assert full.status(mine) == "PENDING"
    assert mine in reaper._later
    deleted = "/servers/detail?all_tenants=1&deleted=true"
    assert full.ask("GET", deleted).json["servers"] == []


def test_a_node_that_is_kept_for_another_is_no_place(gold: Full) -> None:
    theirs, mine = gold.pends(), gold.pends()
    first, second = sorted(gold.hosts[1:])
    kept(gold, theirs, first)
    gold.reap()
    assert gold.status(mine) == "ACTIVE"
    assert gold.show(mine)["OS-EXT-SRV-ATTR:host"] == second
    assert gold.status(theirs) == "PENDING"


class Older(Direct):
    """A process of a service that is being upgraded: it keeps no room, and knows of none."""

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        if "node" in (body or {}).get("siderite-claimPending", {}):
            raise Refused(400, "Additional properties are not allowed ('node' was unexpected)")
        answer = await super().ask(method, path, body)
        for host in (answer or {}).get("hypervisors", ()):
            for field in ("kept", "is_available", "why_not"):
                host.pop(field, None)
        return answer


@pytest.mark.parametrize("kind", ["full", "gold"])
def test_an_older_api_is_served_too(kind: str, request: pytest.FixtureRequest) -> None:
    made: Full = request.getfixturevalue(kind)
    if kind == "full":
        made.fill()
    uuid = made.pends()
    made.run(Reaper(Older(made), Rules(name="one")).round())
    assert made.status(uuid) == "ACTIVE"


def test_for_a_node_that_went_meanwhile_nobody_goes(full: Full) -> None:
    full.fill()
    waiting, reaper = full.show(full.pends(), version=901), full.reaper()
    with pytest.raises(Refused, match="no hypervisor nowhere"):
        full.run(reaper._care(waiting, making_room=True, node="nowhere"))


def test_two_hosts_that_name_their_node_alike_keep_nobody_from_being_served(full: Full) -> None:
    second, context = full.add_host(vcpus=1, ram_mib=512), full.app.app.program.compute.context
    called = Op("UPDATE hypervisors SET node = ? WHERE host = ?", (full.hosts[0], second))
    full.app.run(context.door.store.commit([called]))
    cheap = [*full.fill(), full.boot(metadata=CHEAP, networks="none")]
    uuid = full.pends()
    full.reap()
    assert full.status(uuid) == "ACTIVE"
    assert [full.status(one) for one in cheap].count("GONE") == 1
