"""Logging in, validating, revoking."""

from typing import Any

import pytest

from siderite.identity.domain import Session
from tests.identity.world import PASSWORD
from tests.identity.world import URL
from tests.identity.world import World
from tests.identity.world import by_password
from tests.identity.world import by_token
from tests.identity.world import story

ADMIN_PROJECT = {"project": {"name": "admin", "domain": {"name": "Default"}}}


@story
async def test_a_project_token_says_who_where_what_and_how_long(here: World) -> None:
    answer = await here.login(scope=ADMIN_PROJECT)
    assert answer.status_code == 201
    assert answer.headers["x-subject-token"]
    assert answer.headers["vary"] == "X-Auth-Token"
    assert answer.headers["x-openstack-request-id"].startswith("req-")
    token = answer.json()["token"]
    assert token["user"]["name"] == "admin"
    assert token["user"]["domain"] == {"id": "default", "name": "Default"}
    assert token["project"]["name"] == "admin"
    assert token["methods"] == ["password"]
    assert len(token["audit_ids"]) == 1
    assert token["issued_at"] == "2027-01-15T08:00:00.000000Z"
    assert token["expires_at"] == "2027-01-15T09:00:00.000000Z"


@story
async def test_the_catalogue_has_every_service_on_three_interfaces(here: World) -> None:
    catalog = (await here.login(scope=ADMIN_PROJECT)).json()["token"]["catalog"]
    urls = {one["type"]: {e["url"] for e in one["endpoints"]} for one in catalog}
    assert urls == {
        "identity": {URL + "/identity/v3"},
        "compute": {URL + "/compute/v2.1"},
        "baremetal": {URL + "/baremetal"},
    }
    for one in catalog:
        assert {e["interface"] for e in one["endpoints"]} == {"public", "internal", "admin"}
        assert {(e["region"], e["region_id"]) for e in one["endpoints"]} == {
            ("RegionOne", "RegionOne")
        }
    assert (await here.call("GET", "/v3/auth/catalog")).json()["catalog"] == catalog
    short = await here.call("POST", "/v3/auth/tokens?nocatalog", by_password("admin"), "")
    assert "catalog" not in short.json()["token"]


@story
async def test_without_a_scope_the_default_project_counts(here: World) -> None:
    user, project = await here.member("mia")
    plain = (await here.login("mia")).json()["token"]
    assert "project" not in plain
    assert "roles" not in plain
    assert "catalog" not in plain
    await here.call("PATCH", f"/v3/users/{user}", {"user": {"default_project_id": project}})
    assert (await here.login("mia")).json()["token"]["project"]["id"] == project
    explicit: Any
    for explicit in ("unscoped", {"unscoped": {}}):
        assert "project" not in (await here.login("mia", scope=explicit)).json()["token"]


@story
async def test_a_default_project_without_a_role_gives_an_unscoped_token(here: World) -> None:
    await here.new_user("mia", default_project_id=await here.new_project())
    assert "project" not in (await here.login("mia")).json()["token"]


@story
async def test_scopes_need_a_role_there(here: World) -> None:
    user, project = await here.member("mia")
    other = await here.new_project()
    good: Any
    for bad in (
        {"project": {"id": other}},
        {"project": {"id": "no-such"}},
        {"project": {"name": "no-such", "domain": {"id": "default"}}},
        {"project": {"name": "admin", "domain": {"id": "no-such"}}},
        {"system": {"all": True}},
        {"domain": {"id": "default"}},
        {"domain": {"name": "no-such"}},
    ):
        assert (await here.login("mia", scope=bad)).status_code == 401
    role = await here.role_id("reader")
    await here.call("PUT", f"/v3/domains/default/users/{user}/roles/{role}")
    await here.give(user, "reader", None)
    for good, key in (
        ({"project": {"id": project}}, "project"),
        ({"system": {"all": True}}, "system"),
        ({"domain": {"name": "Default"}}, "domain"),
        ({"domain": {"name": "default"}}, "domain"),
    ):
        token = (await here.login("mia", scope=good)).json()["token"]
        assert key in token
        assert "catalog" in token


