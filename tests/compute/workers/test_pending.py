"""PENDING servers: what becomes of them without a service outside, and how two such services keep
out of each other's way.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from siderite.compute.domain.job import job_of
from siderite.compute.domain.server_machine import Event
from siderite.compute.store import SERVERS
from siderite.compute.usecases.placement import pending
from siderite.compute.usecases.server import due
from siderite.compute.usecases.server import progress
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.tidying import Tidying
from siderite.core import work
from siderite.core.ids import new_uuid
from siderite.core.store import Lost
from siderite.core.times import iso
from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud

PENDING = 900
ROOM = 901
LAST_OLD = 104
NO_IMAGES: Any = None


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """A cloud without a host, whose operator wants PENDING."""
    with cloud(tmp_path_factory.mktemp("data"), hosts=0, use_pending_state=True) as made:
        yield made


def waiting(made: Cloud, **fields: Any) -> str:
    """A server that found no host."""
    uuid = made.create(**fields)
    made.wait(uuid, lambda server: server["status"] == "PENDING")
    return uuid


def tidy(made: Cloud) -> None:
    """What is done every half minute."""
    made.app.run(Tidying(Hands(made.app.app.program.compute.context, {}, NO_IMAGES)).round())


def test_after_the_timeout_it_is_an_error_whatever_else_is_done_to_it(tmp_path: Path) -> None:
    """Neither a name nor somebody's care nor another try makes it wait for longer."""
    with cloud(tmp_path, hosts=0, use_pending_state=True, pending_timeout_s=600) as made:
        uuid, clock = waiting(made), made.app.app.program.compute.context.door
        shown, now = made.show(uuid, version=PENDING), clock.clock
        left = datetime.fromisoformat(shown["deadline"]).timestamp() - now()
        assert 500 < left <= 600
        tidy(made)
        assert made.show(uuid, version=PENDING)["status"] == "PENDING"
        clock.clock = lambda: now() + 599 + (600 - left) / 1000
        made.act(uuid, "siderite-claimPending", {"keeper": "one", "seconds": 9}, version=PENDING)
        made.act(uuid, "rebuild", {"imageRef": made.image}, version=PENDING)
        made.wait(uuid, lambda server: server["status"] == "PENDING")
        assert made.show(uuid, version=PENDING)["deadline"] == shown["deadline"]
        clock.clock = lambda: now() + 601
        tidy(made)
        assert "No room was found" in made.until(uuid, "ERROR")["fault"]["message"]


def test_it_is_not_found_by_an_address_that_it_does_not_show(full: Cloud) -> None:
    uuid = waiting(full)
    plugged = full.ask("GET", f"/servers/{uuid}/os-interface").json["interfaceAttachments"]
    address = plugged[0]["fixed_ips"][0]["ip_address"]

    def found() -> list[str]:
        return [one["id"] for one in full.ask("GET", f"/servers?ip={address}$").json["servers"]]

    assert (full.show(uuid)["addresses"], found()) == ({}, [])
    assert full.act(uuid, "os-resetState", {"state": "error"}).status == 202
    assert full.show(uuid)["addresses"]["private"][0]["addr"] == address
    assert found() == [uuid]


