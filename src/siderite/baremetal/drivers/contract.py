"""What a driver is: small Protocols. What a driver cannot do, it does not have.

Every call may be repeated: after a crash the worker asks again with the same token, and a driver
that knows the token answers how that run is going in place of starting it anew. No call waits for
hardware longer than a network round trip: a long thing answers `Wait` and is asked again.

Power and steps answer with an `Outcome`. The others answer with what they read, or nothing, and
raise `domain.hardware.Unreachable` or `Refused`, whose sentence names the BMC and the remedy, or
`core.errors.Unsupported` where this machine lacks what others of its kind have. They are called
from requests too, so each takes one round trip and may be given up half-way. What they order may
go on as a `Task` of the BMC; who needs it done asks until it has ended.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from operator import attrgetter
from typing import Any
from typing import Protocol

import msgspec

from siderite.baremetal.domain.driver_card import DriverCard
from siderite.baremetal.domain.hardware import BiosSetting
from siderite.baremetal.domain.hardware import BootDevice
from siderite.baremetal.domain.hardware import BootMode
from siderite.baremetal.domain.hardware import BootSetting
from siderite.baremetal.domain.hardware import ConsoleInfo
from siderite.baremetal.domain.hardware import FirmwareComponent
from siderite.baremetal.domain.hardware import Indicator
from siderite.baremetal.domain.hardware import Light
from siderite.baremetal.domain.hardware import MediaDevice
from siderite.baremetal.domain.hardware import Medium
from siderite.baremetal.domain.hardware import Sensor
from siderite.baremetal.domain.node import INTERFACES
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Outcome
from siderite.baremetal.domain.outcome import StillThere
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Step

_interfaces = attrgetter(*(f"{kind}_interface" for kind in INTERFACES))


@lru_cache(256)  # most nodes have the same
def _by_kind(names: tuple[str | None, ...]) -> Mapping[str, str]:
    return {kind: name or "" for kind, name in zip(INTERFACES, names, strict=True)}


class Endpoint(msgspec.Struct, frozen=True):
    """All that a driver needs to know of a node."""

    node: str
    driver_info: Mapping[str, Any]
    properties: Mapping[str, Any]
    instance_info: Mapping[str, Any]
    driver_internal_info: Mapping[str, Any] = {}
    """What drivers, and the ramdisk's calls, have left there."""
    interfaces: Mapping[str, str] = {}
    """The node's interface of each kind, by name."""
    target_raid_config: Mapping[str, Any] = {}
    project: str | None = None
    """Whose images the node may be given, beside public ones."""
    boot_mode: str | None = None
    """What the BMC last said of it."""
    stays_on: bool = False
    """It must not be switched off, ever: it is reset instead."""
    network_data: Mapping[str, Any] = {}
    """The network of its ramdisk, where there is no DHCP."""
    worked: bool = False
    """Its BMC was reached by the work that this is for, maybe in another process: what that knows
    of it was right.
    """

    @classmethod
    def of(cls, node: Node, *, worked: bool = False) -> "Endpoint":
        """The endpoint of a node."""
        return cls(
            node.uuid,
            node.driver_info,
            node.properties,
            node.instance_info,
            node.driver_internal_info,
            _by_kind(_interfaces(node)),
            node.target_raid_config,
            node.lessee or node.owner,
            node.boot_mode,
            node.disable_power_off,
            node.network_data,
            worked,
        )

    @property
    def is_uefi(self) -> bool:
        """Whether the machine starts by UEFI, as its BMC or else the operator says."""
        if self.boot_mode is not None:
            return self.boot_mode == BootMode.UEFI
        words = str(self.properties.get("capabilities") or "").split(",")
        return "boot_mode:uefi" in (word.strip() for word in words)

    @property
    def bmc(self) -> str:
        """What to call the BMC in a sentence."""
        for key, value in self.driver_info.items():
            if key.endswith("_address") and isinstance(value, str) and value:
                return f"The BMC {value.rpartition('@')[2]} of node {self.node}"
        return f"The BMC of node {self.node}"


class Task(msgspec.Struct, frozen=True):
    """What a BMC was told, and does later: it answered with the address of a task."""

    monitor: str
    doing: str
    more: bool = False
    """It is only the first part: the same is to be asked for again when it has ended."""


class UnderWay(msgspec.Struct, frozen=True):
    """A task that has not ended."""

    reason: str
    again_in: float
    is_running: bool
    """The BMC works on it; else it waits for something, such as the machine's next start."""

    @property
    def wait(self) -> Wait:
        """What a step answers that needs it to end."""
        return Wait(self.reason, self.again_in)


class TaskEnd(StrEnum):
    """How a task ended that did not fail."""

    DONE = "done"
    LOST = "lost"
    """The BMC knows nothing of it any more: it ended long ago, or the BMC has begun anew."""


class Tasks(Protocol):
    """Asking a BMC for its tasks; the tasks themselves are kept by whoever waits for them."""

    async def ask(self, at: Endpoint, task: Task) -> UnderWay | TaskEnd:
        """How it is going; Refused if it failed."""
        ...


class Power(Protocol):
    """Switching and reading power."""

    async def read(self, at: Endpoint) -> PowerState:
        """What the hardware says; UNKNOWN, or a HardwareError that says why, if it cannot tell.
        Changes nothing.
        """
        ...

    async def set(self, at: Endpoint, to: PowerTarget, token: str) -> Outcome:
        """Begin, or tell of, one change of power. Repeating it with the token is harmless."""
        ...


