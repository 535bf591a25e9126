"""`siderite reaper` says what is wrong with its user before it begins."""

import subprocess
from pathlib import Path

import pytest

from tests.support.server import Server
from tests.support.server import clean_environment
from tests.support.server import command
from tests.support.server import running_server


def plain_user(server: Server) -> None:
    """One who has the role member in a project of their own."""

    def ask(method: str, path: str, body: object = None) -> dict[str, dict[str, str]]:
        where = f"/identity/v3{path}"
        answer = server.api.request(method, where, json=body, headers=server.headers())
        assert answer.status_code < 300, answer.text
        found: dict[str, dict[str, str]] = answer.json() if answer.content else {}
        return found

    project = ask("POST", "/projects", {"project": {"name": "theirs"}})["project"]["id"]
    user = {"name": "joe", "password": server.password}
    ident = ask("POST", "/users", {"user": user})["user"]["id"]
    [role] = ask("GET", "/roles?name=member")["roles"]
    ask("PUT", f"/projects/{project}/users/{ident}/roles/{role['id']}")  # type: ignore[index]


@pytest.mark.parametrize("words", [(), ("--once",), ("--dry-run",)])
def test_who_may_not_see_the_servers_of_others_is_told_so_and_nothing_runs(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    with running_server(tmp_path) as server:
        plain_user(server)
        clouds = server.clouds.read_text().replace("username: admin", "username: joe")
        theirs = tmp_path / "theirs"
        theirs.mkdir()
        theirs.joinpath("clouds.yaml").write_text(
            clouds.replace("project_name: admin", "project_name: theirs")
        )
        done = subprocess.run(
            [command("siderite"), "reaper", "--data", theirs, *words], env=clean_environment(),
            check=False, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("siderite: joe may not look after the servers of others")
    assert "give it the role admin" in done.stderr
    assert done.stderr.count("\n") == 1
