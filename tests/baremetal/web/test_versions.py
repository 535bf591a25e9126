"""What each microversion shows, takes and refuses; the figures are those of Ironic's own table."""

from typing import Any

import pytest

from siderite.baremetal.domain.wire import NODE_FIELDS
from siderite.baremetal.web.node.schemas import FIELDS
from siderite.baremetal.web.versions import FILTER_SINCE
from siderite.baremetal.web.versions import RANGE
from siderite.baremetal.web.versions import VERB_SINCE
from siderite.baremetal.web.versions import VERSIONS
from tests.baremetal.web.expect import footprint
from tests.baremetal.web.expect import refused
from tests.support import shown
from tests.support.app import LATEST
from tests.support.app import Answer
from tests.support.app import Standing


@pytest.fixture(scope="module")
def app(lite: Standing) -> Standing:
    """The database makes no difference here."""
    return lite


SINCE = shown.since(shown.NODE)
OURS = {"wait_reason": 900, "deadline": 900, "power_policy": 900, "power_state_reason": 900}
OLDEST, NEWEST = "x-openstack-ironic-api-minimum-version", "x-openstack-ironic-api-maximum-version"
USED = "x-openstack-ironic-api-version"

VALUES: dict[str, Any] = {
    **dict.fromkeys([name for name in FIELDS if name.endswith("_interface")]),
    "automated_clean": True, "chassis_uuid": None, "conductor_group": "g", "description": "d",
    "disable_power_off": True, "driver": "fake-hardware", "driver_info": {"a": 1},
    "extra": {"a": 1}, "instance_info": {"a": 1}, "instance_name": "i", "instance_uuid": None,
    "lessee": "l", "maintenance": True, "name": None, "network_data": {}, "owner": "o",
    "parent_node": None, "properties": {"a": 1}, "protected": False, "protected_reason": None,
    "resource_class": "r", "retired": False, "retired_reason": None, "shard": "s",
    "boot_mode": "uefi", "secure_boot": True, "console_enabled": False,
}  # fmt: skip


def fields_at(version: int) -> set[str]:
    """What a node shows at a version."""
    return {name for name, since in {**SINCE, **OURS}.items() if since <= version}


def test_the_table_of_fields_is_that_of_ironic_and_ours() -> None:
    assert dict(NODE_FIELDS) == {**SINCE, **OURS}
    assert len(SINCE) == 69
    assert len(fields_at(1)) == 22


EDGES = [*shown.edges(shown.NODE), 900]


@pytest.mark.parametrize("version", EDGES)
def test_a_node_shows_exactly_the_fields_of_the_version(lite: Standing, version: int) -> None:
    uuid = lite.make_node()
    expected = fields_at(version)
    shown = lite.ask("GET", f"/v1/nodes/{uuid}", version=version)
    assert set(shown.json) == expected
    listed = lite.ask("GET", "/v1/nodes/detail", version=version)
    assert all(set(node) == expected for node in listed.json["nodes"])
    assert uuid in [node["uuid"] for node in listed.json["nodes"]]
    patch = [{"op": "add", "path": "/extra/at", "value": version}]
    patched = lite.ask("PATCH", f"/v1/nodes/{uuid}", patch, version=version)
    assert (patched.status, set(patched.json)) == (200, expected)
    made = lite.ask("POST", "/v1/nodes", {"driver": "fake-hardware"}, version=version)
    assert (made.status, set(made.json)) == (201, expected)
    assert made.headers["location"].endswith(f"/baremetal/v1/nodes/{made.json['uuid']}")
    if version >= 43:
        listed = lite.ask("GET", "/v1/nodes?detail=true", version=version)
        assert all(set(node) == expected for node in listed.json["nodes"])


@pytest.mark.parametrize("version", [1, 4, 5, 7, 115, 900])
def test_a_plain_list_shows_the_short_form(lite: Standing, version: int) -> None:
    lite.make_node()
    brief = {"instance_uuid", "maintenance", "power_state", "provision_state", "uuid", "links"}
    if version >= 5:
        brief |= {"name"}
    listed = lite.ask("GET", "/v1/nodes", version=version).json["nodes"]
    assert all(set(node) == brief for node in listed)


