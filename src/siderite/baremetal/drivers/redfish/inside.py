"""What a Redfish BMC knows of the inside of its machine: parts, firmware, settings, readings."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from siderite.baremetal.domain.hardware import BiosSetting
from siderite.baremetal.domain.hardware import FirmwareComponent
from siderite.baremetal.domain.hardware import Found
from siderite.baremetal.domain.hardware import Json
from siderite.baremetal.domain.hardware import Sensor
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.redfish.answers import or_else
from siderite.baremetal.drivers.redfish.lines import Lines
from siderite.baremetal.drivers.redfish.update_service import adapters
from siderite.baremetal.drivers.redfish.update_service import linked

_GIB = 1 << 30
_ARCHITECTURES = {"x86-64": "x86_64", "x86": "x86_64", "ARM-A64": "aarch64", "OEM": None}


class RedfishInside:
    """Firmware settings and versions, sensors, and inspection without a ramdisk."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    async def settings(self, at: Endpoint) -> Sequence[BiosSetting]:
        """All firmware settings."""
        return await self._lines.system(at, "its BIOS settings", _settings)

    async def components(self, at: Endpoint) -> Sequence[FirmwareComponent]:
        """All parts with firmware."""
        return await self._lines.system(at, "its firmware versions", _components)

    async def sensors(self, at: Endpoint) -> Sequence[Sensor]:
        """All readings."""
        return await self._lines.system(at, "its sensors", _sensors)

    async def inspect(self, at: Endpoint) -> tuple[Json, Found]:
        """Properties of the machine, and what else was found."""

        def read(system: Any) -> tuple[Json, Found]:
            inventory = _inventory(system, at)
            macs = tuple(nic["mac_address"] for nic in inventory["interfaces"])
            found = Found(
                inventory=inventory,
                plugin_data={},
                bios=or_else(lambda: _settings(system), []),
                firmware=or_else(lambda: _components(system), []),
                ports=macs,
            )
            return _properties(inventory), found

        return await self._lines.system(at, "inspection", read)


def _settings(system: Any) -> list[BiosSetting]:
    attributes = system.bios.attributes or {}
    return [
        BiosSetting(str(name), None if value is None else str(value))
        for name, value in sorted(attributes.items())
    ]


def _components(system: Any) -> list[FirmwareComponent]:
    found = []
    if system.bios_version:
        bios, vendor = _word(system.bios_version), _word(system.manufacturer)
        found.append(FirmwareComponent("bios", bios, vendor=vendor))
    for manager in linked(system, "managers"):
        if manager.firmware_version:
            version, model = _word(manager.firmware_version), _word(manager.model)
            found.append(FirmwareComponent("bmc", version, model=model))
            break
    for adapter in adapters(system):
        version = next((one.firmware_package_version for one in adapter.controllers or ()), None)
        if version:
            found.append(
                FirmwareComponent(
                    f"nic:{adapter.identity}", _word(version), vendor=_word(adapter.manufacturer),
                    model=_word(adapter.model), serial_number=_word(adapter.serial_number),
                )
            )  # fmt: skip
    return found


def _sensors(system: Any) -> list[Sensor]:
    found: list[Sensor] = []
    for chassis in linked(system, "chassis"):
        found += or_else(partial(_thermal, chassis), [])
        found += or_else(partial(_supplies, chassis), [])
    return found


def _thermal(chassis: Any) -> list[Sensor]:
    thermal = chassis.thermal
    warm = [
        Sensor("Temperature", one.name, _number(one.reading_celsius), "C", _health(one))
        for one in thermal.temperatures or ()
    ]
    turning = [
        Sensor("Fan", one.name, _number(one.reading), _text(one.reading_units), _health(one))
        for one in thermal.fans or ()
    ]
    return warm + turning


def _supplies(chassis: Any) -> list[Sensor]:
    return [
        Sensor("Power", one.name, _number(one.last_power_output_watts), "W", _health(one))
        for one in chassis.power.power_supplies or ()
    ]


