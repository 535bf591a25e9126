"""What a machine tells of itself when it comes under management, as far as it answers."""

import asyncio
from collections.abc import Awaitable
from collections.abc import Sequence
from typing import Any
from typing import TypeVar

from siderite.baremetal.domain.hardware import BiosSetting
from siderite.baremetal.domain.hardware import BootMode
from siderite.baremetal.domain.hardware import FirmwareComponent
from siderite.baremetal.domain.hardware import Found
from siderite.baremetal.domain.node import Node
from siderite.baremetal.drivers.contract import Driver
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.workers.hardware import bounded
from siderite.core.errors import SideriteError
from siderite.core.log import get_logger

log = get_logger("look")

T = TypeVar("T")


async def look(driver: Driver, node: Node, timeout_s: float) -> tuple[dict[str, Any], Found]:
    """The node's fields that follow, and what is kept beside it. What fails is left out."""
    at = Endpoint.of(node)
    can = driver.card.supports
    modes = driver.boot_modes if can(node, "management") else None
    secure = driver.secure_boot if can(node, "management") else None
    bios = driver.bios if can(node, "bios") else None
    firmware = driver.firmware if can(node, "firmware") else None

    async def tried(doing: str, call: Awaitable[T] | None) -> T | None:
        if call is None:
            return None
        try:
            return await bounded(at, doing, call, timeout_s)
        except SideriteError as why:
            log.info("cannot be read", node=at.node, what=doing, error=why.sentence)
            return None

    mode: BootMode | None
    is_secure: bool | None
    settings: Sequence[BiosSetting] | None
    parts: Sequence[FirmwareComponent] | None
    mode, is_secure, settings, parts = await asyncio.gather(
        tried("its boot mode", modes.boot_mode(at) if modes else None),
        tried("secure boot", secure.secure_boot(at) if secure else None),
        tried("its BIOS settings", bios.settings(at) if bios else None),
        tried("its firmware", firmware.components(at) if firmware else None),
    )
    changes: dict[str, Any] = {}
    if mode is not None:
        changes["boot_mode"] = mode.value
    if is_secure is not None:
        changes["secure_boot"] = is_secure
    found = Found(
        bios=None if settings is None else list(settings),
        firmware=None if parts is None else list(parts),
    )
    return changes, found
