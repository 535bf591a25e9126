"""`siderite reaper` says what is wrong with its user before it begins."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from siderite.cli import reaper
from siderite.cli.cloud import Cloud
from siderite.cli.main import main
from siderite.reaper import Reaper
from siderite.reaper import Rules
from tests.support.server import Server
from tests.support.server import clean_environment
from tests.support.server import command
from tests.support.server import running_server


def ask(server: Server, method: str, path: str, body: object = None) -> Any:
    """Of the identity service, as the administrator."""
    where = f"/identity/v3{path}"
    answer = server.api.request(method, where, json=body, headers=server.headers())
    assert answer.status_code < 300, answer.text
    return answer.json() if answer.content else None


def plain_user(server: Server) -> None:
    """One who has the role member in a project of their own."""
    project = ask(server, "POST", "/projects", {"project": {"name": "theirs"}})["project"]["id"]
    user = {"name": "joe", "password": server.password}
    ident = ask(server, "POST", "/users", {"user": user})["user"]["id"]
    [role] = ask(server, "GET", "/roles?name=member")["roles"]
    ask(server, "PUT", f"/projects/{project}/users/{ident}/roles/{role['id']}")


def reap(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`siderite reaper` with the clouds.yaml of a folder."""
    return subprocess.run(
        [command("siderite"), "reaper", "--data", folder, *words], env=clean_environment(),
        check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


@pytest.mark.sampled
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
        done = reap(theirs, *words)
    assert done.returncode == 1
    assert done.stderr.startswith("siderite: joe may not look after the servers of others")
    assert "give it the role admin" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_application_credential_does_and_so_does_an_address_without_the_version(
    tmp_path: Path,
) -> None:
    with running_server(tmp_path) as server:
        me = ask(server, "GET", "/users?name=admin")["users"][0]["id"]
        made = ask(
            server, "POST", f"/users/{me}/application_credentials",
            {"application_credential": {"name": "robot", "roles": [{"name": "admin"}]}},
        )["application_credential"]  # fmt: skip
        auth = {
            "auth_url": f"{server.url}/identity/",
            "application_credential_id": made["id"],
            "application_credential_secret": made["secret"],
        }
        robots = tmp_path / "robots"
        robots.mkdir()
        robots.joinpath("clouds.yaml").write_text(json.dumps({"clouds": {"robot": {"auth": auth}}}))
        done = reap(robots, "--once")
        assert (done.returncode, done.stdout) == (0, "0 servers were pending.\n"), done.stderr
    gone = reap(robots, "--once")
    assert gone.returncode == 1
    assert gone.stderr.endswith("Connection refused; is `siderite up` running?\n"), gone.stderr


def test_a_preemptible_project_is_named_by_name_or_id_and_must_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All servers of a project that is meant to make room do, and a slip of the pen is no rule."""
    told: list[Rules] = []

    async def heard(_cloud: Cloud, rules: Rules, *, once: bool) -> None:
        told.append(rules)

    with running_server(tmp_path) as server:
        [mine] = ask(server, "GET", "/projects?name=admin")["projects"]
        done = reap(server.data, "--once", "--preemptible-project", "amdin")
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr.startswith("siderite: there is no project 'amdin'")
        monkeypatch.setattr(reaper, "_reap", heard)
        for word in ("admin", mine["id"]):
            words = ["reaper", "--data", str(server.data), "--preemptible-project", word]
            assert main(words) == 0
    assert [rules.projects for rules in told] == [{mine["id"]}] * 2


def test_a_reaper_that_breaks_does_not_end_as_if_all_were_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_: Reaper) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(Reaper, "run", broken)
    with running_server(tmp_path) as server, pytest.raises(RuntimeError, match="broken"):
        main(["reaper", "--data", str(server.data)])
