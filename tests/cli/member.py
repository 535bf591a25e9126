"""Somebody who is no administrator, for tests of the command."""

from pathlib import Path

import yaml

from tests.support.server import Server


def member(server: Server, folder: Path) -> None:
    """Make them, with a clouds.yaml of their own in a folder."""

    def ask(method: str, path: str, body: object = None) -> dict:
        where = f"/identity/v3{path}"
        answer = server.api.request(method, where, json=body, headers=server.headers())
        return answer.raise_for_status().json() if answer.content else {}

    shop = ask("POST", "/projects", {"project": {"name": "shop"}})["project"]["id"]
    ana = ask("POST", "/users", {"user": {"name": "ana", "password": "s3cret"}})["user"]["id"]
    [role] = ask("GET", "/roles?name=member")["roles"]
    ask("PUT", f"/projects/{shop}/users/{ana}/roles/{role['id']}")
    clouds = yaml.safe_load((server.data / "clouds.yaml").read_text())
    clouds["clouds"]["siderite"]["auth"] |= {
        "username": "ana", "password": "s3cret", "project_name": "shop",
    }  # fmt: skip
    (folder / "clouds.yaml").write_text(yaml.safe_dump(clouds))
