"""Aggregates, zones, hypervisors, services: hosts as administrators see them."""

import asyncio

from siderite.compute import store
from siderite.compute.domain.host import Amount
from siderite.compute.usecases.fleet import aggregates
from tests.compute.records.world import World
from tests.support.stories import Tell

AGGREGATE = {
    "id", "name", "availability_zone", "created_at", "updated_at", "deleted", "deleted_at",
}  # fmt: skip
BRIEF = {"id", "hypervisor_hostname", "state", "status"}
FULL = BRIEF | {"hypervisor_type", "hypervisor_version", "host_ip", "service"}
STATISTICS = {
    "vcpus", "vcpus_used", "memory_mb", "memory_mb_used", "free_ram_mb", "local_gb",
    "local_gb_used", "free_disk_gb", "disk_available_least", "running_vms", "current_workload",
}  # fmt: skip
SERVICE = {"id", "binary", "host", "zone", "status", "state", "updated_at", "disabled_reason"}


def test_an_aggregate_makes_a_zone_of_its_hosts(tell: Tell) -> None:
    async def story(here: World) -> None:
        await here.host("h1")
        await here.host("h2")
        body = {"aggregate": {"name": "a", "availability_zone": "east"}}
        made = await here.ask("POST", "/os-aggregates", body)
        assert made.status == 200 and set(made.json["aggregate"]) == AGGREGATE
        path = f"/os-aggregates/{made.json['aggregate']['id']}"
        act = f"{path}/action"
        added = await here.ask("POST", act, {"add_host": {"host": "h1"}})
        assert added.json["aggregate"]["hosts"] == ["h1"]
        assert (await here.ask("POST", act, {"add_host": {"host": "h1"}})).status == 409
        assert (await here.ask("POST", act, {"add_host": {"host": "h9"}})).status == 404
        zones = (await here.get("/os-availability-zone"))["availabilityZoneInfo"]
        assert [zone["zoneName"] for zone in zones] == ["east", "nova"]
        assert zones[0] == {"zoneName": "east", "zoneState": {"available": True}, "hosts": None}
        detail = (await here.get("/os-availability-zone/detail"))["availabilityZoneInfo"]
        assert detail[0]["hosts"]["h1"]["nova-compute"]["available"] is True
        set_ = {"set_metadata": {"metadata": {"ssd": "true", "x": "y"}}}
        await here.ask("POST", act, set_)
        await here.ask("POST", act, {"set_metadata": {"metadata": {"x": None}}})
        shown = (await here.get(path, 41))["aggregate"]
        assert set(shown) == AGGREGATE | {"hosts", "metadata", "uuid"}
        assert shown["metadata"] == {"availability_zone": "east", "ssd": "true"}
        assert (await here.ask("DELETE", path)).status == 400
        assert (await here.ask("POST", act, {"remove_host": {"host": "h1"}})).status == 200
        assert (await here.ask("POST", act, {"remove_host": {"host": "h1"}})).status == 404
        assert (await here.ask("DELETE", path)).status == 200
        assert (await here.ask("GET", path)).status == 404

    tell(story)


def test_a_host_is_in_one_zone(tell: Tell) -> None:
    async def story(here: World) -> None:
        await here.host("h1")
        numbers = []
        for name in ("east", "west"):
            body = {"aggregate": {"name": name, "availability_zone": name}}
            made = await here.ask("POST", "/os-aggregates", body)
            numbers.append(made.json["aggregate"]["id"])
        assert (await here.ask("POST", "/os-aggregates", body)).status == 409
        host = {"add_host": {"host": "h1"}}
        assert (await here.ask("POST", f"/os-aggregates/{numbers[0]}/action", host)).status == 200
        refused = await here.ask("POST", f"/os-aggregates/{numbers[1]}/action", host)
        assert refused.status == 409 and "east" in refused.body.decode()
        renamed = {"aggregate": {"name": "west", "availability_zone": "east"}}
        assert (await here.ask("PUT", f"/os-aggregates/{numbers[1]}", renamed)).status == 200
        assert (await here.ask("POST", f"/os-aggregates/{numbers[1]}/action", host)).status == 200

    tell(story)


async def _aggregate(here: World, name: str, zone: str | None, *hosts: str) -> str:
    """The address of a new aggregate of these hosts."""
    body = {"aggregate": {"name": name, "availability_zone": zone}}
    path = (
        f"/os-aggregates/{(await here.ask('POST', '/os-aggregates', body)).json['aggregate']['id']}"
    )
    for host in hosts:
        added = await here.ask("POST", f"{path}/action", {"add_host": {"host": host}})
        assert added.status == 200, added
    return path


