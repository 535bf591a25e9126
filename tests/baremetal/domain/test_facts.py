"""What is announced: names, payloads, statuses; secrets masked."""

import gc
import json
import tracemalloc

import pytest

from siderite.baremetal.domain import facts
from siderite.baremetal.domain.facts import provision_status
from siderite.cli.docs_events import announced
from tests.baremetal.domain.test_wire import node

PLAIN = {
    "bios_interface", "boot_interface", "boot_mode", "clean_step", "conductor_group",
    "console_enabled", "console_interface", "created_at", "deploy_interface", "deploy_step",
    "description", "disable_power_off", "driver", "extra", "fault", "inspect_interface",
    "inspection_finished_at", "inspection_started_at", "instance_uuid", "last_error", "lessee",
    "maintenance", "maintenance_reason", "management_interface", "name", "network_interface",
    "owner", "power_interface", "power_state", "properties", "protected", "protected_reason",
    "provision_state", "provision_updated_at", "raid_interface", "rescue_interface",
    "resource_class", "retired", "retired_reason", "secure_boot", "storage_interface",
    "target_power_state", "target_provision_state", "traits", "updated_at", "uuid",
    "vendor_interface",
}  # fmt: skip


def payload(fact):
    return json.loads(fact.payload)


@pytest.mark.parametrize(
    ("before", "after", "event", "status"),
    [
        ("enroll", "verifying", "manage", "start"),
        ("verifying", "manageable", "done", "end"),
        ("verifying", "enroll", "fail", "error"),
        ("available", "manageable", "manage", "success"),
        ("deploying", "wait call-back", "wait", "success"),
        ("deleting", "cleaning", "clean", "success"),
        ("clean wait", "clean failed", "abort", "end"),
        ("cleaning", "clean hold", "hold", "end"),
        ("clean hold", "clean wait", "unhold", "start"),
    ],
)
def test_a_move_is_announced_by_what_it_means(before, after, event, status):
    assert provision_status(before, after, event) == status


def test_each_kind_of_fact_has_its_own_payload():
    value = node(driver_info={"password": "s3cret"}, updated_at="2026-01-02T03:04:05.678901+00:00")
    made = {
        "NodeCRUDPayload": (
            facts.node_crud("update", "end", value),
            "1.15",
            {"chassis_uuid", "instance_info", "driver_info"},
        ),
        "NodePayload": (facts.maintenance_set("start", value), "1.17", set()),
        "NodeSetProvisionStatePayload": (
            facts.provision_set(value, value, "manage"),
            "1.18",
            {
                "instance_info", "driver_internal_info", "event", "previous_provision_state",
                "previous_target_provision_state",
            },
        ),
        "NodeSetPowerStatePayload": (
            facts.power_set("end", value, "rebooting"),
            "1.17",
            {"to_power"},
        ),
        "NodeCorrectedPowerStatePayload": (
            facts.power_corrected(value, "power on"),
            "1.17",
            {"from_power"},
        ),
    }  # fmt: skip
    for name, (fact, version, more) in made.items():
        told = payload(fact)
        assert told["ironic_object.name"] == name
        assert told["ironic_object.namespace"] == "ironic"
        assert told["ironic_object.version"] == version
        assert set(told["ironic_object.data"]) == PLAIN | more, name
        assert told["ironic_object.data"]["updated_at"] == "2026-01-02T03:04:05Z"
        assert "s3cret" not in fact.payload


def test_errors_have_the_priority_of_errors():
    assert facts.node_crud("create", "error", node()).priority == "ERROR"
    assert facts.node_crud("create", "start", node()).priority == "INFO"


def test_who_says_it_depends_on_what_is_said():
    assert facts.node_crud("create", "end", node()).publisher == "ironic-api"
    assert facts.provision_set(node(), node(), "manage").publisher == "ironic-conductor"


TIMES = {"created_at", "updated_at"}
RECORDS = {
    "port": "PortCRUDPayload 1.8: address available_for_dynamic_portgroup category description"
    " extra is_smartnic local_link_connection name node_uuid physical_network portgroup_uuid"
    " pxe_enabled uuid vendor",
    "portgroup": "PortgroupCRUDPayload 1.3: address category dynamic_portgroup extra mode name"
    " node_uuid physical_network properties standalone_ports_supported uuid",
    "chassis": "ChassisCRUDPayload 1.0: description extra uuid",
    "volumeconnector": "VolumeConnectorCRUDPayload 1.0: connector_id extra node_uuid type uuid",
    "volumetarget": "VolumeTargetCRUDPayload 1.0: boot_index extra node_uuid properties uuid"
    " volume_id volume_type",
    "deploytemplate": "DeployTemplateCRUDPayload 1.0: extra name steps uuid",
    "runbook": "RunbookCRUDPayload 1.1: description disable_ramdisk extra name owner public steps"
    " traits uuid",
    "inspectionrule": "InspectionRuleCRUDPayload 1.0: actions conditions description phase"
    " priority scope sensitive uuid",
    "allocation": "AllocationCRUDPayload 1.1: candidate_nodes extra last_error name node_uuid"
    " owner resource_class state traits uuid",
}


@pytest.mark.parametrize("word", RECORDS)
def test_each_kind_of_record_is_announced_as_ironic_does(word):
    named, _, fields = RECORDS[word].partition(": ")
    told = {fact.event_type: fact for fact, _ in announced()}
    for action in ("create", "update", "delete"):
        for status in ("start", "end", "error"):
            fact = told[f"baremetal.{word}.{action}.{status}"]
            sent = payload(fact)
            assert f"{sent['ironic_object.name']} {sent['ironic_object.version']}" == named
            assert sent["ironic_object.namespace"] == "ironic"
            assert set(sent["ironic_object.data"]) == set(fields.split()) | TIMES
            assert fact.priority == ("ERROR" if status == "error" else "INFO")


def test_what_is_announced_leaves_nothing_behind_in_memory():
    value, times = node(), 200

    def announce():
        for _ in range(times):
            facts.provision_set(value, value, "manage")
            facts.node_crud_pair("update", value)
            facts.power_corrected(value, "power on")
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        announce()
        before = announce()
        assert announce() - before < 10 * times
    finally:
        tracemalloc.stop()
