"""What a machine tells of itself when it comes under management, as far as it answers."""

from collections.abc import Awaitable
from collections.abc import Callable
from typing import Any
from typing import TypeVar

from siderite.baremetal.domain.hardware import Found
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.domain.node import Node
from siderite.baremetal.drivers.contract import Driver
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.workers.hardware import bounded
from siderite.core.errors import SideriteError
from siderite.core.log import get_logger

log = get_logger("look")

T = TypeVar("T")


async def look(driver: Driver, node: Node, timeout_s: float) -> tuple[dict[str, Any], Found]:
    """The node's fields that follow, and what is kept beside it. What fails is left out, and once
    there is no answer all that would be asked after it. One question at a time: many a BMC has
    trouble with more.
    """
    at = Endpoint.of(node)
    can = driver.card.supports
    modes = driver.boot_modes if can(node, "management") else None
    secure = driver.secure_boot if can(node, "management") else None
    bios = driver.bios if can(node, "bios") else None
    firmware = driver.firmware if can(node, "firmware") else None

    is_silent = False

    async def tried(doing: str, ask: Callable[[Endpoint], Awaitable[T]] | None) -> T | None:
        nonlocal is_silent
        if ask is None or is_silent:
            return None
        try:
            return await bounded(at, doing, ask(at), timeout_s)
        except SideriteError as why:
            log.info("cannot be read", node=at.node, what=doing, error=why.sentence)
            is_silent = isinstance(why, Unreachable)
            return None

    mode = await tried("its boot mode", modes.boot_mode if modes else None)
    is_secure = await tried("secure boot", secure.secure_boot if secure else None)
    settings = await tried("its BIOS settings", bios.settings if bios else None)
    parts = await tried("its firmware", firmware.components if firmware else None)
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