@pytest.mark.parametrize("version", [1, 11, 12, 74, 75, 115])
def test_states_are_shown_by_version(lite: Standing, version: int) -> None:
    uuid = lite.make_node()
    expected = {
        "console_enabled", "last_error", "power_state", "provision_state", "provision_updated_at",
        "target_power_state", "target_provision_state",
    }  # fmt: skip
    if version >= 12:
        expected |= {"raid_config", "target_raid_config"}
    if version >= 75:
        expected |= {"boot_mode", "secure_boot"}
    assert set(lite.ask("GET", f"/v1/nodes/{uuid}/states", version=version).json) == expected


@pytest.mark.parametrize("field", [name for name in VALUES if SINCE[name] > 1])
def test_a_field_newer_than_the_version_is_not_acceptable(lite: Standing, field: str) -> None:
    uuid = lite.make_node()
    body = {"driver": "fake-hardware", field: VALUES[field]}
    patch = [{"op": "replace", "path": f"/{field}", "value": VALUES[field]}]
    remove = [{"op": "remove", "path": f"/{field}"}]
    before = footprint(lite)
    below, since = SINCE[field] - 1, SINCE[field]
    refused(lite.ask("POST", "/v1/nodes", body, version=below), 406, field, f"1.{since}")
    if field in FIELDS:
        for change in (patch, remove):
            answer = lite.ask("PATCH", f"/v1/nodes/{uuid}", change, version=below)
            refused(answer, 406, field, f"1.{since}")
    assert footprint(lite) == before
    assert lite.ask("POST", "/v1/nodes", body, version=since).status == 201
    if field in FIELDS:
        assert lite.ask("PATCH", f"/v1/nodes/{uuid}", patch, version=since).status == 200


@pytest.mark.parametrize("field", SINCE)
def test_fields_may_name_what_the_version_has(lite: Standing, field: str) -> None:
    uuid = lite.make_node()
    since = max(SINCE[field], 8)
    for path in (f"/v1/nodes/{uuid}", "/v1/nodes"):
        shown = lite.ask("GET", f"{path}?fields={field}", version=since)
        assert shown.status == 200, shown
        for node in shown.json.get("nodes", [shown.json]):
            assert set(node) == {field, "links"}
        if since > 8:
            older = lite.ask("GET", f"{path}?fields=uuid,{field}", version=since - 1)
            refused(older, 406, field, f"1.{since}")
        if since - 1 >= 8 and field not in ("links", "ports", "states", "portgroups", "volume"):
            key = lite.ask("GET", f"/v1/nodes?sort_key={field}", version=since - 1)
            assert key.status in (400, 406), key


def test_fields_came_with_1_8(lite: Standing) -> None:
    uuid = lite.make_node()
    refused(lite.ask("GET", f"/v1/nodes/{uuid}?fields=uuid", version=7), 406, "1.8")
    refused(lite.ask("GET", "/v1/nodes?fields=uuid", version=7), 406, "1.8")


def test_reset_interfaces_came_with_1_45(lite: Standing) -> None:
    patch = [{"op": "replace", "path": "/driver", "value": "fake-hardware"}]
    path = f"/v1/nodes/{lite.make_node()}?reset_interfaces=true"
    refused(lite.ask("PATCH", path, patch, version=44), 406, "1.45")


FILTERS = {
    "associated": 1, "maintenance": 1, "instance_uuid": 1, "chassis_uuid": 1, "fields": 8,
    "provision_state": 9, "driver": 16, "resource_class": 21, "fault": 42, "detail": 43,
    "conductor_group": 46, "conductor": 49, "owner": 50, "retired": 61, "lessee": 65, "shard": 82,
    "sharded": 82, "parent_node": 83, "include_children": 83, "instance_name": 104,
}  # fmt: skip


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_newer_than_the_version_is_not_acceptable(lite: Standing, name: str) -> None:
    assert FILTER_SINCE[name] == FILTERS[name]
    value = {
        "provision_state": "enroll",
        "fields": "uuid",
        "fault": "power failure",
        "instance_uuid": "1be26c0b-03f2-4d2e-ae87-c02d7f33c123",
        "chassis_uuid": "1be26c0b-03f2-4d2e-ae87-c02d7f33c123",
        "parent_node": "1be26c0b-03f2-4d2e-ae87-c02d7f33c123",
    }.get(name, "true")
    path = f"/v1/nodes?{name}={value}"
    assert lite.ask("GET", path, version=FILTERS[name]).status == 200
    if FILTERS[name] > 1:
        refused(lite.ask("GET", path, version=FILTERS[name] - 1), 406, name, f"1.{FILTERS[name]}")


