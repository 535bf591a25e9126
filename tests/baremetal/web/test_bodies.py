"""Bodies that are not what they should be: each refused with a sentence, none is half done."""

import json
from typing import Any

import pytest

from siderite.baremetal.web.node.schemas import FIELDS
from siderite.core.http import MIB
from siderite.core.json_body import MAX_DEPTH
from tests.baremetal.web.expect import footprint
from tests.baremetal.web.expect import refused
from tests.support.app import Standing


@pytest.fixture(scope="module")
def app(lite: Standing) -> Standing:
    """The database makes no difference here."""
    return lite


NEW = b'{"driver": "fake-hardware", "description": %s}'


def create(app: Standing, **fields: Any) -> Any:
    """The answer to a creation."""
    return app.ask("POST", "/v1/nodes", {"driver": "fake-hardware", **fields})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "empty"),
        (b"{", "not valid JSON"),
        (b"nonsense", "not valid JSON"),
        (b'{"driver": "fake-hardware",}', "not valid JSON"),
        (b'{"driver": "fake-hardware"} {}', "not valid JSON"),
        (b'\xef\xbb\xbf{"driver": "fake-hardware"}', "not valid JSON"),
        (NEW % b'"\xff"', "not valid JSON"),
        (NEW % b'"\xed\xa0\x80"', "not valid JSON"),
        (NEW % b'"\\ud800 and more"', "not valid JSON"),
        (NEW % b'"\\udc00"', "not valid JSON"),
        (NEW % b'"\x00"', "not valid JSON"),
        (NEW % b"NaN", "not valid JSON"),
        (NEW % b"-Infinity", "not valid JSON"),
        (NEW % b"1e999", "not valid JSON"),
        (NEW % (b"9" * 5000), "not valid JSON"),
        (NEW % b'"a\\u0000b"', "NUL"),
        (b'{"driver": "fake-hardware", "extra": {"\\u0000": 1}}', "NUL"),
        (b'{"driver": "fake-hardware", "extra": {"\\\\\\u0000": 1}}', "NUL"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[" * 100_000 + b"]" * 100_000, "deep"),
        (b'{"a":' * 100 + b"1" + b"}" * 100, "deep"),
        (b"[]", "must be an object"),
        (b"null", "must be an object"),
        (b'"text"', "must be an object"),
        (b"17", "must be an object"),
        (b"{}", "'driver' is a required property"),
        (b'{"driver": null}', "driver must be text"),
        (b'{"driver": "bogus"}', "No valid host was found"),
        (b'{"driver": "fake-hardware", "bogus": 1}', "Schema error for node"),
        (b'{"driver": "fake-hardware", "provision_state": "active"}', "Schema error for node"),
        (b'{"driver": "fake-hardware", "protected": true}', "has nothing to protect"),
        (b'{"driver": "fake-hardware", "protected_reason": "x"}', "together with protected"),
    ],
)
def test_a_creation_that_cannot_be_understood_is_refused(
    app: Standing, body: bytes, words: str
) -> None:
    before = footprint(app)
    refused(app.ask("POST", "/v1/nodes", body), 400, words)
    assert footprint(app) == before


def test_text_that_only_looks_like_a_nul_is_text(app: Standing) -> None:
    made = app.ask("POST", "/v1/nodes", NEW % rb'"a \\u0000 b"')
    assert made.status == 201, made
    assert made.json["description"] == r"a \u0000 b"


def test_of_a_key_that_is_there_twice_the_last_counts(app: Standing) -> None:
    made = app.ask("POST", "/v1/nodes", b'{"driver": "bogus", "driver": "fake-hardware"}')
    assert made.status == 201, made


def test_numbers_keep_their_digits(app: Standing) -> None:
    extra = {"big": 10**300, "negative": -(2**80), "small": 5e-324, "large": 1.5e308}
    uuid = create(app, extra=extra).json["uuid"]
    assert app.show(uuid)["extra"] == extra
    assert app.node(uuid).extra == extra


