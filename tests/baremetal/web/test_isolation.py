"""Every route of the bare metal API, walked as a stranger, a reader, a lessee, nobody, and with a
token for no project: no data, no change, the right codes. An administrator's answer shows that each
request is a good one.
"""

import re
from dataclasses import dataclass
from typing import Any

import pytest

from siderite.baremetal.web import policy
from siderite.baremetal.web.routes import ROUTES
from siderite.core.http import Route
from tests.baremetal.web.expect import footprint
from tests.support.app import Answer
from tests.support.app import Standing
from tests.support.domain import domain_person

SECRET = "belongs-to-me"
TRAIT = "CUSTOM_BELONGS_TO_ME"
STEP = {"interface": "bios", "step": "factory_reset", "args": {}}
PATCH = [{"op": "add", "path": "/extra/stolen", "value": 1}]
BODIES: dict[tuple[str, str], Any] = {
    ("PATCH", "/nodes/{node}"): [{"op": "add", "path": "/properties/stolen", "value": 1}],
    ("PUT", "/nodes/{node}/states/provision"): {"target": "rebuild"},
    ("PUT", "/nodes/{node}/states/power"): {"target": "rebooting"},
    ("PUT", "/nodes/{node}/states/console"): {"enabled": True},
    ("PUT", "/nodes/{node}/states/boot_mode"): {"target": "uefi"},
    ("PUT", "/nodes/{node}/states/secure_boot"): {"target": True},
    ("PUT", "/nodes/{node}/states/raid"): {"logical_disks": [{"size_gb": 1, "raid_level": "1"}]},
    ("PUT", "/nodes/{node}/management/boot_device"): {"boot_device": "pxe"},
    ("PUT", "/nodes/{node}/management/indicators/{indicator}"): {"state": "on"},
    ("POST", "/nodes/{node}/vmedia"): {"device_type": "cdrom", "image_url": "http://a/b"},
    ("PUT", "/nodes/{ident}/traits"): {"traits": ["CUSTOM_STOLEN"]},
    ("POST", "/nodes/{node}/vifs"): {"id": "stolen"},
    ("PUT", "/nodes/{node}/hold"): {"answer": "proceed"},
    ("PATCH", "/hooks/{hook}"): [{"op": "add", "path": "/description", "value": "stolen"}],
    ("PATCH", "/inspection_rules/{inspection_rule}"): [
        {"op": "add", "path": "/description", "value": "stolen"}
    ],
    ("PUT", "/runbooks/{ident}/traits"): {"traits": ["CUSTOM_STOLEN"]},
    ("POST", "/allocations"): {"resource_class": "x", "candidate_nodes": ["{node}"]},
}
EMPTY = ("inject_nmi", "maintenance", "traits/{trait}")
UNKNOWN_TO_ADMINS = (
    "vendor_passthru", "/nodes/{node}/bios/{setting}", "/nodes/{node}/inventory",
    "/nodes/{node}/history/{entry}", "/nodes/{node}/hold", "/nodes/{node}/vifs/{vif}",
    "/nodes/{node}/allocation", "/conductors/",
)  # fmt: skip
"""What there is none of here, for anybody."""
QUERIES = {
    "/nodes": ["parent_node={node}", "chassis_uuid={chassis}", "owner=them", "marker={node}"],
    "/ports": ["node={node}", "node_uuid={node}", "portgroup={portgroup}", "marker={port}"],
    "/portgroups": ["node={node}", "marker={portgroup}"],
    "/volume/connectors": ["node={node}", "marker={connector}"],
    "/volume/targets": ["node={node}", "marker={target}"],
    "/allocations": ["node={node}", "owner=them", "marker={allocation}"],
    "/runbooks": ["marker={runbook}"],
}
WALKED = [
    route
    for route in ROUTES
    if route.path.startswith("/v1/") and route.policy != "public" and "/drivers" not in route.path
]