VERBS = {
    "active": 1, "rebuild": 1, "deleted": 1, "manage": 4, "provide": 4, "inspect": 6, "abort": 13,
    "clean": 15, "adopt": 17, "rescue": 38, "unrescue": 38, "deploy": 73, "undeploy": 73,
    "unhold": 85, "service": 87,
}  # fmt: skip


def wish(app: Standing, uuid: str, version: int, **body: Any) -> Answer:
    """The answer to a wish for a state."""
    return app.ask("PUT", f"/v1/nodes/{uuid}/states/provision", body, version=version)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_newer_than_the_version_is_not_acceptable(lite: Standing, verb: str) -> None:
    assert VERB_SINCE == VERBS
    uuid = lite.make_node()
    if VERBS[verb] > 1:
        refused(wish(lite, uuid, VERBS[verb] - 1, target=verb), 406, verb, f"1.{VERBS[verb]}")
    assert wish(lite, uuid, VERBS[verb], target=verb).status != 406


@pytest.mark.parametrize(("state", "since"), [("inspect wait", 41), ("wait call-back", 110)])
def test_abort_reached_some_states_later(lite: Standing, state: str, since: int) -> None:
    uuid = lite.plant(state)
    refused(wish(lite, uuid, since - 1, target="abort"), 406, f"1.{since}")
    assert wish(lite, uuid, since, target="abort").status == 202


STEPS = [{"interface": "deploy", "step": "erase_devices"}]
DEPLOY_STEPS = [{"interface": "deploy", "step": "write_image", "args": {}, "priority": 80}]


@pytest.mark.parametrize(
    ("state", "since", "body"),
    [
        ("available", 56, {"target": "active", "configdrive": {"meta_data": {}}}),
        ("available", 59, {"target": "active", "configdrive": {"vendor_data": {}}}),
        ("available", 69, {"target": "active", "deploy_steps": DEPLOY_STEPS}),
        ("manageable", 70, {"target": "clean", "clean_steps": STEPS, "disable_ramdisk": True}),
        ("active", 108, {"target": "service", "service_steps": STEPS, "disable_ramdisk": True}),
    ],
)
def test_what_goes_with_a_verb_has_a_version_too(
    lite: Standing, state: str, since: int, body: dict[str, Any]
) -> None:
    uuid = lite.plant(state)
    refused(wish(lite, uuid, since - 1, **body), 406, f"1.{since}")
    assert wish(lite, uuid, since, **body).status == 202


def test_rebuild_takes_a_config_drive_from_1_35(lite: Standing) -> None:
    uuid = lite.plant("active")
    refused(wish(lite, uuid, 34, target="rebuild", configdrive="QUJD"), 400, '"configdrive"')
    assert wish(lite, uuid, 35, target="rebuild", configdrive="QUJD").status == 202


def test_a_runbook_has_a_version(lite: Standing) -> None:
    uuid = lite.plant("manageable")
    refused(wish(lite, uuid, 91, target="clean", runbook="r"), 406, "1.92")


@pytest.mark.parametrize(
    "body",
    [
        {"target": "soft power off"},
        {"target": "soft rebooting"},
        {"target": "power on", "timeout": 5},
    ],
)
def test_soft_power_and_timeouts_came_with_1_27(lite: Standing, body: dict[str, Any]) -> None:
    path = f"/v1/nodes/{lite.plant('active')}/states/power"
    refused(lite.ask("PUT", path, body, version=26), 406, "1.27")
    assert lite.ask("PUT", path, body, version=27).status == 202