def test_text_of_every_plane_comes_back_as_it_went(app: Standing) -> None:
    text = "ä \u2028 \U0001f600 \r\n\t \x7f \"\\/'"
    uuid = create(app, description=text, extra={text: [text]}).json["uuid"]
    shown = app.show(uuid)
    assert (shown["description"], shown["extra"]) == (text, {text: [text]})


def test_brackets_within_text_do_not_count_as_depth(app: Standing) -> None:
    extra = {"text": "[{" * 1000 + '"' + "\\" + "[" * 1000}
    assert create(app, extra=extra).status == 201


def test_a_body_may_nest_25_levels_and_no_more(app: Standing) -> None:
    def nested(levels: int) -> Any:
        return {
            "driver": "fake-hardware",
            "extra": json.loads('{"a":' * levels + "1" + "}" * levels),
        }

    assert app.ask("POST", "/v1/nodes", nested(MAX_DEPTH - 1)).status == 201
    refused(app.ask("POST", "/v1/nodes", nested(MAX_DEPTH)), 400, "25 levels")


@pytest.mark.parametrize(
    ("method", "path", "limit"),
    [
        ("POST", "/v1/nodes", MIB),
        ("PATCH", "/v1/nodes/{}", MIB),
        ("PUT", "/v1/nodes/{}/states/power", MIB),
        ("PUT", "/v1/nodes/{}/maintenance", MIB),
        ("PUT", "/v1/nodes/{}/states/provision", 64 * MIB),
    ],
)
def test_a_body_over_the_limit_is_too_large(
    lite: Standing, method: str, path: str, limit: int
) -> None:
    target = path.format(lite.make_node())
    refused(lite.ask(method, target, b" " * (limit + 1)), 413, f"{limit // 1024} KiB")
    assert lite.ask(method, target, b" " * limit).status == 400


