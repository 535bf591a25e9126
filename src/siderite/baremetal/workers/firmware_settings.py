"""Boot mode and secure boot that were asked for."""

import msgspec

from siderite.baremetal.domain.hardware import BootMode
from siderite.baremetal.domain.hardware import HardwareError
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.domain.node import Node
from siderite.baremetal.drivers.contract import Drivers
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.usecases import firmware_settings
from siderite.baremetal.usecases import progress
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.firmware_settings import SettingJob
from siderite.baremetal.usecases.hardware import unsupported
from siderite.baremetal.workers.hardware import ability
from siderite.baremetal.workers.hardware import bounded
from siderite.core.errors import SideriteError
from siderite.core.work import Work

_RETRY_S = 2.0


class FirmwareSettings:
    """The handler of such work."""

    def __init__(self, ctx: Context, drivers: Drivers) -> None:
        self._ctx = ctx
        self._drivers = drivers

    async def handle(self, held: Work) -> None:
        """Have the machine changed; a BMC that is away is asked again until the deadline."""
        node = await progress.load_or_abandon(self._ctx, held)
        if node is None:
            return
        job = msgspec.json.decode(held.job, type=SettingJob)
        error: str | None = None
        try:
            await self._set(node, job)
        except Unreachable as why:
            if self._ctx.door.clock() + _RETRY_S < held.deadline:
                await firmware_settings.waits(self._ctx, held, why.sentence, _RETRY_S)
                return
            error = why.sentence
        except SideriteError as why:
            error = why.sentence
        text = None if error is None else f"Failed to change {job.field} to {job.value}: {error}"
        await firmware_settings.ended(self._ctx, held, job, text)

    async def _set(self, node: Node, job: SettingJob) -> None:
        driver = self._drivers.get(node.driver)
        name = firmware_settings.ABILITY[job.field]
        if driver is None or ability(driver, node, name) is None:
            raise unsupported(node, name)
        at = Endpoint.of(node)
        if job.field == "boot_mode" and driver.boot_modes is not None:
            call = driver.boot_modes.set_boot_mode(at, BootMode(str(job.value)))
        elif driver.secure_boot is not None:
            call = driver.secure_boot.set_secure_boot(at, bool(job.value))
        else:
            raise HardwareError
        await bounded(at, job.field.replace("_", " "), call, self._ctx.settings.hardware_timeout_s)
