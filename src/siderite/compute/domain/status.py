"""From (vm_state, task_state) to the `status` that clients see, and back for filters."""

from siderite.compute.domain.server_machine import V

_REBUILD = dict.fromkeys(
    ("rebuilding", "rebuild_block_device_mapping", "rebuild_spawning"), "REBUILD"
)
_RESIZE = dict.fromkeys(
    ("resize_prep", "resize_migrating", "resize_migrated", "resize_finish"), "RESIZE"
)

STATUS: dict[str, tuple[str, dict[str, str]]] = {
    V.ACTIVE: (
        "ACTIVE",
        {
            **dict.fromkeys(("rebooting", "reboot_pending", "reboot_started"), "REBOOT"),
            **dict.fromkeys(
                ("rebooting_hard", "reboot_pending_hard", "reboot_started_hard"), "HARD_REBOOT"
            ),
            "updating_password": "PASSWORD",
            "migrating": "MIGRATING",
            **_REBUILD,
            **_RESIZE,
        },
    ),
    V.BUILDING: ("BUILD", {}),
    V.PENDING: ("PENDING", {}),
    V.STOPPED: ("SHUTOFF", {**_RESIZE, **_REBUILD}),
    V.RESIZED: ("VERIFY_RESIZE", {"resize_reverting": "REVERT_RESIZE"}),
    V.PAUSED: ("PAUSED", {"migrating": "MIGRATING"}),
    V.SUSPENDED: ("SUSPENDED", {}),
    V.RESCUED: ("RESCUE", {}),
    V.ERROR: ("ERROR", _REBUILD),
    V.DELETED: ("DELETED", {}),
    V.SOFT_DELETED: ("SOFT_DELETED", {}),
    V.SHELVED: ("SHELVED", {}),
    V.SHELVED_OFFLOADED: ("SHELVED_OFFLOADED", {}),
}
STATUSES = sorted(
    {word for plain, special in STATUS.values() for word in (plain, *special.values())}
)
WITH_PROGRESS = frozenset({
    "ACTIVE", "BUILD", "PENDING", "REBUILD", "RESIZE", "VERIFY_RESIZE", "MIGRATING",
})  # fmt: skip
WITH_FAULT = frozenset({"ERROR", "DELETED"})


def status_of(vm_state: str, task_state: str | None) -> str:
    """What a client sees as status."""
    plain, special = STATUS.get(vm_state, ("UNKNOWN", {}))
    return special.get(task_state or "", plain)


def states_of(status: str) -> tuple[list[str], list[str]] | None:
    """The vm_states and task_states that a status can mean; an empty list of tasks is any task.
    None if there is no such status.
    """
    vms: list[str] = []
    tasks: list[str] = []
    plain_too = False
    for vm_state, (plain, special) in STATUS.items():
        mine = [task for task, name in special.items() if name == status]
        if plain == status or mine:
            vms.append(vm_state)
        plain_too = plain_too or plain == status
        tasks += mine
    if not vms:
        return None
    return vms, [] if plain_too else sorted(set(tasks))