@pytest.mark.parametrize("part", [b"[],", b"{},", b"1,", b'"":{', b'""'])
def test_a_large_body_may_be_long_and_not_have_countless_parts(lite: Standing, part: bytes) -> None:
    lite.plant("inspect wait")  # else no report is read
    countless = b"[" * MAX_DEPTH + part * (MIB // 2) + b"1" * MIB
    for method, path in (
        ("PUT", f"/v1/nodes/{lite.make_node()}/states/provision"),
        ("POST", "/v1/continue_inspection"),
    ):
        refused(lite.ask(method, path, countless + part * MIB), 413, "too many parts")
    small = b'{"driver": "fake-hardware", "extra": {"a": [' + b"[]," * (MIB // 4) + b"1]}}"
    assert lite.ask("POST", "/v1/nodes", small).status == 201


def test_a_body_that_says_it_is_too_large_is_not_waited_for(lite: Standing) -> None:
    for length in (MIB + 1, 10**17):
        told = {"Content-Length": str(length)}
        refused(lite.ask("POST", "/v1/nodes", b"{", headers=told), 413, "1024 KiB")
    for odd in ("x", "-1", "\u00b2", "9" * 5000, str(MIB)):
        answer = lite.ask("POST", "/v1/nodes", b"{", headers={"Content-Length": odd})
        refused(answer, 400, "not valid JSON")


def test_a_large_config_drive_is_taken(lite: Standing) -> None:
    uuid = lite.plant("available")
    drive = "QUJD" * (8 * MIB // 4)
    asked = lite.ask(
        "PUT", f"/v1/nodes/{uuid}/states/provision", {"target": "active", "configdrive": drive}
    )
    assert asked.status == 202, asked
    assert lite.show(uuid)["instance_info"]["configdrive"] == "******"


WRONG: dict[str, list[Any]] = {
    "text": [17, 1.5, True, [], {}, ["x"]],
    "flag": [17, 0, 1, 1.5, [], {}, "", "maybe"],
    "object": [17, True, [], "text", [["a", "b"]]],
    "uuid": [17, True, [], {}, "", "bogus", "1be26c0b03f24d2eae87c02d7f33c123", "x" * 36],
}
KINDS = {
    **dict.fromkeys(FIELDS, "text"),
    **dict.fromkeys(
        ["automated_clean", "disable_power_off", "maintenance", "protected", "retired",
         "console_enabled", "secure_boot"], "flag",
    ),
    **dict.fromkeys(
        ["driver_info", "extra", "instance_info", "network_data", "properties"], "object"
    ),
    **dict.fromkeys(["chassis_uuid", "instance_uuid", "parent_node", "uuid"], "uuid"),
}  # fmt: skip


@pytest.mark.parametrize("field", KINDS)
def test_a_field_of_another_type_is_refused_at_creation_and_by_patch(
    app: Standing, field: str
) -> None:
    uuid = app.plant("active")
    before = footprint(app)
    for value in WRONG[KINDS[field]]:
        body = {"driver": "fake-hardware", field: value}
        assert field in refused(app.ask("POST", "/v1/nodes", body, version=900), 400), value
        if field in FIELDS:
            patch = [{"op": "replace", "path": f"/{field}", "value": value}]
            answer = app.ask("PATCH", f"/v1/nodes/{uuid}", patch, version=900)
            assert field in refused(answer, 400), value
    assert footprint(app) == before


@pytest.mark.parametrize("field", [name for name, kind in KINDS.items() if kind == "flag"])
@pytest.mark.parametrize(("word", "meaning"), [("True", True), ("off", False), (None, False)])
def test_flags_may_be_words_or_null(lite: Standing, field: str, word: Any, meaning: bool) -> None:
    if field == "protected":
        uuid = lite.plant("active")
        patch = [{"op": "add", "path": "/protected", "value": word}]
        answer = lite.ask("PATCH", f"/v1/nodes/{uuid}", patch)
    else:
        answer = create(lite, **{field: word})
    assert answer.status in (200, 201), answer
    if word is None and field in ("automated_clean", "secure_boot"):
        assert answer.json[field] is None
    else:
        assert answer.json[field] is meaning


@pytest.mark.parametrize(
    ("field", "most"),
    [("description", 4096), ("resource_class", 80), ("owner", 255), ("lessee", 255),
     ("shard", 255), ("name", 255), ("conductor_group", 255), ("instance_name", 255)],
)  # fmt: skip
def test_text_is_limited_in_length(app: Standing, field: str, most: int) -> None:
    assert create(app, **{field: "x" * most}).status == 201
    refused(create(app, **{field: "x" * (most + 1)}), 400, field, str(most))


@pytest.mark.parametrize("name", ["maintenance", "states", "detail", "Validate", "vendor_passthru"])
def test_reserved_words_are_no_names(app: Standing, name: str) -> None:
    refused(create(app, name=name), 400, "cannot be a node's name")


@pytest.mark.parametrize(
    "name",
    ["a b", "a/b", "a%41", "ä", "a\r\nSet-Cookie: x", "a\n", " a", "a?b", "a#b", "\u0663",
     "a\u2028", ".", "..", "1be26c0b-03f2-4d2e-ae87-c02d7f33c123",
     "1BE26C0B-03F2-4D2E-AE87-C02D7F33C123"],
)  # fmt: skip
def test_names_hold_unreserved_characters_only(app: Standing, name: str) -> None:
    refused(create(app, name=name), 400, "cannot be a node's name")


def test_before_1_10_a_name_is_a_host_name(app: Standing) -> None:
    for name in ("under_score", "tilde~", "-dash", "dot.", "x" * 64):
        body = {"driver": "fake-hardware", "name": name}
        refused(app.ask("POST", "/v1/nodes", body, version=9), 400, "cannot be a node's name")
    body = {"driver": "fake-hardware", "name": "a-1.example"}
    assert app.ask("POST", "/v1/nodes", body, version=9).status == 201


@pytest.mark.parametrize("field", ["uuid", "name", "instance_uuid"])
def test_what_must_be_unique_is_not_given_twice(app: Standing, field: str) -> None:
    value = "1be26c0b-03f2-4d2e-ae87-c02d7f33c1ff" if field != "name" else "only-one"
    assert create(app, **{field: value}).status == 201
    before = footprint(app)
    refused(create(app, **{field: value.upper() if field != "name" else value}), 409, value)
    other = app.make_node()
    if field != "uuid":
        patch = [{"op": "add", "path": f"/{field}", "value": value}]
        refused(app.ask("PATCH", f"/v1/nodes/{other}", patch), 409, value)
    assert app.ask("DELETE", f"/v1/nodes/{other}").status == 204
    assert footprint(app) == before


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "must be an object"),
        ({}, "Missing mandatory parameter: target"),
        ({"target": None}, "could not be understood"),
        ({"target": ["manage"]}, "could not be understood"),
        ({"target": "delete"}, "could not be understood"),
        ({"target": "done"}, "could not be understood"),
        ({"target": "x" * 100_000}, "could not be understood"),
        ({"target": "manage", "bogus": 1}, "Unexpected arguments: bogus"),
        ({"target": "manage", "clean_steps": []}, '"clean_steps" is only valid'),
        ({"target": "manage", "configdrive": "QUJD"}, '"configdrive" is only valid'),
        ({"target": "manage", "rescue_password": "x"}, '"rescue_password" is only valid'),
        ({"target": "manage", "disable_ramdisk": True}, '"disable_ramdisk" is only valid'),
        ({"target": "clean"}, '"clean_steps" is required'),
        ({"target": "clean", "clean_steps": None}, '"clean_steps" is required'),
        ({"target": "clean", "clean_steps": {}}, "Invalid clean_steps"),
        ({"target": "clean", "clean_steps": []}, "Invalid clean_steps"),
        ({"target": "clean", "clean_steps": [1]}, "Invalid clean_steps"),
        ({"target": "clean", "clean_steps": [{}]}, "Invalid clean_steps"),
        ({"target": "clean", "runbook": "bogus"}, "could not be found"),
        ({"target": "service"}, '"service_steps" is required'),
        ({"target": "rescue"}, "rescue_password"),
        ({"target": "rescue", "rescue_password": " "}, "rescue_password"),
        ({"target": "rescue", "rescue_password": 17}, "rescue_password"),
        ({"target": "active", "deploy_steps": [{}]}, "Invalid deploy_steps"),
        ({"target": "active", "deploy_steps": {"a": 1}}, "Invalid deploy_steps"),
        ({"target": "active", "configdrive": "*"}, "configdrive"),
        ({"target": "active", "configdrive": "abc"}, "configdrive"),
        ({"target": "active", "configdrive": 17}, "configdrive"),
        ({"target": "active", "configdrive": {"bogus": 1}}, "configdrive"),
        ({"target": "active", "configdrive": {"meta_data": []}}, "configdrive"),
    ],
)
def test_a_wish_that_cannot_be_understood_is_refused(app: Standing, body: Any, words: str) -> None:
    uuid = app.plant("manageable")
    before = footprint(app)
    refused(app.ask("PUT", f"/v1/nodes/{uuid}/states/provision", body), 400, words)
    assert footprint(app) == before


