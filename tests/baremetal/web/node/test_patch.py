"""Changing a node by JSON patch: what may be changed, how, and in which state."""

from typing import Any

import pytest

from siderite.baremetal.domain.node import INTERFACES
from siderite.baremetal.domain.node_machine import NODE
from tests.baremetal.web.expect import footprint
from tests.baremetal.web.expect import refused
from tests.baremetal.web.told import told
from tests.baremetal.web.told import types
from tests.support.app import Answer
from tests.support.app import Standing

PATCHABLE = {
    *(f"{kind}_interface" for kind in INTERFACES), "automated_clean", "chassis_uuid",
    "conductor_group", "description", "disable_power_off", "driver", "driver_info", "extra",
    "instance_info", "instance_name", "instance_uuid", "lessee", "maintenance", "name",
    "network_data", "owner", "parent_node", "properties", "protected", "protected_reason",
    "resource_class", "retired", "retired_reason", "shard",
}  # fmt: skip
REFITTABLE = ["enroll", "inspecting", "inspect wait", "manageable", "available"]
WHILE_MOVING = [
    "deploy failed", "inspecting", "inspect failed", "inspect wait", "clean failed", "error",
    "verifying", "adopt failed", "rescue failed", "unrescue failed", "service hold",
    "service failed",
]  # fmt: skip
SOMEONE = "1be26c0b-03f2-4d2e-ae87-c02d7f33c123"


def patch(app: Standing, uuid: str, *changes: tuple[Any, ...], **how: Any) -> Answer:
    """The answer to a patch of (op, path, value)."""
    keys = ("op", "path", "value")
    document = [dict(zip(keys, change, strict=False)) for change in changes]
    return app.ask("PATCH", f"/v1/nodes/{uuid}", document, **how)


@pytest.mark.parametrize(
    "document",
    [
        None, {}, "x", 1, [], [None], [1], ["x"], [[]], [{}],
        [{"op": "add"}], [{"path": "/extra/a"}], [{"op": "add", "path": "/extra/a"}],
        [{"op": "add", "path": 1, "value": 1}], [{"op": "add", "path": ["extra"], "value": 1}],
        [{"op": 1, "path": "/extra/a", "value": 1}], [{"op": [], "path": "/extra/a", "value": 1}],
        [{"op": "test", "path": "/extra", "value": {}}],
        [{"op": "move", "path": "/extra/a", "from": "/extra/b"}],
        [{"op": "copy", "path": "/extra/a", "from": "/extra/b"}],
        [{"op": "ADD", "path": "/extra/a", "value": 1}],
        [{"op": "add", "path": "/extra/a", "value": 1, "bogus": 1}],
        [{"op": "add", "path": "", "value": {}}], [{"op": "add", "path": "/", "value": {}}],
        [{"op": "add", "path": "extra/a", "value": 1}],
        [{"op": "add", "path": "/extra/", "value": 1}],
        [{"op": "add", "path": "//extra", "value": 1}],
        [{"op": "add", "path": "/extra//a", "value": 1}],
        [{"op": "add", "path": "/extra/~", "value": 1}],
        [{"op": "add", "path": "/extra/a~2", "value": 1}],
        [{"op": "add", "path": "/extra" + "/a" * 25, "value": 1}],
        [{"op": "replace", "path": "/extra/absent", "value": 1}],
        [{"op": "remove", "path": "/extra/absent"}],
        [{"op": "add", "path": "/extra/absent/below", "value": 1}],
        [{"op": "add", "path": "/extra/text/below", "value": 1}],
        [{"op": "add", "path": "/name/below", "value": 1}],
        [{"op": "remove", "path": "/name/below"}],
        [{"op": "add", "path": "/extra/list/9", "value": 1}],
        [{"op": "add", "path": "/extra/list/01", "value": 1}],
        [{"op": "add", "path": "/extra/list/x", "value": 1}],
        [{"op": "add", "path": "/extra/list/\u00b2", "value": 1}],
        [{"op": "add", "path": "/extra/list/\u0661", "value": 1}],
        [{"op": "add", "path": "/extra/list/-1", "value": 1}],
        [{"op": "add", "path": "/extra/list/" + "9" * 5000, "value": 1}],
        [{"op": "replace", "path": "/extra/list/-", "value": 1}],
        [{"op": "replace", "path": "/extra/list/2", "value": 1}],
        [{"op": "remove", "path": "/extra/list/2"}],
        [{"op": "remove", "path": "/extra/list/-"}],
        [{"op": "remove", "path": "/driver"}],
        [{"op": "replace", "path": "/driver", "value": "bogus"}],
        [{"op": "replace", "path": "/driver", "value": None}],
        [{"op": "replace", "path": "/power_interface", "value": "bogus"}],
        [{"op": "replace", "path": "/name", "value": "a b"}],
        [{"op": "replace", "path": "/name", "value": "states"}],
        [{"op": "add", "path": "/extra/ok", "value": 1}, {"op": "test", "path": "/extra"}],
        [{"op": "add", "path": "/extra/ok", "value": 1}, {"op": "remove", "path": "/extra/absent"}],
        [{"op": "add", "path": "/extra/ok", "value": 1}, {"op": "remove", "path": "/uuid"}],
    ],
    ids=lambda document: str(document)[:60],
)  # fmt: skip
def test_a_patch_that_cannot_be_done_is_refused_whole(app: Standing, document: Any) -> None:
    uuid = app.plant("manageable", extra={"list": [1, 2], "text": "x"})
    before = footprint(app)
    refused(app.ask("PATCH", f"/v1/nodes/{uuid}", document), 400)
    assert footprint(app) == before


