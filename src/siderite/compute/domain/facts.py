"""What the compute service announces: wire names, payloads, priorities. Once published, never
changed.

Payloads are Nova's versioned notifications, rendered from the server as it is after the change
that they announce. Passwords and user data are not in them.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from siderite.compute.domain.flavor import Flavor
from siderite.compute.domain.image import Image
from siderite.compute.domain.server import Server
from siderite.core.fact import Fact
from siderite.core.times import to_second

API = "nova-api:"
COMPUTE = "nova-compute:"
SCHEDULER = "nova-scheduler:"
CONDUCTOR = "nova-conductor:"

_encode = msgspec.json.Encoder().encode

EVENT_TYPES = (
    "instance.*.start", "instance.*.end", "instance.*.error", "instance.update", "instance.lock",
    "instance.unlock", "scheduler.select_destinations.*", "compute_task.*.error", "flavor.*",
)  # fmt: skip


def _object(name: str, version: str, data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "nova_object.name": name,
        "nova_object.namespace": "nova",
        "nova_object.version": version,
        "nova_object.data": data,
    }


def _flavor(flavor: Flavor) -> dict[str, Any]:
    return _object(
        "FlavorPayload",
        "1.4",
        {
            "flavorid": flavor.flavorid,
            "name": flavor.name,
            "memory_mb": flavor.ram_mib,
            "vcpus": flavor.vcpus,
            "root_gb": flavor.disk_gib,
            "ephemeral_gb": flavor.ephemeral_gib,
            "swap": flavor.swap_mib,
            "rxtx_factor": flavor.rxtx_factor,
            "vcpu_weight": 0,
            "disabled": flavor.disabled,
            "is_public": flavor.is_public,
            "extra_specs": flavor.extra_specs,
            "projects": flavor.projects or None,
            "description": flavor.description,
        },
    )


def _addresses(server: Server) -> list[dict[str, Any]]:
    return [
        _object(
            "IpPayload",
            "1.0",
            {
                "label": port.network,
                "mac": port.mac,
                "meta": {},
                "port_uuid": port.id,
                "version": 6 if ":" in port.address else 4,
                "address": port.address,
                "device_name": "tap" + port.id[:11],
            },
        )
        for port in server.ports
    ]


_last: list[tuple[Server, str]] = []
"""The last server of which something was said, and its fields: facts come in twos and threes."""


def _instance(server: Server) -> str:
    """The fields of `InstancePayload` as JSON text without its braces."""
    if _last and _last[0][0] is server:
        return _last[0][1]
    text = _encode(_data(server)).decode()[1:-1]
    _last[:] = [(server, text)]
    return text


def _with(server: Server, name: str, version: str, more: Mapping[str, Any]) -> str:
    """A payload of a server's fields and some more."""
    return (
        f'{{"nova_object.name":"{name}","nova_object.namespace":"nova",'
        f'"nova_object.version":"{version}","nova_object.data":'
        f"{{{_instance(server)},{_encode(more).decode()[1:]}}}"
    )


def _data(server: Server) -> dict[str, Any]:
    by = server.by
    image = server.image
    return {
        "uuid": server.uuid,
        "user_id": server.user_id,
        "tenant_id": server.project_id,
        "reservation_id": server.reservation_id,
        "display_name": server.name,
        "display_description": server.description,
        "host_name": server.hostname,
        "host": server.host,
        "node": server.node,
        "os_type": None if image is None else image.properties.get("os_type"),
        "architecture": None if image is None else image.properties.get("hw_architecture"),
        "availability_zone": server.availability_zone or None,
        "flavor": _flavor(server.flavor),
        "image_uuid": server.image_id or "",
        "key_name": server.key_name,
        "kernel_id": server.boots("kernel"),
        "ramdisk_id": server.boots("ramdisk"),
        "created_at": to_second(server.created_at),
        "launched_at": to_second(server.launched_at),
        "terminated_at": to_second(server.terminated_at),
        "deleted_at": to_second(server.deleted_at),
        "updated_at": to_second(server.updated_at),
        "state": server.vm_state,
        "power_state": server.power.word,
        "task_state": server.task_state,
        "progress": server.progress,
        "ip_addresses": _addresses(server),
        "block_devices": None,
        "metadata": server.metadata,
        "locked": server.locked,
        "locked_reason": server.locked_reason,
        "auto_disk_config": server.disk_config,
        "request_id": None if by is None else by.request_id,
        "action_initiator_user": None if by is None else by.user,
        "action_initiator_project": None if by is None else by.project,
        "shares": None,
    }


