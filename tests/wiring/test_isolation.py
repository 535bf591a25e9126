"""Every route of every service, walked by nobody and by strangers: no data, no change.

The list is the services' own route tables. A route that is open to all must be named here, and so
must what is put into a path: a new route cannot be forgotten.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from siderite.core.http import Route
from siderite.core.ids import new_uuid
from siderite.identity import passwords
from siderite.image.domain.task import Task
from siderite.image.store import TASKS
from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud

SECRET = "belongs-to-me"
OPEN = {
    "": {"/", "/healthz", "/livez", "/metrics", "/openapi.json"},
    "identity": {"/", "/v3", "/v3/auth/tokens"},
    # What ramdisks ask, which have no tokens: a node's own secret lets them in.
    "baremetal": {"/", "/v1", "/v1/lookup", "/v1/heartbeat/{node}", "/v1/continue_inspection"},
    "boot": {"/v1/boot.ipxe", "/v1/ipxe/{mac}", "/v1/files/{node}/{secret}/{name}"},
    "compute": {"/", "/v2", "/v2.1", "/v2.1/versions/{id}"},
    "network": {"/", "/v2.0"},
    "image": {"/", "/versions", "/v2"},
    "consoles": {"/vnc"},  # a page without content: the WebSocket takes a token
    "console": {"/", "/machines.json", "/machines/{name}", "/{name}"},  # pages, no data
}
ELDER = ("/lookup", "/heartbeat/{node}", "/continue_inspection")
"""The same routes without a version in their path."""
NEWEST = {"baremetal": "1.900", "compute": "2.901"}
HEADERS = {"baremetal": "x-openstack-ironic-api-version", "compute": "openstack-api-version"}
SHARED = (
    "/v2.1/extensions",
    "/v1/drivers/", "/drivers/", "/v2.1/flavors/", "/v2.1/os-quota-sets/{project}/defaults",
    "/v2/schemas/", "/v2.0/quotas/", "/v3/domains/", "/v3/roles/",
)  # fmt: skip
"""Everybody's: there is nothing in them to keep from others."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator["World"]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_LOG2_N", 4)
        with cloud(tmp_path_factory.mktemp("data"), webhook_allow="127.0.0.0/8") as made:
            yield World(made)


