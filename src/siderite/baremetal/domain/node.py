"""A node as a value: fields as on the wire, times as ISO text; `version` counts its changes."""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import msgspec

from siderite.core.machine import Moved
from siderite.core.times import iso

Json = dict[str, Any]

INTERFACES = (
    "bios", "boot", "console", "deploy", "firmware", "inspect", "management", "network",
    "power", "raid", "rescue", "storage", "vendor",
)  # fmt: skip
"""The kinds of interface that a node's driver is composed of."""

FAULTS = ("power failure", "clean failure", "rescue abort failure", "service failure")
"""What can be wrong with a node that was put into maintenance for it."""


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that is recorded of a node, secrets included."""

    uuid: str
    version: int = 1
    created_at: str
    updated_at: str | None = None
    name: str | None = None
    driver: str
    driver_info: Mapping[str, Any] = {}
    driver_internal_info: Mapping[str, Any] = {}
    properties: Mapping[str, Any] = {}
    extra: Mapping[str, Any] = {}
    instance_info: Mapping[str, Any] = {}
    instance_uuid: str | None = None
    instance_name: str | None = None
    chassis_uuid: str | None = None

    provision_state: str
    target_provision_state: str | None = None
    provision_updated_at: str | None = None
    power_state: str | None = None
    target_power_state: str | None = None
    last_error: str | None = None
    maintenance: bool = False
    maintenance_reason: str | None = None
    fault: str | None = None
    console_enabled: bool = False
    reservation: str | None = None

    inspection_started_at: str | None = None
    inspection_finished_at: str | None = None
    clean_step: Mapping[str, Any] = {}
    deploy_step: Mapping[str, Any] = {}
    service_step: Mapping[str, Any] = {}
    raid_config: Mapping[str, Any] = {}
    target_raid_config: Mapping[str, Any] = {}
    boot_mode: str | None = None
    secure_boot: bool | None = None

    bios_interface: str | None = None
    boot_interface: str | None = None
    console_interface: str | None = None
    deploy_interface: str | None = None
    firmware_interface: str | None = None
    inspect_interface: str | None = None
    management_interface: str | None = None
    network_interface: str | None = None
    power_interface: str | None = None
    raid_interface: str | None = None
    rescue_interface: str | None = None
    storage_interface: str | None = None
    vendor_interface: str | None = None

    resource_class: str | None = None
    traits: Sequence[str] = []
    conductor_group: str = ""
    conductor: str | None = None
    automated_clean: bool | None = None
    protected: bool = False
    protected_reason: str | None = None
    retired: bool = False
    retired_reason: str | None = None
    owner: str | None = None
    lessee: str | None = None
    description: str | None = None
    allocation_uuid: str | None = None
    network_data: Mapping[str, Any] = {}
    shard: str | None = None
    parent_node: str | None = None
    disable_power_off: bool = False
    health: str | None = None

    # Ours: why the node waits, and by when it must have moved on; who is right about its power, why
    # that is unknown or disputed, what it was before it became unknown, and what it was when a user
    # set the maintenance during which nobody is told of it.
    wait_reason: str | None = None
    deadline: str | None = None
    power_policy: str | None = None
    power_state_reason: str | None = None
    last_power_state: str | None = None
    told_power_state: str | None = None

    def changed(self, now: float, changes: Mapping[str, Any]) -> "Node":
        """The node with these fields changed, one version on."""
        return msgspec.structs.replace(
            self, version=self.version + 1, updated_at=iso(now), **changes
        )

    def touched(self) -> "Node":
        """The same, one version on: something that belongs to it has come, and whoever decided
        without knowing of it must decide again.
        """
        return msgspec.structs.replace(self, version=self.version + 1)

    @property
    def ident(self) -> str:
        """How people know it."""
        return self.name or self.uuid


def moved(before: Node, to: Moved, now: float, deadline_s: float | None, changes: Json) -> Node:
    """The node after a move of its machine, with what else changes with it."""
    deadline = None if deadline_s is None else iso(now + deadline_s)
    return before.changed(
        now,
        {
            "provision_state": to.state.name,
            "target_provision_state": to.target,
            "provision_updated_at": iso(now),
            "deadline": deadline,
            "wait_reason": None,
            **changes,
        },
    )
