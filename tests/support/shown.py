"""What Ironic shows of each kind of resource, and since which version."""

Shown = dict[int, str]
NEWEST = 115
ALWAYS = "uuid created_at updated_at links "

NODE: Shown = {
    1: "uuid created_at updated_at chassis_uuid console_enabled driver driver_info extra"
    " instance_info instance_uuid last_error links maintenance maintenance_reason ports power_state"
    " properties provision_state provision_updated_at reservation target_power_state"
    " target_provision_state",
    3: "driver_internal_info", 5: "name", 6: "inspection_started_at inspection_finished_at",
    7: "clean_step", 12: "raid_config target_raid_config", 14: "states", 20: "network_interface",
    21: "resource_class", 24: "portgroups",
    31: "boot_interface console_interface deploy_interface inspect_interface management_interface"
    " power_interface raid_interface vendor_interface",
    32: "volume", 33: "storage_interface", 37: "traits", 38: "rescue_interface",
    40: "bios_interface", 42: "fault", 44: "deploy_step", 46: "conductor_group",
    47: "automated_clean", 48: "protected protected_reason", 49: "conductor", 50: "owner",
    51: "description", 52: "allocation_uuid", 61: "retired retired_reason", 65: "lessee",
    66: "network_data", 75: "boot_mode secure_boot", 82: "shard", 83: "parent_node",
    86: "firmware_interface", 87: "service_step", 95: "disable_power_off", 104: "instance_name",
    109: "health",
}  # fmt: skip
PORT: Shown = {
    1: ALWAYS + "address extra node_uuid", 18: "internal_info",
    19: "local_link_connection pxe_enabled", 24: "portgroup_uuid", 34: "physical_network",
    53: "is_smartnic", 88: "name", 97: "description", 100: "vendor", 101: "category",
    111: "available_for_dynamic_portgroup",
}  # fmt: skip
PORTGROUP: Shown = {
    23: ALWAYS + "name address node_uuid extra internal_info standalone_ports_supported ports",
    26: "mode properties", 102: "physical_network", 103: "category", 111: "dynamic_portgroup",
}  # fmt: skip
CHASSIS: Shown = {1: ALWAYS + "description extra nodes"}
CONNECTOR: Shown = {32: ALWAYS + "node_uuid type connector_id extra"}
TARGET: Shown = {32: ALWAYS + "node_uuid volume_type volume_id boot_index properties extra"}
ALLOCATION: Shown = {
    52: ALWAYS + "name node_uuid state last_error resource_class traits candidate_nodes extra",
    60: "owner",
}
TEMPLATE: Shown = {55: ALWAYS + "name steps extra"}
RUNBOOK: Shown = {
    92: ALWAYS + "name steps disable_ramdisk extra public owner",
    112: "description traits",
}
RULE: Shown = {96: ALWAYS + "description priority phase scope sensitive conditions actions"}


def since(shown: Shown) -> dict[str, int]:
    """The version that each field came with."""
    return {name: version for version, names in shown.items() for name in names.split()}


def at(shown: Shown, version: int) -> set[str]:
    """The fields that a client of a version sees."""
    return {name for name, first in since(shown).items() if first <= version}


def edges(shown: Shown) -> list[int]:
    """The versions around each change from the first one on, and the newest."""
    first = min(shown)
    around = {edge for version in shown for edge in (version - 1, version)}
    return sorted({edge for edge in around if edge >= first} | {NEWEST})
