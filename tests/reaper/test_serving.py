"""What the reaper does for one server after another, and what it must never do: the reaper itself,
in this process, on the API of a small cloud.
"""

import asyncio
from collections.abc import Coroutine
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from siderite.compute.workers.hands import Hands
from siderite.compute.workers.tidying import Tidying
from siderite.reaper import Api
from siderite.reaper import Reaper
from siderite.reaper import Refused
from siderite.reaper import Rules
from siderite.reaper import limit
from siderite.reaper import reaper as reaping
from siderite.reaper.shown import mark_of
from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud

CHEAP = {"preemptible": "true"}
PENDING = 900
NO_IMAGES: Any = None
ROOM = {"vcpus": 1, "ram_mib": 2048, "disk_gib": 20}  # four of the small flavor


class Direct(Api):
    """A session without a socket."""

    def __init__(self, made: Cloud) -> None:
        super().__init__("http://cloud.test", "http://cloud.test/identity/v3", {})
        self._app = made.app.app

    async def _send(self, method: str, path: str, body: Any) -> httpx.Response:
        headers = {"openstack-api-version": "compute 2.901"}
        where = f"/compute/v2.1{path}"
        sent = () if body is None else (body,)
        answer = await self._app.ask(method, where, *sent, version=None, headers=headers)
        return httpx.Response(answer.status, content=answer.body)


class Full(Cloud):
    """A cloud whose one host is full of preemptible servers."""

    options: dict[str, Any]

    def reaper(self, **rules: Any) -> Reaper:
        return Reaper(Direct(self), Rules(**{"name": "one", **rules}))

    def reap(self, **rules: Any) -> None:
        self.run(self.reaper(**rules).round())

    def run(self, story: Coroutine[Any, Any, Any]) -> Any:
        async def in_time() -> Any:
            async with asyncio.timeout(60):
                return await story

        return self.app.run(in_time())

    def pends(self, **fields: Any) -> str:
        uuid = self.create(**fields)
        self.wait(uuid, lambda server: server["status"] == "PENDING")
        return uuid

    def status(self, uuid: str) -> str:
        answer = self.ask("GET", f"/servers/{uuid}", version=PENDING)
        return "GONE" if answer.status == 404 else str(answer.json["server"]["status"])

    def fill(self) -> list[str]:
        return [self.boot(metadata=CHEAP, networks="none") for _ in range(4)]


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Full]:
    yield from _full(tmp_path, monkeypatch)


@pytest.fixture
def thrifty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Full]:
    """One where deleted servers can be restored for a while."""
    yield from _full(tmp_path, monkeypatch, reclaim_interval_s=3600)