STEP = {"interface": "deploy", "step": "erase_devices"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"interface": None}, {"interface": "bogus"}, {"interface": ["deploy"]}, {"step": None},
        {"step": ""}, {"step": {}}, {"args": None}, {"args": []}, {"order": -1}, {"order": True},
        {"order": 1.5}, {"order": "x"}, {"order": 10**30}, {"order": "\u0663"}, {"bogus": 1},
        {"priority": 5}, {"execute_on_child_nodes": "yes"}, {"limit_child_node_execution": "x"},
        {"step": "wait", "args": {"seconds": -1}}, {"step": "wait", "args": {"seconds": "9"}},
        {"step": "wait", "args": {"seconds": 10**30}}, {"step": "wait", "args": {"seconds": None}},
    ],
)  # fmt: skip
def test_a_clean_step_has_its_form(app: Standing, wrong: Any) -> None:
    uuid = app.plant("manageable")
    body = {"target": "clean", "clean_steps": [STEP, {**STEP, **wrong}]}
    refused(app.ask("PUT", f"/v1/nodes/{uuid}/states/provision", body), 400, "Invalid clean_steps")


def test_steps_are_no_larger_than_other_requests(lite: Standing) -> None:
    """Only a config drive may be: each event of the node carries its steps."""
    uuid = lite.plant("manageable")
    path = f"/v1/nodes/{uuid}/states/provision"
    large = {**STEP, "args": {"note": "x" * 1024 * 1024}}
    body = {"target": "clean", "clean_steps": [large]}
    refused(lite.ask("PUT", path, body), 400, "the steps may have 1048576 bytes together at most")
    many = {"target": "clean", "clean_steps": [STEP] * 1001}
    refused(lite.ask("PUT", path, many), 400, "a list of at most 1000 steps")


