"""Projects, users, roles: making, changing, deleting, and what that does to tokens."""

import asyncio
from typing import Any

import pytest

from tests.identity.world import PASSWORD
from tests.identity.world import World
from tests.identity.world import story


@story
async def test_a_project_lives_from_post_to_delete(here: World) -> None:
    body = {"project": {"name": "lab", "description": "A lab.", "tags": ["x"], "room": 5}}
    made = await here.call("POST", "/v3/projects", body)
    assert made.status_code == 201
    project = made.json()["project"]
    path = f"/v3/projects/{project['id']}"
    assert project["links"]["self"].endswith("/identity" + path)
    assert (project["domain_id"], project["parent_id"]) == ("default", "default")
    assert (project["tags"], project["room"], project["enabled"]) == (["x"], 5, True)
    changed = await here.call("PATCH", path, {"project": {"name": "hall", "room": 6}})
    assert changed.json()["project"] == {**project, "name": "hall", "room": 6}
    assert (await here.call("GET", path)).json() == changed.json()
    assert (await here.call("DELETE", path)).status_code == 204
    for method in ("GET", "DELETE"):
        assert (await here.call(method, path)).status_code == 404


@story
async def test_a_project_tells_what_it_stands_among_if_asked(here: World) -> None:
    """`openstack project show --parents --children`."""
    path = f"/v3/projects/{await here.new_project('lab')}"
    shown = (await here.call("GET", f"{path}?parents_as_ids&subtree_as_ids")).json()["project"]
    assert (shown["parents"], shown["subtree"]) == ({"default": None}, None)
    shown = (await here.call("GET", f"{path}?parents_as_list&subtree_as_list")).json()["project"]
    assert (shown["parents"], shown["subtree"]) == ([], [])
    assert not {"parents", "subtree"} & set((await here.call("GET", path)).json()["project"])


@story
async def test_a_user_lives_from_post_to_delete(here: World) -> None:
    body = {"user": {"name": "mia", "password": PASSWORD, "email": "mia@lab.test"}}
    made = await here.call("POST", "/v3/users", body)
    assert made.status_code == 201
    user = made.json()["user"]
    assert "password" not in user
    assert PASSWORD not in made.text
    assert user["email"] == "mia@lab.test"
    path = f"/v3/users/{user['id']}"
    changed = await here.call("PATCH", path, {"user": {"name": "Mia", "description": None}})
    assert changed.json()["user"] == {**user, "name": "Mia", "description": None}
    assert (await here.call("GET", path)).json() == changed.json()
    assert (await here.call("DELETE", path)).status_code == 204
    assert (await here.call("GET", path)).status_code == 404


@story
async def test_a_name_is_taken_once(here: World) -> None:
    for noun in ("project", "user"):
        body = {noun: {"name": "twin"}}
        first = await here.call("POST", f"/v3/{noun}s", body)
        second = await here.call("POST", f"/v3/{noun}s", body)
        assert (first.status_code, second.status_code) == (201, 409)
        assert "twin" in second.json()["error"]["message"]
        third = await here.call("POST", f"/v3/{noun}s", {noun: {"name": "third"}})
        path = f"/v3/{noun}s/{third.json()[noun]['id']}"
        assert (await here.call("PATCH", path, body)).status_code == 409


@story
async def test_lists_go_on_page_by_page(here: World) -> None:
    for name in "abcd":
        await here.new_user(name)
        await here.new_project(name)
    for noun in ("users", "projects", "roles"):
        whole = (await here.call("GET", f"/v3/{noun}")).json()
        assert "truncated" not in whole
        seen, path = [], f"/v3/{noun}?limit=2&name__contains="
        while path:
            answer = (await here.call("GET", path)).json()
            assert len(answer[noun]) == 2 or answer["links"]["next"] is None
            assert answer.get("truncated", False) is (answer["links"]["next"] is not None)
            seen += answer[noun]
            path = (answer["links"]["next"] or "").partition("/identity")[2]
        assert seen == whole[noun]
        last = f"/v3/{noun}?limit=2&marker={seen[-1]['id']}"
        assert (await here.call("GET", last)).json()[noun] == []
        for wrong in ("limit=0", "limit=-1", "limit=x", "limit=", "marker=nobody"):
            assert (await here.call("GET", f"/v3/{noun}?{wrong}")).status_code == 400


