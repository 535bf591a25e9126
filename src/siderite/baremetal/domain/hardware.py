"""What can be said of a machine's hardware: the values that drivers and the API exchange."""

from enum import StrEnum
from typing import Any

import msgspec

from siderite.baremetal.domain.secrets import mask
from siderite.core.errors import SideriteError

Json = dict[str, Any]


class HardwareError(SideriteError):
    """The hardware did not do what was asked of it; look at its BMC."""

    code = "hardware.failed"
    status = 502
    refuses_login = False
    """It does not take the credentials: who tries on and on may have it lock the account."""


class Unreachable(HardwareError):
    """The BMC does not answer; check its address, its credentials and the network to it."""

    code = "hardware.unreachable"
    status = 504

    def __init__(
        self,
        bmc: str,
        doing: str,
        why: str = "it does not answer",
        remedy: str = "",
        *,
        is_busy: bool = False,
        again_in: float | None = None,
        refuses_login: bool = False,
    ) -> None:
        self.again_in = again_in
        """In how many seconds it should be asked again, if that is known."""
        self.refuses_login = refuses_login
        self.is_busy = is_busy
        """It answered, with: not now. So it has not begun what it was told."""
        what = remedy or (
            "Check its address and credentials in driver_info, and the network to it; then try"
            " again."
        )
        said = mask(why.rstrip("."))  # a BMC may say what it was told, addresses of images included
        super().__init__(f"{bmc} could not be reached for {doing}: {said}. {what}")


class Refused(HardwareError):
    """The BMC answered that it will not or cannot; its own log may say more."""

    code = "hardware.refused"

    def __init__(
        self, bmc: str, doing: str, why: str, remedy: str = "", *, refuses_login: bool = False
    ) -> None:
        self.refuses_login = refuses_login
        what = remedy or "Its own log may say more; mend that, then try again."
        said = mask(why.rstrip("."))
        super().__init__(f"{bmc} refused {doing}: {said}. {what}")


class BootDevice(StrEnum):
    """What a machine can start from."""

    PXE = "pxe"
    DISK = "disk"
    CDROM = "cdrom"
    BIOS = "bios"
    SAFE = "safe"
    WANBOOT = "wanboot"
    ISCSI = "iscsiboot"
    FLOPPY = "floppy"
    UEFI_HTTP = "uefihttp"


class BootMode(StrEnum):
    """How the firmware starts an operating system."""

    UEFI = "uefi"
    BIOS = "bios"


class Light(StrEnum):
    """What an indicator shows."""

    ON = "on"
    OFF = "off"
    BLINKING = "blinking"
    UNKNOWN = "unknown"


class MediaDevice(StrEnum):
    """The kinds of virtual media."""

    CDROM = "cdrom"
    DISK = "disk"
    FLOPPY = "floppy"


class BootSetting(msgspec.Struct, frozen=True):
    """What the machine starts from next; None where the BMC does not tell."""

    boot_device: BootDevice | None = None
    persistent: bool | None = None


class Indicator(msgspec.Struct, frozen=True):
    """A light on a part of the machine, such as `led` on `chassis`."""

    component: str
    name: str
    readonly: bool = False
    states: tuple[Light, ...] = (Light.ON, Light.OFF, Light.BLINKING)


class Medium(msgspec.Struct, frozen=True):
    """A virtual medium slot."""

    device_type: MediaDevice
    image_url: str | None = None
    inserted: bool = False


class ConsoleInfo(msgspec.Struct, frozen=True):
    """How one gets to a console that is on, such as `socat` at `tcp://10.0.0.1:8023`."""

    type: str
    url: str


class BiosSetting(msgspec.Struct, frozen=True, omit_defaults=True):
    """A firmware setting, and what its registry says about it."""

    name: str
    value: str | None
    attribute_type: str | None = None
    allowable_values: list[str] | None = None
    lower_bound: int | None = None
    upper_bound: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    read_only: bool | None = None
    reset_required: bool | None = None
    unique: bool | None = None


class FirmwareComponent(msgspec.Struct, frozen=True, omit_defaults=True):
    """Firmware that the machine has in one of its parts, such as `bios` or `bmc`."""

    component: str
    current_version: str | None
    vendor: str | None = None
    model: str | None = None
    serial_number: str | None = None


class Sensor(msgspec.Struct, frozen=True):
    """One reading: `kind` is Temperature, Fan, Voltage, Power, Drive …"""

    kind: str
    name: str
    reading: float | None = None
    unit: str | None = None
    health: str | None = None


class Found(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a step found out about a machine; it is kept beside the node. None: nothing was learnt.

    `inventory` has the form of the ramdisk's (`interfaces` with `mac_address`, `cpu`, `memory`,
    `disks`, `system_vendor`, `boot`, `bmc_address`); a port is made for each of `ports`.
    """

    inventory: Json | None = None
    plugin_data: Json | None = None
    bios: list[BiosSetting] | None = None
    firmware: list[FirmwareComponent] | None = None
    ports: tuple[str, ...] = ()
    """MAC addresses of network interfaces that the node shall have ports for."""
