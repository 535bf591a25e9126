"""The addresses of what is wanted of a machine's firmware: boot mode, secure boot, RAID."""

from typing import TYPE_CHECKING
from typing import Any

from siderite.baremetal.domain.hardware import BootMode
from siderite.baremetal.usecases.machine import firmware_settings
from siderite.baremetal.web import forms
from siderite.baremetal.web import policy
from siderite.baremetal.web.address import ident
from siderite.baremetal.web.bodies import Body
from siderite.baremetal.web.node.states import accepted
from siderite.core import shape
from siderite.core.check import short
from siderite.core.errors import Invalid
from siderite.core.errors import NotAcceptable
from siderite.core.http import Request
from siderite.core.http import Response

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

RAID_SINCE = 12
_LEVELS = ("JBOD", "0", "1", "2", "5", "6", "1+0", "5+0", "6+0")
_DISK_TYPES = ("hdd", "ssd")
_BUSES = ("sata", "scsi", "sas", "nvme")
_MOST_DISKS = 256
BOOT_MODE = Body({"target": "uefi"}, forms={"target": shape.words(BootMode)})
SECURE_BOOT = Body({"target": True}, forms={"target": shape.FLAG})


async def set_boot_mode(service: "Service", request: Request) -> Response:
    """PUT /v1/nodes/{node}/states/boot_mode"""
    target = (await BOOT_MODE.of(request))["target"]
    if not isinstance(target, str) or target not in [*BootMode]:
        raise Invalid(
            f"Invalid boot mode {short(target)} specified; there are: {', '.join(BootMode)}."
        )
    return await _ask(service, request, "boot_mode", target)


async def set_secure_boot(service: "Service", request: Request) -> Response:
    """PUT /v1/nodes/{node}/states/secure_boot"""
    target = (await SECURE_BOOT.of(request))["target"]
    if target is None:
        raise Invalid("target must be true or false.")
    return await _ask(service, request, "secure_boot", forms.flag("target", target))


async def _ask(service: "Service", request: Request, field: str, value: str | bool) -> Response:
    await firmware_settings.ask(
        service.ctx, ident(request), field, value, who=request.who, cause=service.cause(request),
        guard=policy.guard("node:management", request.who),
    )  # fmt: skip
    return accepted(service, request)


async def set_raid(service: "Service", request: Request) -> Response:
    """PUT /v1/nodes/{node}/states/raid"""
    if request.version < RAID_SINCE:
        raise NotAcceptable(f"RAID needs API version 1.{RAID_SINCE}.")
    config = raid_config(await request.json())
    await firmware_settings.set_target_raid(
        service.ctx, ident(request), config, who=request.who, cause=service.cause(request),
        guard=policy.guard("node:management", request.who),
    )  # fmt: skip
    return Response(status=204)


def raid_config(document: Any) -> dict[str, Any]:
    """A RAID configuration; an empty one clears what was wanted."""
    if not isinstance(document, dict):
        raise Invalid("The RAID configuration must be an object with logical_disks.")
    if not document:
        return {}
    extra = sorted(set(document) - {"logical_disks"})
    if extra:
        raise Invalid(f"A RAID configuration has logical_disks only, not {extra[0][:80]!r}.")
    disks = document["logical_disks"]
    if not isinstance(disks, list) or not 1 <= len(disks) <= _MOST_DISKS:
        raise Invalid(f"logical_disks must be a list of 1 to {_MOST_DISKS} disks.")
    for number, disk in enumerate(disks, 1):
        _check_disk(f"logical disk {number}", disk)
    if sum(1 for disk in disks if disk.get("is_root_volume")) > 1:
        raise Invalid("Only one logical disk can be the root volume.")
    return document


def _check_disk(where: str, disk: Any) -> None:
    if not isinstance(disk, dict):
        raise Invalid(f"{where} must be an object, not {forms.kind(disk)}.")
    for key in ("raid_level", "size_gb"):
        if key not in disk:
            raise Invalid(f"{where} lacks {key}.")
    for key, value in disk.items():
        check = _DISK.get(key)
        if check is None:
            raise Invalid(f"{where} has no property {key[:80]!r}; there are: {', '.join(_DISK)}.")
        right, words = check
        if not right(value):
            raise Invalid(f"{where}: {key} must be {words}, not {short(value)}.")


def _number(value: Any) -> bool:
    return type(value) is int and 0 < value < 10**9


_TEXT = (lambda value: isinstance(value, str) and 0 < len(value) <= 255, "text")  # noqa: PLR2004
_FLAG = (lambda value: isinstance(value, bool), "true or false")
_DISK: dict[str, tuple[Any, str]] = {
    "raid_level": (lambda value: value in _LEVELS, "one of " + ", ".join(_LEVELS)),
    "size_gb": (lambda value: value == "MAX" or _number(value), "a whole number or MAX"),
    "volume_name": _TEXT,
    "is_root_volume": _FLAG,
    "share_physical_disks": _FLAG,
    "disk_type": (lambda value: value in _DISK_TYPES, "hdd or ssd"),
    "interface_type": (lambda value: value in _BUSES, "one of " + ", ".join(_BUSES)),
    "number_of_physical_disks": (_number, "a whole number"),
    "controller": _TEXT,
    "physical_disks": (
        lambda value: (
            isinstance(value, list) and all(isinstance(item, str | dict) for item in value)
        ),
        "a list of names",
    ),
}
