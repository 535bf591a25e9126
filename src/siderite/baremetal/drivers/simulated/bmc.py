"""The BMC of simulated machines: everything a driver can do beside power and steps.

Scripts know its calls as `management.set_boot_device`, `bios.settings` and so on, or all of an
interface by its name: a latency is a slow round trip, a failure a refusal.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from siderite.baremetal.domain.hardware import BiosSetting
from siderite.baremetal.domain.hardware import BootDevice
from siderite.baremetal.domain.hardware import BootMode
from siderite.baremetal.domain.hardware import BootSetting
from siderite.baremetal.domain.hardware import FirmwareComponent
from siderite.baremetal.domain.hardware import Indicator
from siderite.baremetal.domain.hardware import Light
from siderite.baremetal.domain.hardware import MediaDevice
from siderite.baremetal.domain.hardware import Medium
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.domain.hardware import Sensor
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.simulated.effects import bios_settings
from siderite.baremetal.drivers.simulated.effects import firmware_components
from siderite.baremetal.drivers.simulated.machines import ON
from siderite.baremetal.drivers.simulated.machines import Machines
from siderite.core.errors import Unsupported

DEVICES = (BootDevice.PXE, BootDevice.DISK, BootDevice.CDROM, BootDevice.UEFI_HTTP)
LIGHTS = (
    Indicator("chassis", "led"),
    Indicator("system", "led"),
    Indicator("system", "power", readonly=True, states=(Light.ON, Light.OFF)),
)


class SimulatedBmc:
    """Boot device, boot mode, lights, media, settings and the like."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines

    async def boot_devices(self, at: Endpoint) -> Sequence[BootDevice]:
        await self._reach(at, "management", "boot_devices")
        return DEVICES

    async def boot_device(self, at: Endpoint) -> BootSetting:
        memory = await self._reach(at, "management", "boot_device")
        device, persistent = memory.get("boot_device", (BootDevice.DISK, True))
        return BootSetting(BootDevice(device), persistent)

    async def set_boot_device(self, at: Endpoint, device: BootDevice, *, persistent: bool) -> None:
        await self._reach(at, "management", "set_boot_device")
        self._machines.remember(at.node, boot_device=(device, persistent))

    async def boot_mode(self, at: Endpoint) -> BootMode | None:
        memory = await self._reach(at, "management", "boot_mode")
        return BootMode(memory.get("boot_mode", BootMode.UEFI))

    async def set_boot_mode(self, at: Endpoint, mode: BootMode) -> None:
        await self._reach(at, "management", "set_boot_mode")
        self._machines.remember(at.node, boot_mode=mode)

    async def secure_boot(self, at: Endpoint) -> bool | None:
        memory = await self._reach(at, "management", "secure_boot")
        return bool(memory.get("secure_boot", False))

    async def set_secure_boot(self, at: Endpoint, on: bool) -> None:
        memory = await self._reach(at, "management", "set_secure_boot")
        if on and memory.get("boot_mode") == BootMode.BIOS:
            remedy = "Set boot mode uefi first."
            raise Refused(at.bmc, "secure boot", "the machine is in BIOS mode", remedy)
        self._machines.remember(at.node, secure_boot=on)

    async def inject_nmi(self, at: Endpoint) -> None:
        memory = await self._reach(at, "management", "inject_nmi")
        self._machines.remember(at.node, nmis=memory.get("nmis", 0) + 1)

    async def indicators(self, at: Endpoint) -> Sequence[Indicator]:
        await self._reach(at, "management", "indicators")
        return LIGHTS

    async def indicator(self, at: Endpoint, component: str, name: str) -> Light:
        memory = await self._reach(at, "management", "indicator")
        if name == "power":
            return Light.ON if self._machines.power(at) == ON else Light.OFF
        return Light(memory.get("lights", {}).get(f"{name}@{component}", Light.OFF))

    async def set_indicator(self, at: Endpoint, component: str, name: str, to: Light) -> None:
        memory = await self._reach(at, "management", "set_indicator")
        lights = {**memory.get("lights", {}), f"{name}@{component}": to}
        self._machines.remember(at.node, lights=lights)

    async def sensors(self, at: Endpoint) -> Sequence[Sensor]:
        await self._reach(at, "management", "sensors")
        on = self._machines.power(at) == ON
        return (
            Sensor("Temperature", "Inlet", 22.0, "Cel", "OK"),
            Sensor("Temperature", "CPU 1", 54.0 if on else 24.0, "Cel", "OK"),
            Sensor("Fan", "Fan 1", 4200.0 if on else 0.0, "RPM", "OK"),
            Sensor("Power", "PSU 1", 180.0 if on else 9.0, "W", "OK"),
        )

    async def media(self, at: Endpoint) -> Sequence[Medium]:
        memory = await self._reach(at, "management", "media")
        inside = memory.get("media", {})
        return tuple(
            Medium(device, inside.get(device), device in inside)
            for device in (MediaDevice.CDROM, MediaDevice.FLOPPY)
        )

    async def insert(self, at: Endpoint, device: MediaDevice, image_url: str) -> None:
        memory = await self._reach(at, "management", "insert")
        if device is MediaDevice.DISK:
            raise Unsupported(f"{at.bmc} has no virtual disk; it has: cdrom, floppy.")
        self._machines.remember(at.node, media={**memory.get("media", {}), device: image_url})

    async def eject(self, at: Endpoint, device: MediaDevice) -> None:
        memory = await self._reach(at, "management", "eject")
        media = {k: v for k, v in memory.get("media", {}).items() if k != device}
        self._machines.remember(at.node, media=media)

    async def settings(self, at: Endpoint) -> Sequence[BiosSetting]:
        await self._reach(at, "bios", "settings")
        return bios_settings(self._machines, at)

    async def components(self, at: Endpoint) -> Sequence[FirmwareComponent]:
        await self._reach(at, "firmware", "components")
        return firmware_components(self._machines, at)

    async def _reach(self, at: Endpoint, interface: str, call: str) -> dict[str, Any]:
        """One round trip; gives the BMC's memory."""
        script = self._machines.script(at)
        name = f"{interface}.{call}"
        latency_s = script.latency(self._machines.chance(), name, interface)
        if latency_s:
            await asyncio.sleep(latency_s)
        doing = call.replace("_", " ")
        if script.unreachable:
            raise Unreachable(at.bmc, doing)
        why = script.failure(name, interface)
        if why is not None:
            raise Refused(at.bmc, doing, why)
        return self._machines.memory(at.node)