def _fact(event_type: str, server: Server, payload: str, publisher: str = COMPUTE) -> Fact:
    return Fact(
        event_type=event_type,
        publisher=publisher,
        resource_type="server",
        resource=server.uuid,
        payload=payload,
        priority="ERROR" if event_type.endswith(".error") else "INFO",
        project=server.project_id,
    )


def update(before: Server, after: Server) -> Fact:
    """A server changed: its state, its task, its name or its tags."""
    data: dict[str, Any] = {}
    data["state_update"] = _object(
        "InstanceStateUpdatePayload",
        "1.0",
        {
            "old_state": before.vm_state,
            "state": after.vm_state,
            "old_task_state": before.task_state,
            "new_task_state": after.task_state,
        },
    )
    month = (after.updated_at or after.created_at)[:7]
    data["audit_period"] = _object(
        "AuditPeriodPayload",
        "1.0",
        {
            "audit_period_beginning": f"{month}-01T00:00:00Z",
            "audit_period_ending": to_second(after.updated_at or after.created_at),
        },
    )
    data["old_display_name"] = before.name if before.name != after.name else None
    data["tags"] = after.tags
    return _fact("instance.update", after, _with(after, "InstanceUpdatePayload", "2.1", data))


_PAYLOADS = {
    "create": ("InstanceCreatePayload", "1.13"),
    "rebuild": ("InstanceActionRebuildPayload", "1.10"),
    "rescue": ("InstanceActionRescuePayload", "1.4"),
    "snapshot": ("InstanceActionSnapshotPayload", "1.10"),
}


_ASKED = {"rescue": ("rescue_image_ref", "image"), "snapshot": ("snapshot_image_id", "image")}
"""The field in which an action's facts say what it was asked with, and the argument's name."""


def shut_down(server: Server, how: str, signals: int, seconds: float) -> Fact:
    """How a guest was brought down: `clean`, `forced`, `hard` or `was off`. All that Nova says at
    this point, and that.
    """
    data = {"fault": None, "how": how, "signals": signals, "seconds": round(seconds, 3)}
    payload = _with(server, "InstanceShutdownPayload", "1.1", data)
    return _fact("instance.shutdown.end", server, payload)


def phase(
    action: str,
    phase: str,
    server: Server,
    *,
    why: str | None = None,
    asked: Mapping[str, Any] | None = None,
) -> Fact:
    """An action of a server begins, ended or failed; `asked` are its arguments."""
    name, version = _PAYLOADS.get(action, ("InstanceActionPayload", "1.9"))
    data: dict[str, Any] = {
        "fault": None if why is None else exception("ActionFailed", why),
    }
    if action == "create":
        data |= _create_only(server)
    if action == "rebuild":
        data["trusted_image_certificates"] = server.trusted_certificates
    if action in _ASKED:
        field, argument = _ASKED[action]
        data[field] = (asked or {}).get(argument)
    return _fact(f"instance.{action}.{phase}", server, _with(server, name, version, data))


def _create_only(server: Server) -> dict[str, Any]:
    keypairs = []
    if server.key_name is not None:
        key = {
            "name": server.key_name,
            "user_id": server.user_id,
            "fingerprint": None,
            "public_key": server.request.public_key,
            "type": "ssh",
        }
        keypairs.append(_object("KeypairPayload", "1.0", key))
    return {
        "keypairs": keypairs,
        "tags": server.tags,
        "trusted_image_certificates": server.trusted_certificates,
        "instance_name": server.instance_name,
    }


