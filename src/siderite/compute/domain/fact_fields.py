"""The names that fields have in the payloads of facts: what there is to look for in them."""

_SERVER = (
    "action_initiator_project", "action_initiator_user", "architecture", "audit_period",
    "auto_disk_config", "availability_zone", "block_devices", "created_at", "deleted_at",
    "display_description", "display_name", "fault", "flavor", "host", "host_name", "how",
    "image_uuid", "instance_name", "ip_addresses", "kernel_id", "key_name", "keypairs",
    "launched_at", "locked", "locked_reason", "metadata", "node", "old_display_name", "os_type",
    "power_state", "progress", "ramdisk_id", "request_id", "rescue_image_ref", "reservation_id",
    "seconds", "shares", "signals", "snapshot_image_id", "state", "state_update", "tags",
    "task_state", "tenant_id", "terminated_at", "trusted_image_certificates", "updated_at",
    "user_id", "uuid",
)  # fmt: skip
_FLAVOR = (
    "description", "disabled", "ephemeral_gb", "extra_specs", "flavorid", "is_public",
    "memory_mb", "name", "projects", "root_gb", "rxtx_factor", "swap", "vcpu_weight", "vcpus",
)  # fmt: skip
_BESIDE = (
    "binary", "disabled_reason", "fingerprint", "forced_down", "hosts", "id", "images_cached",
    "images_failed", "index", "last_seen_up", "members", "policies", "policy", "project_id",
    "public_key", "report_count", "rules", "topic", "total", "type", "version",
)  # fmt: skip
"""Of keypairs, aggregates, server groups and services."""

FIELDS = frozenset({*_SERVER, *_FLAVOR, *_BESIDE})
