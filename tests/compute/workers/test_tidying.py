"""Servers that were set aside, by shelving or deleting them, and whose time is over."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from siderite.compute.usecases.server import due
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.tidying import Tidying
from tests.compute.cloud import PATIENCE_S
from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud
from tests.compute.workers.moves import LEFT
from tests.compute.workers.moves import counted
from tests.compute.workers.moves import during
from tests.compute.workers.moves import home_of
from tests.compute.workers.moves import in_one_place
from tests.compute.workers.moves import reset
from tests.compute.workers.moves import until
from tests.compute.workers.test_pending import NO_IMAGES

HOUR = 3600


def tidy(made: Cloud) -> None:
    """What is done every half minute."""
    made.app.run(Tidying(Hands(made.app.app.program.compute.context, {}, NO_IMAGES)).round())


def clock_of(made: Cloud, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Puts the clock of what comes due so many seconds forward. The worker's stays: what it is not
    handed at once, as the machine's last job has just ended, would be due when that is as late.
    """
    door = made.app.app.program.compute.context.door
    now = door.clock

    async def until_idle() -> None:
        async with asyncio.timeout(PATIENCE_S):
            while door.hands._busy:
                await asyncio.sleep(0.01)

    def forward(seconds: float) -> None:
        made.app.run(until_idle())
        monkeypatch.setattr(door, "clock", lambda: now() + seconds)

    return forward


def rename(made: Cloud, uuid: str) -> None:
    """A change that has nothing to do with where the server is in its life."""
    assert made.ask("PUT", f"/servers/{uuid}", {"server": {"name": "other"}}).status == 200