class World:
    """A project with one of everything, and others who have no business with it."""

    def __init__(self, made: Cloud) -> None:
        self.cloud = made
        name, self.owner, project = made.app.person("member")
        found = made.app.ask("GET", f"/identity/v3/users?name={name}", version=None).json
        user = found["users"][0]["id"]
        self.things: dict[tuple[str, str], str] = {}
        self._compute(project)
        self._elsewhere(user, project)
        self._iron()
        self.others = {
            "stranger": made.app.person("member")[1],
            "strange reader": made.app.person("reader")[1],
        }

    def ask(self, service: str, method: str, path: str, body: Any, token: str | None) -> Any:
        headers = {}
        if service in NEWEST:
            word = "compute " if service == "compute" else ""
            headers[HEADERS[service]] = word + NEWEST[service]
        where = f"/{service}{path}" if service else path
        return self.cloud.app.ask(
            method, where, body, version=None, token=token, headers=headers
        )  # fmt: skip

    def make(self, service: str, path: str, body: Any, *, ident: str = "id") -> str:
        """Something of the owner's (of the administrator's, if it is iron); its name in paths."""
        token = None if service == "baremetal" else self.owner
        answer = self.ask(service, "POST", path, body, token)
        assert answer.status in (200, 201, 202), answer
        found = answer.json
        while ident not in found:
            found = next(iter(found.values()))
        return str(found[ident])

    def _compute(self, project: str) -> None:
        server = self.cloud.boot(token=self.owner, name=SECRET, metadata={"k": SECRET})
        group = {"server_group": {"name": SECRET, "policy": "affinity"}}
        self.things |= {
            ("compute", "servers"): server,
            ("compute", "os-server-groups"): self.make("compute", "/v2.1/os-server-groups", group),
            ("compute", "os-keypairs"): self.make(
                "compute", "/v2.1/os-keypairs", {"keypair": {"name": SECRET}} | _key(), ident="name"
            ),
            ("compute", "os-quota-sets"): project,
            ("compute", "os-simple-tenant-usage"): project,
            ("compute", "extensions"): "os-shelve",
            ("compute", "flavors"): self.cloud.flavor,
            ("compute", "hosts"): self.cloud.hosts[0],
            ("network", "ports"): server,
        }
        for words in (
            "os-aggregates",
            "os-hypervisors",
            "os-services",
            "os-quota-class-sets",
            "os-hosts",
            "os-instance_usage_audit_log",
        ):
            self.things["compute", words] = "1"

    def _elsewhere(self, user: str, project: str) -> None:
        image = {"name": SECRET, "disk_format": "raw", "container_format": "bare"}
        hook = {"url": f"http://127.0.0.1:9/{SECRET}"}
        made = self.make("image", "/v2/images", image)
        self.things |= {
            ("image", "images"): made,
            ("compute", "images"): made,
            ("image", "tasks"): self._imported(made),
            ("image", "schemas"): "image",
            ("events", "webhooks"): self.make("events", "/v1/webhooks", hook),
            ("identity", "users"): user,
            ("identity", "projects"): project,
            ("identity", "system/users"): user,
        }
        for word in ("domains", "endpoints", "groups", "regions", "roles", "services"):
            self.things["identity", word] = "default"
        path = f"/v3/users/{user}/application_credentials"
        made = self.ask(
            "identity", "POST", path, {"application_credential": {"name": SECRET}}, self.owner
        )
        assert made.status == 201, made

    def _imported(self, image: str) -> str:
        """The task of an image, as if it had been imported."""
        now, uri = "2026-01-01T00:00:00", f"http://127.0.0.1:9/{SECRET}"
        task = Task(uuid=new_uuid(), image_id=image, created_at=now, updated_at=now, uri=uri)
        store = self.cloud.app.app.program.store
        self.cloud.app.run(store.commit([TASKS.insert(task)]))
        return task.uuid

    def _iron(self) -> None:
        chassis = self.make("baremetal", "/v1/chassis", {"description": SECRET}, ident="uuid")
        fields = {"driver": "fake-hardware", "name": SECRET, "chassis_uuid": chassis}
        node = self.make("baremetal", "/v1/nodes", fields, ident="uuid")
        step = {"interface": "deploy", "step": "erase_devices", "args": {}}
        name = "CUSTOM_BELONGS_TO_ME"
        rule = {"description": SECRET, "actions": [{"op": "fail", "args": {"msg": "x"}}]}
        more: dict[str, Any] = {
            "ports": {"node_uuid": node, "address": "fa:16:3e:00:00:01", "extra": {"k": SECRET}},
            "portgroups": {"node_uuid": node, "name": SECRET},
            "allocations": {"resource_class": SECRET, "name": SECRET},
            "deploy_templates": {"name": name, "steps": [step | {"priority": 1}]},
            "runbooks": {"name": name, "steps": [step | {"order": 1}]},
            "inspection_rules": rule,
            "volume/connectors": {"node_uuid": node, "type": "iqn", "connector_id": SECRET},
            "volume/targets": {
                "node_uuid": node, "volume_type": "iscsi", "boot_index": 0, "volume_id": SECRET,
            },
        }  # fmt: skip
        self.things |= {("baremetal", "nodes"): node, ("baremetal", "chassis"): chassis}
        for word, body in more.items():
            made = self.make("baremetal", f"/v1/{word}", body, ident="uuid")
            self.things["baremetal", word] = made
        for word in ("conductors", "drivers", "hooks"):
            self.things["baremetal", word] = "fake-hardware"

    def everything(self) -> list[Any]:
        """All that there is, as an administrator sees it."""
        paths = [
            ("compute", "/v2.1/servers/detail?all_tenants=1"),
            ("compute", "/v2.1/os-server-groups?all_projects=1"),
            ("compute", "/v2.1/flavors"),
            ("compute", "/v2.1/os-services"), ("image", "/v2/images"), ("events", "/v1/webhooks"),
            ("identity", "/v3/projects"), ("identity", "/v3/role_assignments"),
            *(("baremetal", f"/v1/{word}") for word in (
                "nodes/detail", "chassis", "ports", "portgroups", "allocations", "runbooks",
                "deploy_templates", "inspection_rules", "volume/targets", "volume/connectors",
            )),
        ]  # fmt: skip
        return [(path, self.ask(service, "GET", path, None, None).json) for service, path in paths]

    def path(self, service: str, template: str) -> str:
        """A path of the owner's things; a collection that is not known here fails the test."""
        words = template.strip("/").split("/")
        at = next((n for n, word in enumerate(words) if word.startswith("{")), None)
        if at is None:
            return template
        if service == "compute" and words[at] == "{project_id}":
            return self.path(service, template.replace("/{project_id}", "", 1))
        begin = 1 if words[0][0] == "v" and words[0][1].isdigit() else 0  # some have no version
        known = self.things.get((service, "/".join(words[begin:at])))
        if known is None and service not in ("network", "simulator", "simulated-hosts"):
            raise AssertionError(f"what is {template} of {service} to be walked with?")
        rest = ("k" if word[0] == "{" else word for word in words[at + 1 :])
        return "/" + "/".join([*words[:at], known or SECRET, *rest])


