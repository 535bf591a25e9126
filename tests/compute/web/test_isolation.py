"""Every route of the compute API, walked as another project's member, a reader, and nobody: no
data, no change, the right codes.
"""

from typing import Any

import pytest

from siderite.compute.web.routes import ROUTES
from siderite.compute.web.server.actions import ACTIONS
from siderite.core.ids import new_uuid
from tests.compute.cloud import Cloud
from tests.support.app import PASSWORD

SECRET = "belongs-to-me"
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/v2.1/servers"): {"server": {}},
    ("PUT", "/v2.1/servers/{id}"): {"server": {"name": "stolen"}},
    ("POST", "/v2.1/servers/{id}/action"): {"os-stop": None},
    ("POST", "/v2.1/servers/{id}/metadata"): {"metadata": {"stolen": "yes"}},
    ("PUT", "/v2.1/servers/{id}/metadata"): {"metadata": {"stolen": "yes"}},
    ("PUT", "/v2.1/servers/{id}/metadata/{key}"): {"meta": {"k": "stolen"}},
    ("PUT", "/v2.1/servers/{id}/tags"): {"tags": ["stolen"]},
    ("POST", "/v2.1/servers/{id}/os-interface"): {"interfaceAttachment": {}},
    ("POST", "/v2.1/servers/{id}/os-volume_attachments"): {
        "volumeAttachment": {"volumeId": "11111111-2222-4333-8444-555555555555"}
    },
    ("POST", "/v2.1/servers/{id}/remote-consoles"): {
        "remote_console": {"protocol": "vnc", "type": "novnc"}
    },
}
VALUES: dict[str, Any] = {
    "reboot": {"type": "HARD"}, "rebuild": {"imageRef": "{image}"},
    "resize": {"flavorRef": "{flavor}"}, "createImage": {"name": "stolen"},
    "createBackup": {"name": "stolen", "backup_type": "d", "rotation": 1},
    "changePassword": {"adminPass": "x"}, "os-resetState": {"state": "error"},
    "os-migrateLive": {"host": None, "block_migration": "auto"}, "rescue": {}, "evacuate": {},
    "addSecurityGroup": {"name": "x"}, "removeSecurityGroup": {"name": "x"},
    "os-getConsoleOutput": {}, "os-getVNCConsole": {"type": "novnc"},
    "os-getSPICEConsole": {"type": "spice-html5"}, "os-getSerialConsole": {"type": "serial"},
}  # fmt: skip
REFUSED = (401, 403, 404)


@pytest.fixture(scope="module")
def mine(lite: Cloud) -> tuple[Cloud, str, str, dict[str, str]]:
    """A cloud, its server's owner's token, the server, and tokens of others by what they are."""
    _, owner, project = lite.app.person("member")
    uuid = lite.boot(token=owner, name=SECRET, metadata={"k": SECRET}, tags=[SECRET])
    others = {
        "stranger": lite.app.person("member")[1],
        "strange reader": lite.app.person("reader")[1],
        "own reader": lite.app.person("reader", project)[1],
        "nobody": "",
    }
    return lite, owner, uuid, others


def _path(template: str, uuid: str, cloud: Cloud) -> str:
    ident = uuid if template.startswith("/v2.1/servers") else new_uuid()
    values = {"{id}": ident, "{key}": "k", "{tag}": SECRET, "{label}": "private"}
    path = template.removeprefix("/v2.1")
    if template.startswith("/v2.1/flavors"):
        values["{id}"] = cloud.flavor
    for name, value in values.items():
        path = path.replace(name, value)
    return path.replace("{", "").replace("}", "")


def _routes() -> list[tuple[str, str]]:
    return [(r.method, r.path) for r in ROUTES if r.policy != "public" and r.path != "/v2.1"]


