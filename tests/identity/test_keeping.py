"""What is kept of users and projects, and that somebody is left to keep it."""

import asyncio
from typing import Any

import pytest

from siderite.core.errors import Invalid
from siderite.identity import store as rows
from siderite.identity.domain import ROLES
from siderite.identity.domain import Scope
from siderite.identity.domain import on_project
from siderite.identity.web.schemas import new_project
from siderite.identity.web.schemas import new_user
from tests.identity.world import World
from tests.identity.world import story


@pytest.mark.parametrize("odd", [{"tags": 5}, {"tags": [1]}, {"tags": ["a,b"]}, {"options": "x"}])
def test_tags_and_options_have_their_form(odd: Any) -> None:
    for noun, check in (("user", new_user), ("project", new_project)):
        with pytest.raises(Invalid):
            check({noun: {"name": "x", **odd}})


@story
async def test_projects_are_found_by_their_tags(here: World) -> None:
    for name, tags in (("one", ["a"]), ("two", ["a", "b"])):
        made = await here.call("POST", "/v3/projects", {"project": {"name": name, "tags": tags}})
        assert made.json()["project"]["tags"] == tags
    for query, names in (
        ("tags=a", "one two"), ("tags=a,b", "two"), ("tags=z", ""), ("tags-any=b,z", "two"),
        ("not-tags=a,b&tags=a", "one"), ("not-tags-any=b&tags=a", "one"),
    ):  # fmt: skip
        found = (await here.call("GET", f"/v3/projects?{query}")).json()["projects"]
        assert " ".join(one["name"] for one in found) == names, query


@story
async def test_the_tags_of_a_project_have_addresses_of_their_own(here: World) -> None:
    made = await here.call("POST", "/v3/projects", {"project": {"name": "one", "room": 5}})
    path = f"/v3/projects/{made.json()['project']['id']}"
    put = await here.call("PUT", f"{path}/tags", {"tags": ["a", "b", "a"]})
    assert (put.status_code, put.json()["tags"]) == (200, ["a", "b"])
    assert put.json()["links"]["self"].endswith(f"{path}/tags")
    for method, tag, status in (
        ("GET", "a", 204), ("HEAD", "a", 204), ("GET", "z", 404), ("PUT", "sch%C3%B6n", 201),
        ("PUT", "a", 201), ("PUT", "b,c", 400), ("PUT", "x" * 256, 400), ("DELETE", "b", 204),
        ("DELETE", "b", 404),
    ):  # fmt: skip
        answer = await here.call(method, f"{path}/tags/{tag}")
        assert answer.status_code == status, (method, tag)
        if status == 201:
            assert answer.headers["location"].endswith(f"{path}/tags/{tag}")
    assert (await here.call("GET", f"{path}/tags")).json()["tags"] == ["a", "schön"]
    shown = (await here.call("GET", path)).json()["project"]
    assert (shown["tags"], shown["room"]) == (["a", "schön"], 5)
    for odd in ({"tags": "a"}, {"tags": [""]}, {}, [], {"tags": [str(n) for n in range(81)]}):
        assert (await here.call("PUT", f"{path}/tags", odd)).status_code == 400
    assert (await here.call("DELETE", f"{path}/tags")).status_code == 204
    assert (await here.call("GET", f"{path}/tags")).json()["tags"] == []
    assert (await here.call("GET", "/v3/projects/none/tags")).status_code == 404


@story
async def test_an_id_is_not_changed(here: World) -> None:
    for noun in ("user", "project"):
        made = (await here.call("POST", f"/v3/{noun}s", {noun: {"name": "one"}})).json()[noun]
        path = f"/v3/{noun}s/{made['id']}"
        same = {noun: {"id": made["id"], "name": "two"}}
        assert (await here.call("PATCH", path, same)).status_code == 200
        other = await here.call("PATCH", path, {noun: {"id": "x", "name": "three"}})
        assert other.status_code == 400
        assert (await here.call("GET", path)).json()[noun]["name"] == "two"


@story
async def test_patches_do_not_pile_up_what_is_only_kept(here: World) -> None:
    for noun in ("user", "project"):
        made = await here.call("POST", f"/v3/{noun}s", {noun: {"name": "much", "a": "x" * 15_000}})
        path = f"/v3/{noun}s/{made.json()[noun]['id']}"
        more = await here.call("PATCH", path, {noun: {"b": "x" * 15_000}})
        assert more.status_code == 400
        assert (await here.call("GET", path)).json() == made.json()
        instead = {noun: {"a": None, "b": "x" * 15_000}}
        assert (await here.call("PATCH", path, instead)).status_code == 200


