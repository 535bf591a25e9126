"""Room that is made for a PENDING server is kept for it, as long as somebody takes care of it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from siderite.compute.usecases.placement import kept_room
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.tidying import Tidying
from siderite.core.store import Op
from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud

ROOM = {"vcpus": 1, "ram_mib": 1024, "disk_gib": 20}  # two of the small flavor
LATEST_OF_ALL = 901
WITHOUT_KEPT = 900
NO_IMAGES: Any = None


@pytest.fixture(params=["sqlite", "postgresql"])
def full(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cloud]:
    """One host with two servers, and no room for a third."""
    data, options = tmp_path_factory.mktemp("data"), {"hosts": 0, "use_pending_state": True}
    if request.param == "sqlite":
        with cloud(data, **options) as made:
            yield filled(made)
        return
    lending = request.getfixturevalue("lending")
    with lending.database() as url, cloud(data, url, **options) as made:
        yield filled(made)


def filled(made: Cloud) -> Cloud:
    made.add_host(**ROOM)
    for _ in range(2):
        made.boot(networks="none")
    return made


def pends(made: Cloud, **fields: Any) -> str:
    uuid = made.create(networks="none", **fields)
    made.wait(uuid, lambda server: server["status"] == "PENDING")
    return uuid


def care(made: Cloud, uuid: str, *, version: int = LATEST_OF_ALL, **more: Any) -> int:
    asked = {"keeper": "one", "seconds": 60, **more}
    return made.act(uuid, "siderite-claimPending", asked, version=version).status


def makes_room(made: Cloud, uuid: str) -> int:
    return care(made, uuid, making_room=True, node=made.hosts[0])


def one_goes(made: Cloud) -> None:
    """Of those that run."""
    active = "/servers?status=ACTIVE&all_tenants=1"
    uuid = made.ask("GET", active).json["servers"][0]["id"]
    made.ask("DELETE", f"/servers/{uuid}")
    made.wait(uuid, lambda server: server["status"] == "GONE")


def is_built(made: Cloud, uuid: str) -> bool:
    """Whether a PENDING server finds room now."""
    assert made.act(uuid, "rebuild", {"imageRef": made.image}).status == 202
    done = made.wait(uuid, lambda server: server["status"] in ("ACTIVE", "PENDING"))
    return bool(done["status"] == "ACTIVE")


def kept_by(made: Cloud, version: int = LATEST_OF_ALL) -> Any:
    [shown] = made.ask("GET", "/os-hypervisors/detail", version=version).json["hypervisors"]
    return shown.get("kept")


def test_who_comes_meanwhile_does_not_get_it_and_the_one_it_was_made_for_does(full: Cloud) -> None:
    uuid = pends(full)
    assert makes_room(full, uuid) == 200
    one_goes(full)
    late = pends(full)
    [why] = full.show(late, version=LATEST_OF_ALL)["refusals"].values()
    assert (
        why
        == "without room: 512 MiB of memory wanted, 0 of 1024 left, 512 kept for servers that wait"
    )
    room = {"server": uuid, "vcpus": 1, "ram_mib": 512, "disk_gib": 1}
    assert (kept_by(full), kept_by(full, WITHOUT_KEPT)) == ([room], None)
    assert is_built(full, uuid)
    assert kept_by(full) == []
    one_goes(full)
    assert is_built(full, late), "nothing is kept for one that has its host"


@pytest.mark.parametrize("end", ["delete", "error", "another word", "time"])
def test_it_is_kept_no_longer_than_for_one_that_waits_and_is_cared_for(
    full: Cloud, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid, ctx = pends(full), full.app.app.program.compute.context
    assert makes_room(full, uuid) == 200
    assert care(full, uuid) == 200
    assert kept_by(full), "of room nothing was said: it is still being made"
    one_goes(full)
    if end == "delete":
        full.ask("DELETE", f"/servers/{uuid}")
    elif end == "error":
        full.act(uuid, "os-resetState", {"state": "error"})
    elif end == "another word":
        assert care(full, uuid, making_room=False) == 200
    else:
        now = ctx.door.clock
        monkeypatch.setattr(ctx.door, "clock", lambda: now() + 61)
    assert kept_by(full) == []
    if end != "time":  # its host has not been heard of since, by that clock
        full.boot(networks="none")
    full.app.run(Tidying(Hands(ctx, {}, NO_IMAGES)).round())
    left = full.app.run(ctx.door.store.fetch("SELECT server FROM kept_room"))
    assert len(left) == (0 if end in ("another word", "time") else 1)


def test_of_two_the_one_that_was_first_has_it_and_none_keeps_the_other_off(full: Cloud) -> None:
    """Two services chose the same host at the same moment."""
    first, second = pends(full), pends(full)
    for uuid in (second, first, second):  # saying it again makes nobody later
        assert makes_room(full, uuid) == 200
    one_goes(full)
    assert not is_built(full, first)
    assert is_built(full, second)
    one_goes(full)
    assert is_built(full, first)


def test_what_makes_no_sense_is_refused_and_changes_nothing(full: Cloud) -> None:
    uuid = pends(full)
    host = full.hosts[0]
    assert care(full, uuid, node=host) == 400
    assert care(full, uuid, node=host, making_room=False) == 400
    assert care(full, uuid, node="nowhere", making_room=True) == 400
    assert care(full, uuid, node=host, making_room=True, version=WITHOUT_KEPT) == 400
    assert kept_by(full) == []
    assert care(full, uuid, keeper="two") == 200, "nobody takes care of it yet"


def test_where_two_hosts_name_a_node_alike_it_is_kept_on_the_one_that_was_meant(
    full: Cloud,
) -> None:
    uuid, first = pends(full), full.hosts[0]
    second, store = (
        full.add_host(vcpus=1, ram_mib=512),
        full.app.app.program.compute.context.door.store,
    )
    called = Op("UPDATE hypervisors SET node = ? WHERE host = ?", (first, second))
    full.app.run(store.commit([called]))

    def shown() -> dict[str, Any]:
        answer = full.ask("GET", "/os-hypervisors/detail", version=LATEST_OF_ALL)
        return {one["service"]["host"]: one for one in answer.json["hypervisors"]}

    by_name = {"keeper": "one", "seconds": 60, "making_room": True, "node": first}
    answer = full.act(uuid, "siderite-claimPending", by_name, version=LATEST_OF_ALL)
    assert (answer.status, b"Name one by its ID" in answer.body) == (400, True)
    assert care(full, uuid, making_room=True, node=shown()[first]["id"]) == 200
    assert {host: len(one["kept"]) for host, one in shown().items()} == {first: 1, second: 0}
    another = full.boot(networks="none")
    assert full.show(another)["OS-EXT-SRV-ATTR:host"] == second


def test_where_there_is_no_pending_state_nobody_asks_for_it(full: Cloud) -> None:
    assert makes_room(full, pends(full)) == 200
    ctx = full.app.app.program.compute.context
    without = replace(ctx, settings=msgspec.structs.replace(ctx.settings, use_pending_state=False))
    rooms = [full.app.run(kept_room.kept(one)) for one in (ctx, without)]
    assert [len(some) for some in rooms] == [1, 0]