@story
async def test_lists_are_cut_by_filters(here: World) -> None:
    await here.new_user("mia", enabled=False)
    await here.new_project("lab")

    async def names(path: str) -> list[str]:
        answer = await here.call("GET", path)
        assert answer.status_code == 200
        noun = path.removeprefix("/v3/").partition("?")[0]
        assert answer.json()["links"]["next"] is None
        return [one["name"] for one in answer.json()[noun]]

    assert await names("/v3/users") == ["admin", "mia"]
    assert await names("/v3/users?name=mia") == ["mia"]
    assert await names("/v3/users?enabled=true") == ["admin"]
    assert await names("/v3/users?enabled=False") == ["mia"]
    assert await names("/v3/users?domain_id=other") == []
    assert await names("/v3/projects?name=lab&domain_id=default") == ["lab"]
    assert await names("/v3/projects?parent_id=other") == []
    assert await names("/v3/projects?is_domain=True") == []
    assert await names("/v3/roles?name=reader") == ["reader"]
    assert await names("/v3/domains?name=Default") == ["Default"]
    assert await names("/v3/domains?name=default") == []
    assert await names("/v3/services?type=baremetal") == ["siderite-baremetal"]


@story
async def test_the_catalogues_parts_can_be_listed_and_shown(here: World) -> None:
    services = (await here.call("GET", "/v3/services")).json()["services"]
    endpoints = (await here.call("GET", "/v3/endpoints")).json()["endpoints"]
    regions = (await here.call("GET", "/v3/regions")).json()["regions"]
    assert len(endpoints) == 3 * len(services) == 9
    assert [one["id"] for one in regions] == ["RegionOne"]
    for noun, found in (("service", services), ("endpoint", endpoints), ("region", regions)):
        for one in found:
            shown = await here.call("GET", f"/v3/{noun}s/{one['id']}")
            assert shown.json() == {noun: one}
        assert (await here.call("GET", f"/v3/{noun}s/no-such")).status_code == 404
    of_one = await here.call("GET", f"/v3/endpoints?service_id={services[0]['id']}")
    assert len(of_one.json()["endpoints"]) == 3
    for path in ("/v3/roles/no-such", "/v3/domains/no-such", "/v3/users/no-such"):
        assert (await here.call("GET", path)).status_code == 404
    assert (await here.call("GET", "/v3/domains/default")).json()["domain"]["name"] == "Default"


@story
async def test_members_see_themselves_and_their_projects_only(here: World) -> None:
    user, project = await here.member("mia")
    token = await here.token_of("mia", {"project": {"id": project}})
    admin = (await here.call("GET", "/v3/users?name=admin")).json()["users"][0]["id"]
    seen = {
        path: (await here.call("GET", path, None, token)).status_code
        for path in (
            "/v3/auth/projects",
            f"/v3/users/{user}",
            f"/v3/users/{user}/projects",
            f"/v3/projects/{project}",
            "/v3/roles",
            "/v3/users",
            "/v3/projects",
            "/v3/role_assignments",
            f"/v3/users/{admin}",
            f"/v3/users/{admin}/projects",
            f"/v3/projects/{await here.new_project()}",
        )
    }
    assert list(seen.values()) == [200] * 5 + [403] * 6
    mine = await here.call("GET", "/v3/auth/projects", None, token)
    assert [one["id"] for one in mine.json()["projects"]] == [project]
    for method, path in (
        ("POST", "/v3/users"),
        ("PATCH", f"/v3/users/{user}"),
        ("DELETE", f"/v3/projects/{project}"),
        ("PUT", f"/v3/system/users/{user}/roles/{await here.role_id('admin')}"),
    ):
        assert (await here.call(method, path, {}, token)).status_code == 403


