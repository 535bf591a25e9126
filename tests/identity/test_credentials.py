"""Application credentials: made from a token, good for some roles, gone with their user."""

from typing import Any

from tests.identity.world import PASSWORD
from tests.identity.world import World
from tests.identity.world import by_token
from tests.identity.world import story


def by_credential(secret: str, **which: Any) -> dict[str, Any]:
    """A login body."""
    claim = {"secret": secret, **which}
    methods = ["application_credential"]
    return {"auth": {"identity": {"methods": methods, "application_credential": claim}}}


async def _member(world: World, role: str = "member") -> tuple[str, str, str]:
    user, project = await world.member(role=role)
    token = await world.token_of("mia", {"project": {"id": project}})
    return user, project, token


async def _make(world: World, user: str, token: str, **fields: Any) -> Any:
    body = {"application_credential": {"name": "app", **fields}}
    path = f"/v3/users/{user}/application_credentials"
    return await world.call("POST", path, body, token)


async def _login(world: World, made: Any) -> Any:
    claim = by_credential(made["secret"], id=made["id"])
    return await world.call("POST", "/v3/auth/tokens", claim, "")


@story
async def test_a_credential_gives_tokens_for_its_project(world: World) -> None:
    user, project, token = await _member(world)
    answer = await _make(world, user, token, description="for the robot")
    assert answer.status_code == 201, answer.text
    made = answer.json()["application_credential"]
    assert set(made) == {
        "id", "name", "description", "project_id", "roles", "expires_at", "unrestricted", "links",
        "secret",
    }  # fmt: skip
    assert {role["name"] for role in made["roles"]} == {"member", "reader"}
    got = await _login(world, made)
    assert got.status_code == 201, got.text
    body = got.json()["token"]
    assert body["methods"] == ["application_credential"]
    assert body["project"]["id"] == project
    assert body["application_credential"] == {
        "id": made["id"], "name": "app", "restricted": True,
    }  # fmt: skip
    by_name = by_credential(
        made["secret"], name="app", user={"name": "mia", "domain": {"id": "default"}}
    )
    assert (await world.call("POST", "/v3/auth/tokens", by_name, "")).status_code == 201
    by_user = by_credential(made["secret"], name="app", user={"id": user})
    assert (await world.call("POST", "/v3/auth/tokens", by_user, "")).status_code == 201
    shown = await world.call("GET", f"/v3/users/{user}/application_credentials/{made['id']}")
    assert "secret" not in shown.json()["application_credential"]
    assert made["secret"] not in shown.text


@story
async def test_it_has_only_the_roles_it_was_made_with(world: World) -> None:
    user, project, token = await _member(world)
    made = (await _make(world, user, token, roles=[{"name": "reader"}])).json()
    got = await _login(world, made["application_credential"])
    assert [role["name"] for role in got.json()["token"]["roles"]] == ["reader"]
    beyond = await _make(world, user, token, name="b", roles=[{"name": "admin"}])
    assert beyond.status_code == 400
    reader = await world.role_id("member")
    await world.call("DELETE", f"/v3/projects/{project}/users/{user}/roles/{reader}")
    again = await _login(world, made["application_credential"])
    assert again.status_code == 401, "its user holds no role there any more"


@story
async def test_a_restricted_one_cannot_make_others(world: World) -> None:
    user, _, token = await _member(world)
    for unrestricted, status in ((False, 403), (True, 201)):
        made = await _make(world, user, token, name=str(unrestricted), unrestricted=unrestricted)
        got = await _login(world, made.json()["application_credential"])
        own = got.headers["x-subject-token"]
        again = await _make(world, user, own, name=f"child of {unrestricted}")
        assert again.status_code == status, again.text


@story
async def test_its_tokens_stay_in_their_project_and_end_with_it(world: World) -> None:
    user, project, token = await _member(world)
    other = await world.new_project()
    await world.give(user, "member", other)
    made = (await _make(world, user, token)).json()["application_credential"]
    own = (await _login(world, made)).headers["x-subject-token"]
    elsewhere = by_token(own, {"project": {"id": other}})
    assert (await world.call("POST", "/v3/auth/tokens", elsewhere, "")).status_code == 401
    here = by_token(own, {"project": {"id": project}})
    exchanged = await world.call("POST", "/v3/auth/tokens", here, "")
    assert exchanged.json()["token"]["application_credential"]["id"] == made["id"]
    scoped = by_credential(made["secret"], id=made["id"])
    scoped["auth"]["scope"] = {"project": {"id": project}}
    assert (await world.call("POST", "/v3/auth/tokens", scoped, "")).status_code == 401
    path = f"/v3/users/{user}/application_credentials/{made['id']}"
    assert (await world.call("DELETE", path, token=token)).status_code == 204
    for dead in (own, exchanged.headers["x-subject-token"]):
        check = await world.call("GET", "/v3/auth/tokens", None, x_subject_token=dead)
        assert check.status_code == 404
    assert (await _login(world, made)).status_code == 401
    assert (await world.call("GET", path)).status_code == 404


@story
async def test_it_expires_and_so_do_its_tokens(world: World) -> None:
    user, _, token = await _member(world)
    past = await _make(world, user, token, expires_at="2020-01-01T00:00:00Z")
    assert past.status_code == 400
    made = await _make(world, user, token, expires_at="2027-01-15T08:10:00Z")  # in ten minutes
    credential = made.json()["application_credential"]
    got = (await _login(world, credential)).json()["token"]
    assert got["expires_at"] == "2027-01-15T08:10:00.000000Z"
    world.now += 601
    assert (await _login(world, credential)).status_code == 401