@story
async def test_a_token_is_exchanged_for_another_scope_with_the_same_end(here: World) -> None:
    _, project = await here.member("mia")
    first = await here.login("mia", scope="unscoped")
    here.now += 100
    body = by_token(first.headers["x-subject-token"], {"project": {"id": project}})
    second = await here.call("POST", "/v3/auth/tokens", body, "")
    assert second.status_code == 201
    old, new = first.json()["token"], second.json()["token"]
    assert new["project"]["id"] == project
    assert new["expires_at"] == old["expires_at"]
    assert new["methods"] == ["password", "token"]
    assert new["audit_ids"][1:] == old["audit_ids"]


@story
async def test_a_token_is_validated_with_another(here: World) -> None:
    await here.member("mia")
    subject = await here.token_of("mia")
    answer = await here.call("GET", "/v3/auth/tokens", x_subject_token=subject)
    assert answer.status_code == 200
    assert answer.headers["x-subject-token"] == subject
    assert answer.json()["token"]["user"]["name"] == "mia"
    head = await here.call("HEAD", "/v3/auth/tokens", x_subject_token=subject)
    assert head.status_code == 200
    assert head.content == b""
    for bad in ("no-such", "x" * 500):
        answer = await here.call("GET", "/v3/auth/tokens", x_subject_token=bad)
        assert answer.status_code == 404
    assert (await here.call("GET", "/v3/auth/tokens")).status_code == 400


@story
async def test_members_validate_their_own_tokens_and_services_everybodys(here: World) -> None:
    await here.member("mia")
    _, project = await here.member("nova", "service")
    mia = await here.token_of("mia")
    nova = await here.token_of("nova", {"project": {"id": project}})

    async def validated(by: str, subject: str) -> int:
        answer = await here.call("GET", "/v3/auth/tokens", None, by, x_subject_token=subject)
        return answer.status_code

    assert await validated(mia, mia) == 200
    assert await validated(mia, here.token) == 403
    assert await validated(nova, mia) == 200
    assert await validated("no-such", mia) == 401


@story
async def test_a_revoked_token_is_worthless_at_once(here: World) -> None:
    await here.member("mia")
    token, other = await here.token_of("mia"), await here.token_of("mia")
    assert (await here.call("GET", "/v3/auth/projects", None, token)).status_code == 200
    ended = await here.call("DELETE", "/v3/auth/tokens", None, token, x_subject_token=token)
    assert ended.status_code == 204
    assert (await here.call("GET", "/v3/auth/projects", None, token)).status_code == 401
    assert (await here.call("GET", "/v3/auth/projects", None, other)).status_code == 200
    again = await here.call("DELETE", "/v3/auth/tokens", x_subject_token=token)
    assert again.status_code == 404


@story
async def test_members_cannot_revoke_others_tokens(here: World) -> None:
    await here.member("mia")
    mia = await here.token_of("mia")
    answer = await here.call("DELETE", "/v3/auth/tokens", None, mia, x_subject_token=here.token)
    assert answer.status_code == 403


@story
async def test_a_token_ends_when_it_says(here: World) -> None:
    token = await here.token_of("admin")
    here.now += 3599
    assert await here.identity.by_token(token) is not None
    here.now += 1
    assert await here.identity.by_token(token) is None
    here.token = token
    assert (await here.call("GET", "/v3/users")).status_code == 401


@story
async def test_expired_tokens_are_swept_when_new_ones_are_issued(here: World) -> None:
    for _ in range(5):
        await here.token_of("admin")
    here.now += 4000
    await here.token_of("admin")
    assert len(await here.store.fetch("SELECT hash FROM identity_tokens")) == 1


@story
async def test_the_database_never_sees_a_token(here: World) -> None:
    kept = await here.store.fetch("SELECT * FROM identity_tokens")
    assert here.token not in str([tuple(row) for row in kept])


@story
async def test_wrong_passwords_and_unknown_users_are_told_the_same(here: World) -> None:
    await here.new_user("off", enabled=False)
    await here.new_user("mute", password=None)
    texts = set()
    for name, password in (
        ("admin", "wrong"),
        ("nobody", PASSWORD),
        ("off", PASSWORD),
        ("mute", PASSWORD),
        ("admin", ""),
    ):
        answer = await here.login(name, password)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == f'Keystone uri="{URL}/identity/v3"'
        error = answer.json()["error"]
        assert (error["code"], error["title"]) == (401, "Unauthorized")
        texts.add(error["message"])
    assert len(texts) == 1
    assert PASSWORD not in texts.pop()


