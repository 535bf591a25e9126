"""Server groups."""

from tests.compute.records.conftest import Tell
from tests.compute.records.world import World

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
