"""What is refused says what to do next, in every service; compute's own have a test beside it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.app import Standing
from tests.support.app import standing

Asked = tuple[str, str, Any, str]


def asked(app: Standing) -> Iterator[Asked]:
    node = app.make_node(name="bare")
    yield "DELETE", f"/v1/nodes/{node}/traits/CUSTOM_X", None, "it has: none."
    used = app.plant("active", resource_class="gold")
    change = [{"op": "replace", "path": "/resource_class", "value": "iron"}]
    yield "PATCH", f"/v1/nodes/{used}", change, "; bring it to one of available, "
    for things in ("networks", "subnets", "security-groups", "floatingips"):
        yield "POST", f"/network/v2.0/{things}", {}, "what hosts offer (option networks)"
    record = {"name": "i", "disk_format": "raw", "container_format": "bare", "visibility": "public"}
    image = app.ask("POST", "/image/v2/images", record, version=None).json["id"]
    offered = {"member": "p"}
    yield "POST", f"/image/v2/images/{image}/members", offered, "is public. Make it shared first."
    user = app.ask("GET", "/identity/v3/users?name=admin", version=None).json["users"][0]["id"]
    yield "POST", "/identity/v3/domains", {}, "one domain here, default; make a project"
    yield "POST", "/identity/v3/groups", {}, "no groups here; give the roles to each user"
    robot = {"application_credential": {"name": "r", "roles": [{"name": "service"}]}}
    credentials = f"/identity/v3/users/{user}/application_credentials"
    yield "POST", credentials, robot, "the role service in this project; you hold: admin, "


def test_a_refusal_says_what_to_do_next(tmp_path: Path) -> None:
    with standing(tmp_path) as app:
        for method, path, body, remedy in asked(app):
            version = {} if path.startswith("/v1") else {"version": None}
            words = {} if body is None else {"body": body}
            answer = app.ask(method, path, **words, **version)
            assert 400 <= answer.status < 500, answer
            assert remedy in answer.body.decode(), answer.body