@pytest.mark.parametrize(
    "field",
    ["uuid", "provision_state", "target_provision_state", "power_state", "traits", "links", "fault",
     "last_error", "created_at", "reservation", "driver_internal_info", "clean_step", "boot_mode",
     "console_enabled", "maintenance_reason", "health", "version", "doc", "bogus", "Extra", "~1"],
)  # fmt: skip
def test_only_some_fields_can_be_patched(app: Standing, field: str) -> None:
    uuid = app.plant("manageable")
    for path in (f"/{field}", f"/{field}/below"):
        said = refused(patch(app, uuid, ("add", path, "x")), 400, f"Cannot patch {path}. Only the")
        assert all(name in said for name in PATCHABLE)


def test_one_answer_to_a_patch_is_the_whole_node(app: Standing) -> None:
    uuid = app.plant("manageable")
    answer = patch(app, uuid, ("add", "/extra/a", 1), ("replace", "/description", "new"))
    assert answer.status == 200
    assert answer.json == app.ask("GET", f"/v1/nodes/{uuid}").json
    assert (answer.json["extra"], answer.json["description"]) == ({"a": 1}, "new")
    assert answer.json["updated_at"] is not None
    assert app.node(uuid).version == 2


def test_a_patch_that_changes_nothing_changes_nothing(app: Standing) -> None:
    uuid = app.plant("manageable", extra={"a": 1})
    before = footprint(app)
    assert patch(app, uuid, ("replace", "/extra/a", 1), ("remove", "/name")).status == 200
    assert footprint(app) == before


@pytest.mark.parametrize(
    ("changes", "after"),
    [
        ([("add", "/extra/a", 1)], {"list": [1, 2], "o": {"k": 1}, "a": 1}),
        ([("add", "/extra/list/0", 0)], {"list": [0, 1, 2], "o": {"k": 1}}),
        ([("add", "/extra/list/2", 3)], {"list": [1, 2, 3], "o": {"k": 1}}),
        ([("add", "/extra/list/-", 3)], {"list": [1, 2, 3], "o": {"k": 1}}),
        ([("replace", "/extra/list/1", 3)], {"list": [1, 3], "o": {"k": 1}}),
        ([("remove", "/extra/list/0")], {"list": [2], "o": {"k": 1}}),
        ([("remove", "/extra/o/k")], {"list": [1, 2], "o": {}}),
        ([("add", "/extra/a~1b~0c", 1)], {"list": [1, 2], "o": {"k": 1}, "a/b~c": 1}),
        ([("add", "/extra/~01", 1)], {"list": [1, 2], "o": {"k": 1}, "~1": 1}),
        ([("add", "/extra/o/k", [{}]), ("add", "/extra/o/k/0/x", 1)],
         {"list": [1, 2], "o": {"k": [{"x": 1}]}}),
        ([("replace", "/extra", {"b": 1}), ("add", "/extra/c", 2)], {"b": 1, "c": 2}),
        ([("remove", "/extra")], {}),
        ([("replace", "/extra", None)], {}),
        ([("remove", "/extra"), ("add", "/extra/a", None)], {"a": None}),
    ],
)  # fmt: skip
def test_a_patch_does_its_operations_in_order(
    app: Standing, changes: list[tuple[Any, ...]], after: Any
) -> None:
    uuid = app.plant("manageable", extra={"list": [1, 2], "o": {"k": 1}})
    answer = patch(app, uuid, *changes)
    assert answer.status == 200, answer
    assert answer.json["extra"] == after