class Steps(Protocol):
    """The pieces of provisioning."""

    async def steps(self, at: Endpoint, family: Family) -> list[Step]:
        """What the driver can do for this kind of work; those with a priority are done unasked."""
        ...

    async def frame(self, at: Endpoint, family: Family, chosen: list[Step]) -> list[Step] | Failed:
        """The chosen steps, with what must go before and after them, such as a ramdisk's boot; or
        why they cannot be run one after the other.
        """
        ...

    async def run(self, at: Endpoint, family: Family, step: Step, token: str) -> Outcome:
        """Begin, or tell of, one run of a step. Repeating it with the token is harmless.

        What it does to the power is announced first: the step itself says so if it begins with that
        (`Step.switches`), else the last Wait before it does. The machine has it by a Wait's `power`
        or with Done.
        """
        ...

    async def forget(
        self, at: Endpoint, token: str, *, back: bool = False
    ) -> Wait | Done | StillThere | None:
        """The run is no longer wanted: stop it if that can be done, and leave no ramdisk behind;
        without a token, none that runs in place of the workload. With `back` none does that either,
        whichever work has booted it, and the workload's disk is what the machine starts from next.

        Wait: the BMC is out of reach, or its machine not off yet, and it is worth asking again.
        Done: there was a ramdisk, and its machine has gone off, or is to be started by the caller.
        StillThere: there is one, and nothing that may be done would end it.
        """
        ...


class BootDevices(Protocol):
    """What a machine starts from."""

    async def boot_devices(self, at: Endpoint) -> Sequence[BootDevice]:
        """Those that may be chosen."""
        ...

    async def boot_device(self, at: Endpoint) -> BootSetting:
        """The one that is chosen."""
        ...

    async def set_boot_device(
        self, at: Endpoint, device: BootDevice, *, persistent: bool
    ) -> Task | None:
        """Choose one, for the next start or for all."""
        ...


class BootModes(Protocol):
    """UEFI or BIOS."""

    async def boot_mode(self, at: Endpoint) -> BootMode | None:
        """The mode; None if it cannot be told."""
        ...

    async def set_boot_mode(self, at: Endpoint, mode: BootMode) -> Task | None:
        """Change it, by the next start at the latest."""
        ...


class SecureBoot(Protocol):
    """Whether only signed systems start."""

    async def secure_boot(self, at: Endpoint) -> bool | None:
        """Whether it is on; None if it cannot be told."""
        ...

    async def set_secure_boot(self, at: Endpoint, on: bool) -> Task | None:
        """Switch it, by the next start at the latest."""
        ...


class Nmi(Protocol):
    """Asking the operating system for a crash dump."""

    async def inject_nmi(self, at: Endpoint) -> None:
        """A non-maskable interrupt."""
        ...


class Indicators(Protocol):
    """Lights."""

    async def indicators(self, at: Endpoint) -> Sequence[Indicator]:
        """Those there are."""
        ...

    async def indicator(self, at: Endpoint, component: str, name: str) -> Light:
        """What one shows."""
        ...

    async def set_indicator(self, at: Endpoint, component: str, name: str, to: Light) -> None:
        """Have it show something else."""
        ...


class Sensors(Protocol):
    """Temperatures, fans, voltages and the like."""

    async def sensors(self, at: Endpoint) -> Sequence[Sensor]:
        """All readings."""
        ...


class VirtualMedia(Protocol):
    """Images that the machine takes for a disc in its drive."""

    async def media(self, at: Endpoint) -> Sequence[Medium]:
        """The slots, and what is in them."""
        ...

    async def insert(self, at: Endpoint, device: MediaDevice, image_url: str) -> Task | None:
        """Put an image into the slot of this kind, in the place of what is there."""
        ...

    async def eject(self, at: Endpoint, device: MediaDevice) -> Task | None:
        """Take out what is in the slots of this kind; an empty one is fine."""
        ...


class Console(Protocol):
    """The machine's serial line or screen."""

    async def start(self, at: Endpoint) -> ConsoleInfo:
        """Have it reachable, from this process if need be, and say where; also if it was."""
        ...

    async def stop(self, at: Endpoint) -> None:
        """Have it unreachable; also if it was."""
        ...


class Bios(Protocol):
    """Firmware settings; they are changed by the steps of interface `bios`."""

    async def settings(self, at: Endpoint) -> Sequence[BiosSetting]:
        """All settings."""
        ...


class Firmware(Protocol):
    """Firmware versions; they are changed by the steps of interface `firmware`."""

    async def components(self, at: Endpoint) -> Sequence[FirmwareComponent]:
        """All parts with firmware."""
        ...


class Driver(msgspec.Struct, frozen=True):
    """A hardware type: its card for others to read, and what it can do; None is what it cannot.

    RAID and inspection are steps: those of interface `raid` work from the endpoint's
    `target_raid_config` and give `raid_config` among their changes; those of family `inspect` give
    `properties` among their changes, and what else they saw as `found`.
    """

    card: DriverCard
    power: Power
    steps: Steps
    boot_devices: BootDevices | None = None
    boot_modes: BootModes | None = None
    secure_boot: SecureBoot | None = None
    nmi: Nmi | None = None
    indicators: Indicators | None = None
    sensors: Sensors | None = None
    virtual_media: VirtualMedia | None = None
    console: Console | None = None
    bios: Bios | None = None
    firmware: Firmware | None = None
    tasks: Tasks | None = None


Drivers = Mapping[str, Driver]


def gone(driver: str) -> str:
    """Why work on a node fails whose driver there is none of."""
    return f"driver {driver} is not there (any more)"
