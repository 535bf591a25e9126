"""Requests that make no sense: a sentence, never a crash; and who may ask for what."""

import json
from typing import Any

from siderite.compute.web.fleet import aggregates
from siderite.compute.web.fleet import hypervisors
from siderite.compute.web.fleet import services
from siderite.compute.web.project import keypairs
from siderite.compute.web.project import quotas
from siderite.compute.web.project import server_groups
from siderite.compute.web.project import usage
from siderite.core.http import Route
from tests.compute.records.world import World
from tests.support.stories import Tell

ROOMS = (keypairs, quotas, server_groups, aggregates, hypervisors, services, usage)
ROUTES: tuple[Route, ...] = tuple(route for room in ROOMS for route in room.ROUTES)
VERSIONS = (1, 11, 53, 64, 92, 104, 901)
ODD: list[Any] = [None, 1, -1, 2**70, 1.5, True, "", " x ", "x" * 300, "\u0007", [], [{}], {}]
BODIES: dict[str, tuple[str | None, tuple[str, ...]]] = {
    "os-keypairs": ("keypair", ("name", "public_key", "type", "user_id")),
    "os-quota-sets": ("quota_set", ("cores", "force", "floating_ips")),
    "os-quota-class-sets": ("quota_class_set", ("cores",)),
    "os-server-groups": ("server_group", ("name", "policies", "policy", "rules")),
    "os-aggregates": ("aggregate", ("name", "availability_zone")),
    "os-services": (None, ("host", "binary", "disabled_reason", "forced_down", "status")),
}


def _bodies(path: str) -> list[Any]:
    wrapper, fields = BODIES[path.split("/")[2]]
    found: list[Any] = [*ODD]
    for name in fields:
        whole = {other: "x" for other in fields}
        for value in ODD:
            for inner in ({name: value}, {**whole, name: value}):
                found.append(inner if wrapper is None else {wrapper: inner})
    if path.endswith("/action"):
        for value in ODD:
            found += [
                {"add_host": value},
                {"set_metadata": value},
                {"remove_host": {"host": value}},
            ]
            found.append({"set_metadata": {"metadata": {"availability_zone": value, "k": value}}})
    return found


def test_no_body_is_too_odd(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        await here.host("h1")
        made = await here.ask("POST", "/os-aggregates", {"aggregate": {"name": "a"}})
        number = str(made.json["aggregate"]["id"])
        for route in ROUTES:
            if route.method not in ("POST", "PUT"):
                continue
            path = route.path.removeprefix("/v2.1").replace("{id}", number)
            path = path.replace("{project}", "p").replace("{name}", "default")
            bodies = _bodies(route.path)
            for at, body in enumerate(bodies):
                version = VERSIONS[at % len(VERSIONS)]
                answer = await here.ask(
                    route.method, path, json.dumps(body).encode(), version=version
                )
                assert answer.status in (200, 201, 400, 403, 404, 409), (path, body, answer)
            empty = await here.ask(route.method, path, b"", version=92)
            assert empty.status == 400, (path, empty)

    tell_once(story)


def test_no_query_is_too_odd(tell: Tell) -> None:
    async def story(here: World) -> None:
        await here.host("h1")
        names = (
            "limit", "marker", "offset", "user_id", "with_servers", "start", "end", "detailed",
            "hypervisor_hostname_pattern", "all_projects", "tenant_id", "host", "x",
        )  # fmt: skip
        for route in ROUTES:
            if route.method != "GET":
                continue
            path = route.path.removeprefix("/v2.1")
            for word in ("id", "project", "name"):
                path = path.replace(f"{{{word}}}", "1")
            for at, name in enumerate(names):
                for value in ("", "-1", "x", "%25", "9" * 30, "%E2%98%83"):
                    version = VERSIONS[at % len(VERSIONS)]
                    answer = await here.ask("GET", f"{path}?{name}={value}", version=version)
                    known = (400, 404, 501) if path.endswith("/uptime") else (200, 400, 404)
                    assert answer.status in known, (path, name, value, answer)

    tell(story)


def test_nobody_gets_in_and_readers_change_nothing(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        _, reader, project = await here.app.person("reader")
        for route in ROUTES:
            path = route.path.removeprefix("/v2.1").replace("{project}", project)
            path = path.replace("{id}", "1").replace("{name}", "x")
            body = [{}] if route.method in ("POST", "PUT") else []
            for token in ("", "wrong"):
                answer = await here.ask(route.method, path, *body, token=token)
                assert answer.status == 401, (route, answer)
            if route.method != "GET" and "keypairs" not in path:
                answer = await here.ask(route.method, path, *body, token=reader)
                assert answer.status == 403, (route, answer)

    tell_once(story)


def test_a_body_is_json_or_not_taken(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        for route in ROUTES:
            if route.method not in ("POST", "PUT"):
                continue
            path = "/compute" + route.path.replace("{id}", "1").replace("{project}", "p")
            headers = {"content-type": "application/xml"}
            answer = await here.app.ask(route.method, path, b"<a/>", version=None, headers=headers)
            assert answer.status == 415, (path, answer)
            assert "badMediaType" in answer.json
            large = json.dumps({"x": "x" * 2**17}).encode()
            assert (await here.ask(route.method, path[13:], large)).status == 413

    tell_once(story)
