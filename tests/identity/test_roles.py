"""Roles that an administrator adds: held and told, but no key to anything here."""

from tests.identity.world import World
from tests.identity.world import story


@story
async def test_a_role_is_added_described_held_and_deleted(world: World) -> None:
    made = await world.call("POST", "/v3/roles", {"role": {"name": "auditor"}})
    assert made.status_code == 201, made.text
    role = made.json()["role"]
    assert (await world.role_id("auditor")) == role["id"]
    path = f"/v3/roles/{role['id']}"
    changed = await world.call("PATCH", path, {"role": {"description": "looks"}})
    assert changed.json()["role"]["description"] == "looks"
    user, project = await world.member(role="reader")
    grant = await world.give(user, "auditor", project)
    token = await world.token_of("mia", {"project": {"id": project}})
    shown = await world.call("GET", "/v3/auth/tokens", None, x_subject_token=token)
    roles = {one["name"]: one["id"] for one in shown.json()["token"]["roles"]}
    assert set(roles) == {"auditor", "reader"} and roles["auditor"] == role["id"]
    held = (await world.call("GET", f"/v3/role_assignments?role.id={role['id']}")).json()
    assert [one["user"]["id"] for one in held["role_assignments"]] == [user]
    assert (await world.call("GET", "/v3/users", token=token)).status_code == 403
    assert (await world.call("DELETE", path)).status_code == 204
    assert (await world.call("GET", grant)).status_code == 404
    shown = await world.call("GET", "/v3/auth/tokens", None, x_subject_token=token)
    assert [one["name"] for one in shown.json()["token"]["roles"]] == ["reader"]
    assert (await world.call("DELETE", path)).status_code == 404


@story
async def test_the_programs_own_roles_stay_and_names_are_unique(world: World) -> None:
    admin = f"/v3/roles/{await world.role_id('admin')}"
    assert (await world.call("DELETE", admin)).status_code == 403
    assert (await world.call("PATCH", admin, {"role": {"description": "x"}})).status_code == 403
    for name, status in (
        ("ADMIN", 409), ("new", 201), ("New", 409), ("", 400), ("a b", 400), ("x" * 300, 400),
        (" admin", 400), ("admin\t", 400),
        (1, 400), (None, 400),
    ):  # fmt: skip
        answer = await world.call("POST", "/v3/roles", {"role": {"name": name}})
        assert answer.status_code == status, (name, answer.text)
    new = f"/v3/roles/{await world.role_id('new')}"
    assert (await world.call("PATCH", new, {"role": {"name": "other"}})).status_code == 400
    user, project = await world.member()
    token = await world.token_of("mia", {"project": {"id": project}})
    for method, path in (("POST", "/v3/roles"), ("PATCH", new), ("DELETE", new)):
        refused = await world.call(method, path, {"role": {"name": "mine"}}, token)
        assert refused.status_code == 403
    assert user
