"""What a Redfish BMC knows of the inside of its machine: parts, firmware, settings, readings."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

from siderite.baremetal.domain.hardware import BiosSetting
from siderite.baremetal.domain.hardware import FirmwareComponent
from siderite.baremetal.domain.hardware import Found
from siderite.baremetal.domain.hardware import Json
from siderite.baremetal.domain.hardware import Sensor
from siderite.baremetal.drivers.contract import Endpoint
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
                bios=_quietly(_settings, system),
                firmware=_quietly(_components, system),
                ports=macs,
            )
            return _properties(inventory), found

        return await self._lines.system(at, "inspection", read)


def _quietly(read: Callable[[Any], list[Any]], system: Any) -> list[Any]:
    """What cannot be read here is not there."""
    from sushy import exceptions  # noqa: PLC0415

    try:
        return read(system)
    except exceptions.SushyError:
        return []


def _settings(system: Any) -> list[BiosSetting]:
    attributes = system.bios.attributes or {}
    return [
        BiosSetting(str(name), None if value is None else str(value))
        for name, value in sorted(attributes.items())
    ]


def _components(system: Any) -> list[FirmwareComponent]:
    found = []
    if system.bios_version:
        found.append(
            FirmwareComponent("bios", system.bios_version, vendor=system.manufacturer or None)
        )
    for manager in linked(system, "managers"):
        if manager.firmware_version:
            found.append(
                FirmwareComponent("bmc", manager.firmware_version, model=manager.model or None)
            )
            break
    for adapter in adapters(system):
        version = next((one.firmware_package_version for one in adapter.controllers or ()), None)
        if version:
            found.append(
                FirmwareComponent(
                    f"nic:{adapter.identity}", version, vendor=adapter.manufacturer or None,
                    model=adapter.model or None, serial_number=adapter.serial_number or None,
                )
            )  # fmt: skip
    return found


def _sensors(system: Any) -> list[Sensor]:
    from sushy import exceptions  # noqa: PLC0415

    found: list[Sensor] = []
    for chassis in linked(system, "chassis"):
        for part, read in (("thermal", _thermal), ("power", _supplies)):
            try:
                found += read(getattr(chassis, part))
            except exceptions.SushyError:
                continue  # this chassis has no such readings
    return found


def _thermal(thermal: Any) -> Iterator[Sensor]:
    for one in thermal.temperatures or ():
        yield Sensor("Temperature", one.name, _number(one.reading_celsius), "C", _health(one))
    for one in thermal.fans or ():
        yield Sensor("Fan", one.name, _number(one.reading), _text(one.reading_units), _health(one))


def _supplies(power: Any) -> Iterator[Sensor]:
    for one in power.power_supplies or ():
        watts = _number(one.last_power_output_watts)
        yield Sensor("Power", one.name, watts, "W", _health(one))


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
    from sushy import exceptions  # noqa: PLC0415

    try:
        nics = system.ethernet_interfaces.get_members()
    except exceptions.SushyError:
        return []
    found = []
    for nic in nics:
        mac = nic.permanent_mac_address or nic.mac_address
        if mac:
            known = {"name": nic.identity, "mac_address": mac.lower(), "speed_mbps": nic.speed_mbps}
            found.append(known)
    return found


def _cpu(system: Any) -> Json:
    from sushy import exceptions  # noqa: PLC0415

    try:
        summary = system.processors.summary
        members = system.processors.get_members()
    except exceptions.SushyError:
        return {"count": 0, "architecture": None, "model_name": None}
    kind = _text(summary.architecture)
    first = members[0] if members else None
    return {
        "count": int(summary.count or 0),
        "architecture": _ARCHITECTURES.get(kind or "", kind),
        "model_name": first.model if first is not None else None,
    }


def _disks(system: Any) -> list[Json]:
    """From the storage controllers, or else as the BMC simply lists them."""
    from sushy import exceptions  # noqa: PLC0415

    found: list[Json] = []
    try:
        for storage in system.storage.get_members():
            for drive in storage.drives:
                if drive.capacity_bytes:
                    found.append(_disk(drive.name or drive.identity, drive.capacity_bytes, drive))
    except exceptions.SushyError:
        found = []
    if found:
        return found
    try:
        for storage in system.simple_storage.get_members():
            for disk in storage.devices or ():
                if disk.capacity_bytes:
                    found.append(_disk(disk.name, disk.capacity_bytes, disk))
    except exceptions.SushyError:
        return []
    return found


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


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _health(part: Any) -> str | None:
    status = getattr(part, "status", None)
    return None if status is None else _text(status.health)
