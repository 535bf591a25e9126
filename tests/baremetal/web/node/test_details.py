"""BIOS settings, firmware and inventory: what each version shows of what is kept."""

from typing import Any

import pytest

from siderite.baremetal.domain.hardware import BiosSetting
from siderite.baremetal.domain.hardware import FirmwareComponent
from siderite.baremetal.domain.hardware import Found
from siderite.baremetal.usecases.node import details
from tests.baremetal.web.expect import refused
from tests.baremetal.web.told import told
from tests.support.app import Answer
from tests.support.app import Standing

REGISTRY = {
    "attribute_type", "allowable_values", "lower_bound", "max_length", "min_length", "read_only",
    "reset_required", "unique", "upper_bound",
}  # fmt: skip
BRIEF = {"created_at", "updated_at", "name", "value", "links"}


def keep(app: Standing, node: str, **found: Any) -> None:
    """Something is found out about a node."""
    app.run(details.keep(app.app.program.baremetal, node, Found(**found)))


def get(app: Standing, node: str, path: str, **how: Any) -> Answer:
    """The answer to a request below a node."""
    return app.ask("GET", f"/v1/nodes/{node}/{path}", **how)


@pytest.mark.parametrize(
    ("path", "since"), [("bios", 40), ("bios/x", 40), ("firmware", 86), ("inventory", 81)]
)
def test_each_is_there_from_its_version_on(lite: Standing, path: str, since: int) -> None:
    node = lite.plant("manageable")
    keep(lite, node, bios=[BiosSetting("x", "1")], firmware=[], inventory={}, plugin_data={})
    refused(get(lite, node, path, version=since - 1), 404)
    assert get(lite, node, path, version=since).status == 200


def test_settings_are_shown_brief_and_in_full(app: Standing) -> None:
    node = app.plant("manageable")
    assert get(app, node, "bios").json == {"bios": []}
    keep(app, node, bios=[BiosSetting("Virt", "On", "Enumeration", ["On", "Off"])])
    brief = get(app, node, "bios").json["bios"]
    assert set(brief[0]) == BRIEF
    assert brief[0]["links"][0]["href"].endswith(f"/v1/nodes/{node}/bios/Virt")
    full = get(app, node, "bios?detail=true", version=74).json["bios"]
    assert set(full[0]) == BRIEF | REGISTRY
    assert full[0]["allowable_values"] == ["On", "Off"]
    some = get(app, node, "bios?fields=name,read_only").json["bios"]
    assert set(some[0]) == {"name", "read_only", "links"}
    assert set(get(app, node, "bios/Virt", version=73).json["Virt"]) == BRIEF
    assert set(get(app, node, "bios/Virt", version=74).json["Virt"]) == BRIEF | REGISTRY
    refused(get(app, node, "bios/Other"), 404, "BIOS setting")
    refused(get(app, node, "bios?detail=true", version=73), 406)
    refused(get(app, node, "bios?fields=colour"), 400, "not valid")
    refused(get(app, node, "bios?fields=name&detail=true"), 400, "either")
    refused(get(app, node, "bios?limit=1"), 400, "Unexpected")


def test_what_does_not_change_keeps_its_times(lite: Standing) -> None:
    node = lite.plant("manageable")
    keep(lite, node, bios=[BiosSetting("a", "1"), BiosSetting("b", "1")])
    first = get(lite, node, "bios").json["bios"]
    keep(lite, node, bios=[BiosSetting("a", "1"), BiosSetting("b", "2")])
    a, b = get(lite, node, "bios").json["bios"]
    assert (a, b["created_at"]) == (first[0], first[1]["created_at"])
    assert (b["value"], b["updated_at"] is None) == ("2", False)


def test_firmware_remembers_its_first_version_and_the_last_flash(lite: Standing) -> None:
    node = lite.plant("manageable")
    keep(lite, node, firmware=[FirmwareComponent("bmc", "1.0", "ACME")])
    keep(lite, node, firmware=[FirmwareComponent("bmc", "1.1", "ACME")])
    part = get(lite, node, "firmware", version=113).json["firmware"][0]
    times = (part.pop("created_at"), part.pop("updated_at"))
    assert all(times)
    versions = {"initial_version": "1.0", "current_version": "1.1", "last_version_flashed": "1.1"}
    assert part == {"component": "bmc", **versions}
    newer = get(lite, node, "firmware", version=114).json["firmware"][0]
    assert (newer["vendor"], newer["model"], newer["serial_number"]) == ("ACME", None, None)


def test_there_is_no_inventory_before_inspection(lite: Standing) -> None:
    node = lite.plant("manageable")
    refused(get(lite, node, "inventory"), 404, "inspect it first")
    keep(lite, node, inventory={"cpu": {"count": 4}}, plugin_data={"a": 1})
    shown = get(lite, node, "inventory").json
    assert shown == {"inventory": {"cpu": {"count": 4}}, "plugin_data": {"a": 1}}


def test_ports_that_are_found_are_made_once_and_announced_by_the_conductor(app: Standing) -> None:
    node = app.plant("inspecting")
    mac = f"52:54:00:{node[:2]}:{node[2:4]}:01"
    for _ in range(2):
        keep(app, node, ports=(mac.upper(), "not a mac", mac))
    ports = app.ask("GET", f"/v1/nodes/{node}/ports").json["ports"]
    assert [port["address"] for port in ports] == [mac]
    facts = told(app, ports[0]["uuid"])
    assert [fact.event_type for fact in facts] == [
        "baremetal.port.create.start", "baremetal.port.create.end",
    ]  # fmt: skip
    assert facts[0].publisher.startswith("ironic-conductor")


def test_all_goes_with_the_node(app: Standing) -> None:
    node = app.plant("enroll")
    keep(app, node, bios=[BiosSetting("a", "1")], inventory={}, plugin_data={})
    assert app.ask("DELETE", f"/v1/nodes/{node}").status == 204
    sql = "SELECT count(*) FROM node_details WHERE node_uuid = ?"
    assert app.run(app.app.program.store.fetch(sql, (node,)))[0][0] == 0


def test_a_password_of_the_bios_is_not_shown(lite: Standing) -> None:
    node = lite.plant("manageable")
    settings = [
        BiosSetting("SetupLock", "hunter2", "Password"),
        BiosSetting("AdminPassword", "hunter2"),
        BiosSetting("UserPassword", "hunter2", "String"),
        BiosSetting("PasswordStatus", "Unlocked", "Enumeration"),
        BiosSetting("SysPassword", "", "Password"),
    ]
    keep(lite, node, bios=settings)
    listed = get(lite, node, "bios").json["bios"]
    assert [one["value"] for one in listed] == ["******"] * 3 + ["Unlocked", ""]
    assert b"hunter2" not in get(lite, node, "bios?detail=true").body
    assert b"hunter2" not in get(lite, node, "bios/AdminPassword").body


def test_who_has_a_node_on_loan_reads_its_bios_and_firmware_but_not_what_its_owner_found_in_it(
    lite: Standing,
) -> None:
    _, token, project = lite.person("reader")
    lent = lite.plant("active", owner="them", lessee=project)
    theirs = lite.plant("active", owner="them")
    for node in (lent, theirs):
        keep(lite, node, bios=[BiosSetting("x", "1")], firmware=[], inventory={}, plugin_data={})
    for path, status in (("bios", 200), ("bios/x", 200), ("firmware", 200), ("inventory", 403)):
        assert get(lite, lent, path, token=token).status == status, path
        refused(get(lite, theirs, path, token=token), 404)