def everywhere(app: Standing, uuid: str, version: int) -> set[Any]:
    """The node's provision state in every place that shows it."""
    shown = [
        app.ask("GET", f"/v1/nodes/{uuid}", version=version).json,
        app.ask("GET", f"/v1/nodes/{uuid}/states", version=version).json,
        *app.ask("GET", "/v1/nodes", version=version).json["nodes"],
        *app.ask("GET", "/v1/nodes/detail", version=version).json["nodes"],
    ]
    if version >= 8:
        path = f"/v1/nodes/{uuid}?fields=provision_state,uuid"
        shown.append(app.ask("GET", path, version=version).json)
    return {node["provision_state"] for node in shown if node.get("uuid", uuid) == uuid}


def test_available_is_null_at_1_1(app: Standing) -> None:
    uuid = app.plant("available", extra={"text": '"provision_state":"available"'})
    assert everywhere(app, uuid, 1) == {None}
    assert everywhere(app, uuid, 2) == {"available"}
    patch = [{"op": "add", "path": "/extra/a", "value": 1}]
    patched = app.ask("PATCH", f"/v1/nodes/{uuid}", patch, version=1).json
    assert patched["provision_state"] is None
    assert patched["extra"]["text"] == '"provision_state":"available"'


def test_inspect_wait_is_inspecting_before_1_39(app: Standing) -> None:
    uuid = app.plant("inspect wait")
    for version in (1, 2, 8, 38):
        assert everywhere(app, uuid, version) == {"inspecting"}
    assert everywhere(app, uuid, 39) == {"inspect wait"}


@pytest.mark.parametrize(
    ("version", "state"), [(1, None), (2, "available"), (10, "available"), (11, "enroll")]
)
def test_new_nodes_start_as_the_version_knows_it(app: Standing, version: int, state: Any) -> None:
    made = app.ask("POST", "/v1/nodes", {"driver": "fake-hardware"}, version=version)
    assert made.json["provision_state"] == state
    expected = "available" if version < 11 else "enroll"
    assert app.node(made.json["uuid"]).provision_state == expected


def test_every_version_is_told_of_once() -> None:
    numbers = [line.split()[0] for line in VERSIONS]
    assert numbers == [f"1.{n}" for n in (*range(1, 116), 900)]
    assert (RANGE.low, RANGE.upstream, RANGE.high) == (1, 115, 900)


@pytest.mark.parametrize(
    "path", ["/v1/nodes", "/v1", "/baremetal/", "/v1/nodes/bogus", "/v1/bogus"]
)
@pytest.mark.parametrize("version", [1, 50, 115, 900])
def test_every_answer_tells_the_versions(lite: Standing, path: str, version: int) -> None:
    headers = lite.ask("GET", path, version=version).headers
    assert (headers[OLDEST], headers[NEWEST]) == ("1.1", "1.900")
    assert headers["openstack-request-id"] == headers["x-openstack-request-id"]
    assert headers["x-openstack-request-id"].startswith("req-")
    if path != "/v1/bogus":  # a path that is not there is refused before its version is read
        assert headers[USED] == f"1.{version}"


@pytest.mark.parametrize(
    "asked",
    ["1.0", "0.1", "2.1", "1.116", "1.117", "1.500", "1.899", "1.901", "1.999999", "3.0", "01.0"],
)
def test_a_version_that_is_not_spoken_is_not_acceptable(lite: Standing, asked: str) -> None:
    answer = lite.ask("GET", "/v1/nodes", version=asked)
    refused(answer, 406, asked, "1.1", "1.115", "1.900")
    assert (answer.headers[OLDEST], answer.headers[NEWEST]) == ("1.1", "1.900")


@pytest.mark.parametrize(
    "asked",
    ["x", "1", "1.", ".1", "1.x", "1.1.1", "-1.5", "1.-5", "1,5", "1.5,1.6", "+1.5", "1.5e1",
     "1_0.5", "1.1_0", "\u00b2.5", "1.\u00b2", "1.\u00b9", "9" * 5000, "9" * 5000 + ".1",
     "1." + "9" * 5000, "1.1234567", "latest-ish", "None"],
)  # fmt: skip
def test_a_malformed_version_is_not_acceptable(lite: Standing, asked: str) -> None:
    refused(lite.ask("GET", "/v1/nodes", version=asked), 406, "is not an API version")