@story
async def test_readers_of_the_system_list_and_change_nothing(here: World) -> None:
    user = await here.new_user("eve")
    await here.give(user, "reader")
    token = await here.token_of("eve", {"system": {"all": True}})
    for path in ("/v3/users", "/v3/projects", "/v3/role_assignments"):
        assert (await here.call("GET", path, None, token)).status_code == 200
    answer = await here.call("POST", "/v3/projects", {"project": {"name": "x"}}, token)
    assert answer.status_code == 403


@story
async def test_without_a_token_only_the_doors_open(here: World) -> None:
    for path in ("/v3/users", "/v3/auth/projects", "/v3/auth/tokens", "/v3/roles"):
        answer = await here.call("GET", path, None, "")
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Keystone uri=")


@story
async def test_roles_are_given_checked_listed_and_taken(here: World) -> None:
    user, project = await here.new_user("mia"), await here.new_project()
    role = await here.role_id("member")
    for where in (f"projects/{project}", "domains/default", "system"):
        path = f"/v3/{where}/users/{user}/roles"
        one = f"{path}/{role}"
        assert (await here.call("HEAD", one)).status_code == 404
        assert (await here.call("PUT", one)).status_code == 204
        assert (await here.call("PUT", one)).status_code == 204
        assert (await here.call("HEAD", one)).status_code == 204
        assert (await here.call("GET", one)).status_code == 204
        listed = (await here.call("GET", path)).json()["roles"]
        assert [found["name"] for found in listed] == ["member"]
        assert (await here.call("DELETE", one)).status_code == 204
        assert (await here.call("DELETE", one)).status_code == 404


@story
async def test_roles_of_nobody_nowhere_are_not_found(here: World) -> None:
    user, project = await here.new_user("mia"), await here.new_project()
    role = await here.role_id("member")
    for path in (
        f"/v3/projects/no-such/users/{user}/roles/{role}",
        f"/v3/projects/{project}/users/no-such/roles/{role}",
        f"/v3/projects/{project}/users/{user}/roles/no-such",
        f"/v3/domains/no-such/users/{user}/roles/{role}",
        f"/v3/system/users/no-such/roles/{role}",
    ):
        for method in ("PUT", "GET", "DELETE"):
            assert (await here.call(method, path)).status_code == 404


@story
async def test_assignments_are_listed_with_names_and_what_they_imply(here: World) -> None:
    user, project = await here.member("mia")
    path = f"/v3/role_assignments?user.id={user}"
    plain = (await here.call("GET", path)).json()["role_assignments"]
    role = await here.role_id("member")
    assert len(plain) == 1
    assert plain[0]["role"] == {"id": role}
    assert plain[0]["scope"] == {"project": {"id": project}}
    link = plain[0]["links"]["assignment"]
    assert link.endswith(f"/v3/projects/{project}/users/{user}/roles/{role}")
    named = (await here.call("GET", path + "&include_names=True")).json()["role_assignments"]
    assert named[0]["user"]["name"] == "mia"
    assert named[0]["role"]["name"] == "member"

    async def count(query: str) -> int:
        answer = await here.call("GET", "/v3/role_assignments?" + query)
        assert answer.status_code == 200
        return len(answer.json()["role_assignments"])

    reader = await here.role_id("reader")
    assert await count("") == 3
    assert await count(f"user.id={user}&effective") == 2
    assert await count(f"user.id={user}&role.id={reader}") == 0
    assert await count(f"user.id={user}&role.id={reader}&effective") == 1
    assert await count(f"scope.project.id={project}") == 1
    assert await count("scope.system=all") == 1
    assert await count("scope.domain.id=default") == 0
    assert await count("role.id=no-such") == 0
    assert await count("group.id=no-such") == 0
    both = await here.call("GET", f"/v3/role_assignments?scope.system&scope.project.id={project}")
    assert both.status_code == 400


