"""What the database is asked for: not once per host, nor for all of them each time."""

from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import pytest

from siderite.compute.usecases.fleet import aggregates
from siderite.compute.usecases.placement import placing
from siderite.compute.usecases.project import usage
from siderite.compute.usecases.server import power_truth
from siderite.core.store import Op
from siderite.core.store import Value
from tests.compute.records.world import World
from tests.support.stories import Tell


async def aggregate(here: World, name: str, zone: str | None, *hosts: str) -> str:
    """Where a new aggregate of these hosts is acted on."""
    body: dict[str, Any] = {"name": name, "availability_zone": zone}
    made = await here.ask("POST", "/os-aggregates", {"aggregate": body})
    assert made.status == 200, made
    act = f"/os-aggregates/{made.json['aggregate']['id']}/action"
    for host in hosts:
        assert (await here.ask("POST", act, {"add_host": {"host": host}})).status == 200
    return act


def test_aggregates_are_read_again_when_one_has_changed(tell: Tell) -> None:
    async def story(here: World) -> None:
        ctx = here.app.program.compute.context
        await here.host("h1")
        await here.host("h2")
        act = await aggregate(here, "a", "east", "h1")
        server = await here.server("p")
        await placing.find_place(ctx, server)
        with here.asked() as asked:
            await placing.find_place(ctx, server)
            await placing.find_place(ctx, server, zone="east")
        assert not [sql for sql, _ in asked if "doc FROM aggregates" in sql]
        assert (await here.ask("POST", act, {"add_host": {"host": "h2"}})).status == 200
        zones = [(await aggregates.atlas(ctx)).place(host).zone for host in ("h1", "h2")]
        assert zones == ["east", "east"]
        for host in ("h1", "h2"):
            assert (await here.ask("POST", act, {"remove_host": {"host": host}})).status == 200
        assert (await here.ask("DELETE", act.removesuffix("/action"))).status == 200
        assert (await aggregates.atlas(ctx)).places == []
        # One that comes after it has its number, or its version, but not its UUID.
        await aggregate(here, "b", "west", "h1", "h2")
        assert (await aggregates.atlas(ctx)).place("h1").zone == "west"

    tell(story)


def test_one_host_is_shown_without_a_look_at_the_others(tell: Tell) -> None:
    async def story(here: World) -> None:
        for number in range(30):
            await here.host(f"h{number:02d}")
        await aggregate(here, "a", "east", "h07")
        shown = (await here.get("/os-services?host=h07", 96))["services"]
        assert [(one["host"], one["zone"]) for one in shown] == [("h07", "east")]
        service = shown[0]["id"]
        everyone = (await here.get("/os-hypervisors", 96))["hypervisors"]
        assert len(everyone) == 30
        hypervisor = everyone[7]["id"]
        number = (await here.get("/os-hypervisors"))["hypervisors"][7]["id"]
        for method, path, version, body in (
            ("GET", f"/os-hypervisors/{hypervisor}", 96, ()),
            ("GET", f"/os-hypervisors/{number}", 1, ()),
            ("GET", f"/os-hypervisors?limit=2&marker={hypervisor}", 96, ()),
            ("GET", "/os-services?host=h07", 96, ()),
            ("PUT", f"/os-services/{service}", 96, ({"status": "disabled"},)),
            ("PUT", "/os-services/enable", 1, ({"host": "h07", "binary": "nova-compute"},)),
            ("GET", "/os-hosts/h07", 1, ()),
            ("GET", "/os-hypervisors/statistics", 1, ()),
        ):
            with here.asked() as asked:
                answer = await here.ask(method, path, *body, version=version)
            assert answer.status == 200, (path, answer)
            for sql, args in asked:
                rows = await here.app.program.store.fetch(sql, args)
                assert len(rows) <= 3, (path, sql)

    tell(story)