@story
async def test_guessing_gets_slow_and_the_right_password_does_not(here: World) -> None:
    for _ in range(16):
        await here.login("admin", "wrong")
    assert here.naps == [0.0] * 10 + [0.1, 0.2, 0.4, 0.8, 1.6, 2.0]
    assert (await here.login()).status_code == 201
    assert len(here.naps) == 16
    await here.login("admin", "wrong")
    assert here.naps[-1] == 0.0


def _body(change: dict[str, Any]) -> dict[str, Any]:
    body = by_password("admin")
    body["auth"].update(change)
    return body


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({}, 400, "auth"),
        ([], 400, "object"),
        ({"auth": None}, 400, "$.auth"),
        ({"auth": {}}, 400, "identity"),
        (_body({"identity": []}), 400, "$.auth.identity"),
        (_body({"identity": {"methods": "password"}}), 400, "array"),
        (_body({"identity": {"methods": []}}), 400, "one method"),
        (_body({"identity": {"methods": [1]}}), 400, "str"),
        (_body({"identity": {"methods": ["password", "token"]}}), 400, "one method"),
        (_body({"identity": {"methods": ["totp"]}}), 401, "application_credential"),
        (_body({"identity": {"methods": ["password"]}}), 400, "password.user"),
        (_body({"identity": {"methods": ["token"]}}), 400, "token.id"),
        (_body({"identity": {"methods": ["token"], "token": {"id": 5}}}), 400, "str"),
        (_body({"identity": {"methods": ["token"], "token": {"id": "x"}}}), 401, "token"),
        (by_password("admin", 12345), 400, "password"),  # type: ignore[arg-type]
        (
            _body({"identity": {"methods": ["password"], "password": {"user": {"name": "admin"}}}}),
            400,
            "password",
        ),
        (
            _body(
                {
                    "identity": {
                        "methods": ["password"],
                        "password": {"user": {"name": "admin", "password": "x"}},
                    }
                }
            ),
            400,
            "domain",
        ),
        (
            _body({"identity": {"methods": ["password"], "password": {"user": {"password": "x"}}}}),
            400,
            "id, or a name",
        ),
        (_body({"scope": "everything"}), 400, "unscoped"),
        (_body({"scope": 7}), 400, "$.auth.scope"),
        (_body({"scope": {}}), 400, "one of"),
        (_body({"scope": {"project": {}}}), 400, "id, or a name"),
        (_body({"scope": {"project": {"name": "admin"}}}), 400, "domain"),
        (_body({"scope": {"project": {"id": ["x"]}}}), 400, "str"),
        (_body({"scope": {"project": {"id": "x"}, "system": {"all": True}}}), 400, "one of"),
        (_body({"scope": {"system": {"all": False}}}), 400, "true"),
        (_body({"scope": {"domain": {}}}), 400, "id or a name"),
        (_body({"scope": {"OS-TRUST:trust": {"id": "x"}}}), 400, "Trusts"),
    ],
)
def test_a_malformed_login_is_told_what_is_wrong(body: Any, status: int, says: str) -> None:
    @story
    async def tell(here: World) -> None:
        answer = await here.call("POST", "/v3/auth/tokens", body, "")
        assert answer.status_code == status
        message = answer.json()["error"]["message"]
        assert says in message
        assert PASSWORD not in message
        assert "12345" not in message

    tell("sqlite://")


@story
async def test_a_token_that_ends_while_it_is_exchanged_brings_no_other(here: World) -> None:
    user, project = await here.member()
    token = await here.token_of("mia", {"project": {"id": project}})
    sessions = here.identity.sessions
    find = sessions.find

    async def find_and_change(text: str) -> Session | None:
        found = await find(text)
        sessions.find = find  # type: ignore[method-assign]
        await here.another_process().users.update(user, {"password": "another one"}, {})
        return found

    sessions.find = find_and_change  # type: ignore[method-assign]
    answer = await here.call("POST", "/v3/auth/tokens", by_token(token), "")
    assert answer.status_code == 401, answer.text
    assert "try again" in answer.json()["error"]["message"]