def test_it_is_not_given_up_while_somebody_makes_room_for_it_but_not_for_ever_either(
    tmp_path: Path,
) -> None:
    with cloud(tmp_path, hosts=0, use_pending_state=True, pending_timeout_s=600) as made:
        uuids, door = [waiting(made) for _ in range(3)], made.app.app.program.compute.context.door
        now, end = door.clock, made.show(uuids[0], version=PENDING)["deadline"]

        def care(uuid: str, **more: bool) -> None:
            asked = {"keeper": "one", "seconds": 60, **more}
            assert made.act(uuid, "siderite-claimPending", asked, version=ROOM).status == 200

        def statuses() -> list[str]:
            tidy(made)
            return [made.show(uuid, version=PENDING)["status"] for uuid in uuids]

        old = {"keeper": "one", "seconds": 60, "making_room": True}
        assert made.act(uuids[0], "siderite-claimPending", old, version=PENDING).status == 400
        door.clock = lambda: now() + 590
        care(uuids[0], making_room=True)
        care(uuids[1], making_room=True)
        care(uuids[2], making_room=True)
        assert made.show(uuids[0], version=PENDING)["deadline"] > end
        care(uuids[2], making_room=False)
        assert made.show(uuids[2], version=PENDING)["deadline"] < iso(now() + 601)
        door.clock = lambda: now() + 630
        care(uuids[0])  # of room nothing is said: it is still being made
        assert statuses() == ["PENDING", "PENDING", "ERROR"]
        door.clock = lambda: now() + 680
        assert statuses() == ["PENDING", "ERROR", "ERROR"]
        door.clock = lambda: now() + 600 + pending.MAKING_ROOM_S - 10
        care(uuids[0], making_room=True)
        assert statuses() == ["PENDING", "ERROR", "ERROR"]
        door.clock = lambda: now() + 600 + pending.MAKING_ROOM_S + 1
        care(uuids[0])
        assert statuses() == ["ERROR", "ERROR", "ERROR"]


def test_if_that_is_wanted_it_is_built_when_room_appears_unless_somebody_cares_for_it(
    tmp_path: Path,
) -> None:
    with cloud(tmp_path, hosts=0, use_pending_state=True, wake_pending=True) as made:
        kept, free = waiting(made), waiting(made)
        care = {"keeper": "one", "seconds": 600}
        assert made.act(kept, "siderite-claimPending", care, version=PENDING).status == 200
        context = made.app.app.program.compute.context
        assert made.app.run(pending.wake(context, free)) is False, "there is no room yet"
        assert len(made.actions(free)) == 1, "a look that finds none leaves no trace"
        made.add_host()
        tidy(made)
        made.until(free, "ACTIVE")
        assert made.show(kept, version=PENDING)["status"] == "PENDING"