def test_a_patch_has_a_thousand_operations_at_most(app: Standing) -> None:
    uuid = app.plant("manageable")
    ops = [("add", f"/extra/{n}", n) for n in range(1001)]
    refused(patch(app, uuid, *ops), 400, "1000 operations at most, not 1001")
    assert len(patch(app, uuid, *ops[:1000]).json["extra"]) == 1000


def test_patches_cannot_build_what_no_body_could(app: Standing) -> None:
    uuid = app.plant("manageable")
    ladder = [("add", "/extra" + "/a" * depth, {}) for depth in range(1, 1000)]
    refused(patch(app, uuid, *ladder[:900]), 400, "25 levels")
    assert patch(app, uuid, *ladder[:24]).status == 200
    assert app.ask("GET", "/v1/nodes?sort_key=boot_mode").status == 200


@pytest.mark.parametrize("field", sorted(PATCHABLE - {"driver"}))
def test_removing_a_field_gives_it_its_default(app: Standing, field: str) -> None:
    fresh = app.show(app.make_node())
    uuid = app.plant("manageable", **{field: _other(app, field)})
    answer = patch(app, uuid, ("remove", f"/{field}"))
    assert answer.status == 200, answer
    assert answer.json[field] == fresh[field]


def _other(app: Standing, field: str) -> Any:
    if field.endswith("_interface"):
        card = app.app.program.baremetal.cards["fake-hardware"]
        return card.interfaces[field.removesuffix("_interface")][-1]
    if field in ("protected", "retired", "maintenance", "disable_power_off", "automated_clean"):
        return True
    if field in ("driver_info", "extra", "instance_info", "properties", "network_data"):
        return {"a": 1}
    if field == "chassis_uuid":
        return app.ask("POST", "/v1/chassis", {}).json["uuid"]
    if field == "parent_node":
        return SOMEONE
    return f"x-{field}"


@pytest.mark.parametrize("state", NODE.states)
def test_a_node_on_its_way_is_left_alone(app: Standing, state: str) -> None:
    uuid = app.plant(state)
    moving = NODE.states[state].target is not None
    for version, allowed in (("1.38", WHILE_MOVING), ("1.115", [*WHILE_MOVING])):
        refuses = moving and (
            state not in allowed or (state == "inspecting" and version == "1.115")
        )
        before = footprint(app)
        answer = patch(app, uuid, ("add", "/properties/a", version), version=version)
        if refuses:
            refused(answer, 409, "while a state transition is in progress", state)
            assert answer.headers["retry-after"] == "5"
            assert footprint(app) == before
        else:
            assert answer.status == 200, answer
        assert patch(app, uuid, ("add", "/extra/a", version), version=version).status == 200


@pytest.mark.parametrize("state", NODE.states)
def test_how_one_gets_into_a_bmc_can_be_mended_while_work_is_on_its_way(
    app: Standing, state: str
) -> None:
    old = {"redfish_address": "https://bmc", "redfish_password": "old", "redfish_verify_ca": True}
    uuid = app.plant(state, driver_info=old)
    new = old | {"redfish_password": "new", "redfish_username": "me"}
    del new["redfish_verify_ca"]
    password = ("replace", "/driver_info/redfish_password", "new")
    assert patch(app, uuid, password, ("add", "/extra/a", 1)).status == 200
    assert patch(app, uuid, ("replace", "/driver_info", new)).status == 200
    assert app.node(uuid).driver_info == new
    if NODE.states[state].target is None or state in WHILE_MOVING:
        return
    for more in (("replace", "/driver_info/redfish_address", "x"), ("add", "/properties/a", 1)):
        answer = patch(app, uuid, ("replace", "/driver_info/redfish_password", "newest"), more)
        refused(answer, 409, "while a state transition is in progress")
    assert app.node(uuid).driver_info == new


