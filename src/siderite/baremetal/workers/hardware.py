"""Drivers at the service of requests: what `usecases.machine.hardware` tells, bounded in time."""

import asyncio
from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Sequence
from typing import TypeVar

from siderite.baremetal.domain.hardware import BootDevice
from siderite.baremetal.domain.hardware import BootSetting
from siderite.baremetal.domain.hardware import Indicator
from siderite.baremetal.domain.hardware import Light
from siderite.baremetal.domain.hardware import MediaDevice
from siderite.baremetal.domain.hardware import Medium
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.domain.hardware import Sensor
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.domain.node import Node
from siderite.baremetal.drivers.contract import Driver
from siderite.baremetal.drivers.contract import Drivers
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.usecases.machine.hardware import INTERFACE
from siderite.baremetal.usecases.machine.hardware import gone
from siderite.baremetal.usecases.machine.hardware import unsupported
from siderite.core.errors import Invalid
from siderite.core.errors import SideriteError
from siderite.core.log import get_logger

log = get_logger("hardware")

T = TypeVar("T")
A = TypeVar("A")


def ability(driver: Driver | None, node: Node, name: str) -> object:
    """What the driver has by this name for this node; None if it cannot do it."""
    if driver is None or not driver.card.supports(node, INTERFACE[name]):
        return None
    found: object = getattr(driver, name)
    return found


async def bounded(at: Endpoint, doing: str, call: Awaitable[T], timeout_s: float) -> T:
    """The answer of a driver; whatever goes wrong has a sentence."""
    try:
        async with asyncio.timeout(timeout_s):
            return await call
    except SideriteError:
        raise
    except TimeoutError:
        raise Unreachable(at.bmc, doing, f"no answer within {timeout_s:g} s") from None
    except OSError as why:
        raise Unreachable(at.bmc, doing, why.strerror or type(why).__name__) from why
    except Exception as why:
        log.error("driver failed", node=at.node, doing=doing, error=repr(why), trace=why)
        raise Refused(at.bmc, doing, f"unexpected {type(why).__name__}, see the log") from why


class DrivenHardware:
    """The machines behind the nodes, by their drivers."""

    def __init__(self, drivers: Drivers, *, timeout_s: float) -> None:
        self._drivers = drivers
        self._timeout_s = timeout_s

    def can(self, node: Node, ability_: str) -> bool:
        return ability(self._drivers.get(node.driver), node, ability_) is not None

    async def boot_devices(self, node: Node) -> Sequence[BootDevice]:
        able, at = self._able(node, "boot_devices", lambda driver: driver.boot_devices)
        return await self._bounded(at, "its boot devices", able.boot_devices(at))

    async def boot_device(self, node: Node) -> BootSetting:
        able, at = self._able(node, "boot_devices", lambda driver: driver.boot_devices)
        return await self._bounded(at, "its boot device", able.boot_device(at))

    async def set_boot_device(self, node: Node, device: BootDevice, *, persistent: bool) -> None:
        able, at = self._able(node, "boot_devices", lambda driver: driver.boot_devices)
        call = able.set_boot_device(at, device, persistent=persistent)
        await self._bounded(at, f"boot device {device}", call)

    async def inject_nmi(self, node: Node) -> None:
        able, at = self._able(node, "nmi", lambda driver: driver.nmi)
        await self._bounded(at, "an NMI", able.inject_nmi(at))

    async def indicators(self, node: Node) -> Sequence[Indicator]:
        able, at = self._able(node, "indicators", lambda driver: driver.indicators)
        return await self._bounded(at, "its indicators", able.indicators(at))

    async def indicator(self, node: Node, component: str, name: str) -> Light:
        able, at = self._able(node, "indicators", lambda driver: driver.indicators)
        return await self._bounded(at, "an indicator", able.indicator(at, component, name))

    async def set_indicator(self, node: Node, component: str, name: str, to: Light) -> None:
        able, at = self._able(node, "indicators", lambda driver: driver.indicators)
        await self._bounded(at, "an indicator", able.set_indicator(at, component, name, to))

    async def sensors(self, node: Node) -> Sequence[Sensor]:
        able, at = self._able(node, "sensors", lambda driver: driver.sensors)
        return await self._bounded(at, "its sensors", able.sensors(at))

    async def media(self, node: Node) -> Sequence[Medium]:
        able, at = self._able(node, "virtual_media", lambda driver: driver.virtual_media)
        return await self._bounded(at, "its virtual media", able.media(at))

    async def insert(self, node: Node, device: MediaDevice, image_url: str) -> None:
        able, at = self._able(node, "virtual_media", lambda driver: driver.virtual_media)
        await self._bounded(at, "inserting an image", able.insert(at, device, image_url))

    async def eject(self, node: Node, device: MediaDevice) -> None:
        able, at = self._able(node, "virtual_media", lambda driver: driver.virtual_media)
        await self._bounded(at, "ejecting an image", able.eject(at, device))

    def _able(
        self, node: Node, name: str, pick: Callable[[Driver], A | None]
    ) -> tuple[A, Endpoint]:
        """What does this for the node, or why nothing does."""
        driver = self._drivers.get(node.driver)
        if driver is None:
            raise gone(node)
        problem = driver.card.problem(node)
        if problem is not None:
            raise Invalid(problem)
        able = pick(driver)
        if able is None or not driver.card.supports(node, INTERFACE[name]):
            raise unsupported(node, name)
        return able, Endpoint.of(node)

    async def _bounded(self, at: Endpoint, doing: str, call: Awaitable[T]) -> T:
        return await bounded(at, doing, call, self._timeout_s)