def test_care_ends_with_its_time_so_that_another_takes_over_from_one_that_died(
    full: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid, door = waiting(full), full.app.app.program.compute.context.door

    def claims(keeper: str) -> int:
        care = {"keeper": keeper, "seconds": 30}
        return full.act(uuid, "siderite-claimPending", care, version=PENDING).status

    assert [claims("one"), claims("two"), claims("one")] == [200, 409, 200]
    now = door.clock
    monkeypatch.setattr(door, "clock", lambda: now() + 31)
    assert [claims("two"), claims("one")] == [200, 409]


def test_that_somebody_takes_care_of_it_is_no_change_to_its_user(
    full: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid, door = waiting(full), full.app.app.program.compute.context.door
    before, now = full.show(uuid)["updated"], door.clock
    monkeypatch.setattr(door, "clock", lambda: now() + 10)
    care = {"keeper": "one", "seconds": 30, "making_room": True}
    assert full.act(uuid, "siderite-claimPending", care, version=ROOM).status == 200
    assert full.show(uuid)["updated"] == before


def test_no_more_are_woken_than_there_is_room_for_and_the_first_gets_it(tmp_path: Path) -> None:
    with cloud(tmp_path, hosts=0, use_pending_state=True, wake_pending=True) as made:
        uuids = [waiting(made, networks="none") for _ in range(4)]
        made.add_host(vcpus=1, ram_mib=1024)  # two of the small flavor
        tidy(made)
        for uuid in uuids[:2]:
            made.until(uuid, "ACTIVE")
        assert [len(made.actions(uuid)) for uuid in uuids[2:]] == [1, 1], "nobody tried in vain"
        made.ask("DELETE", f"/servers/{uuids[0]}")
        made.wait(uuids[0], lambda server: server["status"] == "GONE")
        tidy(made)
        made.until(uuids[2], "ACTIVE")
        assert made.show(uuids[3], version=PENDING)["status"] == "PENDING"


def test_room_that_appears_goes_to_the_oldest_however_many_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due, "_SOME", 2)
    with cloud(tmp_path, hosts=0, use_pending_state=True, wake_pending=True) as made:
        uuids = [waiting(made, networks="none") for _ in range(5)]
        context = made.app.app.program.compute.context
        tidying = Tidying(Hands(context, {}, NO_IMAGES))
        made.app.run(tidying.round())
        made.add_host(vcpus=1, ram_mib=512)  # one of the small flavor
        assert made.app.run(due.to_wake(context)) == (uuids[:1], 0)
        made.app.run(tidying.round())
        made.until(uuids[0], "ACTIVE")
        made.add_host(vcpus=1, ram_mib=1024)
        made.app.run(tidying.round())
        for uuid in uuids[1:3]:
            made.until(uuid, "ACTIVE")
        assert [len(made.actions(uuid)) for uuid in uuids[3:]] == [1, 1]


def test_hosts_are_read_once_however_many_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cloud(tmp_path, hosts=0, use_pending_state=True, wake_pending=True) as made:
        for _ in range(5):
            waiting(made)
        context, asked = made.app.app.program.compute.context, []
        fetch = context.door.store.fetch

        async def counted(sql: str, *args: Any) -> Any:
            asked.append(sql)
            return await fetch(sql, *args)

        monkeypatch.setattr(context.door.store, "fetch", counted)
        assert made.app.run(due.to_wake(context)) == ([], 0)
        assert len([sql for sql in asked if "hypervisors" in sql]) == 1


def test_one_beyond_its_quota_takes_no_room_from_those_after_it(tmp_path: Path) -> None:
    with cloud(tmp_path, hosts=0, use_pending_state=True, wake_pending=True) as made:
        first, second = waiting(made, networks="none"), waiting(made, networks="none")
        context, another = made.app.app.program.compute.context, new_uuid()

        async def give_away() -> None:
            server = await SERVERS.get(context.door.store, second)
            assert server is not None
            changed = server.changed(context.door.clock(), {"project_id": another})
            await context.door.store.commit([SERVERS.swap(server, changed)])

        made.app.run(give_away())
        limit = {"quota_set": {"instances": 0, "force": True}}
        project = made.show(first)["tenant_id"]
        assert made.ask("PUT", f"/os-quota-sets/{project}", limit).status == 200
        made.add_host(vcpus=1, ram_mib=512)
        assert made.app.run(due.to_wake(context)) == ([second], 0)


def test_one_beyond_its_quota_is_not_woken_until_that_is_as_large_as_it_is(tmp_path: Path) -> None:
    with cloud(tmp_path, hosts=0, use_pending_state=True, wake_pending=True) as made:
        uuid = waiting(made)
        project = made.show(uuid)["tenant_id"]
        limit = {"quota_set": {"instances": 0, "force": True}}
        assert made.ask("PUT", f"/os-quota-sets/{project}", limit).status == 200
        made.add_host()
        tidy(made)
        assert made.show(uuid, version=PENDING)["status"] == "PENDING"
        assert len(made.actions(uuid)) == 1
        limit["quota_set"]["instances"] = 1  # it is counted already
        assert made.ask("PUT", f"/os-quota-sets/{project}", limit).status == 200
        tidy(made)
        made.until(uuid, "ACTIVE")


def test_each_has_its_turn_though_the_first_ones_never_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due, "_SOME", 2)
    with cloud(tmp_path, hosts=0, use_pending_state=True, wake_pending=True) as made:
        large = made.make_flavor(vcpus=4096)
        uuids = [waiting(made, flavorRef=large) for _ in range(3)]
        small = waiting(made)
        made.add_host()
        context = made.app.app.program.compute.context
        tidying = Tidying(Hands(context, {}, NO_IMAGES))
        for _ in range(2):
            made.app.run(tidying.round())
        made.until(small, "ACTIVE")
        assert {made.show(uuid, version=PENDING)["status"] for uuid in uuids} == {"PENDING"}