@story
async def test_an_assignment_on_the_domain_is_listed_with_its_name(here: World) -> None:
    user, role = await here.new_user("mia"), await here.role_id("reader")
    await here.call("PUT", f"/v3/domains/default/users/{user}/roles/{role}")
    answer = await here.call("GET", "/v3/role_assignments?scope.domain.id=default&include_names")
    (one,) = answer.json()["role_assignments"]
    assert one["scope"] == {"domain": {"id": "default", "name": "Default"}}
    inherited = "/v3/role_assignments?scope.OS-INHERIT:inherited_to=projects"
    assert (await here.call("GET", inherited)).json()["role_assignments"] == []


@story
async def test_of_two_changes_at_once_one_is_told_to_look_again(here: World) -> None:
    user, project = await here.member("mia")
    for path, noun in ((f"/v3/users/{user}", "user"), (f"/v3/projects/{project}", "project")):
        changes = [here.call("PATCH", path, {noun: {"note": n}}) for n in range(2)]
        codes = sorted(one.status_code for one in await asyncio.gather(*changes))
        assert codes in ([200, 200], [200, 409])
        change = here.call("PATCH", path, {noun: {"note": "x"}})
        gone = here.call("DELETE", path)
        for one in await asyncio.gather(change, gone):
            assert one.status_code in (200, 204, 404, 409)


@story
async def test_what_i_may_scope_to_is_listed(here: World) -> None:
    user, project = await here.member("mia")
    token = await here.token_of("mia")

    async def mine(noun: str) -> Any:
        return (await here.call("GET", f"/v3/auth/{noun}", None, token)).json()[noun]

    assert [one["id"] for one in await mine("projects")] == [project]
    assert await mine("system") == []
    assert await mine("domains") == []
    await here.give(user, "reader")
    assert await mine("system") == [{"all": True}]


@story
async def test_deleting_a_user_ends_tokens_and_roles(here: World) -> None:
    user, project = await here.member("mia")
    token = await here.token_of("mia", {"project": {"id": project}})
    assert await here.identity.by_token(token) is not None
    await here.call("DELETE", f"/v3/users/{user}")
    assert await here.identity.by_token(token) is None
    assert await here.store.fetch("SELECT 1 FROM identity_grants WHERE user_id = ?", (user,)) == []
    assert await here.store.fetch("SELECT 1 FROM identity_tokens WHERE user_id = ?", (user,)) == []


@story
async def test_deleting_or_disabling_a_project_ends_its_tokens(here: World) -> None:
    user, project = await here.member("mia")
    other = await here.new_project()
    await here.give(user, "member", other)
    path = f"/v3/projects/{project}"
    scope = {"project": {"id": project}}
    token, elsewhere = (
        await here.token_of("mia", scope),
        await here.token_of("mia", {"project": {"id": other}}),
    )
    assert await here.identity.by_token(token) is not None
    await here.call("PATCH", path, {"project": {"enabled": False}})
    assert await here.identity.by_token(token) is None
    assert (await here.login("mia", scope=scope)).status_code == 401
    await here.call("PATCH", path, {"project": {"enabled": True}})
    assert await here.identity.by_token(token) is None
    token = await here.token_of("mia", scope)
    await here.call("DELETE", path)
    assert await here.identity.by_token(token) is None
    assert await here.identity.by_token(elsewhere) is not None


@story
async def test_taking_a_role_ends_the_tokens_of_that_user_there(here: World) -> None:
    user, project = await here.member("mia")
    path = await here.give(user, "reader", project)
    unscoped = await here.token_of("mia")
    token = await here.token_of("mia", {"project": {"id": project}})
    await here.call("DELETE", path)
    assert await here.identity.by_token(token) is None
    assert await here.identity.by_token(unscoped) is not None


