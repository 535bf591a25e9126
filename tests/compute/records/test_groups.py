"""Server groups."""

import asyncio

import pytest

from siderite.compute.usecases.context import Context
from siderite.compute.usecases.project import server_groups
from siderite.compute.usecases.project.server_groups import Shown
from siderite.core.who import Who
from tests.compute.records.world import World
from tests.support.stories import Tell

OLD = {"server_group": {"name": "g", "policies": ["anti-affinity"]}}
NEW = {
    "server_group": {
        "name": "g", "policy": "anti-affinity", "rules": {"max_server_per_host": 3},
    }
}  # fmt: skip


def test_the_shape_follows_the_version(tell: Tell) -> None:
    async def story(here: World) -> None:
        for version, body, keys in (
            (1, OLD, {"id", "name", "policies", "members", "metadata"}),
            (13, OLD, {"id", "name", "policies", "members", "metadata", "project_id", "user_id"}),
            (64, NEW, {"id", "name", "policy", "rules", "members", "project_id", "user_id"}),
        ):
            made = await here.ask("POST", "/os-server-groups", body, version=version)
            assert made.status == 200, made
            group = made.json["server_group"]
            assert set(group) == keys
            shown = await here.get(f"/os-server-groups/{group['id']}", version)
            assert shown == {"server_group": group}
            listed = (await here.get("/os-server-groups", version))["server_groups"]
            assert group in listed
        soft = {"server_group": {"name": "s", "policies": ["soft-affinity"]}}
        assert (await here.ask("POST", "/os-server-groups", soft, version=14)).status == 400
        assert (await here.ask("POST", "/os-server-groups", soft, version=15)).status == 200

    tell(story)


def test_its_members_are_the_servers_that_name_it(tell: Tell) -> None:
    async def story(here: World) -> None:
        group = (await here.ask("POST", "/os-server-groups", OLD)).json["server_group"]["id"]
        server = await here.server("p", group=group)
        shown = (await here.get(f"/os-server-groups/{group}"))["server_group"]
        assert shown["members"] == [server.uuid]
        assert (await here.ask("DELETE", f"/os-server-groups/{group}")).status == 204
        assert (await here.ask("GET", f"/os-server-groups/{group}")).status == 404

    tell(story)


def test_a_group_is_deleted_while_its_servers_are_placed(
    tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(here: World) -> None:
        uuid = (await here.ask("POST", "/os-server-groups", OLD)).json["server_group"]["id"]
        one, placed = server_groups.one, []

        async def meanwhile(ctx: Context, uuid: str, who: Who) -> Shown:
            found = await one(ctx, uuid, who)
            if not placed:
                placed.append(uuid)
                await ctx.door.store.commit([server_groups.turn(found[0])])
            return found

        with monkeypatch.context() as patched:
            patched.setattr(server_groups, "one", meanwhile)
            assert (await here.ask("DELETE", f"/os-server-groups/{uuid}")).status == 204
        assert placed == [uuid]
        assert (await here.ask("GET", f"/os-server-groups/{uuid}")).status == 404

    tell(story)


def test_groups_are_a_projects_own(tell: Tell) -> None:
    async def story(here: World) -> None:
        _, mia, project = await here.app.person("member")
        _, other, _ = await here.app.person("member")
        _, reader, _ = await here.app.person("reader", project)
        made = await here.ask("POST", "/os-server-groups", OLD, token=mia)
        path = f"/os-server-groups/{made.json['server_group']['id']}"
        assert (await here.ask("POST", "/os-server-groups", OLD, token=reader)).status == 403
        assert (await here.ask("DELETE", path, token=reader)).status == 403
        assert (await here.ask("GET", path, token=reader)).status == 200
        for method in ("GET", "DELETE"):
            assert (await here.ask(method, path, token=other)).status == 404
        every = "/os-server-groups?all_projects=1"
        assert (await here.ask("GET", every, token=other)).status == 403
        assert len((await here.get(every))["server_groups"]) == 1
        assert (await here.get("/os-server-groups"))["server_groups"] == []

    tell(story)


def test_there_is_a_limit_and_pages(tell: Tell) -> None:
    async def story(here: World) -> None:
        _, mia, project = await here.app.person("member")
        await here.ask("PUT", f"/os-quota-sets/{project}", {"quota_set": {"server_groups": 3}})
        for status in (200, 200, 200, 403):
            assert (await here.ask("POST", "/os-server-groups", OLD, token=mia)).status == status
        page = await here.get("/os-server-groups?limit=2&offset=2", token=mia)
        assert len(page["server_groups"]) == 1

    tell(story)


def test_a_group_takes_so_many_servers_and_no_more(tell: Tell) -> None:
    async def story(here: World) -> None:
        _, mia, project = await here.app.person("member")
        limits = {"quota_set": {"server_group_members": 2}}
        await here.ask("PUT", f"/os-quota-sets/{project}", limits)
        made = await here.ask("POST", "/os-server-groups", OLD, token=mia)
        group = made.json["server_group"]["id"]
        flavor = {"flavor": {"name": "f", "ram": 64, "vcpus": 1, "disk": 1}}
        ident = (await here.ask("POST", "/flavors", flavor)).json["flavor"]["id"]
        image = {"name": "i", "disk_format": "raw", "container_format": "bare"}
        image |= {"visibility": "public"}
        image_id = (await here.app.ask("POST", "/image/v2/images", image)).json["id"]
        typed = {"content-type": "application/octet-stream"}
        await here.app.ask("PUT", f"/image/v2/images/{image_id}/file", b"x", headers=typed)
        server = {"name": "s", "flavorRef": ident, "imageRef": image_id, "networks": "none"}
        body = {"server": server, "os:scheduler_hints": {"group": group}}
        twice = {**body, "server": {**server, "min_count": 3}}
        refused = await here.ask("POST", "/servers", twice, version=64, token=mia)
        assert refused.status == 403 and "group" in refused.body.decode()
        asked = (here.ask("POST", "/servers", body, version=64, token=mia) for _ in range(4))
        statuses = sorted([answer.status for answer in await asyncio.gather(*asked)])
        assert statuses == [202, 202, 403, 403]
        shown = (await here.get(f"/os-server-groups/{group}", token=mia))["server_group"]
        assert len(shown["members"]) == 2

    tell(story)