def test_the_sums_are_those_of_all_that_are_up_and_enabled(tell: Tell) -> None:
    async def story(here: World) -> None:
        store = here.app.program.store
        for name in ("h1", "h2", "off"):
            await here.host(name)
        await here.host("silent", seen_ago=3600)
        await here.host("metal")
        off = {"host": "off", "binary": "nova-compute"}
        assert (await here.ask("PUT", "/os-services/disable", off)).status == 200
        used = "vcpus_used = 2, ram_used = 1024, disk_used = 7, servers = 3"
        whole = "resource_class = 'CUSTOM_GOLD', servers = 1, servers_limit = 1"
        await store.commit([Op(f"UPDATE hypervisors SET {used} WHERE host IN ('h1', 'off')")])
        await store.commit([Op(f"UPDATE hypervisors SET {whole} WHERE host = 'metal'")])
        sums = (await here.get("/os-hypervisors/statistics"))["hypervisor_statistics"]
        shown = (await here.get("/os-hypervisors/detail"))["hypervisors"]
        counted = [one for one in shown if (one["state"], one["status"]) == ("up", "enabled")]
        assert sums.pop("count") == len(counted) == 3
        assert sums == {what: sum(one[what] for one in counted) for what in sums}
        assert sums["vcpus_used"] == 2 + 8 and sums["running_vms"] == 4

    tell(story)


def test_without_hosts_all_sums_are_nothing(tell: Tell) -> None:
    async def story(here: World) -> None:
        sums = (await here.get("/os-hypervisors/statistics"))["hypervisor_statistics"]
        assert set(sums.values()) == {0}

    tell(story)


def test_zones_are_listed_without_reading_the_records_of_hosts(tell: Tell) -> None:
    async def story(here: World) -> None:
        for host in ("h1", "h2", "h3", "h4"):
            await here.host(host)
        await aggregate(here, "a", "east", "h1", "h2")
        await aggregate(here, "b", "west", "h3")
        for host in ("h1", "h3"):
            off = {"host": host, "binary": "nova-compute"}
            assert (await here.ask("PUT", "/os-services/disable", off)).status == 200
        with here.asked() as asked:
            zones = (await here.get("/os-availability-zone"))["availabilityZoneInfo"]
        assert not [sql for sql, _ in asked if "doc" in sql and "hosts" in sql]
        states = [(one["zoneName"], one["zoneState"]["available"]) for one in zones]
        assert states == [("east", True), ("nova", True), ("west", False)]
        detail = (await here.get("/os-availability-zone/detail"))["availabilityZoneInfo"]
        assert [{**one, "hosts": None} for one in detail] == zones

    tell(story)


def test_what_many_servers_used_is_added_up_some_of_them_at_a_time(
    tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "_AT_A_TIME", 2)

    async def story(here: World) -> None:
        made = [(await here.server(project)).uuid for project in "ppqpq"]
        store: Any = here.app.program.store
        fetch, read = store.fetch, []

        async def counting(sql: str, args: Any = ()) -> Any:
            rows = await fetch(sql, args)
            read.append(len(rows))
            return rows

        store.fetch = counting
        every = await here.get("/os-simple-tenant-usage?detailed=1")
        assert max(read) == 2
        used = {one["tenant_id"]: one for one in every["tenant_usages"]}
        found = [one["instance_id"] for project in "pq" for one in used[project]["server_usages"]]
        assert sorted(found) == sorted(made)
        assert round(used["p"]["total_hours"]) == 3 * 2
        after = await here.get(f"/os-simple-tenant-usage/p?marker={made[0]}&limit=2", 40)
        shown = [one["instance_id"] for one in after["tenant_usage"]["server_usages"]]
        assert shown == [made[1], made[3]]

    tell(story)


async def plans(here: World, asked: Sequence[tuple[str, Sequence[Value]]]) -> list[str]:
    """How SQLite looks for servers in each of these statements."""
    found = []
    for sql, args in asked:
        if "FROM servers" in sql:
            rows = await here.app.program.store.fetch("EXPLAIN QUERY PLAN " + sql, args)
            found += [str(row[3]) for row in rows if str(row[3]).split()[1] in ("servers", "s")]
    return found


def test_the_servers_of_a_host_or_a_group_are_found_without_the_others(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        ctx = here.app.program.compute.context
        await here.host("h1")
        group = await here.ask(
            "POST", "/os-server-groups", {"server_group": {"name": "g", "policies": ["affinity"]}}
        )
        uuid = group.json["server_group"]["id"]
        server = await here.server("p", group=uuid, host="h1")
        looks: list[tuple[str, Callable[[], Awaitable[object]]]] = [
            ("host=?", lambda: power_truth.on_host(ctx, "h1")),
            ("host=?", lambda: here.get("/os-hosts/h1")),
            ("group_uuid=?", lambda: placing.find_place(ctx, server)),
            ("group_uuid=?", lambda: here.get(f"/os-server-groups/{uuid}")),
        ]
        for by, look in looks:
            with here.asked() as asked:
                await look()
            found = await plans(here, asked)
            assert found and all(by in line for line in found), found

    tell_once(story)