@story
async def test_a_role_given_counts_at_once(here: World) -> None:
    user, project = await here.member("mia", "reader")
    token = await here.token_of("mia", {"project": {"id": project}})
    assert (await here.call("GET", "/v3/users", None, token)).status_code == 403
    await here.give(user, "admin", project)
    assert (await here.call("GET", "/v3/users", None, token)).status_code == 200


@story
async def test_disabling_a_user_or_a_new_password_ends_all_tokens(here: World) -> None:
    user, _ = await here.member("mia")
    path = f"/v3/users/{user}"
    token = await here.token_of("mia")
    await here.call("PATCH", path, {"user": {"enabled": False}})
    assert await here.identity.by_token(token) is None
    await here.call("PATCH", path, {"user": {"enabled": True}})
    assert await here.identity.by_token(token) is None
    token = await here.token_of("mia")
    await here.call("PATCH", path, {"user": {"email": "m@lab.test"}})
    assert await here.identity.by_token(token) is not None
    await here.call("PATCH", path, {"user": {"password": "new"}})
    assert await here.identity.by_token(token) is None


@story
async def test_a_token_issued_while_the_password_changed_is_worthless(here: World) -> None:
    user, _ = await here.member("mia")
    passwords = here.identity._passwords
    real = passwords.matches

    async def overtaken(password: str, stored: str | None, name: str) -> bool:
        right = await real(password, stored, name)
        await here.call("PATCH", f"/v3/users/{user}", {"user": {"password": "new"}})
        return right

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "matches", overtaken)
        assert (await here.login("mia")).status_code == 401


@story
async def test_users_change_their_own_password(here: World) -> None:
    user, _ = await here.member("mia")
    path = f"/v3/users/{user}/password"
    token = await here.token_of("mia")

    async def change(old: str, new: str) -> int:
        body = {"user": {"original_password": old, "password": new}}
        return (await here.call("POST", path, body, token)).status_code

    assert await change("wrong", "new") == 401
    assert await change(PASSWORD, "") == 400
    assert await change(PASSWORD, "new") == 204
    assert await here.identity.by_token(token) is None
    assert (await here.login("mia")).status_code == 401
    assert (await here.login("mia", "new")).status_code == 201
    token = await here.token_of("admin")
    assert await change("new", "newer") == 204
    ben = await here.new_user("ben")
    await here.new_user("max")
    token = await here.token_of("max")
    body = {"user": {"original_password": PASSWORD, "password": "x"}}
    answer = await here.call("POST", f"/v3/users/{ben}/password", body, token)
    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("name__contains=dmi", ["admin"]), ("name__contains=foo", []), ("name__contains=DMI", []),
        ("name__icontains=DMI", ["admin"]), ("name__startswith=ad", ["admin"]),
        ("name__istartswith=AD", ["admin"]), ("name__startswith=min", []),
        ("name__endswith=min", ["admin"]), ("name__iendswith=MIN", ["admin"]),
        ("name__endswith=ad", []), ("name__contains=dmi&name__endswith=x", []),
        ("name__contains=dmi&enabled=false", []), ("name=admin&name__contains=a", ["admin"]),
    ],
)  # fmt: skip
def test_names_are_found_by_a_part_of_them(wanted: str, found: list[str]) -> None:
    """As Keystone's, which gophercloud and Terraform use; they got all where it was not read."""

    @story
    async def tell(here: World) -> None:
        await here.new_user("mia")
        await here.new_project("lab")
        for noun in ("users", "projects"):
            listed = (await here.call("GET", f"/v3/{noun}?{wanted}")).json()[noun]
            assert [one["name"] for one in listed] == found, noun
        if "enabled" not in wanted:
            roles = (await here.call("GET", f"/v3/roles?{wanted}")).json()["roles"]
            assert [one["name"] for one in roles] == found

    tell("sqlite://")


