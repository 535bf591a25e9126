"""Who has the machine gets in again, as an administrator, whatever was taken from admin."""

from pathlib import Path
from typing import Any

import pytest

from siderite.cli.cloud import Cloud
from siderite.cli.main import main
from tests.support.server import Server
from tests.support.server import running_server


def ask(server: Server, token: str, method: str, path: str, **body: Any) -> Any:
    headers = {"X-Auth-Token": token}
    sent = {"json": body} if body else {}
    answer = server.api.request(method, f"/identity/v3/{path}", headers=headers, **sent)
    answer.raise_for_status()
    return answer.json() if answer.content else None


def another_administrator(server: Server) -> str:
    """A token of one who is administrator of the whole, beside admin."""
    token = server.headers()["X-Auth-Token"]
    user = {"name": "boss", "password": "boss's own"}
    boss = ask(server, token, "POST", "users", user=user)["user"]["id"]
    [role] = ask(server, token, "GET", "roles?name=admin")["roles"]
    ask(server, token, "PUT", f"system/users/{boss}/roles/{role['id']}")
    identity = {
        "methods": ["password"],
        "password": {"user": {**user, "domain": {"id": "default"}}},
    }
    auth = {"identity": identity, "scope": {"system": {"all": True}}}
    answer = server.api.post("/identity/v3/auth/tokens", json={"auth": auth}).raise_for_status()
    return str(answer.headers["X-Subject-Token"])


@pytest.mark.sampled
@pytest.mark.parametrize("end", ["deleted", "disabled"])
def test_a_new_password_comes_with_all_that_admin_had(tmp_path: Path, end: str) -> None:
    with running_server(tmp_path) as server:
        token = another_administrator(server)
        [admin] = ask(server, token, "GET", "users?name=admin")["users"]
        [home] = ask(server, token, "GET", "projects?name=admin")["projects"]
        [role] = ask(server, token, "GET", "roles?name=admin")["roles"]
        for scope in (f"projects/{home['id']}", "system"):
            ask(server, token, "DELETE", f"{scope}/users/{admin['id']}/roles/{role['id']}")
        ask(server, token, "PATCH", f"users/{admin['id']}", user={"enabled": False})
        if end == "deleted":
            ask(server, token, "DELETE", f"projects/{home['id']}")
        else:
            ask(server, token, "PATCH", f"projects/{home['id']}", project={"enabled": False})
        server.stop()
        words = ["--data", str(server.data), "--listen", server.url.removeprefix("http://")]
        assert main(["admin-password", *words]) == 0
        server.start()
        cloud = Cloud(str(server.data))
        users, _ = cloud.ask("GET", "/identity/v3/users")
        assert {"admin", "boss"} <= {user["name"] for user in users["users"]}
        assert "services" in cloud.compute("GET", "/os-services")


def test_a_machine_that_never_ran_a_process_has_a_new_password_made(
    tmp_path: Path, postgres_url: str
) -> None:
    with running_server(tmp_path, db=postgres_url) as server:
        elsewhere = tmp_path / "operators" / "data"
        listen = ["--listen", server.url.removeprefix("http://")]
        words = ["--db", postgres_url, "--data", str(elsewhere), *listen]
        assert main(["admin-password", *words]) == 0
        assert Cloud(str(elsewhere)).compute("GET", "/os-services")["services"] == []
