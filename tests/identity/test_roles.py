"""Roles that an administrator adds: held and told, but no key to anything here."""

from siderite.core.store import Op
from tests.identity.world import PASSWORD
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
    for field, value in (("domain_id", "default"), ("description", "x" * 5000)):
        answer = await world.call("POST", "/v3/roles", {"role": {"name": "more", field: value}})
        assert answer.status_code == 400, (field, answer.text)
    new = f"/v3/roles/{await world.role_id('new')}"
    assert (await world.call("PATCH", new, {"role": {"name": "other"}})).status_code == 400
    user, project = await world.member()
    token = await world.token_of("mia", {"project": {"id": project}})
    for method, path in (("POST", "/v3/roles"), ("PATCH", new), ("DELETE", new)):
        refused = await world.call(method, path, {"role": {"name": "mine"}}, token)
        assert refused.status_code == 403
    assert user


@story
async def test_a_manager_may_do_what_members_may(world: World) -> None:
    """Keystone makes the role at its start, so tools give it without looking for it."""
    _, project = await world.member(role="manager")
    token = await world.token_of("mia", {"project": {"id": project}})
    shown = await world.call("GET", "/v3/auth/tokens", None, x_subject_token=token)
    roles = [one["name"] for one in shown.json()["token"]["roles"]]
    assert roles == ["manager", "member", "reader"]
    again = await world.call("POST", "/v3/roles", {"role": {"name": "manager"}})
    assert again.status_code == 409


@story
async def test_a_manager_that_somebody_added_before_gains_nothing(world: World) -> None:
    """Before the program had the role, one could be added by hand, which allowed nothing here."""
    sql = "INSERT INTO identity_roles (name, folded, description) VALUES (?, ?, ?)"
    await world.store.commit([Op(sql, ("manager", "manager", "by hand"))])
    user, project = await world.member(role="manager")
    listed = (await world.call("GET", "/v3/roles?name=manager")).json()["roles"]
    assert [one["description"] for one in listed] == ["by hand"]
    token = await world.token_of("mia", {"project": {"id": project}})
    shown = await world.call("GET", "/v3/auth/tokens", None, x_subject_token=token)
    assert [one["name"] for one in shown.json()["token"]["roles"]] == ["manager"]
    who = await world.identity.by_password("mia", PASSWORD)
    assert who is not None and who.roles == {"manager"}
    query = f"/v3/role_assignments?effective&user.id={user}&include_names"
    held = (await world.call("GET", query)).json()["role_assignments"]
    assert [one["role"]["name"] for one in held] == ["manager"]
    path = f"/v3/roles/{listed[0]['id']}"
    assert (await world.call("PATCH", path, {"role": {"description": "x"}})).status_code == 200
    assert (await world.call("DELETE", path)).status_code == 204
    again = (await world.call("GET", "/v3/roles?name=manager")).json()["roles"]
    assert [one["id"] for one in again] == [listed[0]["id"]]
    assert (await world.call("DELETE", path)).status_code == 403


@story
async def test_it_is_told_which_roles_bring_which(world: World) -> None:
    """`openstack implied role list`."""
    told = (await world.call("GET", "/v3/role_inferences")).json()["role_inferences"]
    pairs = {one["prior_role"]["name"]: [role["name"] for role in one["implies"]] for one in told}
    assert pairs == {
        "admin": ["manager", "member"], "manager": ["member"], "member": ["reader"],
    }  # fmt: skip
    member, reader, admin = [await world.role_id(name) for name in ("member", "reader", "admin")]
    of_one = (await world.call("GET", f"/v3/roles/{member}/implies")).json()["role_inference"]
    assert [role["id"] for role in of_one["implies"]] == [reader]
    none = (await world.call("GET", f"/v3/roles/{reader}/implies")).json()["role_inference"]
    assert (none["prior_role"]["name"], none["implies"]) == ("reader", [])
    path = f"/v3/roles/{member}/implies/"
    assert (await world.call("GET", path + reader)).json()["role_inference"]["implies"][
        "id"
    ] == reader
    assert (await world.call("HEAD", path + reader)).status_code == 200
    for other in (admin, "nobody"):
        assert (await world.call("GET", path + other)).status_code == 404
    assert (await world.call("PUT", path + admin)).status_code == 405
    await world.member()
    token = await world.token_of("mia")
    assert (await world.call("GET", "/v3/role_inferences", token=token)).status_code == 403