def test_each_is_given_up_in_time_though_room_is_made_for_the_first_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due, "_SOME", 2)
    with cloud(tmp_path, hosts=0, use_pending_state=True, pending_timeout_s=600) as made:
        kept, last = [waiting(made) for _ in range(3)], waiting(made)
        context = made.app.app.program.compute.context
        now = context.door.clock
        monkeypatch.setattr(context.door, "clock", lambda: now() + 700)
        for uuid in kept:
            care = {"keeper": "one", "seconds": 600, "making_room": True}
            assert made.act(uuid, "siderite-claimPending", care, version=ROOM).status == 200
        tidying = Tidying(Hands(context, {}, NO_IMAGES))
        for _ in range(2):
            made.app.run(tidying.round())
        assert made.show(last, version=PENDING)["status"] == "ERROR"
        assert {made.show(uuid, version=PENDING)["status"] for uuid in kept} == {"PENDING"}


def test_work_that_an_administrator_gave_up_is_lost_and_no_mishap(tmp_path: Path) -> None:
    """A worker that has it in its hands stops, without an error in the log."""
    with cloud(tmp_path, hosts=1) as made:
        made.script("all", latency_s={"spawn": 60})
        uuid, ctx = made.create(), made.app.app.program.compute.context
        made.wait(uuid, lambda server: server["OS-EXT-STS:task_state"] == "spawning")

        async def report_late() -> None:
            [held] = await work.of_machine(ctx.door.store, uuid)
            headers = {"openstack-api-version": "compute 2.901"}
            path, wish = f"/compute/v2.1/servers/{uuid}/action", {"state": "error"}
            given_up = await made.app.app.ask(
                "POST", path, {"os-resetState": wish}, version=None, headers=headers
            )
            assert given_up.status == 202
            server = await progress.load(ctx, uuid)
            assert server is not None
            run = progress.Run(held, server, job_of(held.job))
            await progress.report(ctx, run, progress.Report(Event.DONE, ends=True))

        with pytest.raises(Lost):
            made.app.run(report_late())
        assert made.show(uuid)["status"] == "ERROR"


def test_one_who_takes_care_of_it_keeps_others_away(full: Cloud) -> None:
    uuid = waiting(full)
    mine = {"keeper": "one", "seconds": 60}
    assert full.act(uuid, "siderite-claimPending", mine, version=PENDING).status == 200
    assert full.act(uuid, "siderite-claimPending", mine, version=PENDING).status == 200
    other = full.act(uuid, "siderite-claimPending", {**mine, "keeper": "two"}, version=PENDING)
    assert other.status == 409
    assert "in the care of one" in other.json["conflictingRequest"]["message"]
    assert full.act(uuid, "siderite-claimPending", mine, version=LAST_OLD).status == 404


def test_of_many_in_one_request_those_that_fit_are_built_and_the_others_wait(full: Cloud) -> None:
    host = full.add_host(vcpus=64, ram_mib=1024)
    wish = {
        "name": "many", "flavorRef": full.flavor, "imageRef": full.image, "networks": "none",
        "min_count": 5,
    }  # fmt: skip
    made = full.ask("POST", "/servers", {"server": wish})
    reservation = full.show(made.json["server"]["id"])["OS-EXT-SRV-ATTR:reservation_id"]
    path = f"/servers?reservation_id={reservation}"
    uuids = [one["id"] for one in full.ask("GET", path).json["servers"]]
    done = [full.wait(uuid, lambda one: one["status"] in ("ACTIVE", "PENDING")) for uuid in uuids]
    assert sorted(one["status"] for one in done) == ["ACTIVE"] * 2 + ["PENDING"] * 3
    for uuid in uuids:
        full.ask("DELETE", f"/servers/{uuid}")
    for uuid in uuids:
        full.wait(uuid, lambda one: one["status"] == "GONE")
    full.ask("DELETE", f"/hosts/{host}", version=PENDING)