@story
async def test_its_end_is_told_in_the_form_that_keystone_has_for_it(world: World) -> None:
    """gophercloud fails on a zone there, and Terraform with it."""
    user, _, token = await _member(world)
    made = await _make(world, user, token, expires_at="2027-01-15T09:10:00.25+01:00")
    shown = made.json()["application_credential"]
    path = f"/v3/users/{user}/application_credentials/{shown['id']}"
    again = (await world.call("GET", path, token=token)).json()["application_credential"]
    assert shown["expires_at"] == again["expires_at"] == "2027-01-15T08:10:00.250000"


@story
async def test_a_new_password_keeps_it_but_disabling_the_user_does_not(world: World) -> None:
    user, _, token = await _member(world)
    made = (await _make(world, user, token)).json()["application_credential"]
    await world.call("PATCH", f"/v3/users/{user}", {"user": {"password": PASSWORD + "!"}})
    assert (await _login(world, made)).status_code == 201
    await world.call("PATCH", f"/v3/users/{user}", {"user": {"enabled": False}})
    assert (await _login(world, made)).status_code == 401
    await world.call("DELETE", f"/v3/users/{user}")
    assert await world.store.fetch("SELECT 1 FROM identity_credentials") == []


@story
async def test_wrong_secrets_and_names_are_refused_alike(world: World) -> None:
    user, _, token = await _member(world)
    made = (await _make(world, user, token, secret="mine")).json()["application_credential"]
    assert made["secret"] == "mine"
    sentences = set()
    for claim in (
        by_credential("wrong", id=made["id"]),
        by_credential("mine", id="unknown"),
        by_credential("mine", name="app", user={"id": "unknown"}),
        by_credential("mine", name="other", user={"id": user}),
    ):
        refused = await world.call("POST", "/v3/auth/tokens", claim, "")
        assert refused.status_code == 401
        sentences.add(refused.json()["error"]["message"])
    assert len(sentences) == 1


@story
async def test_they_are_a_users_own(world: World) -> None:
    user, _, token = await _member(world)
    made = (await _make(world, user, token)).json()["application_credential"]
    assert (await _make(world, user, world.token)).status_code == 403, "not even an admin's"
    await world.new_user("noah")
    project = await world.new_project()
    noah = (await world.call("GET", "/v3/users?name=noah")).json()["users"][0]["id"]
    await world.give(noah, "member", project)
    other = await world.token_of("noah", {"project": {"id": project}})
    path = f"/v3/users/{user}/application_credentials"
    for method, where in (("GET", path), ("GET", f"{path}/{made['id']}"), ("POST", path)):
        assert (await world.call(method, where, {}, other)).status_code == 403
    assert (await world.call("DELETE", f"{path}/{made['id']}", token=other)).status_code == 403
    assert len((await world.call("GET", path)).json()["application_credentials"]) == 1


@story
async def test_bodies_that_make_no_sense_are_refused(world: World) -> None:
    user, _, token = await _member(world)
    for fields in (
        {"name": ""}, {"name": 1}, {"roles": [{}]}, {"roles": [{"name": "king"}]}, {"roles": "x"},
        {"expires_at": "soon"}, {"secret": ""}, {"access_rules": [{"path": "/"}]},
        {"unrestricted": "yes"}, {"description": "x" * 5000}, {"name": "x" * 300},
        {"expires_at": "9999-12-31T23:59:59-14:00"}, {"expires_at": "0001-01-01T00:00:00+14:00"},
    ):  # fmt: skip
        assert (await _make(world, user, token, **fields)).status_code == 400, fields
    unscoped = (await world.login("mia")).headers["x-subject-token"]
    assert (await _make(world, user, unscoped)).status_code == 400
    assert (await _make(world, user, token)).status_code == 201
    assert (await _make(world, user, token)).status_code == 409
    for body in ({}, {"secret": "x"}, {"secret": "x", "name": "n"}, {"secret": 1, "id": "i"}):
        claim = {"methods": ["application_credential"], "application_credential": body}
        sent = {"auth": {"identity": claim}}
        assert (await world.call("POST", "/v3/auth/tokens", sent, "")).status_code == 400


@story
async def test_a_role_is_named_once_and_an_empty_list_means_all(world: World) -> None:
    user, _, token = await _member(world)
    twice = await _make(world, user, token, name="twice", roles=[{"name": "reader"}] * 2)
    assert [one["name"] for one in twice.json()["application_credential"]["roles"]] == ["reader"]
    made = (await _make(world, user, token, name="all", roles=[])).json()["application_credential"]
    assert {role["name"] for role in made["roles"]} == {"member", "reader"}
    assert (await _login(world, made)).status_code == 201


@story
async def test_there_are_no_groups(world: World) -> None:
    assert (await world.call("GET", "/v3/groups")).json()["groups"] == []
    assert (await world.call("GET", "/v3/groups/x")).status_code == 404
    user, _, token = await _member(world)
    assert (await world.call("GET", f"/v3/users/{user}/groups", token=token)).json()["groups"] == []
    for what in ("groups", "access_rules", "application_credentials"):
        assert (await world.call("GET", f"/v3/users/nobody/{what}")).status_code == 404


@story
async def test_a_misspelt_word_makes_no_credential(world: World) -> None:
    """It would be good for ever, or for every role."""
    user, project, token = await _member(world)
    wrong: tuple[dict[str, Any], ...] = (
        {"expire_at": "2030-01-01T00:00:00"},
        {"role": [{"name": "reader"}]},
        {"x": None},
    )
    for fields in wrong:
        refused = await _make(world, user, token, **fields)
        assert refused.status_code == 400
        assert next(iter(fields)) in refused.json()["error"]["message"]
    kept = await _make(world, user, token, id="x", project_id=project, system=None)
    assert kept.status_code == 201
