"""The OpenAPI document, and requests made up from it: never a 500, never an untold status, never a
body of another form than it tells.
"""

import itertools
import json
import re
from collections.abc import Iterator

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck
from hypothesis import Phase
from hypothesis import given
from hypothesis import settings
from schemathesis.checks import not_a_server_error
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import content_type_conformance
from schemathesis.specs.openapi.checks import response_schema_conformance
from schemathesis.specs.openapi.checks import status_code_conformance

from tests.support.examples import IS_SAME_EACH_TIME
from tests.support.examples import examples
from tests.support.server import Server
from tests.support.server import running_server
from tests.wiring.everything import IRON
from tests.wiring.everything import NOVA
from tests.wiring.everything import Maker
from tests.wiring.everything import everything


@schemathesis.check
def has_a_body_only_if_told(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case
) -> None:
    """A success that the document gives no form has no body."""
    told = case.operation.definition.raw["responses"]["2XX"]
    if response.status_code < 300 and "There is no body." in told["description"]:
        assert not response.content, f"{response.status_code} {response.text[:80]}"


CHECKS = (
    has_a_body_only_if_told,
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
SPARED = {"identity:DELETE /v3/auth/tokens"}
"""It would end the session that all requests share."""
EACH = settings(
    max_examples=examples(1), database=None, derandomize=IS_SAME_EACH_TIME, deadline=None,
    phases=[Phase.generate], suppress_health_check=list(HealthCheck),
)  # fmt: skip
VERSIONS = {
    "baremetal": ("X-OpenStack-Ironic-API-Version", ("1.1", "1.72", "1.115", "1.900")),
    "compute": ("OpenStack-API-Version", ("compute 2.1", "compute 2.60", "compute 2.901")),
}
BODILESS = {
    "inject_nmi", "{trait}", "{tag}", "check", "rebuild", "test", "retry", "{role_id}",
    "deactivate", "reactivate", "power-cut",
}  # fmt: skip
"""The last words of addresses that are written to without a body, or with any at all."""
NONE = ("floatingips", "routers", "agents", "availability_zones", "extensions")
UNSEEN = {
    "/baremetal/v1/nodes/{node}/allocation",  # nobody's yet; the form is that of /allocations
    "/boot/v1/files/{node}/{secret}/{name}",  # while a ramdisk boots
    "/image/v2/tasks/{task_id}",  # once an image was imported from an address
    "/baremetal/v1/lookup",  # while it runs
    "/compute/v2.1/servers/{id}/migrations/{migration}",  # while it moves
    *(f"/network/v2.0/{noun}/{{id}}" for noun in NONE),  # there are none of these
}
"""What a short test does not come to see."""
_ALWAYS_REFUSED = (
    "vendor_passthru", "os-volume_attachments/{volume}", "/uptime", "/groups/{",
    "os-hosts/{host}/",
)  # fmt: skip
_ONLY_A_STATUS = ("/tags/{tag}", "/roles/{role_id}")
_HELD = (
    "bios", "bios/{setting}", "history", "history/{entry}", "inventory", "firmware", "hold",
    "management/indicators/{indicator}", "timeline", "validate",
)  # fmt: skip
PLACES = {
    **{f"/baremetal/v1/nodes/{{node}}/{word}": {"node": "worked"} for word in _HELD},
    "/compute/v2.1/extensions/{alias}": {"alias": "os-shelve"},
    "/compute/v2.1/images/{id}/metadata/{key}": {"key": "os_type"},
    "/compute/v2.1/os-hypervisors/{id}/search": {"id": "host"},
    "/compute/v2.1/os-hypervisors/{id}/servers": {"id": "host"},
    "/compute/v2.1/versions/{id}": {"id": "v2.1"},
    "/compute/v2.1/os-hosts/{host}": {"host": "host"},
    "/console/machines/{name}": {"name": "node.svg"},
    "/console/{name}": {"name": "app.js"},
    "/image/v2/images/{image_id}/file": {"image_id": "ready"},
    "/image/v2/schemas/{name}": {"name": "image"},
}
"""Where the word before a parameter's place does not say what is there."""
OPEN = ("vendor_passthru", "continue_inspection", "volume_attachments", "raid", "scripts", "guests")
"""Bodies that are another's to say, or that nothing is done with."""


@schemathesis.serializer("application/openstack-images-v2.1-json-patch")
def _as_json(context: object, value: object) -> bytes:
    return json.dumps(value).encode()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(
        tmp_path_factory.mktemp("openapi"), flags=("--demo", "--demo-nodes", "2")
    ) as made:
        yield made


@pytest.fixture(scope="module")
def schema(server: Server) -> BaseSchema:
    answer = server.api.get("/openapi.json")
    assert answer.status_code == 200
    document = answer.json()
    assert document["openapi"] == "3.1.0"
    return schemathesis.openapi.from_dict(document)


def _first(why: BaseException) -> str:
    while isinstance(why, BaseExceptionGroup):
        why = why.exceptions[0]
    return " ".join(str(why).split())[:400]


def _none(wrong: list[str], tried: int) -> None:
    assert not wrong, f"{len(wrong)} of {tried}:\n" + "\n".join(itertools.islice(wrong, 12))


def test_what_is_there_is_shown_in_the_forms_that_the_document_tells(
    server: Server, schema: BaseSchema
) -> None:
    make = Maker(server)
    known = everything(make)
    _none(list(_unlike(_written(make, known), schema)), len(make.heard))
    shown = 0
    wrong: list[str] = []
    for found in schema.get_all_operations():
        operation = found.ok()
        answer = operation.definition.raw["responses"]["2XX"]
        if operation.method != "get" or "content" not in answer or operation.path in UNSEEN:
            continue
        name, versions = VERSIONS.get(operation.path.split("/")[1], ("Accept", ("*/*",)))
        ids = {one: _known(known, operation.path, one) for one in _parameters(operation.path)}
        answers = set()
        for version in versions:
            case = operation.Case(path_parameters=ids, headers={name: version})
            who = {**server.headers(), "X-Subject-Token": server.token()}
            response = case.call(base_url=server.url, headers=who)
            answers.add(response.status_code)
            try:
                case.validate_response(response, checks=CHECKS)
            except (Exception, BaseExceptionGroup) as why:
                wrong.append(f"{operation.label} {version}: {_first(why)}")
        if answers & {200, 300}:
            shown += 1
        else:
            wrong.append(f"{operation.label}: nothing of it could be seen: {answers}")
    _none(wrong, shown)
    assert shown > 200, shown


def _written(make: Maker, known: dict[str, str]) -> list[httpx.Response]:
    """Answers to requests that change something."""
    ask, iron = make.ask, "/baremetal/v1/nodes/told"
    ask("PUT", f"{iron}/states/power", {"target": "power on"}, IRON)
    ask("DELETE", f"{iron}/maintenance", version=IRON)
    ask("PUT", "/simulator/v1/scripts/rack:told", {"silent": True})
    ask("POST", f"/events/v1/webhooks/{known['webhooks']}/replay", {"after": 0})
    locked = f"/compute/v2.1/servers/{known['servers']}"
    ask("PUT", f"{locked}/tags/more", version=NOVA)
    ask("POST", f"{locked}/action", {"lock": None}, NOVA)
    return make.heard


def _unlike(answers: list[httpx.Response], schema: BaseSchema) -> Iterator[str]:
    """Those that are not as the document tells."""
    operations = [found.ok() for found in schema.get_all_operations()]
    for answer in answers:
        asked = answer.request
        for operation in operations:
            place = re.sub(r"{[^}]*}", "[^/]+", operation.path)
            if operation.method == asked.method.lower() and re.fullmatch(place, asked.url.path):
                break
        else:
            yield f"{asked.method} {asked.url.path} is not told of"
            continue
        told = operation.definition.raw["responses"]["2XX"]
        if "There is no body." in told["description"] and answer.content:
            yield f"{operation.label}: a body that is not told of: {answer.text[:200]}"
        try:
            operation.validate_response(answer)
        except (Exception, BaseExceptionGroup) as why:
            yield f"{operation.label}: {_first(why)}"


def _parameters(path: str) -> list[str]:
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]