def _full(folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Iterator[Full]:
    monkeypatch.setattr(reaping, "POLL_S", 0.01)
    with cloud(folder, hosts=0, use_pending_state=True, **options) as made:
        made.__class__ = Full
        assert isinstance(made, Full)
        made.add_host(**ROOM)
        yield made


class Late(Direct):
    """The time of every PENDING server is over when somebody has been asked to go."""

    def __init__(self, made: Cloud) -> None:
        super().__init__(made)
        context = made.app.app.program.compute.context
        hasty = replace(
            context, settings=msgspec.structs.replace(context.settings, pending_timeout_s=0.001)
        )
        self._tidying = Tidying(Hands(hasty, {}, NO_IMAGES))
        self.seen: list[str] = []

    async def act(self, server: str, action: str, value: Any = None) -> Any:
        answer = await super().act(server, action, value)
        self.seen.append(action)
        if action == "forceDelete":
            await self._tidying.round()
        return answer


def test_one_for_which_others_go_is_not_given_up_though_its_time_ends_meanwhile(full: Full) -> None:
    cheap, uuid, api = full.fill(), full.pends(), Late(full)
    full.run(Reaper(api, Rules(name="one")).round())
    assert full.status(uuid) == "ACTIVE"
    assert sorted(full.status(one) for one in cheap) == ["ACTIVE"] * 3 + ["GONE"]
    assert api.seen.count("forceDelete") == 1


class Fickle(Direct):
    """A user deletes their PENDING server as soon as somebody has been asked to go for it."""

    def __init__(self, made: Cloud, uuid: str) -> None:
        super().__init__(made)
        self._uuid = uuid

    async def act(self, server: str, action: str, value: Any = None) -> Any:
        answer = await super().act(server, action, value)
        if action == "forceDelete":
            await self.ask("DELETE", f"/servers/{self._uuid}")
        return answer


def test_nobody_else_goes_for_one_that_its_user_deletes_meanwhile(full: Full) -> None:
    cheap, uuid = full.fill(), full.pends(flavorRef=full.make_flavor(ram=1536))
    full.run(Reaper(Fickle(full, uuid), Rules(name="one")).round())
    full.wait(uuid, lambda server: server["status"] == "GONE")
    assert sorted(full.status(one) for one in cheap) == ["ACTIVE"] * 3 + ["GONE"]


@pytest.mark.parametrize(
    "script", [{"fail": {"destroy": "it is stuck"}}, {"latency_s": {"destroy": 600.0}}]
)
def test_where_somebody_does_not_go_others_go_elsewhere(
    full: Full, monkeypatch: pytest.MonkeyPatch, script: dict[str, Any]
) -> None:
    monkeypatch.setattr(reaping, "GONE_S", 2.0)
    second = full.add_host(**ROOM)
    cheap = [*full.fill(), *full.fill()]
    uuid = full.pends()
    full.script(f"host:{min(full.hosts)}", **script)  # of two that are alike the first is chosen
    full.reap()
    assert full.status(uuid) == "ACTIVE"
    assert full.show(uuid)["OS-EXT-SRV-ATTR:host"] == second
    assert [full.status(one) for one in cheap].count("GONE") == 1


def test_one_that_may_not_be_built_is_given_up_before_anybody_goes_and_holds_nobody_up(
    full: Full,
) -> None:
    """Its image is gone: the rebuild is refused, and would be again."""
    cheap = full.fill()
    lost = full.make_image()
    first, second = full.pends(imageRef=lost), full.pends()
    full.app.ask("DELETE", f"/image/v2/images/{lost}", version=None)
    full.reap()
    assert [full.status(uuid) for uuid in (first, second)] == ["ERROR", "ACTIVE"]
    assert "No valid host" in full.show(first)["fault"]["message"]
    assert sorted(full.status(uuid) for uuid in cheap) == ["ACTIVE"] * 3 + ["GONE"]


def test_one_beyond_its_quota_is_given_up_and_nobody_goes(full: Full) -> None:
    cheap, uuid = full.fill(), full.pends()
    project = full.show(uuid)["tenant_id"]
    limit = {"quota_set": {"instances": 1, "force": True}}
    assert full.ask("PUT", f"/os-quota-sets/{project}", limit).status == 200
    full.reap()
    assert full.status(uuid) == "ERROR"
    assert {full.status(one) for one in cheap} == {"ACTIVE"}


@pytest.mark.parametrize("flavor", [{}, {"vcpus": 64, "ram": 4096}])
def test_a_host_that_came_meanwhile_is_found_and_nobody_goes(
    full: Full, flavor: dict[str, int]
) -> None:
    cheap = full.fill()
    uuid = full.pends(flavorRef=full.make_flavor(**flavor))
    full.add_host(vcpus=64, ram_mib=8192)
    full.reap()
    assert full.until(uuid, "ACTIVE")
    assert {full.status(one) for one in cheap} == {"ACTIVE"}


def test_nobody_goes_for_a_server_that_is_preemptible_itself(full: Full) -> None:
    cheap, uuid = full.fill(), full.pends(metadata=CHEAP)
    full.reap()
    assert full.status(uuid) == "ERROR"
    assert {full.status(one) for one in cheap} == {"ACTIVE"}


def test_where_the_deleted_can_be_restored_room_is_freed_all_the_same(thrifty: Full) -> None:
    cheap, uuid = thrifty.fill(), thrifty.pends()
    thrifty.reap()
    assert thrifty.status(uuid) == "ACTIVE"
    assert sorted(thrifty.status(one) for one in cheap) == ["ACTIVE"] * 3 + ["GONE"]


def test_swap_is_room_too(full: Full) -> None:
    """A GiB of disk and eight of swap go only where nine are free."""
    cheap = [
        full.boot(metadata=CHEAP, networks="none", flavorRef=full.make_flavor(disk=5))
        for _ in range(4)
    ]
    uuid = full.pends(flavorRef=full.make_flavor(disk=1, swap=8192))
    full.reap()
    assert full.status(uuid) == "ACTIVE"
    assert sorted(full.status(one) for one in cheap) == ["ACTIVE"] * 2 + ["GONE"] * 2


def test_one_that_may_stay_after_all_stays(full: Full) -> None:
    """Its owner made it a plain server between the choice and the deletion."""
    cheap, uuid = full.fill(), full.pends()
    reaper, pending = full.reaper(), full.show(uuid, version=PENDING)

    async def changed() -> None:
        await reaper._care(pending)
        choice, going = await reaper._choose(pending)
        [victim] = choice.victims
        await reaper.api.ask("PUT", f"/servers/{victim.uuid}/metadata", {"metadata": {}})
        assert await reaper._free(pending, choice, going) is False

    full.run(changed())
    assert {full.status(one) for one in cheap} == {"ACTIVE"}


def test_nobody_goes_on_a_host_that_was_disabled_meanwhile(full: Full) -> None:
    cheap, uuid = full.fill(), full.pends()
    reaper, pending = full.reaper(), full.show(uuid, version=PENDING)
    [service] = full.ask("GET", "/os-services").json["services"]
    off = {"status": "disabled"}
    assert full.ask("PUT", f"/os-services/{service['id']}", off).status == 200
    assert full.run(reaper._choose(pending)) == (None, ())
    full.reap()
    assert full.status(uuid) == "ERROR"
    assert {full.status(one) for one in cheap} == {"ACTIVE"}


def test_what_takes_more_than_the_limit_ever_allows_is_given_up(full: Full) -> None:
    cheap = full.fill()
    uuid = full.pends(flavorRef=full.make_flavor(ram=1024, vcpus=2))
    full.reap(per_project_and_hour=1)
    assert full.status(uuid) == "ERROR"
    assert {full.status(one) for one in cheap} == {"ACTIVE"}


def test_where_a_strategy_takes_more_than_the_limit_the_fewest_go(full: Full) -> None:
    """The two that came first would make room too."""
    small, large = full.make_flavor(ram=256), full.make_flavor(ram=1536)
    cheap = [
        full.boot(metadata=CHEAP, networks="none", flavorRef=one) for one in (small, small, large)
    ]
    uuid = full.pends()
    full.reap(strategy="oldest", per_project_and_hour=1)
    assert full.status(uuid) == "ACTIVE"
    assert [full.status(one) for one in cheap] == ["ACTIVE", "ACTIVE", "GONE"]


def test_one_that_cannot_be_marked_in_its_state_may_go_within_the_limit(full: Full) -> None:
    cheap = full.fill()
    for one in cheap:
        full.act(one, "os-resetState", {"state": "error"})
    first, second = full.pends(), full.pends()
    full.reap(per_project_and_hour=1)
    assert full.status(first) == "ACTIVE"
    assert full.status(second) in ("PENDING", "ACTIVE")


def test_a_locked_one_goes_too(full: Full) -> None:
    """Else a lock would be all that it takes never to go."""
    cheap, uuid = full.fill(), full.pends()
    for one in cheap:
        full.act(one, "lock")
    full.reap()
    assert full.status(uuid) == "ACTIVE"


def test_it_stays_in_care_while_others_take_long_to_go_and_nobody_goes_twice_for_it(
    full: Full, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reaping, "CARE_S", 0.3)
    cheap, uuid = full.fill(), full.pends()
    one, two = full.reaper(name="one"), full.reaper(name="two")
    pending, cares = full.show(uuid, version=PENDING), []
    care, found = one._care, one._found

    async def taken_in_care(server: dict[str, Any], **more: Any) -> None:
        await care(server, seconds=60, **more)  # which no pause of this machine outlasts
        cares.append(server["id"])

    async def found_for_long(server: str) -> dict[str, Any] | None:
        is_enough = len(cares) >= 4
        return await found(server) or (None if is_enough else {"OS-EXT-STS:task_state": "deleting"})

    monkeypatch.setattr(one, "_care", taken_in_care)
    monkeypatch.setattr(one, "_found", found_for_long)

    async def both() -> None:
        first = asyncio.create_task(one.round())
        while not cares:
            await asyncio.sleep(0.01)
        while not first.done():
            with pytest.raises(Refused, match=r"in the care of one|is not pending"):
                await two._care(pending, seconds=60)
            await asyncio.sleep(0.05)
        await first

    full.run(both())
    assert cares[:4] == [uuid] * 4
    assert full.status(uuid) == "ACTIVE"
    assert sorted(full.status(one) for one in cheap) == ["ACTIVE"] * 3 + ["GONE"]


def test_one_that_is_killed_between_freeing_and_building_is_followed_by_one_that_waits(
    full: Full,
) -> None:
    cheap, uuid = full.fill(), full.pends()
    full.script("all", latency_s={"destroy": 0.3})
    reaper, pending = full.reaper(), full.show(uuid, version=PENDING)

    async def killed() -> None:
        await reaper._care(pending)
        choice, _ = await reaper._choose(pending)
        await reaper.api.act(choice.victims[0].uuid, "forceDelete")

    full.run(killed())
    full.reap()
    assert full.status(uuid) == "ACTIVE"
    assert sorted(full.status(one) for one in cheap) == ["ACTIVE"] * 3 + ["GONE"]


def test_at_the_limit_it_looks_again_later_and_not_at_once(full: Full) -> None:
    full.fill()
    first, second = full.pends(), full.pends()
    reaper = full.reaper(per_project_and_hour=1)
    for _ in range(3):
        full.run(reaper.round())
    assert (full.status(first), full.status(second)) == ("ACTIVE", "PENDING")
    assert len(full.actions(second)) == 2, "it was tried once, and left alone then"


def test_the_limit_of_an_hour_holds_for_reapers_that_are_started_anew(full: Full) -> None:
    cheap = full.fill()
    states = []
    for _ in range(2):
        uuid = full.pends()
        full.reap(per_project_and_hour=1)
        states.append(full.status(uuid))
    assert states == ["ACTIVE", "PENDING"]
    left = [one for one in cheap if full.status(one) != "GONE"]
    assert len(left) == 3
    assert not any("preempted_for" in full.show(one)["metadata"] for one in left)


def test_a_mark_that_a_dead_reaper_left_on_one_that_stays_does_not_count_for_long(
    full: Full, monkeypatch: pytest.MonkeyPatch
) -> None:
    cheap, uuid = full.fill(), full.pends()
    mark = {"preempted_for": mark_of(full.show(uuid)["tenant_id"])}
    for one in cheap:
        assert full.ask("POST", f"/servers/{one}/metadata", {"metadata": mark}).status == 200
    monkeypatch.setattr(limit, "NEW_S", -1.0)  # that was long ago
    reaper, pending = full.reaper(per_project_and_hour=1), full.show(uuid, version=PENDING)
    choice, _ = full.run(reaper._choose(pending))
    assert full.run(reaper._may_free(pending, choice)) is True


def test_a_mark_of_another_reaper_counts_while_it_is_new(full: Full) -> None:
    """It is about to delete that server."""
    cheap, uuid = full.fill(), full.pends()
    reaper, pending = full.reaper(per_project_and_hour=1), full.show(uuid, version=PENDING)
    choice, _ = full.run(reaper._choose(pending))
    other = next(one for one in cheap if one != choice.victims[0].uuid)
    mark = {"preempted_for": mark_of(full.show(uuid)["tenant_id"])}
    assert full.ask("POST", f"/servers/{other}/metadata", {"metadata": mark}).status == 200
    assert full.run(reaper._may_free(pending, choice)) is False


def test_no_more_goes_than_is_needed_and_what_is_deleted_meanwhile_is_no_error(full: Full) -> None:
    cheap = full.fill()
    gone, stays = full.pends(), full.pends()
    reaper = full.reaper(strategy="oldest")
    asked = [full.show(uuid, version=PENDING) for uuid in (gone, stays)]
    full.ask("DELETE", f"/servers/{gone}")
    full.wait(gone, lambda server: server["status"] == "GONE")

    async def served() -> None:
        for one in asked:
            await reaper._serve_safely(one)

    full.run(served())
    assert full.status(stays) == "ACTIVE"
    assert [full.status(one) for one in cheap] == ["GONE", *["ACTIVE"] * 3], "the oldest went"
    deleted = full.ask("GET", "/servers/detail?all_tenants=1&deleted=true").json["servers"]
    marks = {one["id"]: one["metadata"].get("preempted_for_server") for one in deleted}
    assert marks[cheap[0]] == stays, "administrators see afterwards for whom"
