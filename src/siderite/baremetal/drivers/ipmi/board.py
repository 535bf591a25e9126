"""What an IPMI BMC can do to its machine: power, start, light, crash dumps, readings."""

import contextlib
import csv
from collections.abc import Sequence

from siderite.baremetal.domain.hardware import BootDevice
from siderite.baremetal.domain.hardware import BootSetting
from siderite.baremetal.domain.hardware import HardwareError
from siderite.baremetal.domain.hardware import Indicator
from siderite.baremetal.domain.hardware import Light
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.domain.hardware import Sensor
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.drivers.bmc import PowerOrder
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.ipmi.tool import READING
from siderite.baremetal.drivers.ipmi.tool import IpmiTool

_ORDERS = {
    PowerOrder.ON: "on",
    PowerOrder.OFF: "off",
    PowerOrder.SOFT_OFF: "soft",
    PowerOrder.RESET: "reset",
}
_DEVICES = {
    BootDevice.PXE: "pxe",
    BootDevice.DISK: "disk",
    BootDevice.CDROM: "cdrom",
    BootDevice.BIOS: "bios",
    BootDevice.SAFE: "safe",
    BootDevice.FLOPPY: "floppy",
}
_SELECTED = {
    "Force PXE": BootDevice.PXE,
    "Force Boot from default Hard-Drive": BootDevice.DISK,
    "Force Boot from default Hard-Drive, request Safe-Mode": BootDevice.SAFE,
    "Force Boot from CD/DVD": BootDevice.CDROM,
    "Force Boot into BIOS Setup": BootDevice.BIOS,
    "Force Boot from Floppy/primary removable media": BootDevice.FLOPPY,
}
_KINDS = {"degrees C": "Temperature", "RPM": "Fan", "Volts": "Voltage", "Watts": "Power"}
_UNITS = {"degrees C": "C", "Volts": "V", "Watts": "W"}
_COMPONENT, _LED = "chassis", "identify"
_COLUMNS = 4


class IpmiBoard:
    """All of a BMC's abilities that IPMI has words for."""

    def __init__(self, tool: IpmiTool) -> None:
        self._tool = tool

    async def power(self, at: Endpoint) -> PowerState:
        """What the BMC says."""
        said = await self._tool.run(at, "a reading of its power", *READING)
        last = said.strip().lower().rpartition(" ")[2]
        return {"on": PowerState.ON, "off": PowerState.OFF}.get(last, PowerState.UNKNOWN)

    async def last_reset(self, at: Endpoint) -> str | None:
        """IPMI does not tell."""
        return None

    async def press(self, at: Endpoint, order: PowerOrder) -> None:
        """Give an order."""
        if order not in _ORDERS:
            raise Refused(at.bmc, f"power {order}", "IPMI has none", "Reboot it the hard way.")
        await self._tool.run(at, f"power {order}", "power", _ORDERS[order])

    async def boot_devices(self, at: Endpoint) -> Sequence[BootDevice]:
        """Those that IPMI knows; a BMC may have fewer, and then says so."""
        return list(_DEVICES)

    async def boot_device(self, at: Endpoint) -> BootSetting:
        """The one that is chosen."""
        said = await self._tool.run(at, "its boot device", "chassis", "bootparam", "get", "5")
        device, persistent = None, None
        for line in said.splitlines():
            text = line.strip(" \t-")
            name, _, value = text.partition(":")
            if name.strip() == "Boot Device Selector":
                device = _SELECTED.get(value.strip())
            elif "apply to all future boots" in text:
                persistent = True
            elif "apply to only next boot" in text:
                persistent = False
        return BootSetting(device, persistent)

    async def set_boot_device(self, at: Endpoint, device: BootDevice, *, persistent: bool) -> None:
        """Choose one, for the next start or for all."""
        doing = f"boot device {device}"
        word = _DEVICES.get(device)
        if word is None:
            known = ", ".join(_DEVICES)
            raise Refused(at.bmc, doing, f"IPMI has no such device, but: {known}")
        with contextlib.suppress(Refused):
            # Most BMCs forget the choice after a minute unless told not to; some know no better.
            await self._tool.run(at, doing, "raw", "0x00", "0x08", "0x03", "0x08")
        options = [name for name, on in (("persistent", persistent), ("efiboot", at.is_uefi)) if on]
        more = [f"options={','.join(options)}"] if options else []
        await self._tool.run(at, doing, "chassis", "bootdev", word, *more)
        await self._check_chosen(at, device, doing)

    async def _check_chosen(self, at: Endpoint, device: BootDevice, doing: str) -> None:
        """A BMC that has no such device may say nothing, and leave the choice as it was."""
        try:
            chosen = (await self.boot_device(at)).boot_device
        except HardwareError:
            return  # nobody can tell: it has taken the order
        if chosen not in (None, device):
            raise Refused(
                at.bmc, doing, f"it took the order, and starts from {chosen} all the same",
                "It may have no such device: choose another.",
            )  # fmt: skip

    async def inject_nmi(self, at: Endpoint) -> None:
        """A non-maskable interrupt."""
        await self._tool.run(at, "an NMI", "power", "diag")

    async def indicators(self, at: Endpoint) -> Sequence[Indicator]:
        """The light that tells one machine from its neighbours."""
        return [Indicator(_COMPONENT, _LED, states=(Light.ON, Light.OFF))]

    async def indicator(self, at: Endpoint, component: str, name: str) -> Light:
        """IPMI cannot read it."""
        _check(at, component, name)
        return Light.UNKNOWN

    async def set_indicator(self, at: Endpoint, component: str, name: str, to: Light) -> None:
        """Switch it on for good, or off."""
        _check(at, component, name)
        if to not in (Light.ON, Light.OFF):
            raise Refused(at.bmc, "an indicator", "IPMI can switch it on or off, nothing else")
        await self._tool.run(
            at, "an indicator", "chassis", "identify", "force" if to is Light.ON else "0"
        )

    async def sensors(self, at: Endpoint) -> Sequence[Sensor]:
        """All readings."""
        said = await self._tool.run(at, "its sensors", "-c", "sdr", "list")
        return [_sensor(row) for row in csv.reader(said.splitlines()) if len(row) >= _COLUMNS]


def _sensor(row: list[str]) -> Sensor:
    name, reading, unit, health = (cell.strip() for cell in row[:_COLUMNS])
    try:
        value = float(reading)
    except ValueError:
        value = None
    return Sensor(
        _KINDS.get(unit, "Other"), name, value, _UNITS.get(unit, unit) or None, health or None
    )


def _check(at: Endpoint, component: str, name: str) -> None:
    if (component, name) != (_COMPONENT, _LED):
        raise Refused(at.bmc, "an indicator", f"it has only {_LED}@{_COMPONENT}")