def test_a_deploy_step_is_named_once(app: Standing) -> None:
    uuid = app.plant("available")
    path = f"/v1/nodes/{uuid}/states/provision"
    hold = {"interface": "deploy", "step": "hold", "args": {}, "priority": 90}
    body = {"target": "active", "deploy_steps": [hold, {**hold, "priority": 50}]}
    refused(app.ask("PUT", path, body), 400, "Invalid deploy_steps", "deploy.hold", "once")
    assert app.node(uuid).provision_state == "available"


@pytest.mark.parametrize("lacking", ["interface", "step", "args", "priority"])
def test_a_deploy_step_has_all_its_keys(app: Standing, lacking: str) -> None:
    uuid = app.plant("available")
    step = {**STEP, "args": {}, "priority": "90"}
    body = {"target": "active", "deploy_steps": [{k: v for k, v in step.items() if k != lacking}]}
    path = f"/v1/nodes/{uuid}/states/provision"
    refused(app.ask("PUT", path, body), 400, "Invalid deploy_steps", lacking)
    refused(app.ask("PUT", path, {"target": "active", "deploy_steps": [{**step, "order": 1}]}), 400)
    assert app.ask("PUT", path, {"target": "active", "deploy_steps": [step]}).status == 202


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "must be an object"),
        ({}, "must be an object"),
        ({"target": 1}, "must be an object"),
        ({"target": "on"}, 'The requested action "on" can not be performed'),
        ({"target": "POWER ON"}, "The targets are: power on"),
        ({"target": "power on", "bogus": 1}, "Unexpected arguments: bogus"),
        ({"target": "power on", "timeout": 0}, "timeout"),
        ({"target": "power on", "timeout": -5}, "timeout"),
        ({"target": "power on", "timeout": "5"}, "timeout"),
        ({"target": "power on", "timeout": 1.5}, "timeout"),
        ({"target": "power on", "timeout": True}, "timeout"),
        ({"target": "power on", "timeout": 10**30}, "timeout"),
    ],
)
def test_a_power_wish_that_cannot_be_understood_is_refused(
    app: Standing, body: Any, words: str
) -> None:
    uuid = app.plant("manageable")
    before = footprint(app)
    refused(app.ask("PUT", f"/v1/nodes/{uuid}/states/power", body), 400, words)
    assert footprint(app) == before


@pytest.mark.parametrize("body", [[], "x", 1, {"reason": 1}, {"reason": []}, {"because": "x"}])
def test_maintenance_takes_a_reason_and_nothing_else(app: Standing, body: Any) -> None:
    uuid = app.plant("manageable")
    refused(app.ask("PUT", f"/v1/nodes/{uuid}/maintenance", body), 400)
    assert app.node(uuid).maintenance is False


@pytest.mark.parametrize("body", [b"", b"null", b"{}", b'{"reason": null}'])
def test_maintenance_needs_no_reason(app: Standing, body: bytes) -> None:
    uuid = app.plant("manageable", maintenance_reason="old")
    answer = app.ask("PUT", f"/v1/nodes/{uuid}/maintenance", body)
    assert (answer.status, answer.body) == (202, b"")
    node = app.node(uuid)
    assert (node.maintenance, node.maintenance_reason) == (True, None)
