"""How a Redfish system starts, its light, and its crash dumps."""

from collections.abc import Sequence
from typing import Any

from siderite.baremetal.domain.hardware import BootDevice
from siderite.baremetal.domain.hardware import BootMode
from siderite.baremetal.domain.hardware import BootSetting
from siderite.baremetal.domain.hardware import Indicator
from siderite.baremetal.domain.hardware import Light
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.contract import Task
from siderite.baremetal.drivers.redfish.button import reset
from siderite.baremetal.drivers.redfish.lines import Lines

_SOURCES = {
    BootDevice.PXE: "Pxe",
    BootDevice.DISK: "Hdd",
    BootDevice.CDROM: "Cd",
    BootDevice.BIOS: "BiosSetup",
    BootDevice.FLOPPY: "Floppy",
    BootDevice.UEFI_HTTP: "UefiHttp",
}
_OTHERWISE = {BootDevice.CDROM: "UsbCd"}
"""What some BMCs call a device instead."""
_DEVICES = {source: device for pairs in (_SOURCES, _OTHERWISE) for device, source in pairs.items()}
_LIGHTS = {"Lit": Light.ON, "On": Light.ON, "Off": Light.OFF, "Blinking": Light.BLINKING}
_COMPONENT, _LED = "system", "led"


class RedfishBoard:
    """Boot device and mode, secure boot, the indicator light, NMI."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    async def boot_devices(self, at: Endpoint) -> Sequence[BootDevice]:
        """Those that may be chosen."""

        offered = await self._lines.system(at, "its boot devices", _offered)
        return [
            device
            for device, source in _SOURCES.items()
            if {source, _OTHERWISE.get(device)} & offered
        ]

    async def boot_device(self, at: Endpoint) -> BootSetting:
        """The one that is chosen."""

        def read(system: Any) -> tuple[str | None, str | None]:
            boot = system.boot
            return (None, None) if boot is None else (_value(boot.target), _value(boot.enabled))

        target, enabled = await self._lines.system(at, "its boot device", read)
        persistent = None if enabled is None else enabled == "Continuous"
        return BootSetting(_DEVICES.get(target or ""), persistent)

    async def set_boot_device(
        self, at: Endpoint, device: BootDevice, *, persistent: bool
    ) -> Task | None:
        """Choose one, for the next start or for all."""
        doing = f"boot device {device}"
        source = _SOURCES.get(device)
        if source is None:
            known = ", ".join(_SOURCES)
            raise Refused(at.bmc, doing, f"Redfish has no such device, but: {known}")

        def patch(system: Any) -> None:
            import sushy  # noqa: PLC0415

            enabled = sushy.BootSourceOverrideEnabled
            offered, other = _offered(system), _OTHERWISE.get(device)
            named = other if source not in offered and other in offered else source
            if named not in offered:
                known = ", ".join(sorted(offered))
                raise Refused(at.bmc, doing, f"it does not start from that, only from {known}")
            system.set_system_boot_options(
                sushy.BootSource(named),
                enabled=enabled.CONTINUOUS if persistent else enabled.ONCE,
            )

        return await self._lines.order(at, doing, patch)

    async def boot_mode(self, at: Endpoint) -> BootMode | None:
        """The mode; None if the BMC does not tell."""

        def read(system: Any) -> str | None:
            return None if system.boot is None else _value(system.boot.mode)

        mode = await self._lines.system(at, "its boot mode", read)
        return {"UEFI": BootMode.UEFI, "Legacy": BootMode.BIOS}.get(mode or "")

    async def set_boot_mode(self, at: Endpoint, mode: BootMode) -> Task | None:
        """Change it, by the next start."""

        def patch(system: Any) -> None:
            import sushy  # noqa: PLC0415

            modes = sushy.BootSourceOverrideMode
            system.set_system_boot_options(
                mode=modes.UEFI if mode is BootMode.UEFI else modes.LEGACY
            )

        return await self._lines.order(at, f"boot mode {mode}", patch)

    async def secure_boot(self, at: Endpoint) -> bool | None:
        """Whether it is on; None on a system that has no such thing."""

        def read(system: Any) -> bool | None:
            from sushy import exceptions  # noqa: PLC0415

            try:
                enabled = system.secure_boot.enabled
            except (exceptions.MissingAttributeError, exceptions.ResourceNotFoundError):
                return None
            return None if enabled is None else bool(enabled)

        return await self._lines.system(at, "secure boot", read)

    async def set_secure_boot(self, at: Endpoint, on: bool) -> Task | None:
        """Switch it, by the next start."""
        return await self._lines.order(at, "secure boot", lambda s: s.secure_boot.set_enabled(on))

    async def inject_nmi(self, at: Endpoint) -> None:
        """A non-maskable interrupt."""
        await reset(self._lines, at, "an NMI", "Nmi")

    async def indicators(self, at: Endpoint) -> Sequence[Indicator]:
        """The system's light, if it has one."""
        led = await self._lines.system(at, "its indicators", _led)
        return [] if led is None else [Indicator(_COMPONENT, _LED)]

    async def indicator(self, at: Endpoint, component: str, name: str) -> Light:
        """What it shows."""
        _check(at, component, name)
        led = await self._lines.system(at, "an indicator", _led)
        return _LIGHTS.get(led or "", Light.UNKNOWN)

    async def set_indicator(self, at: Endpoint, component: str, name: str, to: Light) -> None:
        """Have it show something else."""
        _check(at, component, name)

        def patch(system: Any) -> None:
            import sushy  # noqa: PLC0415

            leds = sushy.IndicatorLED
            states = {Light.ON: leds.LIT, Light.OFF: leds.OFF, Light.BLINKING: leds.BLINKING}
            system.set_indicator_led(states[to])

        await self._lines.system(at, "an indicator", patch)


def _offered(system: Any) -> set[str]:
    return {str(source.value) for source in system.get_allowed_system_boot_source_values()}


def _led(system: Any) -> str | None:
    return _value(system.indicator_led)


def _check(at: Endpoint, component: str, name: str) -> None:
    if (component, name) != (_COMPONENT, _LED):
        raise Refused(at.bmc, "an indicator", f"it has only {_LED}@{_COMPONENT}")


def _value(value: Any) -> str | None:
    return None if value is None else str(getattr(value, "value", value))
