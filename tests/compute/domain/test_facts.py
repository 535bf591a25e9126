"""What is announced of servers has the names, versions and fields of Nova's notifications."""

import json
from typing import Any

import msgspec
import pytest

from siderite.compute.domain import facts
from siderite.compute.domain.image import Image
from siderite.compute.domain.server import Server
from siderite.core import shape
from siderite.core.fact import Fact

BASE = set(
    [
        "uuid",
        "user_id",
        "tenant_id",
        "reservation_id",
        "display_name",
        "display_description",
        "host_name",
        "host",
        "node",
        "os_type",
        "architecture",
        "availability_zone",
        "flavor",
        "image_uuid",
        "key_name",
        "kernel_id",
        "ramdisk_id",
        "created_at",
        "launched_at",
        "terminated_at",
        "deleted_at",
        "updated_at",
        "state",
        "power_state",
        "task_state",
        "progress",
        "ip_addresses",
        "block_devices",
        "metadata",
        "locked",
        "locked_reason",
        "auto_disk_config",
        "request_id",
        "action_initiator_user",
        "action_initiator_project",
        "shares",
    ]
)
ACTION = BASE | {"fault"}
SPEC = set(
    [
        "instance_uuid",
        "project_id",
        "user_id",
        "availability_zone",
        "flavor",
        "image",
        "num_instances",
        "force_hosts",
        "force_nodes",
        "ignore_hosts",
        "instance_group",
        "numa_topology",
        "pci_requests",
        "requested_destination",
        "retry",
        "scheduler_hints",
        "security_groups",
    ]
)
FIELDS = {
    "FlavorPayload": "flavorid name memory_mb vcpus root_gb ephemeral_gb swap rxtx_factor"
    " vcpu_weight disabled is_public extra_specs projects description",
    "IpPayload": "label mac meta port_uuid version address device_name",
    "ExceptionPayload": "module_name function_name exception exception_message traceback",
    "InstanceStateUpdatePayload": "old_state state old_task_state new_task_state",
    "AuditPeriodPayload": "audit_period_beginning audit_period_ending",
    "ImageMetaPayload": "id name status visibility protected checksum owner size virtual_size"
    " container_format disk_format created_at updated_at tags direct_url min_ram min_disk"
    " properties",
}
VERSIONS = {
    "FlavorPayload": "1.4", "IpPayload": "1.0", "ExceptionPayload": "1.1",
    "InstanceStateUpdatePayload": "1.0", "AuditPeriodPayload": "1.0", "ImageMetaPayload": "1.0",
}  # fmt: skip


def server() -> Server:
    made: Any = shape.made_up(Server)
    return msgspec.structs.replace(made, image=shape.made_up(Image))


def unwrapped(payload: Any) -> tuple[str, dict[str, Any]]:
    """Name and version, and the data of an object; every object in it is in its own form too."""
    assert set(payload) == {
        "nova_object.name", "nova_object.namespace", "nova_object.version", "nova_object.data",
    }  # fmt: skip
    assert payload["nova_object.namespace"] == "nova"
    name, version = payload["nova_object.name"], payload["nova_object.version"]
    data = payload["nova_object.data"]
    if name in FIELDS:
        assert (version, set(data)) == (VERSIONS[name], set(FIELDS[name].split())), name
    for value in data.values():
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, dict) and "nova_object.name" in inner:
                unwrapped(inner)
    return f"{name} {version}", data


@pytest.mark.parametrize(
    ("fact", "form", "fields"),
    [
        (facts.phase("power_off", "end", server()), "InstanceActionPayload 1.9", ACTION),
        (facts.phase("reboot", "error", server(), why="x"), "InstanceActionPayload 1.9", ACTION),
        (facts.said("lock", server()), "InstanceActionPayload 1.9", ACTION),
        (
            facts.phase("create", "start", server()),
            "InstanceCreatePayload 1.13",
            ACTION | {"keypairs", "tags", "trusted_image_certificates", "instance_name"},
        ),
        (
            facts.phase("rebuild", "end", server()),
            "InstanceActionRebuildPayload 1.10",
            ACTION | {"trusted_image_certificates"},
        ),
        (
            facts.phase("rescue", "start", server()),
            "InstanceActionRescuePayload 1.4",
            ACTION | {"rescue_image_ref"},
        ),
        (
            facts.phase("snapshot", "error", server(), why="x"),
            "InstanceActionSnapshotPayload 1.10",
            ACTION | {"snapshot_image_id"},
        ),
        (
            facts.update(server(), server()),
            "InstanceUpdatePayload 2.1",
            BASE | {"state_update", "audit_period", "old_display_name", "tags"},
        ),
        (
            facts.shut_down(server(), "clean", 1, 0.5),
            "InstanceShutdownPayload 1.1",
            ACTION | {"how", "signals", "seconds"},
        ),
        (facts.select_destinations("start", server()), "RequestSpecPayload 1.1", SPEC),
        (
            facts.select_destinations("end", server(), host="h"),
            "RequestSpecPayload 1.1",
            SPEC | {"selected_host"},
        ),
        (
            facts.no_valid_host(server(), "build_instances", "x"),
            "ComputeTaskPayload 1.0",
            {"instance_uuid", "request_spec", "state", "reason"},
        ),
    ],
    ids=lambda value: value.event_type if isinstance(value, Fact) else "",
)
def test_each_kind_of_fact_has_its_own_payload(fact: Fact, form: str, fields: set[str]) -> None:
    named, data = unwrapped(json.loads(fact.payload))
    assert (named, set(data)) == (form, fields)
    assert fact.priority == ("ERROR" if fact.event_type.endswith(".error") else "INFO")