@dataclass(frozen=True)
class Scene:
    """Somebody's node with all that can belong to it, and who would like to know of it."""

    app: Standing
    things: dict[str, str]
    tokens: dict[str, str]

    def fill(self, text: str) -> str:
        """A template with their things in it."""
        return re.sub(r"\{(\w+)\}", lambda found: self.things[found[1]], text)

    def ask(self, route: Route, token: str | None, query: str = "") -> Answer:
        """A good request to a route, but perhaps for its query."""
        path = route.path.removeprefix("/v1")
        kinds = {f"{kind}s": uuid for kind, uuid in self.things.items()}
        things = self.things | {"ident": kinds.get(path.split("/")[1], "")}
        if path.startswith("/volume/"):
            things["volume"] = kinds[path.split("/")[2]]
        scene = Scene(self.app, things, self.tokens)
        body = BODIES.get((route.method, path), PATCH if route.method == "PATCH" else {})
        if (route.method, path) == ("POST", "/allocations"):
            body = {**body, "candidate_nodes": [self.things["node"]]}
        if route.method in ("GET", "DELETE") or path.endswith(EMPTY):
            body = b""
        path = scene.fill(route.path) + query
        return self.app.ask(route.method, path, body, version=900, token=token)


@pytest.fixture(scope="module")
def scene(lite: Standing) -> Scene:
    """One of each kind."""

    def make(path: str, **fields: Any) -> str:
        answer = lite.ask("POST", f"/v1/{path}", fields, version=900)
        assert answer.status == 201, answer
        return str(answer.json["uuid"])

    _, _, project = lite.person("member")
    _, lessee, tenant = lite.person("member")
    chassis = make("chassis", description=SECRET)
    node = lite.plant(
        "active", owner=project, lessee=tenant, name=SECRET, chassis_uuid=chassis,
        power_state="power on", extra={"a": SECRET}, traits=[TRAIT], resource_class="x",
    )  # fmt: skip
    free = lite.plant(
        "available", owner=project, power_state="power off", resource_class="mine",
        name=f"{SECRET}-2",
    )  # fmt: skip
    lite.ask("PUT", f"/v1/nodes/{node}/maintenance", {"reason": SECRET})
    allocation = make("allocations", name=SECRET, resource_class="mine", owner=project)
    things = {
        "node": node, "chassis": chassis, "free": free,
        "portgroup": make("portgroups", node_uuid=node, name=SECRET),
        "port": make("ports", node_uuid=node, address="52:54:00:00:be:01", name=SECRET),
        "connector": make("volume/connectors", node_uuid=free, type="iqn", connector_id=SECRET),
        "target": make("volume/targets", node_uuid=free, volume_type="iscsi", boot_index=0,
                       volume_id=SECRET),
        "deploy_template": make("deploy_templates", name=TRAIT, steps=[{**STEP, "priority": 1}]),
        "runbook": make("runbooks", name=TRAIT, steps=[{**STEP, "order": 1}], owner=project),
        "hook": make("hooks", name=SECRET, machine="node", state="cleaning", deadline_s=60),
        "inspection_rule": make(
            "inspection_rules", description=SECRET,
            actions=[{"op": "log", "args": {"msg": SECRET}}],
        ),
        "allocation": allocation, "indicator": "led@system", "setting": "nothing", "method": "x",
        "entry": node, "trait": TRAIT, "vif": "nothing", "host": "here",
    }  # fmt: skip
    tokens = {
        "stranger": lite.person("member")[1],
        "strange reader": lite.person("reader")[1],
        "own reader": lite.person("reader", project)[1],
        "lessee": lessee,
        "nobody": "",
    }
    return Scene(lite, things, tokens)


@pytest.fixture(scope="module")
def of_no_project(scene: Scene) -> str:
    """A token with the role member, of the domain."""
    return scene.app.run(domain_person(scene.app.app, "member"))