def _key() -> dict[str, Any]:
    public = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE" + "A" * 42 + " x"
    return {"keypair": {"name": SECRET, "public_key": public}}


def _routes(world: World) -> list[tuple[str, Route]]:
    services = world.cloud.app.app.program.app._services
    return [(name, route) for name, service in services.items() for route in service.routes.routes]


def _is_open(service: str, route: Route) -> bool:
    return route.path in OPEN.get(service, ()) or (service == "baremetal" and route.path in ELDER)


def test_a_route_that_asks_for_no_token_is_known_to_be_open(world: World) -> None:
    """Nobody is told so at once, whatever the route does."""
    for service, route in _routes(world):
        if _is_open(service, route):
            continue
        answer = world.ask(service, route.method, world.path(service, route.path), {}, "")
        assert answer.status == 401, (service, route.method, route.path, answer)


def test_strangers_see_and_change_nothing(world: World) -> None:
    before = world.everything()
    for service, route in _routes(world):
        if _is_open(service, route):
            continue
        path = world.path(service, route.path)
        for who, token in world.others.items():
            answer = world.ask(service, route.method, path, {}, token)
            said = (who, service, route.method, route.path, answer)
            assert answer.status < 500 or answer.status == 501, said
            body = answer.body.replace(path.encode(), b"")
            assert SECRET.encode() not in body or answer.status in (403, 404), said
            template = route.path
            if service == "compute":  # whose trees have the same in them
                template = template.replace("/{project_id}", "").replace("/v2/", "/v2.1/")
            if "{" in template and not template.startswith(SHARED):
                assert answer.status >= 400, said  # it is of something that is not theirs
    after = world.everything()
    for (path, was), (_, now) in zip(before, after, strict=True):
        there = _list(now)
        assert _list(was), path
        assert [one for one in _list(was) if one not in there] == [], path  # theirs may be more


def _list(document: dict[str, Any]) -> list[Any]:
    """What there is, without what a webhook counts, and when a host was last seen to be well."""
    every = next(value for value in document.values() if isinstance(value, list))
    if "webhooks" in document:
        return [{name: one[name] for name in ("id", "url", "enabled")} for one in every]
    if "services" in document:
        return [{name: one[name] for name in one if name != "updated_at"} for one in every]
    return every