@story
async def test_the_last_administrator_stays(here: World) -> None:
    me = (await here.call("GET", "/v3/users?name=admin")).json()["users"][0]["id"]
    role = await here.role_id("admin")
    home = (await here.call("GET", "/v3/projects?name=admin")).json()["projects"][0]["id"]
    on_system = f"/v3/system/users/{me}/roles/{role}"
    other = await here.new_user("robot", password=None)
    await here.give(other, "admin", home)  # cannot log in
    assert (await here.call("DELETE", on_system)).status_code == 204
    changes: tuple[tuple[str, str, Any], ...] = (
        ("DELETE", f"/v3/users/{me}", None),
        ("PATCH", f"/v3/users/{me}", {"user": {"enabled": False}}),
        ("PATCH", f"/v3/users/{me}", {"user": {"password": None}}),
        ("DELETE", f"/v3/projects/{home}/users/{me}/roles/{role}", None),
        ("PATCH", f"/v3/projects/{home}", {"project": {"enabled": False}}),
        ("DELETE", f"/v3/projects/{home}", None),
    )
    for method, path, body in changes:
        refused = await here.call(method, path, body)
        assert refused.status_code == 409, (method, path, body)
        assert "administrator" in refused.json()["error"]["message"]
    second = await here.new_user("second")
    await here.give(second, "admin")
    assert (await here.call("DELETE", f"/v3/users/{me}")).status_code == 204
    assert (await here.login("second", scope={"system": {"all": True}})).status_code == 201


@story
async def test_the_last_project_of_an_administrator_stays(here: World) -> None:
    """Its user is one of the whole system too, but clients are set up for the project."""
    home = (await here.call("GET", "/v3/projects?name=admin")).json()["projects"][0]["id"]
    off = {"project": {"enabled": False}}
    for method, body in (("DELETE", None), ("PATCH", off)):
        refused = await here.call(method, f"/v3/projects/{home}", body)
        assert refused.status_code == 409, method
        assert "another project" in refused.json()["error"]["message"]
    second, other = await here.member()
    await here.give(second, "admin", other)
    assert (await here.call("DELETE", f"/v3/projects/{home}")).status_code == 204


@story
async def test_a_role_is_not_given_to_somebody_who_went_meanwhile(here: World) -> None:
    user, project = await here.member()
    grants, scope = here.identity.grants, on_project(project)
    everything = grants._check

    async def overtaken(user_id: str, where: Scope) -> None:
        await everything(user_id, where)
        await here.identity.projects.delete(project)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grants, "_check", overtaken)
        await grants.give(user, scope, ROLES[0])
    assert await rows.roles_at(here.store, user, scope) == frozenset()


@story
async def test_two_administrators_do_not_take_each_other_away(here: World) -> None:
    first = (await here.call("GET", "/v3/users?name=admin")).json()["users"][0]["id"]
    second = await here.new_user("second")
    await here.give(second, "admin")
    deletes = [here.call("DELETE", f"/v3/users/{one}") for one in (first, second)]
    codes = [one.status_code for one in await asyncio.gather(*deletes)]
    assert sorted(codes)[0] == 204 and sorted(codes)[1] in (401, 409), codes


@story
async def test_two_administrators_do_not_take_each_others_role_away(here: World) -> None:
    first = (await here.call("GET", "/v3/users?name=admin")).json()["users"][0]["id"]
    role = await here.role_id("admin")
    home = (await here.call("GET", "/v3/projects?name=admin")).json()["projects"][0]["id"]
    assert (await here.call("DELETE", f"/v3/system/users/{first}/roles/{role}")).status_code == 204
    second = await here.new_user("second")
    await here.give(second, "admin", home)
    paths = [f"/v3/projects/{home}/users/{one}/roles/{role}" for one in (first, second)]
    both = await asyncio.gather(*[here.call("DELETE", path) for path in paths])
    codes = [one.status_code for one in both]
    assert sorted(codes)[0] == 204 and sorted(codes)[1] in (401, 409), codes


@story
async def test_two_projects_with_an_administrator_each_are_not_both_disabled(here: World) -> None:
    first = (await here.call("GET", "/v3/users?name=admin")).json()["users"][0]["id"]
    role = await here.role_id("admin")
    home = (await here.call("GET", "/v3/projects?name=admin")).json()["projects"][0]["id"]
    second, other = await here.member()
    await here.give(second, "admin", other)
    assert (await here.call("DELETE", f"/v3/system/users/{first}/roles/{role}")).status_code == 204
    off = {"project": {"enabled": False}}
    both = [here.call("PATCH", f"/v3/projects/{one}", off) for one in (home, other)]
    codes = [one.status_code for one in await asyncio.gather(*both)]
    assert sorted(codes)[0] == 200 and sorted(codes)[1] in (401, 409), codes
