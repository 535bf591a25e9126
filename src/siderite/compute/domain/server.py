"""A server as a value: all that is known of it, and all that it takes to make it again."""

from collections.abc import Mapping
from collections.abc import Sequence
from hashlib import sha224
from typing import Any

import msgspec

from siderite.compute.domain.flavor import Flavor
from siderite.compute.domain.host import Amount
from siderite.compute.domain.image import Image
from siderite.compute.domain.network import Port
from siderite.compute.domain.power import Power
from siderite.compute.domain.server_machine import V
from siderite.compute.domain.server_machine import joined
from siderite.compute.domain.server_machine import parted
from siderite.compute.domain.status import status_of
from siderite.core.machine import Moved
from siderite.core.times import iso


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """What went wrong last."""

    code: int
    message: str
    created: str
    details: str | None = None


class Actor(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who asked for what is being done, or was done last; None is the service itself."""

    request_id: str | None = None
    user: str | None = None
    project: str | None = None


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the user asked for beyond the server's own fields; kept whole, so that the server can be
    placed and made again.
    """

    networks: str | Sequence[Mapping[str, Any]] = "auto"
    hints: Mapping[str, Any] = {}
    user_data: str | None = None
    public_key: str | None = None
    block_devices: Sequence[Mapping[str, Any]] = []
    security_groups: Sequence[str] = []
    personality: Sequence[Mapping[str, str]] = []
    admin_password: str | None = None
    forced_host: str | None = None
    forced_node: str | None = None
    wanted_host: str | None = None
    wanted_node: str | None = None
    count: int = 1


class Move(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A resize or migration under way or to be confirmed: the way back."""

    migration: str
    kind: str
    source_host: str
    source_node: str
    old_claim: str | None = None
    old_vm_state: str
    old_flavor: Flavor
    new_flavor: Flavor
    target_host: str | None = None
    target_node: str | None = None


class Server(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that is recorded of a server, secrets included."""

    uuid: str
    version: int = 1
    created_at: str
    updated_at: str | None = None
    name: str
    description: str | None = None
    hostname: str
    project_id: str
    user_id: str
    reservation_id: str = ""
    launch_index: int = 0

    vm_state: str
    task_state: str | None = None
    power_state: int = 0
    progress: int = 0
    host: str | None = None
    node: str | None = None
    driver: str | None = None
    availability_zone: str = ""
    pinned_zone: str | None = None

    flavor: Flavor
    image: Image | None = None
    request: Request
    key_name: str | None = None
    config_drive: bool = False
    metadata: Mapping[str, str] = {}
    tags: Sequence[str] = []
    ports: Sequence[Port] = []
    group: str | None = None
    trusted_certificates: Sequence[str] | None = None
    access_ip_v4: str | None = None
    access_ip_v6: str | None = None
    disk_config: str = "MANUAL"
    root_device_name: str | None = None

    by: Actor | None = None
    locked_by: str | None = None
    locked_reason: str | None = None
    launched_at: str | None = None
    terminated_at: str | None = None
    deleted_at: str | None = None
    fault: Fault | None = None
    refusals: Mapping[str, str] = {}
    """Per host, why it was not chosen, when none was."""
    tried: Sequence[str] = []
    """Hosts on which building it failed."""
    claim: str | None = None
    """Which of its claims is that of the place it is in."""
    move: Move | None = None
    counted: tuple[int, int] | None = None
    """The vCPUs and MiB that its project's quota counts, while they are not its flavor's."""
    uncounted: bool = False
    """Whether the quota does not count it: it is deleted, and can be restored."""
    backups: Mapping[str, Sequence[str]] = {}
    """Images that createBackup made of it, by the kind of backup, oldest first."""
    shelved_image: str | None = None
    shelved_at: str | None = None
    soft_deleted_at: str | None = None
    """When its deletion was asked for, if it can be restored."""

    # Ours: who looks after it while it is PENDING, and until when.
    keeper: str | None = None
    kept_until: str | None = None
    making_room: bool = False
    """Whether that one has begun to make room for it."""

    # Ours: why it waits, and by when it must have moved on.
    wait_reason: str | None = None
    deadline: str | None = None

    def changed(self, now: float, changes: Mapping[str, Any]) -> "Server":
        """The server with these fields changed, one version on."""
        return msgspec.structs.replace(
            self, version=self.version + 1, updated_at=iso(now), **changes
        )

    @property
    def state(self) -> str:
        """Its state in the machine."""
        return joined(self.vm_state, self.task_state)

    @property
    def status(self) -> str:
        return status_of(self.vm_state, self.task_state)

    @property
    def deleted(self) -> bool:
        return self.deleted_at is not None

    @property
    def locked(self) -> bool:
        return self.locked_by is not None

    @property
    def power(self) -> Power:
        return Power(self.power_state)

    def boots(self, what: str) -> str:
        """The image that it boots directly as its `kernel` or `ramdisk`; "" if it has none."""
        return "" if self.image is None else self.image.properties.get(f"{what}_id", "")

    @property
    def instance_name(self) -> str:
        """What hosts call it."""
        return "instance-" + self.uuid[:8]

    @property
    def host_id(self) -> str:
        """The host as its users may know it."""
        if self.host is None:
            return ""
        return sha224((self.project_id + self.host).encode()).hexdigest()

    @property
    def amount(self) -> Amount:
        """What it takes of its host."""
        return amount_of(self.flavor)

    # What rows are found by.

    @property
    def flavor_id(self) -> str:
        return self.flavor.flavorid

    @property
    def image_id(self) -> str | None:
        return None if self.image is None else self.image.id

    @property
    def group_uuid(self) -> str | None:
        return self.group

    @property
    def tag_text(self) -> str:
        return "," + ",".join(self.tags) + "," if self.tags else ""

    @property
    def addresses_text(self) -> str:
        """Those that it shows: none while it is being made."""
        return "" if self.is_unmade else " ".join(port.address for port in self.ports)

    @property
    def is_unmade(self) -> bool:
        """Whether it is being made, or waits for that."""
        return self.vm_state in (V.BUILDING, V.PENDING)

    @property
    def counted_size(self) -> tuple[int, int]:
        """The vCPUs and MiB that its project's quota counts."""
        return self.counted or (self.flavor.vcpus, self.flavor.ram_mib)

    @property
    def vcpus(self) -> int:
        return self.flavor.vcpus

    @property
    def ram_mib(self) -> int:
        return self.flavor.ram_mib

    @property
    def changed_at(self) -> str:
        return self.updated_at or self.created_at


def amount_of(flavor: Flavor) -> Amount:
    """What a server of a flavor takes of its host; one of bare metal takes the node itself."""
    if flavor.resource_class is not None:
        return Amount(0, 0, 0)
    return Amount(flavor.vcpus, flavor.ram_mib, flavor.local_gib)


def moved(
    before: Server, to: Moved, now: float, deadline_s: float | None, changes: dict[str, Any]
) -> Server:
    """The server after a move of its machine, with what else changes with it."""
    vm_state, task_state = parted(to.state.name)
    # Once it runs where it was shelved, its image is old: its disk is what counts.
    is_shelved = vm_state != V.ACTIVE or before.host is None
    return before.changed(
        now,
        {
            "vm_state": vm_state,
            "task_state": task_state,
            "deadline": None if deadline_s is None else iso(now + deadline_s),
            "wait_reason": None,
            "shelved_at": before.shelved_at if is_shelved else None,
            **changes,
        },
    )
