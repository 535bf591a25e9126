"""Several PENDING servers are looked after at once, and none takes what is another's."""

import asyncio
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import pytest

from siderite.reaper import Refused
from siderite.reaper import reaper as reaping
from siderite.reaper import turns as turning
from siderite.reaper.reaper import Reaper
from siderite.reaper.shown import wanted
from siderite.reaper.turns import Turn
from siderite.reaper.turns import Turns
from tests.reaper.test_serving import CHEAP
from tests.reaper.test_serving import ROOM
from tests.reaper.test_serving import Full
from tests.reaper.test_serving import full as full_cloud

SLOW = {"latency_s": {"destroy": 3600.0}}
full = full_cloud


def shown(name: str, *hosts: str, whole: bool = False) -> dict[str, Any]:
    """A PENDING server that lacks only room on these hosts."""
    specs = {"resources:CUSTOM_GOLD": "1"} if whole else {}
    refusals = dict.fromkeys(hosts, "without room: 1 vCPU") | {"down": "it is down"}
    return {"id": name, "refusals": refusals, "flavor": {"extra_specs": specs}}


class Served:
    """Turns whose servers are served until they are let go."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.let_go: dict[str, asyncio.Event] = {}

    async def serve(self, server: dict[str, Any]) -> None:
        self.let_go[server["id"]] = asyncio.Event()
        await self.let_go[server["id"]].wait()

    def begin(self, *waiting: dict[str, Any]) -> list[str]:
        """Those whose turn it is not."""
        left = self.turns.begin(waiting, self.serve, lambda: None)
        return [server["id"] for server in left]

    async def done(self, name: str) -> None:
        await asyncio.sleep(0)
        self.let_go[name].set()
        while name in self.turns.taken:
            await asyncio.sleep(0)


def story(told: Callable[[Served], Any]) -> None:
    async def run() -> None:
        served = Served()
        try:
            await told(served)
        finally:
            await served.turns.end()
        assert not served.turns.taken

    asyncio.run(run())


def test_who_wants_another_host_does_not_wait_and_who_came_before_is_not_overtaken() -> None:
    async def told(served: Served) -> None:
        a, b, c = shown("a", "1"), shown("b", "1", "2"), shown("c", "2", "3")
        d = shown("d", "4")
        assert served.begin(a, b, c, d) == ["b", "c"], "c wants what b wants, and b came first"
        assert served.begin(a, b, c, d) == ["b", "c"], "nobody is begun with twice"
        await served.done("a")
        assert served.begin(b, c) == ["c"]
        await served.done("b")
        assert served.begin(c) == []

    story(told)


def test_what_was_chosen_is_all_that_is_held() -> None:
    async def told(served: Served) -> None:
        assert served.begin(shown("a", "1", "2")) == []
        served.turns.taken["a"].chosen = "1"
        assert served.begin(shown("b", "2"), shown("c", "1")) == ["c"]
        assert served.turns.chosen_by_others(served.turns.taken["b"]) == {"1"}
        assert served.turns.chosen_by_others(served.turns.taken["a"]) == frozenset()

    story(told)


@pytest.mark.parametrize("whole", [True, False])
def test_only_nodes_that_are_given_out_whole_are_as_good_as_each_other(whole: bool) -> None:
    async def told(served: Served) -> None:
        a, b = shown("a", "1", "2", whole=whole), shown("b", "1", "2", whole=whole)
        assert served.begin(a) == []
        with served.turns.waiting(a, lambda: None):
            assert served.begin(b) == ([] if whole else ["b"])
            assert served.turns.is_early(served.turns.of(b)) is not whole
        assert served.turns.is_early(served.turns.of(b))
        assert not served.turns.is_early(served.turns.of(a))

    story(told)


def test_there_are_only_so_many_at_once_and_those_that_wait_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turning, "AT_ONCE", 2)
    monkeypatch.setattr(turning, "MOST", 3)

    async def told(served: Served) -> None:
        all_ = [shown(name, name) for name in "abcd"]
        assert served.begin(*all_) == ["c", "d"]
        served.turns.taken["a"].is_waiting = True
        assert served.begin(*all_) == ["d"]
        for turn in served.turns.taken.values():
            turn.is_waiting = True
        assert served.begin(*all_) == ["d"]

    story(told)


def test_one_that_has_its_host_keeps_off_nobody_and_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turning, "AT_ONCE", 1)

    async def told(served: Served) -> None:
        assert served.begin(shown("a", "1")) == []
        served.turns.taken["a"].chosen = "1"
        assert served.begin(shown("b", "1")) == ["b"]
        served.turns.taken["a"].is_placed = True
        assert served.begin(shown("b", "1")) == []
        assert served.turns.chosen_by_others(served.turns.taken["b"]) == frozenset()
        assert not served.turns.is_early(served.turns.taken["b"])

    story(told)


@pytest.fixture
def gold(full: Full) -> Iterator[Full]:
    """Two nodes, each with a preemptible server."""
    for _ in range(2):
        full.add_host(resource_class="CUSTOM_GOLD")
    full.flavor = full.make_flavor()
    specs = {"extra_specs": {"resources:CUSTOM_GOLD": "1"}}
    assert full.ask("POST", f"/flavors/{full.flavor}/os-extra_specs", specs).status == 200
    for _ in range(2):
        full.boot(metadata=CHEAP, networks="none")
    yield full


def reap_until(cloud: Full, is_so: Callable[[Reaper], Any]) -> None:
    """Have a reaper at work until then."""
    reaper: Reaper = cloud.reaper()

    async def at_work() -> None:
        rounds = asyncio.create_task(reaper.round())
        try:
            while not await is_so(reaper):
                assert not rounds.done()
                await asyncio.sleep(0.02)
        finally:
            rounds.cancel()
            await asyncio.gather(rounds, return_exceptions=True)

    cloud.run(at_work())


def is_active(uuid: str) -> Callable[[Reaper], Any]:
    async def ask(reaper: Reaper) -> bool:
        found = await reaper._found(uuid)
        return found is not None and found["status"] == "ACTIVE"

    return ask


def test_one_that_waits_long_holds_up_nobody_who_wants_another_host(full: Full) -> None:
    first, second = full.hosts[0], full.add_host(**ROOM)
    for host in (first, second):
        for _ in range(4):
            full.boot(metadata=CHEAP, networks="none", availability_zone=f"nova:{host}")
    slow, quick = (full.pends(availability_zone=f"nova:{host}") for host in (first, second))
    full.script(f"host:{first}", **SLOW)
    reap_until(full, is_active(quick))
    assert full.status(slow) == "PENDING"


def test_one_that_waits_for_its_node_does_not_keep_others_from_other_nodes(gold: Full) -> None:
    first, second = gold.pends(), gold.pends()
    gold.script(f"host:{min(gold.hosts[1:])}", **SLOW)  # of two that are alike the first is chosen
    reap_until(gold, is_active(second))
    assert gold.status(first) == "PENDING"
    deleted = "/servers/detail?all_tenants=1&deleted=true"
    assert len(gold.ask("GET", deleted).json["servers"]) == 1


def test_a_node_whose_server_does_not_go_is_not_taken_for_an_empty_one(
    gold: Full, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reaping, "GONE_S", 2.0)
    first, uuid = min(gold.hosts[1:]), gold.pends()
    gold.script(f"host:{first}", fail={"destroy": "it is stuck"})
    gold.reap()
    assert gold.status(uuid) == "ACTIVE"
    assert gold.show(uuid)["OS-EXT-SRV-ATTR:host"] == max(gold.hosts[1:])
    assert [one["action"] for one in gold.actions(uuid)].count("rebuild") == 3


def test_nobody_else_goes_because_a_node_takes_long_to_be_left(
    gold: Full, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reaping, "GONE_S", 2.0)
    uuid = gold.pends()
    gold.script("all", latency_s={"destroy": 5.0})
    gold.reap()
    assert gold.until(uuid, "ACTIVE")
    deleted = "/servers/detail?all_tenants=1&deleted=true"
    assert len(gold.ask("GET", deleted).json["servers"]) == 1


def test_nobody_is_given_up_for_want_of_what_another_may_not_need(gold: Full) -> None:
    """Three want two nodes: the third looks again when the others are done."""
    wanting = [gold.pends() for _ in range(3)]
    gold.script("all", **SLOW)

    async def looks_again(reaper: Reaper) -> bool:
        return wanting[2] in reaper._later

    reap_until(gold, looks_again)
    assert [gold.status(uuid) for uuid in wanting] == ["PENDING"] * 3
    assert len(gold.actions(wanting[2])) == 1, "nor is it tried meanwhile"


def test_who_wants_the_same_room_waits_and_is_not_built_before(full: Full) -> None:
    full.fill()
    first, second = full.pends(), full.pends()
    full.script("all", latency_s={"destroy": 0.3})
    full.reap()
    assert (full.status(first), full.status(second)) == ("ACTIVE", "ACTIVE")
    began = [full.show(uuid)["OS-SRV-USG:launched_at"] for uuid in (first, second)]
    assert began == sorted(began)
    tries = [one["action"] for one in full.actions(second)]
    assert tries.count("rebuild") == 2, (
        "once to see whether it may be, and once when there was room"
    )


def test_who_wants_the_same_room_does_not_wait_until_another_is_made_where_it_is(
    full: Full,
) -> None:
    full.fill()
    first, second = full.pends(), full.pends()
    full.script("all", latency_s={"spawn": 120.0})

    async def has_host(reaper: Reaper) -> bool:
        found = await reaper._found(second)
        return found is not None and found["OS-EXT-SRV-ATTR:host"] is not None

    reap_until(full, has_host)
    assert (full.status(first), full.status(second)) == ("BUILD", "BUILD")


def test_who_began_too_early_is_not_tried_before_the_one_that_is_about_to_be_built(
    full: Full,
) -> None:
    full.fill()
    uuid = full.pends()
    reaper, pending = full.reaper(), full.show(uuid, version=901)
    wants = wanted(pending)
    reaper._turns.taken |= {"before": Turn(wants, False), uuid: Turn(wants, False)}
    reaper._is_news = False
    full.run(reaper.serve(pending))
    assert len(full.actions(uuid)) == 1
    assert reaper._is_news, "it is looked at again as soon as it can be"


def test_two_of_a_project_at_once_do_not_keep_each_other_from_what_the_limit_allows(
    full: Full,
) -> None:
    hosts = [full.hosts[0], full.add_host(**ROOM)]
    for host in hosts:
        for _ in range(4):
            full.boot(metadata=CHEAP, networks="none", availability_zone=f"nova:{host}")
    both = [full.pends(availability_zone=f"nova:{host}") for host in hosts]
    full.reap(per_project_and_hour=1)
    assert sorted(full.status(uuid) for uuid in both) == ["ACTIVE", "PENDING"]


def test_one_that_somebody_else_has_built_or_cares_for_by_now_is_not_given_up(full: Full) -> None:
    cheap = full.fill()
    theirs, built = full.pends(), full.pends()
    reaper, shown_ = full.reaper(), [full.show(uuid, version=901) for uuid in (theirs, built)]
    care = {"keeper": "another", "seconds": 60}
    assert full.act(theirs, "siderite-claimPending", care, version=901).status == 200
    full.ask("DELETE", f"/servers/{cheap[0]}")
    full.wait(cheap[0], lambda server: server["status"] == "GONE")
    full.act(built, "rebuild", {"imageRef": full.image})
    full.until(built, "ACTIVE")
    for one in shown_:
        with pytest.raises(Refused, match=r"in the care of another|is not pending"):
            full.run(reaper._give_up(one, "no room can be freed"))
    assert (full.status(theirs), full.status(built)) == ("PENDING", "ACTIVE")


def test_a_node_that_carries_somebody_elses_server_is_no_place(gold: Full) -> None:
    """Not even an empty one, as far as compute knows."""
    empty = gold.add_host(resource_class="CUSTOM_GOLD")
    uuid = gold.boot(networks="none")
    reaper, shown_ = gold.reaper(), gold.show(uuid, version=901)
    assert shown_["OS-EXT-SRV-ATTR:host"] == empty
    assert gold.ask("DELETE", f"/servers/{uuid}").status == 204
    gold.wait(uuid, lambda server: server["status"] == "GONE")
    carries = {empty: "not available: carries server 4711"}
    _, places = gold.run(reaper._places(shown_, carries))
    assert places == []
    _, places = gold.run(reaper._places(shown_, {empty: "in use"}))
    assert [place.node for place in places] == [empty]