def test_a_host_leaves_no_zone_while_servers_are_on_it(tell: Tell) -> None:
    async def story(here: World) -> None:
        for name in ("h1", "h2"):
            await here.host(name)
        east = await _aggregate(here, "east", "east", "h1", "h2")
        plain = await _aggregate(here, "plain", None, "h1")
        west = await _aggregate(here, "west", "west")
        bound = store.claim("s", "a", host="h1", node="h1", amount=Amount(1, 1, 1))
        await here.app.program.store.commit(bound)
        h1, h2 = {"host": "h1"}, {"host": "h2"}
        for status, path, body in (
            (409, f"{east}/action", {"remove_host": h1}),
            (409, f"{west}/action", {"add_host": h1}),
            (400, east, {"aggregate": {"availability_zone": "north"}}),
            (400, f"{east}/action", {"set_metadata": {"metadata": {"availability_zone": None}}}),
            (400, plain, {"aggregate": {"availability_zone": "west"}}),
            (200, plain, {"aggregate": {"availability_zone": "east"}}),  # where it is by another
            (200, f"{plain}/action", {"remove_host": h1}),
            (200, f"{east}/action", {"remove_host": h2}),
            (200, f"{west}/action", {"add_host": h2}),
        ):
            method = "POST" if path.endswith("action") else "PUT"
            answer = await here.ask(method, path, body)
            assert answer.status == status, (path, body, answer)
        free = store.free_many("s", [("a", "h1", "h1", Amount(1, 1, 1))])
        await here.app.program.store.commit(free)
        assert (await here.ask("POST", f"{east}/action", {"remove_host": h1})).status == 200
        assert (await here.ask("POST", f"{west}/action", {"add_host": h1})).status == 200

    tell(story)


def test_who_comes_second_to_delete_an_aggregate_finds_none(tell: Tell) -> None:
    async def story(here: World) -> None:
        await here.host("h1")
        path = await _aggregate(here, "a", None)
        both = await asyncio.gather(*(here.ask("DELETE", path) for _ in range(2)))
        assert sorted(one.status for one in both) == [200, 404]
        path = await _aggregate(here, "b", None)
        added, gone = await asyncio.gather(
            here.ask("POST", f"{path}/action", {"add_host": {"host": "h1"}}),
            here.ask("DELETE", path),
        )
        assert (added.status, gone.status) in ((200, 400), (404, 200))

    tell(story)


def test_what_aggregates_say_reaches_the_scheduler(tell: Tell) -> None:
    async def story(here: World) -> None:
        await here.host("h1")
        for name, metadata in (("a", {"ssd": "true"}), ("b", {"filter_tenant_id": "p1, p2"})):
            made = await here.ask("POST", "/os-aggregates", {"aggregate": {"name": name}})
            act = f"/os-aggregates/{made.json['aggregate']['id']}/action"
            await here.ask("POST", act, {"set_metadata": {"metadata": metadata}})
            await here.ask("POST", act, {"add_host": {"host": "h1"}})
        place = (await aggregates.atlas(here.app.program.compute.context)).place("h1")
        assert place.zone == "nova"
        assert place.aggregate_metadata == {"ssd": {"true"}, "filter_tenant_id": {"p1, p2"}}

    tell(story)