@pytest.mark.parametrize("state", NODE.states)
def test_a_lost_instance_can_be_taken_off_in_maintenance(app: Standing, state: str) -> None:
    uuid = app.plant(state, maintenance=True)
    assert patch(app, uuid, ("replace", "/instance_uuid", uuid)).status in (200, 409)
    stuck = app.plant(state, maintenance=True, instance_uuid=app.plant("enroll"))
    assert patch(app, stuck, ("remove", "/instance_uuid")).status == 200
    assert app.node(stuck).instance_uuid is None


@pytest.mark.parametrize(
    "state", ["enroll", "manageable", "available", "active", "rescue", "error"]
)
def test_interfaces_change_only_where_nothing_runs(app: Standing, state: str) -> None:
    other = app.app.program.baremetal.cards["fake-hardware"].interfaces["inspect"][-1]
    uuid = app.plant(state, resource_class="old")
    change = ("replace", "/inspect_interface", other)
    if state in REFITTABLE:
        assert patch(app, uuid, change).status == 200
    else:
        refused(patch(app, uuid, change), 409, "inspect_interface", state)
        cared_for = app.plant(state, maintenance=True, resource_class="old")
        assert patch(app, cared_for, change).status == 200
        refused(patch(app, cared_for, ("replace", "/resource_class", "new")), 409, "resource_class")
    change = ("replace", "/resource_class", "new")
    assert patch(app, uuid, change).status == (200 if state in REFITTABLE else 409)


def test_an_instance_is_not_overwritten(app: Standing) -> None:
    uuid = app.plant("active", instance_uuid=app.plant("enroll"))
    refused(patch(app, uuid, ("replace", "/instance_uuid", SOMEONE)), 409, "remove that first")
    assert patch(app, uuid, ("remove", "/instance_uuid")).status == 200
    free = ("add", "/instance_uuid", SOMEONE.upper())
    assert patch(app, uuid, free).json["instance_uuid"] == SOMEONE
    assert patch(app, uuid, ("remove", "/instance_uuid")).status == 200


@pytest.mark.parametrize(
    "state", ["enroll", "manageable", "available", "active", "rescue", "error"]
)
def test_only_what_carries_a_workload_is_protected(app: Standing, state: str) -> None:
    uuid = app.plant(state)
    change = (("replace", "/protected", True), ("replace", "/protected_reason", "why"))
    if state in ("active", "rescue"):
        assert patch(app, uuid, *change).json["protected_reason"] == "why"
        off = patch(app, uuid, ("replace", "/protected", False)).json
        assert (off["protected"], off["protected_reason"]) == (False, None)
    else:
        refused(patch(app, uuid, *change), 409, "protected")


def test_an_available_node_is_not_retired(app: Standing) -> None:
    refused(patch(app, app.plant("available"), ("replace", "/retired", True)), 409, "manage")
    uuid = app.plant("manageable")
    change = (("replace", "/retired", True), ("replace", "/retired_reason", "old"))
    assert patch(app, uuid, *change).json["retired_reason"] == "old"
    assert patch(app, uuid, ("remove", "/retired")).json["retired_reason"] is None


@pytest.mark.parametrize("flag", ["protected", "retired"])
def test_a_reason_goes_with_its_flag(app: Standing, flag: str) -> None:
    uuid = app.plant("active")
    refused(patch(app, uuid, ("add", f"/{flag}_reason", "why")), 400, flag)
    both = (("add", f"/{flag}", False), ("add", f"/{flag}_reason", "why"))
    refused(patch(app, uuid, *both), 400, flag)
    body = {"driver": "fake-hardware", f"{flag}_reason": "why"}
    refused(app.ask("POST", "/v1/nodes", body), 400, flag)


def test_a_driver_is_not_changed_under_an_open_console(app: Standing) -> None:
    uuid = app.plant("manageable", console_enabled=True, driver="gone")
    refused(patch(app, uuid, ("replace", "/driver", "fake-hardware")), 409, "console")


