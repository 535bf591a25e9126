"""Callers with a role on the domain: their tokens are for no project."""

from tests.support.app import PASSWORD
from tests.support.app import Application


async def domain_person(app: Application, role: str) -> str:
    """A token for the default domain, of a new user with a role there."""
    name, _, _ = await app.person(role)
    user_id = (await app.ask("GET", f"/identity/v3/users?name={name}")).json["users"][0]["id"]
    role_id = (await app.ask("GET", f"/identity/v3/roles?name={role}")).json["roles"][0]["id"]
    grant = f"/identity/v3/domains/default/users/{user_id}/roles/{role_id}"
    assert (await app.ask("PUT", grant)).status == 204
    user = {"name": name, "domain": {"id": "default"}, "password": PASSWORD}
    identity = {"methods": ["password"], "password": {"user": user}}
    auth = {"identity": identity, "scope": {"domain": {"id": "default"}}}
    answer = await app.ask("POST", "/identity/v3/auth/tokens", {"auth": auth}, token="")
    assert answer.status == 201, answer
    return answer.headers["x-subject-token"]