def test_a_shelved_server_leaves_its_host_in_time_whatever_else_changes(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cloud(tmp_path, database_url, hosts=1, shelved_offload_time_s=HOUR) as made:
        forward, uuid = clock_of(made, monkeypatch), made.boot()
        assert made.act(uuid, "shelve").status == 202
        made.until(uuid, "SHELVED")
        forward(HOUR - 60)
        rename(made, uuid)
        tidy(made)
        assert made.show(uuid)["status"] == "SHELVED"
        forward(HOUR + 60)
        tidy(made)
        made.until(uuid, "SHELVED_OFFLOADED")


def test_an_offload_that_fails_is_not_tried_again_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cloud(tmp_path, hosts=1, shelved_offload_time_s=HOUR) as made:
        forward, uuid = clock_of(made, monkeypatch), made.boot()
        assert made.act(uuid, "shelve").status == 202
        made.until(uuid, "SHELVED")
        made.script(f"server:{uuid}", fail={"destroy": "disk is stuck"})

        def tries() -> int:
            return sum(kind == "instance.shelve_offload.error" for kind, _ in made.facts(uuid))

        for at, expected in ((HOUR + 60, 1), (HOUR + 120, 1), (2 * HOUR + 120, 2)):
            forward(at)
            tidy(made)
            made.settled(uuid)
            assert tries() == expected, at


def test_a_deleted_server_goes_in_time_whatever_else_changes(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cloud(tmp_path, database_url, hosts=1, reclaim_interval_s=HOUR) as made:
        forward, uuid = clock_of(made, monkeypatch), made.boot()
        assert made.ask("DELETE", f"/servers/{uuid}").status == 204
        made.until(uuid, "SOFT_DELETED")
        forward(HOUR - 60)
        rename(made, uuid)
        tidy(made)
        assert made.show(uuid)["status"] == "SOFT_DELETED"
        forward(HOUR + 60)
        tidy(made)
        made.until(uuid, "GONE")


def test_what_a_deleted_server_used_counts_for_a_month_or_for_as_long_as_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cloud(tmp_path, hosts=1) as made:
        forward, uuid = clock_of(made, monkeypatch), made.boot()
        assert made.ask("DELETE", f"/servers/{uuid}").status == 204
        made.until(uuid, "GONE")

        def counted(after_days: int) -> int:
            forward(after_days * 24 * HOUR)
            tidy(made)
            usage = "/os-simple-tenant-usage?detailed=1&start=2000-01-01"
            return sum(
                len(one["server_usages"]) for one in made.ask("GET", usage).json["tenant_usages"]
            )

        assert [counted(days) for days in (8, 31, 41)] == [1, 1, 0]


def test_deleted_servers_stay_on_record_for_ever_if_that_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cloud(tmp_path, hosts=1, deleted_servers_keep_s=0) as made:
        forward, uuid = clock_of(made, monkeypatch), made.boot()
        assert made.ask("DELETE", f"/servers/{uuid}").status == 204
        made.until(uuid, "GONE")
        forward(4000 * 24 * HOUR)
        tidy(made)
        known = made.ask("GET", "/servers?deleted=true").json["servers"]
        assert [one["id"] for one in known] == [uuid]


def test_a_server_that_is_restored_at_the_last_moment_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cloud(tmp_path, hosts=1, reclaim_interval_s=HOUR) as made:
        forward, uuid = clock_of(made, monkeypatch), made.boot()
        ctx = made.app.app.program.compute.context
        assert made.ask("DELETE", f"/servers/{uuid}").status == 204
        made.until(uuid, "SOFT_DELETED")
        forward(HOUR + 60)
        found, _ = made.app.run(due.to_reclaim(ctx))
        assert found == [uuid]
        assert made.act(uuid, "restore").status == 202
        made.until(uuid, "ACTIVE")
        made.app.run(Tidying(Hands(ctx, {}, NO_IMAGES))._try(due.reclaim(ctx, uuid)))
        assert made.settled(uuid)["status"] == "ACTIVE"


def test_each_has_its_turn_though_the_first_ones_have_time_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due, "_SOME", 1)
    with cloud(tmp_path, hosts=1, reclaim_interval_s=HOUR) as made:
        forward = clock_of(made, monkeypatch)
        young, old = made.boot(), made.boot()
        for uuid, at in ((old, 0), (young, HOUR)):
            forward(at)
            assert made.ask("DELETE", f"/servers/{uuid}").status == 204
            made.until(uuid, "SOFT_DELETED")
        forward(HOUR + 60)
        tidy(made)
        made.until(old, "GONE")
        assert made.show(young)["status"] == "SOFT_DELETED"


def set_aside(made: Cloud, uuid: str) -> None:
    """Delete it so that it can be restored."""
    assert made.ask("DELETE", f"/servers/{uuid}").status == 204
    made.until(uuid, "SOFT_DELETED")


def test_what_was_deleted_does_not_count_until_it_is_restored(
    tmp_path: Path, database_url: str
) -> None:
    options = {"reclaim_interval_s": HOUR, "quota_instances": 1}
    with cloud(tmp_path, database_url, hosts=1, **options) as made:
        first = made.boot()
        set_aside(made, first)
        assert counted(made) == (0, 0)
        second = made.boot()
        refused = made.act(first, "restore")
        assert (refused.status, "Quota exceeded" in str(refused.json)) == (403, True)
        assert made.show(first)["status"] == "SOFT_DELETED"
        set_aside(made, second)
        assert made.act(first, "restore").status == 202
        made.until(first, "ACTIVE")
        assert counted(made) == (1, 512)
        set_aside(made, first)
        for uuid in (first, second):
            assert made.act(uuid, "forceDelete").status == 202
            made.until(uuid, "GONE")
        assert counted(made) == (0, 0)


def test_what_is_there_after_all_counts_again(tmp_path: Path) -> None:
    with cloud(tmp_path, hosts=1, reclaim_interval_s=HOUR) as made:
        uuid = made.boot()
        set_aside(made, uuid)
        reset(made, uuid)
        assert counted(made) == (1, 512)
        set_aside(made, uuid)
        made.script(f"server:{uuid}", fail={"destroy": "disk is stuck"})
        assert made.act(uuid, "forceDelete").status == 202
        made.until(uuid, "ERROR")
        assert counted(made) == (1, 512)
        made.guests.scripts.set(f"server:{uuid}", None)
        assert made.act(uuid, "forceDelete").status == 202
        made.until(uuid, "GONE")
        assert counted(made) == (0, 0)


def test_a_restore_that_fails_or_is_overtaken_counts_once(tmp_path: Path) -> None:
    with cloud(tmp_path, hosts=1, reclaim_interval_s=HOUR) as made:
        uuid = made.boot()
        set_aside(made, uuid)
        made.script(f"server:{uuid}", fail={"on": "no power"})
        assert made.act(uuid, "restore").status == 202
        made.until(uuid, "SOFT_DELETED")
        made.script(f"server:{uuid}", latency_s={"on": 3600.0})
        assert made.act(uuid, "restore").status == 202
        during(made, uuid, "restoring")
        assert counted(made) == (1, 512)
        assert made.act(uuid, "forceDelete").status == 202
        made.until(uuid, "GONE")
        assert counted(made) == (0, 0)


def test_a_resize_that_is_undone_while_its_server_is_deleted_counts_nothing(
    tmp_path: Path,
) -> None:
    with cloud(tmp_path, hosts=2, reclaim_interval_s=HOUR) as made:
        uuid = made.boot()
        made.script(f"server:{uuid}", latency_s={"finish": 3600.0})
        larger = made.make_flavor(ram=2048)
        assert made.act(uuid, "resize", {"flavorRef": larger}).status == 202
        during(made, uuid, "resize_finish")
        made.guests.scripts.set(f"server:{uuid}", None)
        set_aside(made, uuid)
        until(made, uuid, LEFT, 0)
        assert counted(made) == (0, 0)
        assert made.act(uuid, "restore").status == 202
        made.until(uuid, "ACTIVE")
        assert counted(made) == (1, made.show(uuid)["flavor"]["ram"])


def test_a_deletion_that_fails_counts_no_size_that_a_resize_had_not_begun_to_make(
    tmp_path: Path, database_url: str
) -> None:
    with cloud(tmp_path, database_url) as made:
        uuid = made.boot()
        script = {"latency_s": {"finish": 3600.0, "revert": 3600.0}, "fail": {"destroy": "stuck"}}
        made.script(f"server:{uuid}", **script)
        larger = made.make_flavor(ram=2048)
        assert made.act(uuid, "resize", {"flavorRef": larger}).status == 202
        during(made, uuid, "resize_finish")
        assert made.act(uuid, "os-resetState", {"state": "active"}).status == 202
        assert made.act(uuid, "resize", {"flavorRef": larger}).status == 202
        made.wait(uuid, lambda seen: "is not settled" in str(seen["wait_reason"]))
        assert counted(made) == (1, 2048)
        assert made.ask("DELETE", f"/servers/{uuid}").status == 204
        made.until(uuid, "ERROR")
        assert counted(made) == (1, 512)


def test_a_moved_server_that_cannot_be_deleted_waits_for_no_confirmation_any_more(
    tmp_path: Path,
) -> None:
    with cloud(tmp_path, hosts=2, reclaim_interval_s=HOUR) as made:
        uuid = made.boot()
        assert made.act(uuid, "migrate").status == 202
        made.until(uuid, "VERIFY_RESIZE")
        made.script(f"server:{uuid}", fail={"off": "stuck"})
        assert made.ask("DELETE", f"/servers/{uuid}").status == 204
        seen = made.settled(uuid)
        assert (seen["status"], "stuck" in seen["fault"]["message"]) == ("ERROR", True)
        made.guests.scripts.set(f"server:{uuid}", None)
        assert made.act(uuid, "reboot", {"type": "HARD"}).status == 202
        made.until(uuid, "ACTIVE")
        in_one_place(made, uuid, home_of(made, uuid))