def test_nor_is_the_interface_that_it_is_stopped_by(app: Standing) -> None:
    uuid = app.plant("manageable", console_enabled=True, console_interface="fake")
    none = ("replace", "/console_interface", "no-console")
    refused(patch(app, uuid, none), 409, "stop it before the console_interface")
    assert app.node(uuid).version == 1
    assert patch(app, app.plant("manageable", console_interface="fake"), none).status == 200


def test_a_change_that_others_leave_no_room_for_is_announced_as_failed(
    app: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid = app.plant("manageable")
    monkeypatch.setattr("siderite.core.transition.TRIES", 0)
    refused(patch(app, uuid, ("add", "/extra/a", 1)), 409, "at once")
    refused(app.ask("DELETE", f"/v1/nodes/{uuid}"), 409, "at once")
    assert types(app, uuid) == [
        "node.update.start", "node.update.error", "node.delete.start", "node.delete.error",
    ]  # fmt: skip


def test_who_is_right_about_the_power_is_announced_where_it_is_said(app: Standing) -> None:
    made = app.ask(
        "POST", "/v1/nodes", {"driver": "fake-hardware", "power_policy": "record"}, version=900
    )
    uuid = made.json["uuid"]
    for value in ("observe", "observe", "nobody"):
        patch = [{"op": "replace", "path": "/power_policy", "value": value}]
        app.ask("PATCH", f"/v1/nodes/{uuid}", patch, version=900)
    app.ask("PATCH", f"/v1/nodes/{uuid}", [{"op": "add", "path": "/description", "value": "x"}])
    assert types(app, uuid) == [
        "node.create.start", "node.create.end", "node.power_policy_set.success",
        "node.update.start", "node.update.end", "node.power_policy_set.success",
        "node.update.start", "node.update.end",
    ]  # fmt: skip
    said = [fact for fact in told(app, uuid) if fact.kind == "NodePowerPolicyPayload 1.0"]
    moves = [(fact.data["from_policy"], fact.data["to_policy"]) for fact in said]
    assert moves == [(None, "record"), ("record", "observe")]


def test_interfaces_are_reset_with_the_driver_only(app: Standing) -> None:
    other = app.app.program.baremetal.cards["fake-hardware"].interfaces["inspect"][-1]
    uuid = app.plant("manageable", driver="gone", inspect_interface=other)
    path = f"/v1/nodes/{uuid}?reset_interfaces="
    extra = [{"op": "add", "path": "/extra/a", "value": 1}]
    refused(app.ask("PATCH", path + "true", extra), 400, "reset_interfaces", "/driver")
    driver = [{"op": "replace", "path": "/driver", "value": "fake-hardware"}]
    refused(app.ask("PATCH", path + "maybe", driver), 400, "reset_interfaces")
    refused(
        app.ask("PATCH", f"/v1/nodes/{uuid}?bogus=1", driver), 400, "Unexpected arguments: bogus"
    )
    answer = app.ask("PATCH", path + "true", driver)
    usual = app.show(app.make_node())["inspect_interface"]
    assert answer.json["inspect_interface"] == usual
    patch(app, uuid, ("replace", "/inspect_interface", other))
    answer = app.ask("PATCH", path + "true", driver)
    assert answer.json["inspect_interface"] == usual, "also where the driver stays the same"
    busy = app.plant("active", inspect_interface=other)
    answer = app.ask("PATCH", f"/v1/nodes/{busy}?reset_interfaces=true", driver)
    refused(answer, 409, "in state active")


def test_sizes_that_nobody_can_calculate_with_are_refused(app: Standing) -> None:
    uuid = app.make_node(properties={"memory_mb": "1024", "local_gb": 10, "cpus": "many"})
    for key, size in (
        ("memory_mb", "-1"),
        ("local_gb", "big"),
        ("local_gb", []),
        ("memory_mb", -1),
    ):
        refused(patch(app, uuid, ("add", f"/properties/{key}", size)), 400, f"properties/{key}")
        body = {"driver": "fake-hardware", "properties": {key: size}}
        refused(app.ask("POST", "/v1/nodes", body), 400, f"properties/{key}")


def test_maintenance_ends_with_its_reason_and_fault(app: Standing) -> None:
    uuid = app.plant("active", maintenance=True, maintenance_reason="x", fault="power failure")
    node = patch(app, uuid, ("replace", "/maintenance", "false")).json
    assert (node["maintenance"], node["maintenance_reason"], node["fault"]) == (False, None, None)


def test_the_display_name_names_the_instance_once(app: Standing) -> None:
    uuid = app.plant("active")
    first = patch(app, uuid, ("add", "/instance_info/display_name", "web-1"))
    assert first.json["instance_name"] == "web-1"
    second = patch(app, uuid, ("replace", "/instance_info/display_name", "web-2"))
    assert second.json["instance_name"] == "web-1"


def test_a_display_name_that_cannot_name_an_instance_does_not(lite: Standing) -> None:
    uuid = lite.plant("active")
    path = "/instance_info/display_name"
    assert patch(lite, uuid, ("add", path, "")).json["instance_name"] is None
    named = patch(lite, uuid, ("replace", path, "w" * 300))
    assert named.json["instance_name"] == "w" * 255


def test_secrets_are_written_and_never_shown(app: Standing) -> None:
    uuid = app.plant("manageable")
    changes = [
        ("add", "/driver_info/ipmi_password", "s3cret"),
        ("add", "/driver_info/nested", {"token": "s3cret"}),
        ("add", "/instance_info/configdrive", "s3cret"),
        ("add", "/instance_info/image_url", "s3cret"),
    ]
    assert b"s3cret" not in patch(app, uuid, *changes).body
    for path in (f"/v1/nodes/{uuid}", "/v1/nodes/detail", f"/v1/nodes/{uuid}?fields=driver_info"):
        assert b"s3cret" not in app.ask("GET", path).body
    assert app.node(uuid).driver_info["ipmi_password"] == "s3cret"


def test_a_network_that_cannot_be_read_is_refused(lite: Standing) -> None:
    uuid = lite.make_node()
    fine = {
        "links": [{"id": "l", "type": "phy", "ethernet_mac_address": "52:54:00:00:00:01"}],
        "networks": [{"id": "n", "link": "l", "type": "ipv4_dhcp"}],
        "services": [{"type": "dns", "address": "10.0.0.1"}],
    }

    def put(value: Any) -> Answer:
        body = [{"op": "replace", "path": "/network_data", "value": value}]
        return lite.ask("PATCH", f"/v1/nodes/{uuid}", body)

    assert put(fine).json["network_data"] == fine
    for wrong in (
        {"links": {}}, {"links": [{}]}, {"networks": [{"id": 7}]}, {"services": ["x"]}, {"a": 1},
    ):  # fmt: skip
        refused(put(wrong), 400, "network_data", *wrong)
    add = [{"op": "add", "path": "/network_data/links/-", "value": {"id": "m", "type": "phy"}}]
    assert len(lite.ask("PATCH", f"/v1/nodes/{uuid}", add).json["network_data"]["links"]) == 2


@pytest.mark.parametrize("field", ["extra", "properties", "driver_info", "instance_info"])
def test_a_field_that_is_written_piece_by_piece_does_not_grow_for_ever(
    lite: Standing, field: str
) -> None:
    uuid = lite.plant("manageable")
    piece = "x" * 600_000
    assert patch(lite, uuid, ("add", f"/{field}/a", piece)).status == 200
    refused(patch(lite, uuid, ("add", f"/{field}/b", piece)), 400, "may have 1048576 at most")
    assert patch(lite, uuid, ("replace", f"/{field}/a", "x")).status == 200
    assert patch(lite, uuid, ("add", f"/{field}/b", piece)).status == 200


def test_what_is_too_large_already_can_be_made_smaller_and_secrets_are_not_counted(
    lite: Standing,
) -> None:
    large = {"a": "x" * 2_000_000, "b": "x" * 2_000_000}
    uuid = lite.plant("manageable", extra=large, instance_info={"configdrive": "x" * 2_000_000})
    assert patch(lite, uuid, ("remove", "/extra/a")).status == 200
    refused(patch(lite, uuid, ("add", "/extra/c", 1)), 400, "take something out of it")
    assert patch(lite, uuid, ("add", "/instance_info/root_gb", 10)).status == 200
