"""What a step leaves behind when it has run on a simulated machine."""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from siderite.baremetal.domain.hardware import BiosSetting
from siderite.baremetal.domain.hardware import FirmwareComponent
from siderite.baremetal.domain.hardware import Found
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.simulated.machines import OFF
from siderite.baremetal.drivers.simulated.machines import ON
from siderite.baremetal.drivers.simulated.machines import Machines

SETTINGS = (
    BiosSetting("BootMode", "Uefi", "Enumeration", ["Uefi", "Bios"], reset_required=True),
    BiosSetting("NumLock", "On", "Enumeration", ["On", "Off"], reset_required=False),
    BiosSetting("ProcTurboMode", "Enabled", "Enumeration", ["Enabled", "Disabled"]),
    BiosSetting("ProcVirtualization", "Enabled", "Enumeration", ["Enabled", "Disabled"]),
    BiosSetting("AssetTag", "", "String", min_length=0, max_length=63),
    BiosSetting("SystemModel", "Simulated", "String", read_only=True, unique=True),
)
FIRMWARE = (
    FirmwareComponent("bios", "1.0.0", "Siderite", "Simulated firmware"),
    FirmwareComponent("bmc", "1.0.0", "Siderite", "Simulated BMC"),
)
POWER = {
    "deploy.write_image": ON,
    "rescue.boot_rescue": ON,
    "rescue.boot_instance": ON,
    "deploy.take_over": ON,
    "deploy.tear_down": OFF,
}
"""The power that a step leaves the machine with."""

_PROPERTIES = {"cpus": "8", "memory_mb": "16384", "local_gb": "200", "cpu_arch": "x86_64"}


def ended(machines: Machines, at: Endpoint, step: Step) -> Done | Failed:
    """The step has run: the machine is as it left it. Asking again changes nothing more."""
    name = f"{step.interface}.{step.step}"
    try:
        match name:
            case "inspect.inspect":
                return _inspected(at)
            case "bios.apply_configuration":
                _apply_bios(machines, at, _settings(at, step.args))
                return Done(found=Found(bios=bios_settings(machines, at)))
            case "bios.factory_reset":
                machines.remember(at.node, bios={})
                return Done(found=Found(bios=bios_settings(machines, at)))
            case "firmware.update":
                _flash(machines, at, _settings(at, step.args))
                return Done(found=Found(firmware=firmware_components(machines, at)))
            case "raid.create_configuration":
                return Done({"raid_config": _raid(at)})
            case "raid.delete_configuration":
                return Done({"raid_config": {}})
    except Refused as why:
        return Failed(why.sentence)
    if name in POWER and not (at.stays_on and POWER[name] == OFF):
        machines.set_power(at, POWER[name])
        return Done({"power_state": POWER[name]})
    return Done()


def _inspected(at: Endpoint) -> Done:
    digest = hashlib.sha256(at.node.encode()).hexdigest()
    macs = [f"52:54:00:{digest[n : n + 2]}:{digest[n + 2 : n + 4]}:{digest[6:8]}" for n in (0, 8)]
    inventory = {
        "interfaces": [
            {"name": f"eth{n}", "mac_address": mac, "has_carrier": n == 0, "vendor": "0x1af4"}
            for n, mac in enumerate(macs)
        ],
        "cpu": {"model_name": "Simulated", "count": 8, "architecture": "x86_64", "flags": []},
        "memory": {"total": 16384 * 1024**2, "physical_mb": 16384},
        "disks": [{"name": "/dev/sda", "size": 200 * 1024**3, "rotational": False}],
        "system_vendor": {"manufacturer": "Siderite", "product_name": "Simulated machine",
                          "serial_number": digest[:12]},
        "boot": {"current_boot_mode": "uefi", "pxe_interface": macs[0]},
        "hostname": f"sim-{at.node[:8]}",
    }  # fmt: skip
    found = Found(inventory=inventory, plugin_data={"simulated": True}, ports=tuple(macs[:1]))
    return Done({"properties": {**_PROPERTIES, **at.properties}}, found=found)


def _settings(at: Endpoint, args: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    wanted = args.get("settings")
    if not isinstance(wanted, list) or not all(isinstance(wish, dict) for wish in wanted):
        raise Refused(
            at.bmc, "the settings", "args.settings is not a list of objects",
            'Write {"settings": [{"name": ..., "value": ...}]}.',
        )  # fmt: skip
    return wanted


def bios_settings(machines: Machines, at: Endpoint) -> list[BiosSetting]:
    """The settings as they are now."""
    changed = machines.memory(at.node).get("bios", {})
    return [
        msgspec.structs.replace(setting, value=changed.get(setting.name, setting.value))
        for setting in SETTINGS
    ]


def _apply_bios(machines: Machines, at: Endpoint, wanted: list[Mapping[str, Any]]) -> None:
    known = {setting.name: setting for setting in SETTINGS if not setting.read_only}
    changed = dict(machines.memory(at.node).get("bios", {}))
    for wish in wanted:
        name, value = str(wish.get("name")), str(wish.get("value"))
        setting = known.get(name)
        if setting is None:
            remedy = f"It has: {', '.join(known)}."
            raise Refused(at.bmc, f"BIOS setting {name!r}", "there is none to change", remedy)
        allowed = setting.allowable_values
        if allowed is not None and value not in allowed:
            remedy = f"It takes: {', '.join(allowed)}."
            raise Refused(at.bmc, f"BIOS setting {name!r}", f"it cannot be {value!r}", remedy)
        changed[name] = value
    machines.remember(at.node, bios=changed)


def firmware_components(machines: Machines, at: Endpoint) -> list[FirmwareComponent]:
    """The versions as they are now."""
    flashed = machines.memory(at.node).get("firmware", {})
    return [
        msgspec.structs.replace(
            part, current_version=flashed.get(part.component, part.current_version)
        )
        for part in FIRMWARE
    ]


def _flash(machines: Machines, at: Endpoint, wanted: list[Mapping[str, Any]]) -> None:
    """The version is what the image's name ends with: `bmc-1.2.3.bin` is 1.2.3."""
    known = [part.component for part in FIRMWARE]
    flashed = dict(machines.memory(at.node).get("firmware", {}))
    for wish in wanted:
        part, url = str(wish.get("component")), str(wish.get("url"))
        if part not in known:
            remedy = f"It has: {', '.join(known)}."
            raise Refused(at.bmc, f"firmware of {part!r}", "it has no such part", remedy)
        flashed[part] = url.rpartition("/")[2].rpartition(".")[0].rpartition("-")[2] or url
    machines.remember(at.node, firmware=flashed)


def _raid(at: Endpoint) -> dict[str, Any]:
    disks = at.target_raid_config.get("logical_disks")
    if not disks:
        return {}
    return {"logical_disks": [{"volume_name": f"Volume {n}", **d} for n, d in enumerate(disks, 1)]}
