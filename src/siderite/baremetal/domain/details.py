"""What is kept of a machine beside its node: inventory, BIOS settings, firmware.

Each kind is one document. A newer reading replaces the older; what did not change keeps its times.
"""

import re
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import msgspec

from siderite.baremetal.domain.hardware import BiosSetting
from siderite.baremetal.domain.hardware import FirmwareComponent
from siderite.baremetal.domain.hardware import Json

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}\Z")
_MIB = 1024 * 1024
_GIB = 1024**3


class KnownSetting(msgspec.Struct, frozen=True, omit_defaults=True):
    """A BIOS setting, since when it is known and when it changed last."""

    setting: BiosSetting
    created_at: str
    updated_at: str | None = None


class KnownFirmware(msgspec.Struct, frozen=True, omit_defaults=True):
    """Firmware of a part, as it is and as it was when it was first seen."""

    part: FirmwareComponent
    initial_version: str | None
    created_at: str
    updated_at: str | None = None
    last_version_flashed: str | None = None


class Inventory(msgspec.Struct, frozen=True):
    """What inspection found."""

    inventory: Json
    plugin_data: Json


def settings(
    before: Sequence[KnownSetting], found: Iterable[BiosSetting], now: str
) -> list[KnownSetting]:
    """The settings as they are known after a reading."""
    known = {item.setting.name: item for item in before}
    after = []
    for setting in found:
        old = known.get(setting.name)
        if old is None:
            after.append(KnownSetting(setting, now))
        elif old.setting == setting:
            after.append(old)
        else:
            after.append(KnownSetting(setting, old.created_at, now))
    return after


def firmware(
    before: Sequence[KnownFirmware], found: Iterable[FirmwareComponent], now: str
) -> list[KnownFirmware]:
    """The firmware as it is known after a reading."""
    known = {item.part.component: item for item in before}
    after = []
    for part in found:
        old = known.get(part.component)
        if old is None:
            after.append(KnownFirmware(part, part.current_version, now))
        elif old.part == part:
            after.append(old)
        else:
            flashed = old.last_version_flashed
            if part.current_version != old.part.current_version:
                flashed = part.current_version
            after.append(KnownFirmware(part, old.initial_version, old.created_at, now, flashed))
    return after


def mac_addresses(found: Iterable[object]) -> tuple[str, ...]:
    """Those that are MAC addresses, in their common form, each once."""
    texts = (str(item).lower().replace("-", ":") for item in found)
    return tuple(dict.fromkeys(text for text in texts if _MAC.match(text)))


def macs(inventory: Json) -> tuple[str, ...]:
    """The MAC addresses of an inventory's interfaces."""
    interfaces = inventory.get("interfaces")
    return mac_addresses(
        interface.get("mac_address")
        for interface in (interfaces if isinstance(interfaces, list) else ())
        if isinstance(interface, dict)
    )


def properties(inventory: Json) -> dict[str, Any]:
    """What an inventory says for a node's properties. A ramdisk may say anything: what makes no
    sense there is passed over.
    """
    cpu, memory = inventory.get("cpu"), inventory.get("memory")
    disks = inventory.get("disks")
    found: dict[str, Any] = {}
    if isinstance(cpu, dict):
        if isinstance(cpu.get("architecture"), str):
            found["cpu_arch"] = cpu["architecture"]
        if count := _number(cpu.get("count")):
            found["cpus"] = str(count)
    if isinstance(memory, dict):
        size = _number(memory.get("physical_mb")) or _number(memory.get("total")) // _MIB
        if size:
            found["memory_mb"] = str(size)
    each = disks if isinstance(disks, list) else ()
    largest = max((_number(disk.get("size")) for disk in each if isinstance(disk, dict)), default=0)
    if largest >= _GIB:
        found["local_gb"] = str(largest // _GIB)
    return found


def _number(value: object) -> int:
    """A whole number above 0, or 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