@story
async def test_a_user_of_a_domain_that_is_not_there_is_not_made(here: World) -> None:
    """Keystone's 404, as for everything that a request names and that is missing."""
    before = (await here.call("GET", "/v3/users")).json()["users"]
    answer = await here.call("POST", "/v3/users", {"user": {"name": "a", "domain_id": "b"}})
    assert answer.status_code == 404
    assert "'default'" in answer.json()["error"]["message"]
    changed = {"user": {"domain_id": "b"}}
    assert (await here.call("PATCH", f"/v3/users/{before[0]['id']}", changed)).status_code == 400
    assert (await here.call("GET", "/v3/users")).json()["users"] == before


@pytest.mark.parametrize(
    "body",
    [
        None, 5, [], {}, {"user": 5}, {"user": {}}, {"user": {"name": 5}}, {"user": {"name": ""}},
        {"user": {"name": "   "}}, {"user": {"name": "x" * 256}}, {"user": {"name": "nul\0"}},
        {"user": {"name": "a", "enabled": "yes"}}, {"user": {"name": "a", "password": 5}},
        {"user": {"name": "a", "password": "x" * 5000}}, {"user": {"name": "a", "domain_id": 5}},
        {"user": {"name": "a", "default_project_id": "no-such"}},
        {"user": {"name": "a", "default_project_id": 5}},
        {"user": {"name": "a", "novel": "x" * 20_000}},
    ],
)  # fmt: skip
def test_a_bad_user_is_refused_with_a_sentence(body: Any) -> None:
    @story
    async def tell(here: World) -> None:
        admin = (await here.call("GET", "/v3/users")).json()["users"][0]
        paths = [("POST", "/v3/users")]
        if body != {"user": {}}:
            paths.append(("PATCH", f"/v3/users/{admin['id']}"))
        for method, path in paths:
            answer = await here.call(method, path, body)
            assert answer.status_code == 400
            assert answer.json()["error"]["message"].endswith(".")
        assert (await here.call("GET", "/v3/users")).json()["users"] == [admin]

    tell("sqlite://")


@pytest.mark.parametrize(
    "attributes",
    [
        {"name": "x" * 65}, {"name": "a", "description": 5}, {"name": "a", "parent_id": "b"},
        {"name": "a", "is_domain": True}, {"name": "a", "enabled": None}, {"description": "b"},
    ],
)  # fmt: skip
def test_a_bad_project_is_refused_with_a_sentence(attributes: Any) -> None:
    @story
    async def tell(here: World) -> None:
        answer = await here.call("POST", "/v3/projects", {"project": attributes})
        assert answer.status_code == 400
        assert answer.json()["error"]["message"].endswith(".")

    tell("sqlite://")


@story
async def test_what_is_shown_only_cannot_be_set(here: World) -> None:
    body = {"user": {"name": "mia", "id": "mine", "links": {}, "version": 9, "epoch": 9}}
    user = (await here.call("POST", "/v3/users", body)).json()["user"]
    assert user["id"] != "mine"
    assert user["links"]["self"].endswith(user["id"])
    await here.call("PATCH", f"/v3/users/{user['id']}", {"user": {"password": PASSWORD}})
    assert (await here.login("mia")).status_code == 201


@story
async def test_odd_ids_and_filters_are_never_a_500(here: World) -> None:
    for path in (
        "/v3/users/%00",
        "/v3/users/" + "x" * 3000,
        "/v3/projects/%FF%FE",
        "/v3/users/%F0%9F%A6%80/projects",
        "/v3/roles/%00",
        "/v3/system/users/%00/roles",
        "/v3/nothing",
        "/v4",
    ):
        assert (await here.call("GET", path)).status_code == 404
    for path in ("/v3/users?name=%00", "/v3/users?name=%FF", "/v3/role_assignments?user.id=%00"):
        assert (await here.call("GET", path)).status_code == 400
    assert (await here.call("PUT", "/v3/users")).status_code == 405
    huge = {"user": {"name": "x" * 2_000_000}}
    assert (await here.call("POST", "/v3/users", huge)).status_code == 413