@pytest.mark.parametrize(("method", "template"), _routes())
def test_a_route_tells_others_nothing_and_lets_them_change_nothing(
    mine: tuple[Cloud, str, str, dict[str, str]], method: str, template: str
) -> None:
    cloud, _, uuid, others = mine
    path = _path(template, uuid, cloud)
    version = 900 if template.startswith("/v2.1/hosts") else 100
    before = cloud.show(uuid)
    for who, token in others.items():
        body = BODIES.get((method, template), {})
        answer = cloud.ask(method, path, body, token=token, version=version)
        assert answer.status < 500 or answer.status == 501, (who, answer)
        if who == "nobody":
            assert answer.status == 401, answer
            continue
        if who != "own reader":
            assert SECRET.encode() not in answer.body.replace(path.encode(), b""), (who, answer)
            assert uuid.encode() not in answer.body.replace(b"Instance " + uuid.encode(), b""), (
                who,
                answer,
            )
            if "{id}" in template and template.startswith("/v2.1/servers/"):
                assert answer.status in REFUSED, (who, answer)
        elif template.startswith("/v2.1/os-keypairs"):
            assert answer.status in (200, 400, 404), answer  # keys are a user's, not a project's
        elif method != "GET":
            assert answer.status in REFUSED, (who, answer)
        elif template.startswith("/v2.1/servers"):
            assert answer.status in (200, 204, 403, 404, 501), (who, answer)
    assert cloud.show(uuid) == before


@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_an_action_is_for_the_owners_members_only(
    mine: tuple[Cloud, str, str, dict[str, str]], action: str
) -> None:
    cloud, _, uuid, others = mine
    value = VALUES.get(action)
    if isinstance(value, dict):
        value = {
            key: item.replace("{image}", cloud.image).replace("{flavor}", cloud.flavor)
            if isinstance(item, str)
            else item
            for key, item in value.items()
        }
    version = min(100, ACTIONS[action].until)
    before = cloud.show(uuid)
    for who, token in others.items():
        answer = cloud.act(uuid, action, value, token=token, version=version)
        expected = (401,) if who == "nobody" else (403, 404, 410, 409)
        if action in ("resize", "rebuild", "addFixedIp", "unshelve"):
            expected = (*expected, 400)
        assert answer.status in expected, (who, answer)
        assert SECRET.encode() not in answer.body
    assert cloud.show(uuid) == before


@pytest.mark.parametrize("what", ["kernel_id", "ramdisk_id"])
def test_no_server_boots_what_its_project_may_not_use(lite: Cloud, what: str) -> None:
    """Hosts get the kernel and the ramdisk that an image names, whosever they are."""
    _, token, _ = lite.app.person("member")
    theirs, plain = lite.make_image(visibility="private"), lite.make_image()
    naming = lite.make_image(**{what: theirs})
    wish = {"name": "n", "flavorRef": lite.flavor, "imageRef": naming, "networks": "none"}
    refused = lite.ask("POST", "/servers", {"server": wish}, token=token)
    assert refused.status == 400 and theirs in refused.json["badRequest"]["message"], refused
    uuid = lite.boot(token=token, imageRef=plain)
    for who in (token, None):  # an administrator may use all images, but not for others
        refused = lite.act(uuid, "rebuild", {"imageRef": naming}, token=who)
        assert refused.status == 400 and theirs in refused.json["badRequest"]["message"], refused
    lite.boot(imageRef=naming)  # theirs is the administrator's


def test_the_owner_may(mine: tuple[Cloud, str, str, dict[str, str]]) -> None:
    cloud, owner, uuid, _ = mine
    assert cloud.ask("GET", f"/servers/{uuid}", token=owner).json["server"]["name"] == SECRET
    assert cloud.act(uuid, "os-stop", token=owner).status == 202
    cloud.until(uuid, "SHUTOFF")


def test_a_token_for_no_project_makes_nothing_that_belongs_to_one(lite: Cloud) -> None:
    user = {"name": "admin", "domain": {"id": "default"}, "password": PASSWORD}
    identity = {"methods": ["password"], "password": {"user": user}}
    auth = {"auth": {"identity": identity, "scope": {"system": {"all": True}}}}
    made = lite.app.ask("POST", "/identity/v3/auth/tokens", auth, token="", version=None)
    token = made.headers["x-subject-token"]
    wish = {"name": "n", "flavorRef": lite.flavor, "imageRef": lite.image, "networks": "none"}
    for path, body in (
        ("/servers", {"server": wish}),
        ("/os-server-groups", {"server_group": {"name": "g", "policy": "affinity"}}),
    ):
        answer = lite.ask("POST", path, body, token=token)
        assert answer.status == 403 and "Get one for a project" in answer.body.decode()
    assert lite.ask("GET", "/os-hypervisors", token=token).status == 200