@pytest.mark.parametrize("asked", ["latest", "LATEST", " latest ", "1.900"])
def test_latest_is_the_newest(lite: Standing, asked: str) -> None:
    answer = lite.ask("GET", "/v1/nodes", version=asked)
    assert (answer.status, answer.headers[USED]) == (200, "1.900")


@pytest.mark.parametrize("asked", [None, ""])
def test_nothing_asked_is_the_oldest(lite: Standing, asked: str | None) -> None:
    answer = lite.ask("GET", "/v1/nodes", version=asked)
    assert (answer.status, answer.headers[USED]) == (200, "1.1")


STANDARD, ELDER = "OpenStack-API-Version", "X-OpenStack-Ironic-API-Version"


@pytest.mark.parametrize(
    ("headers", "used"),
    [
        ([(STANDARD, "baremetal 1.38")], "1.38"),
        ([(STANDARD, "Baremetal   1.38")], "1.38"),
        ([(STANDARD, "baremetal latest")], "1.900"),
        ([(STANDARD, "compute 2.90")], "1.1"),
        ([(STANDARD, "compute 2.90, baremetal 1.38")], "1.38"),
        ([(STANDARD, "baremetal 1.38,compute 2.90")], "1.38"),
        ([(STANDARD, "compute 2.90"), (STANDARD, "baremetal 1.38")], "1.38"),
        ([(STANDARD, "compute 2.90"), (ELDER, "1.38")], "1.38"),
        ([(STANDARD, "baremetal 1.39"), (ELDER, "1.38")], "1.39"),
        ([(ELDER, "1.38"), (STANDARD, "baremetal 1.39")], "1.39"),
        ([(STANDARD, "baremetal"), (ELDER, "1.38")], "1.38"),
        ([(STANDARD, "baremetal 1.38, baremetal 1.39")], "1.39"),
    ],
)
def test_the_standard_version_header_counts_before_the_elder_one(
    lite: Standing, headers: list[tuple[str, str]], used: str
) -> None:
    answer = lite.ask("GET", "/v1/nodes", version=None, headers=headers)
    assert (answer.status, answer.headers[USED]) == (200, used)


@pytest.mark.parametrize(
    "headers", [[(ELDER, "1.38"), (ELDER, "1.39")], [(STANDARD, "baremetal x")]]
)
def test_a_version_that_is_not_clear_is_not_acceptable(
    lite: Standing, headers: list[tuple[str, str]]
) -> None:
    refused(lite.ask("GET", "/v1/nodes", version=None, headers=headers), 406)


def test_the_version_documents_need_no_token(lite: Standing) -> None:
    for path in ("/baremetal", "/baremetal/", "/v1", "/v1/"):
        document = lite.ask("GET", path, version=None, token="").json
        version = document.get("default_version") or document["version"]
        assert (version["min_version"], version["version"]) == ("1.1", "1.900")
        assert (version["id"], version["status"]) == ("v1", "CURRENT")
        assert version["links"][0]["href"] == "http://cloud.test/baremetal/v1/"


def test_every_default_is_as_ironic_writes_it(lite: Standing) -> None:
    shown = lite.ask("GET", f"/v1/nodes/{lite.make_node()}", version=LATEST).json
    objects = (
        "driver_info extra instance_info properties driver_internal_info clean_step deploy_step"
        " service_step raid_config target_raid_config network_data"
    )
    for field in objects.split():
        assert shown[field] == {}, field
    assert (shown["conductor_group"], shown["automated_clean"]) == ("", None)
    assert (shown["power_state"], shown["traits"], shown["updated_at"]) == (None, [], None)
    assert shown["created_at"].endswith("+00:00")
    assert len(shown["created_at"]) == len("2026-01-01T00:00:00.000000+00:00")