def test_hypervisors_follow_the_version(tell: Tell) -> None:
    async def story(here: World) -> None:
        host = await here.host("node-1")
        await here.host("node-2", seen_ago=3600)
        server = await here.server("p", host="node-1", node="node-1")
        first = (await here.get("/os-hypervisors"))["hypervisors"]
        assert [set(one) for one in first] == [BRIEF, BRIEF]
        assert [one["state"] for one in first] == ["up", "down"]
        assert isinstance(first[0]["id"], int)
        full = (await here.get("/os-hypervisors/detail"))["hypervisors"][0]
        assert set(full) == FULL | STATISTICS | {"cpu_info"}
        assert isinstance(full["cpu_info"], str) and isinstance(full["service"]["id"], int)
        full = (await here.get("/os-hypervisors/detail", 53))["hypervisors"][0]
        assert full["cpu_info"] == {"arch": "x86_64"}
        assert full["service"]["id"] == host.uuid
        full = (await here.get("/os-hypervisors/detail", 88))["hypervisors"][0]
        assert set(full) == FULL | {"uptime"}
        path = f"/os-hypervisors/{full['id']}"
        assert (await here.get(path, 88))["hypervisor"] == full
        assert (await here.ask("GET", path, version=52)).status == 404
        with_servers = (await here.get(f"{path}?with_servers=1", 53))["hypervisor"]
        assert with_servers["servers"][0]["uuid"] == server.uuid
        old = (await here.get("/os-hypervisors/node/servers", 52))["hypervisors"]
        assert "servers" in old[0] and "servers" not in old[1]
        always = (await here.get("/os-hypervisors?with_servers=1", 75))["hypervisors"]
        assert always[1]["servers"] == []
        named = "/os-hypervisors?hypervisor_hostname_pattern="
        assert len((await here.get(f"{named}e-2", 53))["hypervisors"]) == 1
        assert (await here.ask("GET", f"{named}e_2", version=53)).status == 404
        assert (await here.ask("GET", "/os-hypervisors/node/search", version=53)).status == 404
        totals = (await here.get("/os-hypervisors/statistics", 87))["hypervisor_statistics"]
        assert (totals["count"], totals["vcpus"]) == (1, 8)
        assert (await here.ask("GET", "/os-hypervisors/statistics", version=88)).status == 404
        page = await here.get("/os-hypervisors?limit=1", 33)
        assert len(page["hypervisors"]) == 1 and "hypervisors_links" in page
        rest = await here.get(f"/os-hypervisors?limit=1&marker={first[0]['id']}", 33)
        assert rest["hypervisors"][0]["id"] == first[1]["id"] and "hypervisors_links" not in rest

    tell(story)


def test_services_are_disabled_enabled_and_forced_down(tell: Tell) -> None:
    async def story(here: World) -> None:
        host = await here.host("h1")
        (one,) = (await here.get("/os-services"))["services"]
        assert set(one) == SERVICE
        assert (one["state"], one["status"], one["zone"]) == ("up", "enabled", "nova")
        body = {"host": "h1", "binary": "nova-compute"}
        done = await here.ask("PUT", "/os-services/disable", body)
        assert done.json == {"service": {**body, "status": "disabled"}}
        reason = {**body, "disabled_reason": "fan"}
        await here.ask("PUT", "/os-services/disable-log-reason", reason)
        (one,) = (await here.get("/os-services", 11))["services"]
        assert (one["disabled_reason"], one["forced_down"]) == ("fan", False)
        await here.ask("PUT", "/os-services/enable", body)
        down = {**body, "forced_down": True}
        assert (await here.ask("PUT", "/os-services/force-down", down, version=10)).status == 404
        assert (await here.ask("PUT", "/os-services/force-down", down, version=11)).status == 200
        (one,) = (await here.get("/os-services", 53))["services"]
        assert (one["id"], one["state"], one["status"]) == (host.uuid, "down", "enabled")
        path = f"/os-services/{host.uuid}"
        body = {"status": "disabled", "disabled_reason": "x", "forced_down": False}
        changed = (await here.ask("PUT", path, body, version=53)).json["service"]
        assert (changed["status"], changed["state"]) == ("disabled", "up")
        alone = {"disabled_reason": "x"}
        assert (await here.ask("PUT", path, alone, version=53)).status == 400
        assert (await here.ask("PUT", path, {}, version=53)).status == 400
        assert (await here.get("/os-services?host=h2"))["services"] == []
        assert (await here.ask("DELETE", path, version=52)).status == 404
        assert (await here.ask("DELETE", path, version=53)).status == 204
        assert (await here.get("/os-services"))["services"] == []
        assert (await here.get("/os-hypervisors"))["hypervisors"] == []

    tell(story)