def _tells(answer: Answer, asked: str) -> bool:
    """Whether an answer has more of what is secret than the question had."""
    said = answer.body.replace(asked.encode(), b"")
    return SECRET.encode() in said or TRAIT.encode() in said


@pytest.mark.parametrize("route", WALKED, ids=lambda route: f"{route.method} {route.path}")
def test_a_route_tells_others_nothing_and_lets_them_change_nothing(
    scene: Scene, route: Route
) -> None:
    before = footprint(scene.app)
    rule = policy.RULES[route.policy]
    for who, token in scene.tokens.items():
        if who == "lessee" and rule.lessee:
            continue
        answer = scene.ask(route, token)
        assert answer.status < 500, (who, answer)
        if who == "nobody":
            assert answer.status == 401, answer
        elif who in ("own reader", "lessee"):
            if rule.role != "reader" or who == "lessee":
                assert answer.status == 403 or "{" not in route.path, (who, answer)
        elif "{" in route.path:
            expected = 403 if rule.role == "admin" or rule.system else 404
            if rule.role == "member" and "reader" in who:
                expected = 403
            if route.path.startswith("/v1/nodes/{"):
                expected = 404  # whatever their role
            assert answer.status == expected, (who, answer)
            if expected == 404:
                assert "could not be found" in answer.sentence, (who, answer)
            assert not _tells(answer, TRAIT if "trait" in route.path else "\0"), (who, answer)
        else:
            assert not _tells(answer, "\0"), (who, answer)
    if (route.method, route.path) != ("POST", "/v1/allocations"):
        assert footprint(scene.app) == before


@pytest.mark.parametrize("route", WALKED, ids=lambda route: f"{route.method} {route.path}")
def test_a_token_for_no_project_is_refused_by_every_route(
    scene: Scene, of_no_project: str, route: Route
) -> None:
    before = footprint(scene.app)
    answer = scene.ask(route, of_no_project)
    rule = policy.RULES[route.policy]
    if rule.role == "admin" or rule.system:
        assert answer.status == (404 if route.path.startswith("/v1/nodes/{") else 403), answer
    else:
        assert (answer.status, "Get one for a project" in answer.sentence) == (403, True), answer
    assert footprint(scene.app) == before


@pytest.mark.parametrize(
    ("path", "query"), [(path, query) for path, found in QUERIES.items() for query in found]
)
def test_no_question_to_a_list_finds_what_is_not_ones_own(
    scene: Scene, path: str, query: str
) -> None:
    target = f"/v1{path}?{scene.fill(query)}"
    for who in ("stranger", "strange reader"):
        answer = scene.app.ask("GET", target, token=scene.tokens[who])
        assert answer.status in (200, 404) or "could not be found" in answer.sentence, answer
        if answer.status == 200:
            assert next(iter(answer.json.values())) == [], answer
        assert not _tells(answer, "\0"), answer


@pytest.mark.parametrize("route", WALKED, ids=lambda route: f"{route.method} {route.path}")
def test_a_question_that_nobody_reads_is_refused_and_changes_nothing(
    scene: Scene, route: Route
) -> None:
    before = footprint(scene.app)
    answer = scene.ask(route, None, query="?bogus=1")
    assert 400 <= answer.status < 500, answer
    if answer.status == 400:
        assert "bogus" in answer.sentence or "vendor" in route.path, answer
    assert footprint(scene.app) == before


def test_what_was_asked_were_good_questions(scene: Scene) -> None:
    for route in WALKED:
        if "{" not in route.path or route.method == "DELETE":
            continue
        answer = scene.ask(route, None)
        path = route.path.removeprefix("/v1")
        if any(part in path for part in UNKNOWN_TO_ADMINS):
            continue
        assert answer.status not in (403, 404, 405, 406), (route.method, route.path, answer)
        if answer.status == 400:
            assert "maintenance mode" in answer.sentence, (route.method, route.path, answer)
