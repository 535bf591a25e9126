"""The networks that hosts offer, as Neutron would show them."""

import asyncio
from importlib.resources import files
from pathlib import Path
from typing import Any

from siderite.compute.domain.network import Port
from siderite.compute.domain.network import mac_of
from siderite.compute.usecases.fleet import networks
from siderite.compute.web.network.networks import ROUTES
from siderite.core.ids import new_uuid
from siderite.core.store.migrations import for_dialect
from tests.compute.records.world import World
from tests.compute.records.world import world
from tests.support.app import Answer
from tests.support.stories import Tell


async def _ask(here: World, path: str, token: str | None = None, method: str = "GET") -> Answer:
    return await here.app.ask(method, "/network" + path, version=None, token=token)


async def _get(here: World, path: str, token: str | None = None) -> Any:
    answer = await _ask(here, path, token)
    assert answer.status == 200, answer
    return answer.json


def test_networks_and_subnets_are_found_by_name_and_id(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        (network,) = (await _get(here, "/v2.0/networks?name=private"))["networks"]
        assert (network["status"], network["shared"]) == ("ACTIVE", True)
        assert (await _ask(here, "/v2.0/networks/private")).status == 404
        path = f"/v2.0/networks/{network['id']}"
        assert (await _get(here, path))["network"] == network
        assert (await _get(here, "/v2.0/networks?name=other"))["networks"] == []
        assert (await _get(here, "/v2.0/networks?router:external=True"))["networks"] == []
        (subnet,) = (await _get(here, f"/v2.0/subnets?network_id={network['id']}"))["subnets"]
        assert [subnet["id"]] == network["subnets"]
        assert (subnet["cidr"], subnet["gateway_ip"]) == ("10.88.0.0/16", "10.88.0.1")
        (brief,) = (await _get(here, "/v2.0/networks?fields=id&fields=name"))["networks"]
        assert set(brief) == {"id", "name"}

    tell_once(story)


def test_ports_are_those_of_ones_own_servers(tell: Tell) -> None:
    async def story(here: World) -> None:
        _, token, project = await here.app.person("member")
        made = []
        for owner in (project, "other"):
            port = Port(
                f"port-of-{owner[:5]}", "private", "fa:16:3e:00:00:01", f"10.88.1.{len(made)}"
            )
            made.append(await here.server(owner, ports=[port]))
        (mine,) = (await _get(here, "/v2.0/ports", token))["ports"]
        assert (mine["device_id"], mine["project_id"]) == (made[0].uuid, project)
        assert mine["fixed_ips"][0]["ip_address"] == "10.88.1.0"
        assert len((await _get(here, "/v2.0/ports"))["ports"]) == 2, "the admin sees all"
        quota = (await _get(here, f"/v2.0/quotas/{project}/details", token))["quota"]
        assert quota["port"] == {"limit": -1, "used": 1, "reserved": 0}
        assert (await _ask(here, "/v2.0/quotas/other/details", token)).status == 403
        other = f"/v2.0/ports?device_id={made[1].uuid}"
        assert (await _get(here, other, token))["ports"] == []
        assert len((await _get(here, other))["ports"]) == 1
        by_address = "/v2.0/ports?fixed_ips=ip_address=10.88.1.1"
        assert len((await _get(here, by_address))["ports"]) == 1
        page = await _get(here, "/v2.0/ports?limit=1")
        assert len(page["ports"]) == 1 and "marker=" in page["ports_links"][0]["href"]
        last = await _get(here, f"/v2.0/ports?limit=1&marker={page['ports'][0]['id']}")
        assert last["ports"][0]["id"] != page["ports"][0]["id"] and "ports_links" not in last

    tell(story)


def test_ports_come_in_pages_also_if_nobody_asks_for_them(tmp_path: Path) -> None:
    async def story() -> None:
        async with world(tmp_path, max_limit=2) as here:
            idents = sorted(new_uuid() for _ in range(5))
            for at, ident in enumerate(idents):
                port = Port(ident, "private", mac_of(ident), f"10.88.2.{at}")
                await here.server("other", ports=[port])
            path, seen, sizes = "/v2.0/ports?status=DOWN", list[str](), list[int]()
            while path:
                page = await _get(here, path)
                seen += [one["id"] for one in page["ports"]]
                sizes.append(len(page["ports"]))
                links = page.get("ports_links", [{"href": ""}])
                path = links[0]["href"].partition("/network")[2]
            assert (seen, sizes) == (idents, [2, 2, 1])
            one = (await _get(here, f"/v2.0/ports/{idents[3]}"))["port"]
            assert one["fixed_ips"][0]["ip_address"] == "10.88.2.3"
            assert (await _get(here, f"/v2.0/ports?id={idents[4]}"))["ports"][0]["id"] == idents[4]
            either = f"fixed_ips=ip_address=10.88.2.1&fixed_ips=subnet_id={'x' * 8}"
            assert len((await _get(here, f"/v2.0/ports?{either}"))["ports"]) == 1

    asyncio.run(story())


def test_what_has_no_slots_gets_no_interface_and_no_address(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        host = await here.host()
        server = await here.server("p", driver="baremetal", host=host.name)
        path = f"/servers/{server.uuid}/os-interface"
        assert (await here.ask("POST", path, {"interfaceAttachment": {}})).status == 501
        assert (await here.get(path))["interfaceAttachments"] == []
        assert (await _get(here, "/v2.0/ports"))["ports"] == []

    tell_once(story)


def test_addresses_from_before_ports_were_on_record_get_theirs(tell: Tell) -> None:
    async def story(here: World) -> None:
        store = here.app.program.store
        ports = [Port(new_uuid(), "private", "fa:16:3e:00:00:01", f"10.88.3.{n}") for n in (1, 2)]
        await here.server("p", ports=ports)
        await here.server("p")
        await store.write("UPDATE addresses SET port = NULL")
        assert (await _get(here, "/v2.0/ports"))["ports"] == []
        await networks.complete(here.app.program.compute.context)
        assert len((await _get(here, "/v2.0/ports"))["ports"]) == 2
        await store.write("UPDATE addresses SET port = NULL")
        text = files("siderite.compute").joinpath("migrations/0006_ports.sql").read_text()
        (fill,) = [
            line for line in for_dialect(text, store.dialect).splitlines()
            if line.startswith("UPDATE")
        ]  # fmt: skip
        await store.write(fill.rstrip(";"))
        found = (await _get(here, "/v2.0/ports"))["ports"]
        assert {one["id"] for one in found} == {port.id for port in ports}

    tell(story)


def test_each_project_has_a_security_group_that_filters_nothing(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        _, token, project = await here.app.person("reader")
        path = "/v2.0/security-groups?name=default"
        (group,) = (await _get(here, path, token))["security_groups"]
        assert (group["project_id"], len(group["security_group_rules"])) == (project, 4)
        rules = (await _get(here, "/v2.0/security-group-rules", token))["security_group_rules"]
        assert rules == group["security_group_rules"]

    tell_once(story)


def test_it_is_read_only_and_for_those_who_log_in(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        for route in ROUTES:
            path = route.path.replace("{id}", "x").replace("{project}", "p")
            status = (await _ask(here, path, token="", method=route.method)).status
            assert status == (200 if route.policy == "public" else 401), path
            gone = () if path == "/v2.0/quotas/p" else ("DELETE",)
            for method in ("POST", "PUT", *gone):
                answer = await _ask(here, path, method=method)
                assert answer.status == 405, path
                assert "NeutronError" in answer.json
            for query in ("limit=x", "limit=-1", "limit=1", "marker=x", "name=%25", "fields=q"):
                assert (await _ask(here, f"{path}?{query}")).status in (200, 400, 404), path

    tell_once(story)


def test_a_quota_goes_back_to_what_it_is_anyway(tell_once: Tell) -> None:
    """`openstack quota delete` asks every service, and ends at one that refuses."""

    async def story(here: World) -> None:
        before = await _get(here, "/v2.0/quotas/p")
        assert (await _ask(here, "/v2.0/quotas/p", method="DELETE")).status == 204
        assert await _get(here, "/v2.0/quotas/p") == before
        _, token, project = await here.app.person("member")
        own = await _ask(here, f"/v2.0/quotas/{project}", token, method="DELETE")
        assert own.status == 403

    tell_once(story)


def test_a_bridge_is_told_as_reachable_from_outside(tmp_path: Path) -> None:
    async def story() -> None:
        text = "inner=user@10.1.0.0/16, outer=bridge:br0@192.0.2.0/24"
        async with world(tmp_path, networks=text) as here:
            outside = await _get(here, "/v2.0/networks?provider:physical_network=br0")
            assert [one["name"] for one in outside["networks"]] == ["outer"]
            floating = await _get(here, "/v2.0/networks?router:external=true")
            assert floating["networks"] == []  # openstacksdk would want addresses from there
            every = (await _get(here, "/v2.0/networks"))["networks"]
            assert [(one["name"], one["is_default"]) for one in every] == [
                ("inner", True), ("outer", False),
            ]  # fmt: skip

    asyncio.run(story())