def said(action: str, server: Server) -> Fact:
    """lock or unlock: what has no phases."""
    payload = _with(server, "InstanceActionPayload", "1.9", {"fault": None})
    return _fact(f"instance.{action}", server, payload, API)


def exception(name: str, message: str) -> dict[str, Any]:
    """Why something failed."""
    return _object(
        "ExceptionPayload",
        "1.1",
        {
            "module_name": "siderite.compute",
            "function_name": "",
            "exception": name,
            "exception_message": message,
            "traceback": None,
        },
    )


def _image(image: Image) -> dict[str, Any]:
    return _object(
        "ImageMetaPayload",
        "1.0",
        {
            "id": image.id,
            "name": image.name,
            "status": image.status,
            "visibility": image.visibility,
            "protected": image.protected,
            "checksum": image.checksum,
            "owner": image.owner,
            "size": image.size,
            "virtual_size": None,
            "container_format": image.container_format,
            "disk_format": image.disk_format,
            "created_at": to_second(image.created_at),
            "updated_at": to_second(image.updated_at),
            "tags": [],
            "direct_url": None,
            "min_ram": image.min_ram_mib,
            "min_disk": image.min_disk_gib,
            "properties": _object("ImageMetaPropsPayload", "1.14", image.properties),
        },
    )


def request_spec(server: Server) -> dict[str, Any]:
    """What the scheduler was asked."""
    request = server.request
    hints = {
        key: [str(item) for item in (value if isinstance(value, list) else [value])]
        for key, value in request.hints.items()
    }
    return _object(
        "RequestSpecPayload",
        "1.1",
        {
            "instance_uuid": server.uuid,
            "project_id": server.project_id,
            "user_id": server.user_id,
            "availability_zone": server.pinned_zone,
            "flavor": _flavor(server.flavor),
            "image": None if server.image is None else _image(server.image),
            "num_instances": request.count,
            "force_hosts": [request.forced_host] if request.forced_host else None,
            "force_nodes": [request.forced_node] if request.forced_node else None,
            "ignore_hosts": server.tried or None,
            "instance_group": None,
            "numa_topology": None,
            "pci_requests": None,
            "requested_destination": None,
            "retry": None,
            "scheduler_hints": hints,
            "security_groups": request.security_groups,
        },
    )


def select_destinations(
    phase: str,
    server: Server,
    *,
    host: str | None = None,
    refusals: Mapping[str, str] | None = None,
) -> Fact:
    """The scheduler begins, found a host, or found none and says why. Nova has no error phase, and
    does not tell the host: both are ours.
    """
    payload = request_spec(server)
    if phase == "end":
        payload["nova_object.data"]["selected_host"] = host
    if phase == "error":
        payload["nova_object.data"]["refusals"] = dict(refusals or {})
    return _fact(
        f"scheduler.select_destinations.{phase}", server, _encode(payload).decode(), SCHEDULER
    )


def no_valid_host(server: Server, what: str, message: str) -> Fact:
    """Placing failed: `what` is build_instances, migrate_server or rebuild_server."""
    data = {
        "instance_uuid": server.uuid,
        "request_spec": request_spec(server),
        "state": server.vm_state,
        "reason": exception("NoValidHost", message),
    }
    payload = _object("ComputeTaskPayload", "1.0", data)
    return _fact(f"compute_task.{what}.error", server, _encode(payload).decode(), CONDUCTOR)


def flavor(action: str, flavor: Flavor) -> Fact:
    """A flavor was made, changed or deleted."""
    return Fact(
        event_type=f"flavor.{action}",
        publisher=API,
        resource_type="flavor",
        resource=flavor.flavorid,
        payload=_encode(_flavor(flavor)).decode(),
    )