def test_a_host_with_an_option_that_its_driver_does_not_know_is_refused(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        host = {"name": "h", "uri": "qemu+ssh://h/system", "options": {"keyfle": "/k"}}
        answer = await here.ask("POST", "/hosts", {"host": host}, version=900)
        assert answer.status == 400, answer
        said = answer.json["badRequest"]["message"]
        assert "have no option 'keyfle'; they have: address, keyfile, known_hosts" in said
        answer = await here.ask(
            "POST", "/hosts", {"host": {"name": "h", "uri": "kvm://h"}}, version=900
        )
        assert (answer.status, "such as qemu:///system" in str(answer.json)) == (400, True), answer

    tell_once(story)


def test_hosts_are_for_administrators(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        _, token, _ = await here.app.person("member")
        for path in (
            "/os-aggregates", "/os-hypervisors", "/os-hypervisors/detail", "/os-services",
            "/os-availability-zone/detail", "/os-simple-tenant-usage", "/os-hypervisors/1",
        ):  # fmt: skip
            assert (await here.ask("GET", path, token=token)).status == 403, path
            assert (await here.ask("GET", path, token="")).status == 401, path
        assert (await here.ask("GET", "/os-availability-zone", token=token)).status == 200

    tell_once(story)


def test_usage_adds_up_hours(tell: Tell) -> None:
    async def story(here: World) -> None:
        _, token, project = await here.app.person("member")
        await here.server(project, name="two hours")
        await here.server("other")
        mine = (await here.get(f"/os-simple-tenant-usage/{project}", token=token))["tenant_usage"]
        assert round(mine["total_hours"], 2) == 2.0
        assert round(mine["total_vcpus_usage"], 1) == 4.0
        assert round(mine["total_memory_mb_usage"]) == 1024
        (server,) = mine["server_usages"]
        assert (server["name"], server["state"], server["flavor"]) == (
            "two hours", "active", "m1.tiny",
        )  # fmt: skip
        for words, is_detailed in (("1", True), ("True", True), ("0", False), ("False", False)):
            answer = await here.get(f"/os-simple-tenant-usage?detailed={words}")
            every = answer["tenant_usages"]
            assert [one["tenant_id"] for one in every] == [project, "other"]
            assert all(("server_usages" in one) is is_detailed for one in every)
        page = await here.get("/os-simple-tenant-usage?limit=1", 40)
        assert len(page["tenant_usages"]) == 1 and "tenant_usages_links" in page
        other = "/os-simple-tenant-usage/other"
        assert (await here.ask("GET", other, token=token)).status == 403
        past = f"/os-simple-tenant-usage/{project}?start=2020-01-01&end=2020-02-01"
        assert (await here.get(past, token=token))["tenant_usage"]["total_hours"] == 0
        for query in ("start=x", "start=2021-01-01&end=2020-01-01"):
            assert (await here.ask("GET", f"/os-simple-tenant-usage?{query}")).status == 400

    tell(story)


def test_a_zone_is_taken_from_an_aggregate_by_null(tell: Tell) -> None:
    async def story(here: World) -> None:
        await here.host("h1")
        body = {"aggregate": {"name": "a", "availability_zone": "east"}}
        number = (await here.ask("POST", "/os-aggregates", body)).json["aggregate"]["id"]
        path = f"/os-aggregates/{number}"
        await here.ask("POST", f"{path}/action", {"set_metadata": {"metadata": {"ssd": "true"}}})
        await here.ask("POST", f"{path}/action", {"add_host": {"host": "h1"}})
        none = {"aggregate": {"availability_zone": None}}
        shown = (await here.ask("PUT", path, none)).json["aggregate"]
        assert (shown["availability_zone"], shown["metadata"]) == (None, {"ssd": "true"})
        zones = (await here.get("/os-availability-zone"))["availabilityZoneInfo"]
        assert [zone["zoneName"] for zone in zones] == ["nova"]
        nobody = await here.ask("POST", f"{path}/action", {"remove_host": {"host": ""}})
        assert nobody.status == 400

    tell(story)


def test_the_next_page_is_in_the_project_of_the_address(tell: Tell) -> None:
    async def story(here: World) -> None:
        for name in ("h1", "h2"):
            await here.host(name)
        _, token, project = await here.app.person("admin")
        for middle in ("", f"/{project}"):
            where = f"{middle}/os-hypervisors?limit=1"
            (link,) = (await here.get(where, 53, token))["hypervisors_links"]
            assert f"/compute/v2.1{where}&marker=" in link["href"]

    tell(story)


def test_a_hypervisors_uptime_is_not_told_in_a_way_that_clients_know(tell_once: Tell) -> None:
    """`openstack hypervisor show` below 2.88 asks for it, and goes on only after a 501."""

    async def story(here: World) -> None:
        await here.host("h1")
        for version in (1, 52, 87):
            (shown,) = (await here.get("/os-hypervisors", version))["hypervisors"]
            path = f"/os-hypervisors/{shown['id']}/uptime"
            assert (await here.ask("GET", path, version=version)).status == 501
        assert (await here.ask("GET", "/os-hypervisors/99/uptime", version=52)).status == 404

    tell_once(story)