def _inventory(system: Any, at: Endpoint) -> Json:
    memory = system.memory_summary
    memory_gib = (memory.size_gib if memory is not None else None) or 0
    return {
        "interfaces": _interfaces(system),
        "cpu": _cpu(system),
        "memory": {"physical_mb": int(memory_gib * 1024)},
        "disks": _disks(system),
        "system_vendor": {
            "manufacturer": system.manufacturer,
            "product_name": system.model or system.name,
            "serial_number": system.serial_number,
        },
        "boot": {"current_boot_mode": _boot_mode(system)},
        "bmc_address": str(at.driver_info.get("redfish_address", "")).rpartition("@")[2],
    }


def _interfaces(system: Any) -> list[Json]:
    found = []
    for nic in or_else(lambda: list(system.ethernet_interfaces.get_members()), []):
        mac = nic.permanent_mac_address or nic.mac_address
        if mac and isinstance(mac, str):
            known = {"name": nic.identity, "mac_address": mac.lower(), "speed_mbps": nic.speed_mbps}
            found.append(known)
    return found


def _cpu(system: Any) -> Json:
    unknown = {"count": 0, "architecture": None, "model_name": None}
    found: Json = or_else(lambda: _processors(system), unknown)
    return found


def _processors(system: Any) -> Json:
    summary = system.processors.summary
    members = system.processors.get_members()
    kind = _text(summary.architecture)
    first = members[0] if members else None
    return {
        "count": int(summary.count or 0),
        "architecture": _ARCHITECTURES.get(kind or "", kind),
        "model_name": first.model if first is not None else None,
    }


def _disks(system: Any) -> list[Json]:
    """From the storage controllers, or else as the BMC simply lists them."""
    found: list[Json] = or_else(lambda: _drives(system), [])
    return found or list(or_else(lambda: _devices(system), []))


def _drives(system: Any) -> list[Json]:
    return [
        _disk(drive.name or drive.identity, drive.capacity_bytes, drive)
        for storage in system.storage.get_members()
        for drive in storage.drives
        if drive.capacity_bytes
    ]


def _devices(system: Any) -> list[Json]:
    return [
        _disk(disk.name, disk.capacity_bytes, disk)
        for storage in system.simple_storage.get_members()
        for disk in storage.devices or ()
        if disk.capacity_bytes
    ]


def _disk(name: str, size: int, part: Any) -> Json:
    return {
        "name": name,
        "size": int(size),
        "model": getattr(part, "model", None),
        "serial": getattr(part, "serial_number", None),
    }


def _properties(inventory: Json) -> Json:
    """What schedulers ask for; sizes as whole numbers in text, as clients know them."""
    found: Json = {}
    if inventory["cpu"]["count"]:
        found["cpus"] = str(inventory["cpu"]["count"])
    if inventory["cpu"]["architecture"]:
        found["cpu_arch"] = inventory["cpu"]["architecture"]
    if inventory["memory"]["physical_mb"]:
        found["memory_mb"] = str(inventory["memory"]["physical_mb"])
    sizes = [disk["size"] for disk in inventory["disks"] if disk["size"] >= _GIB]
    if sizes:
        # One less: some tools count a partition table's share as lost.
        found["local_gb"] = str(max(1, min(sizes) // _GIB - 1))
    return found


def _boot_mode(system: Any) -> str | None:
    mode = _text(system.boot.mode) if system.boot is not None else None
    return {"UEFI": "uefi", "Legacy": "bios"}.get(mode or "")


def _text(value: Any) -> str | None:
    return None if value is None else str(getattr(value, "value", value))


def _word(value: Any) -> str | None:
    """A text, or a number in its place; what is neither is nothing."""
    return str(value) if isinstance(value, str | int | float) and value != "" else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _health(part: Any) -> str | None:
    status = getattr(part, "status", None)
    return None if status is None else _text(status.health)