def _known(known: dict[str, str], path: str, name: str) -> str:
    """The id of something that is there, by the word before its place in the address."""
    before = path.partition("{" + name + "}")[0].rstrip("/").rpartition("/")[2]
    word = PLACES.get(path, {}).get(name, before)
    return known.get(f"{path.split('/')[1]}/{word}") or known.get(word, word)


def test_requests_made_up_from_the_document_get_what_it_tells_of(
    server: Server, schema: BaseSchema
) -> None:
    tried = 0
    wrong: list[str] = []
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.definition.raw["operationId"] in SPARED:
            continue

        @EACH
        @given(case=operation.as_strategy())
        def ask(case: schemathesis.Case) -> None:
            response = case.call(base_url=server.url, headers=server.headers())
            case.validate_response(response, checks=CHECKS)

        try:
            ask()
        except (Exception, BaseExceptionGroup) as why:
            wrong.append(f"{operation.label}: {_first(why)}")
        tried += 1
    _none(wrong, tried)
    assert tried > 300, tried


def test_every_answer_has_a_form_unless_there_is_none_to_give(schema: BaseSchema) -> None:
    formless = [
        operation.path
        for operation in (found.ok() for found in schema.get_all_operations())
        if operation.method == "get"
        if "content" not in operation.definition.raw["responses"]["2XX"]
        if not any(word in operation.path for word in _ALWAYS_REFUSED)
        if not operation.path.endswith(_ONLY_A_STATUS)
    ]
    assert formless == []


def test_every_body_that_is_read_has_a_form(schema: BaseSchema) -> None:
    formless = [
        operation.label
        for operation in (found.ok() for found in schema.get_all_operations())
        for kind, body in operation.definition.raw.get("requestBody", {}).get("content", {}).items()
        if body["schema"] == {} and "json" in kind
        if operation.path.rpartition("/")[2] not in BODILESS
        if not any(word in operation.path for word in OPEN)
    ]
    assert formless == []


def test_what_not_every_host_can_do_is_told(server: Server, schema: BaseSchema) -> None:
    hosts = server.api.get("/compute/v2.1/os-hypervisors", headers=server.headers()).json()
    host = hosts["hypervisors"][0]["hypervisor_hostname"]
    path = "/compute/v2.1/os-hosts/{host}/reboot"
    answer = server.api.get(path.format(host=host), headers=server.headers())
    assert answer.status_code == 501
    assert "501" in schema[path]["GET"].definition.raw["responses"]


def test_parts_that_are_not_there_are_told(schema: BaseSchema) -> None:
    ranged = ("/image/v2/images/{image_id}/file", "/boot/v1/files/{node}/{secret}/{name}")
    assert all("416" in schema[path]["GET"].definition.raw["responses"] for path in ranged)
